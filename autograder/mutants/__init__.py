"""Mutation testing of the checks: marks every one-step change of the solutions, and lists those that lose nothing."""
