"""A course folder for tests, with save-and-reuse in it: submissions are handed in and nbgrader's commands are run."""

import contextlib
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.cli.sample_class import allow_unsandboxed, write_submission
from autograder.grading.claims import Claims
from autograder.judge.framework import checks_of
from autograder.notebooks.build import build
from autograder.places import ROOT
from autograder.stages import find_stage
from autograder.stages.samples import Wrong, solved_cells, submissions_of
from autograder.tests.accounts import Account
from autograder.tests.command import run_nbgrader
from autograder.tests.waiting import wait_until

STAGE = find_stage("save-and-reuse")
NAME = f"{STAGE.module}.ipynb"
# What `python -m nbgrader` does, in half the time; test_demo.py has the command as it is
NBGRADER = "from autograder.grading.environment import import_nbgrader; import_nbgrader(); "
NBGRADER += "from nbgrader.apps.nbgraderapp import main; main()"
CHECKS = {c.id: c for c in checks_of(STAGE.name)}
ALL = sum(c.points for c in CHECKS.values())


@functools.cache
def built(*stages):
    """A course folder with these stages, built once for all test processes; copy it, and never change it."""
    shared = Path(os.environ["AUTOGRADER_TESTS"])
    folder = shared / "-".join(stage.module for stage in stages)
    with contextlib.closing(Claims(shared)) as claims:
        assert wait_until(lambda: claims.take(folder.name), 120)
        if not folder.exists():
            build(ROOT, making := folder.with_suffix(".making"), stages)
            making.rename(folder)
    return folder


class Course:
    """A course folder as solutions/ build it."""

    def __init__(self, folder, account=None):
        self.folder = folder
        self.account = account or Account()
        shutil.copytree(built(STAGE), folder, dirs_exist_ok=True)
        allow_unsandboxed(folder)  # what must not be graded so, its tests grade with require_sandbox

    def run(self, *command, **variables):
        """Run nbgrader's command. PATH is the one with which this process found the sandbox."""
        environment = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"} | variables
        if self.account.home is None:
            return run_nbgrader(command, self.folder, environment)
        environment["HOME"] = str(self.account.home)
        self.account.owns(self.folder)
        return subprocess.run(
            [self.account.python, "-c", NBGRADER, *command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
            **self.account.options,
        )

    def path(self, student, step="submitted", name=NAME):
        return self.folder / step / student / STAGE.assignment / name

    def hand_in(self, student, sources=None, change=None, name=NAME):
        """Hand in the released notebook with these solutions in it (all solved when None)."""
        sources = solved_cells(STAGE.name) if sources is None else sources
        folder = self.path(student).parent
        path = write_submission(self.folder / "release" / STAGE.assignment, folder, STAGE, sources)
        if change is not None:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            change(notebook)
            path.write_text(json.dumps(notebook), encoding="utf-8")
        path.rename(folder / name)

    def scores(self, student):
        """The gradebook's automatic score of each check."""
        with self.gradebook() as gradebook:
            notebook = gradebook.find_submission_notebook(STAGE.module, STAGE.assignment, student)
            return {g.name: g.auto_score for g in notebook.grades if g.name in CHECKS}

    def gradebook(self):
        return Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}")

    def outputs(self, student):
        """The outputs of each check's cell in the autograded notebook."""
        notebook = json.loads(self.path(student, "autograded").read_text(encoding="utf-8"))
        return {c["id"]: c["outputs"] for c in notebook["cells"] if c["id"] in CHECKS}

    def feedback(self, student):
        return self.path(student, "feedback", f"{STAGE.module}.html").read_text(encoding="utf-8")


def hand_in_a_class(course, n_wrong):
    """Hand in right and wrong work, one that ends its process, and one under another name."""
    wrong = [s for s in submissions_of(STAGE.name) if isinstance(s, Wrong) and 0 < len(s.loses) < len(CHECKS)]
    for number, submission in enumerate(wrong[:n_wrong]):
        course.hand_in(f"wrong-{number}", submission.sources(STAGE))
    for name in ("anna", "Zo\u00eb M\u00fcller"):
        course.hand_in(name)
    course.hand_in("crasher", change=own_cell("import os\nos._exit(1)"))
    course.hand_in("renamed", name="final (2).ipynb")


def own_cell(source):
    def add(notebook):
        own = {"cell_type": "code", "id": "own", "metadata": {}, "source": source}
        notebook["cells"].insert(0, own | {"outputs": [], "execution_count": None})

    return add
