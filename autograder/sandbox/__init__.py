"""The grader's side of the worker: where its process runs, how it is asked, and how it is ended."""
