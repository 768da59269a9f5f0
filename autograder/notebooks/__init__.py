"""Notebooks: building the assignments from solutions/, and reading what students made of them."""
