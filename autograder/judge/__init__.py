"""The judge: inputs, the reference, the checks and the score. Grading keeps it out of the student's process."""
