"""The grader's side of the worker: starts its process in a sandbox, sends it requests, and ends it."""
