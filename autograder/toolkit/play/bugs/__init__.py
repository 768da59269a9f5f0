"""One file per stage: a function with a bug to find, and multiple-choice questions. None of it is graded."""
