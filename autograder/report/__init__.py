"""The page about a class that `autograder report` writes."""
