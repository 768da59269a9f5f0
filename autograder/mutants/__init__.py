"""Mutation testing of the checks: grades every one-step change of the solutions, and lists those that lose nothing."""
