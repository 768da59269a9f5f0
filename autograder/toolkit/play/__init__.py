"""What makes the notebooks worth playing with: guesses, questions with choices, bugs to find, and text as it appears.

Nothing here is graded, and nothing here knows how scores are decided.
"""
