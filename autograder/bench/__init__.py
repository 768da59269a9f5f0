"""Benchmarks: `python -m autograder.bench`, or `make bench`."""
