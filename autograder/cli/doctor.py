"""`autograder doctor`: what is installed, what is found, and how to fix what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from autograder.cli.errors import EXIT_FAILED
from autograder.toolkit.model.config import MODEL_VARIABLE, chosen_model

PACKAGE = "prefix-cache-course"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `remedy` is empty when there is nothing to do."""

    what: str
    found: str
    remedy: str = ""
    needed: bool = True  # False: nothing fails without it, but something works less well

    @property
    def mark(self) -> str:
        return "ok" if not self.remedy else "missing" if self.needed else "note"


def run() -> int:
    """Print the findings; the exit status is 1 when something that is needed is missing."""
    findings = list(examine())
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{finding.mark:<8} {finding.what:<{width}}  {finding.found}")
        if finding.remedy:
            print(f"{'':<8} {'':<{width}}  -> {finding.remedy}")
    missing = [finding for finding in findings if finding.mark == "missing"]
    print(f"\n{len(missing)} to fix." if missing else "\nNothing is missing.")
    return EXIT_FAILED if missing else 0


def examine() -> Iterator[Finding]:
    """Look at the installation, the machine, the models and the current folder."""
    yield from _chosen_model()
    yield _python()
    yield _package()
    yield from _dependencies()
    yield _alembic()
    yield _sandbox()
    yield _worker()
    yield _numpy()
    yield _tiny_model()
    yield _fetched_models()
    yield _folder()


def _python() -> Finding:
    found = f"{platform.python_version()} in {sys.prefix}"
    return Finding("Python", found, "" if sys.version_info >= (3, 10) else "install Python 3.10 or newer")


def _package() -> Finding:
    where = Path(__file__).resolve().parents[1]
    try:
        return Finding("autograder", f"{version(PACKAGE)} in {where}")
    except PackageNotFoundError:
        return Finding("autograder", f"not installed, only found in {where}", f"pip install {where.parent}")


def _dependencies() -> Iterator[Finding]:
    """One line for all packages that are right, and one for each that is missing or too old."""
    from packaging.requirements import Requirement

    try:
        wanted = [Requirement(text) for text in requires(PACKAGE) or () if "extra ==" not in text]
    except PackageNotFoundError:
        return  # the requirements are known only for an installed package
    good = []
    for requirement in wanted:
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            yield Finding(requirement.name, "not installed", f"pip install '{requirement}'")
            continue
        if requirement.specifier.contains(found, prereleases=True):
            good.append(f"{requirement.name} {found}")
        else:
            yield Finding(requirement.name, found, f"pip install '{requirement}'")
    shown = [text for text in good if text.split()[0] in ("jupyterlab", "nbgrader", "numpy")]
    yield Finding("packages", f"{', '.join(shown)} and {len(good) - len(shown)} more")


def _alembic() -> Finding:
    """nbgrader calls it by name when it makes a gradebook; the course's configuration puts it on PATH."""
    from autograder.grading.environment import put_own_programs_on_path

    put_own_programs_on_path()
    if found := shutil.which("alembic"):
        return Finding("alembic", found)
    return Finding("alembic", "not found", "pip install alembic, in the environment that nbgrader runs in")


def _sandbox() -> Finding:
    """The mode that a run would have, and why it is not a better one."""
    from autograder.sandbox.isolation import MODE_VARIABLE, REMEDY, SandboxMissing, find_isolation

    try:
        found = find_isolation()
    except SandboxMissing as error:
        del os.environ[MODE_VARIABLE]  # so that the rest can still be examined
        what, _, remedy = str(error).rstrip(".").rpartition("; ")
        return Finding("sandbox", what, remedy)
    if found.sandboxed:
        return Finding("sandbox", f"{found.mode}, which works here" + (f" ({found.why})" if found.why else ""))
    remedy = f"before grading other people's code, {REMEDY}; without a sandbox, root cannot grade"
    return Finding("sandbox", found.missing, remedy, needed=False)


def _chosen_model() -> Iterator[Finding]:
    """A finding if the model that was chosen cannot be loaded; the rest is then examined without it."""
    if chosen_model() != "tiny":
        from autograder.toolkit.model import ModelError, load_model

        try:
            load_model()
        except ModelError as error:
            del os.environ[MODEL_VARIABLE]
            yield Finding(MODEL_VARIABLE, str(error), "unset it, or name a model that is there")


def _worker() -> Finding:
    """Whether the worker starts: it sees neither packages in the user's home directory nor PYTHONPATH."""
    from autograder.sandbox.client import Worker, WorkerGone

    try:
        with Worker():
            return Finding("checks", "the process that runs a notebook's cells starts")
    except WorkerGone as gone:
        remedy = "install the package in a virtual environment, without --user and without PYTHONPATH"
        return Finding("checks", f"the process that runs a notebook's cells does not start: {gone.reason}", remedy)


def _numpy() -> Finding:
    from autograder.toolkit.timing import machine

    return Finding("machine", machine())


def _tiny_model() -> Finding:
    from autograder.toolkit.model import ModelError, load_model, load_tokenizer

    try:
        load_tokenizer("tiny")
        return Finding("model tiny", repr(load_model("tiny")))
    except ModelError as error:
        return Finding("model tiny", str(error), "install the package again")


def _fetched_models() -> Finding:
    from autograder.toolkit.chat.load import CHAT_MODELS
    from autograder.toolkit.model.config import PUBLISHED
    from autograder.toolkit.model.load import is_fetched

    found = [name for name in (*PUBLISHED, *CHAT_MODELS) if is_fetched(name)]
    if chosen_model() != "tiny":
        return Finding("models fetched", f"{', '.join(found) or 'none'}; {MODEL_VARIABLE}={chosen_model()}")
    return Finding("models fetched", ", ".join(found) or "none, and none is needed (`autograder fetch gpt2` gets one)")


def _folder() -> Finding:
    from autograder.cli.errors import UserError
    from autograder.cli.find import find_work

    try:
        work = find_work(None, None)
    except UserError:
        return Finding("this folder", "no notebook with checks, or more than one")
    return Finding("this folder", f"{work.path.name}, stage {work.stage.name}")
