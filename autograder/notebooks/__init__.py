"""Builds the assignments from solutions/, and reads the notebooks that students hand in."""
