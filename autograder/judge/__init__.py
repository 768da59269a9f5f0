"""The judge: inputs, the reference, the checks and the score. Never executed beside a student's graded code."""
