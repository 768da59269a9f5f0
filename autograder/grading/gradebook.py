"""What the grader reads and resets in nbgrader's gradebook. Scores are stored by nbgrader's own preprocessor."""

from __future__ import annotations

from nbgrader.api import Gradebook, MissingEntry


def reset_scores(db_url: str, course_id: str, assignment: str, student: str) -> set[str]:
    """Take back what an earlier grading found, so that no old score survives a grading that fails.

    What a person gave stays: manual scores, extra credit, comments. Returns the cells that a person was done with.
    """
    done: set[str] = set()
    with Gradebook(db_url, course_id) as gradebook:
        try:
            submission = gradebook.find_submission(assignment, student)
        except MissingEntry:
            return done
        for notebook in submission.notebooks:
            notebook.late_submission_penalty = None
            for grade in notebook.grades:
                if grade.manual_score is not None and not grade.needs_manual_grade:
                    done.add(grade.name)
                grade.auto_score = None
                grade.needs_manual_grade = True  # until nbgrader stores a new score, a person has to look at it
            for comment in notebook.comments:
                comment.auto_comment = None
        gradebook.db.commit()
    return done


def max_points(db_url: str, course_id: str, assignment: str, notebook: str) -> dict[str, float]:
    """The points of each graded cell, as registered when the assignment was built."""
    with Gradebook(db_url, course_id) as gradebook:
        return {cell.name: float(cell.max_score) for cell in gradebook.find_notebook(notebook, assignment).grade_cells}
