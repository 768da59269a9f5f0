"""A student's page of feedback: nbgrader's, with the course's titles, and told apart what nobody has graded yet."""
