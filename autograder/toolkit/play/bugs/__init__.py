"""One file a stage: a function with a bug to find, and questions with choices. None of it is graded."""
