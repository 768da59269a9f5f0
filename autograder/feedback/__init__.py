"""A student's page of feedback: nbgrader's page with the course's titles, and with ungraded answers marked."""
