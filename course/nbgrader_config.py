"""nbgrader's configuration for this course: scores are decided by the autograder package, stored and shown by nbgrader.

nbgrader reads this file more than once in a run, so everything here is assigned and nothing is added to.
"""

from pathlib import Path

from autograder.grading.environment import put_own_programs_on_path, silence_known_warnings
from autograder.stages import GRADED_STAGES
from autograder.toolkit.threads import use_one_thread

course = Path(__file__).resolve().parent
put_own_programs_on_path()  # nbgrader runs "alembic" by name when it makes a gradebook
silence_known_warnings()
use_one_thread()

c = get_config()  # noqa: F821 - given by nbgrader
c.CourseDirectory.root = str(course)
c.CourseDirectory.db_url = f"sqlite:///{course / 'gradebook.db'}?timeout=60"  # seconds to wait for another process
c.CourseDirectory.course_id = "prefix-cache"  # the exchange, JupyterHub and PostgreSQL need one
c.CourseDirectory.ignore = [".ipynb_checkpoints", "__pycache__", "*.pyc", ".*", "feedback"]

# Submissions are graded by the course's own loop, without a notebook kernel: the notebook is rebuilt from source/, the
# checks judge it from another process, and the scores go to the gradebook as nbgrader's own steps would store them.
# nbgrader's lists of preprocessors for autograde have no part in it; its penalties for late submissions have.
c.Autograde.exporter_class = "autograder.grading.exporter.SubmissionExporter"
c.SubmissionExporter.require_sandbox = False  # True: grade nothing without a sandbox (bubblewrap or Landlock)
# c.SubmissionExporter.allow_unsandboxed = True  # let root grade without one too, as in a container for this alone
# c.SubmissionExporter.display_run = True  # show what the student's own cells print and draw in the feedback
# c.SubmissionExporter.display_seconds = 60  # the longest that this may take for one notebook

# What a learning platform gives for download goes to downloaded/ASSIGNMENT/archive/, zipped or not, and then
# `nbgrader zip_collect ASSIGNMENT` puts it into submitted/. The names of files that are known:
#   Moodle  Doe Jane_123456_assignsubmission_file_save_and_reuse.ipynb, or a folder of that name
#   Canvas  doejane_123_456_save_and_reuse.ipynb, doejane_LATE_123_456_save_and_reuse-1.ipynb
#   other   jdoe_save_and_reuse.ipynb: the student, then the notebook's own name
_moodle_or_canvas = r"(?:_\d+_assignsubmission_file_?|(?:_LATE)?_\d+_\d+_)(?:[^/\\]*[/\\])*"
_modules = "|".join(stage.module for stage in GRADED_STAGES)
c.FileNameCollectorPlugin.named_regexp = (
    r".*[/\\]extracted[/\\](?:[^/\\]+[/\\])*?"
    rf"(?P<student_id>[^/\\.][^/\\]*?)(?:(?P<platform>{_moodle_or_canvas})|_)"
    rf"(?P<file_id>(?(platform)[^/\\.][^/\\]*?|(?:{_modules})))(?:-\d+)?\.ipynb$"
)

# The page of feedback says which check, and what nobody has graded yet
c.GenerateFeedback.exporter_class = "autograder.feedback.page.FeedbackExporter"
c.GenerateFeedback.preprocessors = [
    "autograder.feedback.page.ShowScores",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# grades.csv, in which a score that is missing is not a 0
c.ExportApp.plugin_class = "autograder.grading.export.GradesExport"
