"""The interactive parts of the notebooks: guesses, multiple-choice questions, bugs to find, and text as it appears.

Nothing here is graded, and nothing here knows how scores are decided.
"""
