"""The worker: a separate process that runs the student's code and answers the judge's requests."""
