"""The bugs that only the checks of prefill-decode name, as constants: bugs.txt has them."""

from autograder.judge.bugs import read

globals().update(read(__file__))
