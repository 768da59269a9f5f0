"""What a check is, how it fails, and how one is run.

One check is one property. It is a plain function of a `student` and of `cases`; it returns when the property holds and
raises `Failure` when it does not.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.judge.bugs import INPUT_CHANGED, NOT_DEFINED, NOT_WRITTEN, NOTHING_TO_JUDGE, SYNTAX_ERROR, Bug
from autograder.judge.student_error import IS_NONE, NoAnswer
from autograder.plain_text import one_line
from autograder.stages import earlier_stages, find_stage

if TYPE_CHECKING:
    from autograder.judge.student import Student

MAX_LINE = 2000  # characters of a sentence in a message


class Failure(Exception):
    """The property does not hold.

    detail: size and place, in a sentence. figures: the same as a table's rows, if it is about numbers.
    prop: the property in a sentence; None means the check's docstring.
    """

    def __init__(
        self, detail: str, bug: Bug | None = None, figures: dict[str, str] | None = None, prop: str | None = None
    ):
        super().__init__(detail)
        self.prop = prop
        self.detail = detail
        self.bug = bug
        self.figures = figures or {}


@dataclass(frozen=True)
class Result:
    """The result of a check, from the check to the report: a grader sends it, and a record holds it as JSON.

    A failure has three levels: `message`, what was seen; `look`, where to look; `cause`, if it is known. bug is set
    if a known one explains the failure. points is the check's own number until the gradebook's replaces it, with
    the score in proportion. broke: the place in the judge that could not handle a value, for the maintainer. figures:
    those of the message, as a table's rows. roots: failures with the same cause share one; empty if the cause is
    unknown. places: the functions and methods that can be at fault, the subject of the failure first.
    """

    id: str
    title: str
    points: float
    score: float
    passed: bool
    message: str = ""
    bug: Bug | None = None
    broke: str = ""
    look: str = ""
    cause: str = ""
    figures: dict[str, str] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def told(self, level: int = 3) -> str:
        """The text of the levels up to this one, with a line for each sentence."""
        return "\n".join(part for part in (self.message, self.look, self.cause)[:level] if part)

    def following(self, earlier: Iterable[Result]) -> Result:
        """The result; if an earlier one has the same cause, the name of that check replaces the cause."""
        first = next((other for other in earlier if set(self.roots) & set(other.roots)), None)
        if first is None:
            return self
        if set(self.roots) & set(first.roots) == {IS_NONE}:  # which may come from another function
            return replace(self, cause=f'A value is None in the check "{first.title}" too: begin there.')
        told = [*self.roots, *(f" raised {root.partition(' at ')[0]}" for root in self.roots)]
        lines = [line for line in self.message.splitlines() if line not in first.message.splitlines()]
        new = [line for line in lines if not any(part in line for part in told)]
        follows = f'This follows from the check "{first.title}".'
        return replace(self, message=in_lines(*new, follows), look="", cause="")


@dataclass(frozen=True)
class Check:
    """One property of a stage, and its points. A step has no points: it tests a helper, for the student only."""

    stage: str
    id: str
    points: int
    title: str
    run: Callable[[Any, Any], None]
    watches: tuple[str, ...] = ()

    @property
    def graded(self) -> bool:
        return self.points > 0

    @property
    def property(self) -> str:
        """The property, as the first sentence of a failure: the first paragraph of the check's docstring."""
        text = inspect.getdoc(self.run) or self.title
        return " ".join(text.split("\n\n")[0].split())

    def passed(self) -> Result:
        return Result(self.id, self.title, self.points, self.points, True)

    def failed(self, message: str, bug: Bug | None = None, **more: Any) -> Result:
        return Result(self.id, self.title, self.points, 0, False, message, bug, **more)


_REGISTRY: dict[str, Check] = {}


def check(title: str, *, points: int, watches: tuple[str, ...] = ()) -> Callable:
    """Register a function as a check. Its docstring's first paragraph is the property that the student reads.

    Its name gives the check's id, "reuse-refusals" for reuse_refusals, and its module's folder the stage.
    watches: the student's functions that fail this check, and only this one, if they change an argument in place.
    """

    def register(function):
        id = function.__name__.replace("_", "-")
        if id in _REGISTRY:
            raise ValueError(f"the check {id!r} is defined twice")
        stage = find_stage(function.__module__.split(".")[-2])
        _REGISTRY[id] = Check(stage.name, id, points, title, function, watches)
        return function

    return register


@functools.cache
def _load(module: str) -> None:
    importlib.import_module(f"autograder.stages.{module}")


def checks_of(stage_name: str) -> list[Check]:
    """The checks of a stage that have points, in the order of definition."""
    return [c for c in checks_and_steps_of(stage_name) if c.graded]


def checks_and_steps_of(stage_name: str) -> list[Check]:
    """All checks of a stage, including those without points, in the order of definition."""
    stage = find_stage(stage_name)
    if stage.graded:
        _load(stage.module)
    return [c for c in _REGISTRY.values() if c.stage == stage.name]


def find_check(check_id: str) -> Check:
    """The check with this id, of any stage; raises ValueError if there is none."""
    from autograder.stages import GRADED_STAGES

    for stage in GRADED_STAGES:
        for candidate in checks_and_steps_of(stage.name):
            if candidate.id == check_id:
                return candidate
    raise ValueError(f"There is no check {check_id!r}.")


def run_check(check: Check, student: Any, seed: int, trained: str | None = None) -> Result:
    """Run one check on a student. Raises only the exception with which `student` reports that its process ended.

    Any other exception comes from judging what the student's code returned, and fails the check.
    """
    from autograder.judge.cases import Cases

    student.watched = check.watches
    try:
        with np.errstate(all="ignore"):  # in the judge's arithmetic with a student's numbers
            check.run(student, Cases(seed, check.id, trained))
    except Failure as failure:
        return _failed(check, failure, student, student.error_in(failure.detail))
    except NoAnswer as error:
        bug = NOT_WRITTEN if error.stub else NOT_DEFINED if error.kind == "missing" else None
        return _failed(check, Failure(error.sentence, bug), student, error)
    except Exception as error:
        if error is student.gone:
            raise
        detail = f"{student.last_answer}, which this check cannot judge."
        return check.failed(in_lines(check.property, detail), broke=_place(error))
    finally:
        student.release_all()
    return check.passed()


def _failed(check: Check, failure: Failure, student: Student, error: NoAnswer | None) -> Result:
    """The result of a failure. error: what the student's code raised, if that is the failure."""
    bug = SYNTAX_ERROR if error and error.not_parsed else failure.bug
    cause = (bug and bug.sentence) or (error.cause if error else "")
    stage = find_stage(check.stage)
    given = [name for earlier in earlier_stages(stage) for name in earlier.functions]
    places = student.places(failure.detail, stage.functions, given)
    if bug is INPUT_CHANGED:
        places = places[:1]
    look = _look_in(places, f"Look at {bug.look}: in" if bug and bug.look else "Look in")
    roots = (failure.detail if bug is INPUT_CHANGED else bug.key,) if bug and bug not in NOTHING_TO_JUDGE else ()
    if error:
        then = "" if error.stub else _look_in(places, "Then look in the rest of")
        look, roots = "\n".join(filter(None, (error.look, then))) if error.look else "", (*error.roots, *roots)
    return check.failed(
        in_lines(failure.prop or check.property, failure.detail),
        bug,
        look=look,
        cause=in_lines(cause),
        figures=failure.figures,
        roots=roots,
        places=tuple(places),
    )


def _look_in(places: Sequence[str], begin: str) -> str:
    # "any", because there may be no such function
    calls = "they call" if places[1:] else "it calls"
    return f"{begin} {in_places(places)}, and in any function of yours that {calls}." if places else ""


def in_places(places: Iterable[str]) -> str:
    """Functions and methods as text, grouped by class: "f, LayerCache.append and ModelCache (clone, len)"."""
    methods: dict[str, list[str]] = {}
    for place in places:
        of_class, _, method = place.rpartition(".")
        methods.setdefault(of_class or place, []).extend([method] if of_class else [])
    words = [
        f"{name} ({', '.join(some)})" if len(some) > 1 else ".".join([name, *some]) for name, some in methods.items()
    ]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def in_lines(*sentences: str) -> str:
    """A check's message: one line per sentence, whatever a quoted part of the student's code contains."""
    return "\n".join(one_line(sentence, MAX_LINE) for sentence in sentences)


def _place(error: Exception) -> str:
    """The type of an error and its place. Its message is left out, because it may hold hidden inputs."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return type(error).__name__ + where
