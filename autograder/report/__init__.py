"""The page about a class: what `autograder report` writes."""
