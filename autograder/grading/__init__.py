"""Grading: from what was handed in to scores in nbgrader's gradebook, and the records that say how they came about."""
