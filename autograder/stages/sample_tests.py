"""The grader, graded: every right submission gets all points, every wrong one loses exactly the checks it should.

Each stage's test_samples.py makes a class of SampleTable, so that its table is a file of its own to pytest. Right
submissions are graded in a worker, where nothing honest may fail. Wrong ones are graded in this process, as in a
notebook's kernel, which is faster; so is what a stage's test_checks.py asks of changed solutions.
"""

import atexit
import collections
import contextlib
import functools
import os
import re
import sys
import tempfile
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import jupytext
import numpy as np
import pytest

from autograder.bench.solved import solved
from autograder.judge.bugs import NOT_WRITTEN
from autograder.judge.cases import JudgeModel
from autograder.judge.framework import Result, checks_and_steps_of, checks_of, run_check
from autograder.judge.reference import Reference
from autograder.judge.student import Student, local_student
from autograder.notebooks.given import given_source
from autograder.notebooks.regions import released
from autograder.places import SOLUTIONS
from autograder.sandbox.client import Cell, Worker
from autograder.sandbox.processes import new_processes
from autograder.stages import earlier_stages, find_stage
from autograder.stages.samples import Right, Wrong, setup_cells, solved_cells, submissions_of
from autograder.worker import protocol
from autograder.worker.runtime import Runtime, import_given

HIDDEN_SEED = 20_011  # any seed but the visible one
OTHER_SEED = 20_012


class Replay:
    """Answers as somebody once did, by the order of the questions of a kind, whatever is asked. Starts with nothing.

    A kind is a request's operation and the name of the function.
    """

    def __init__(self, kept=()):
        self.kept = collections.defaultdict(list, kept)
        self._asked = collections.Counter()

    def keeping(self, perform):
        """Performs, and keeps the replies."""

        def performing(request):
            reply = perform(request)
            self.kept[kind_of(request)].append(reply)
            return reply

        return performing

    def __call__(self, request):
        kind = kind_of(request)
        replies = self.kept.get(kind, [{"value": None}])
        self._asked[kind] += 1
        return replies[min(self._asked[kind], len(replies)) - 1]


def kind_of(request):
    return request["op"], request.get("name")


_greedy = functools.lru_cache(maxsize=2000)(Reference.greedy)


@functools.lru_cache(maxsize=100)
def _patched(model, tensor, shape, data, patched=JudgeModel.patched):
    return patched(model, tensor, np.frombuffer(data, np.float32).reshape(shape))


def judge(check, student, seed):
    """run_check, with models of a replaced tensor made and greedy ids computed once for all submissions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            JudgeModel, "patched", lambda self, name, a: _patched(self, name, a.shape, np.float32(a).tobytes())
        )
        patch.setattr(Reference, "greedy", lambda self, ids, n_new: _greedy(self, tuple(ids), n_new))
        return run_check(check, student, seed)


@dataclass
class Graded:
    """A graded sample: by check, the result, the lists of ids that it was asked about, and the solution's answers."""

    results: dict[str, Result] = field(default_factory=dict)
    asked: dict[str, set[tuple[int, ...]]] = field(default_factory=dict)
    answers: dict[str, Replay] = field(default_factory=lambda: collections.defaultdict(Replay))

    @property
    def lost(self):
        return {check for check, result in self.results.items() if result.points and not result.passed}


@functools.cache
def graded(stage_name, name):
    """The sample submission, graded once."""
    stage, found = find_stage(stage_name), Graded()
    submission = next(s for s in submissions_of(stage_name) if s.name == name)
    cells = setup_cells(stage_name) + [Cell(m, s) for m, s in submission.sources(stage).items()]
    where = a_worker if isinstance(submission, Right) else this_process
    with where(given_file(stage_name)) as perform:
        for cell in cells:
            reply = perform({"op": "run_cell", "label": cell.label, "source": cell.source})
            assert reply.get("error") is None, f"{cell.label}: {reply}"
        known = {}
        for check in checks_and_steps_of(stage_name):
            requests = []

            def recorded(request, requests=requests):
                requests.append(request)
                return perform(request)

            asking = found.answers[check.id].keeping(recorded) if name == "solution" else recorded
            result = found.results[check.id] = judge(check, Student(asking, known=known), HIDDEN_SEED)
            if name == "solution" or NUMBERS.search(result.told()):  # else nobody looks for the lists
                found.asked[check.id] = {some for request in requests for some in lists_in(request)}
    return found


@functools.cache
def given_file(stage_name):
    """The path of the stage's given.py, which is empty for the first."""
    path = Path(tempfile.mkdtemp(dir=os.environ["AUTOGRADER_TESTS"])) / "given.py"
    path.write_text(given_source(find_stage(stage_name)) or "", encoding="utf-8")
    return path


@functools.cache
def processes_from(given):
    """The process from which the workers with this given.py are forked."""
    processes = new_processes(given)
    atexit.register(processes.close)
    return processes


def shared_worker(given=None, **options):
    """A worker in the sandbox that tests share, as the submissions of a class do."""
    return Worker(processes=processes_from(given), **options)


@contextlib.contextmanager
def a_worker(given):
    with shared_worker(given) as worker:
        yield worker.request


@contextlib.contextmanager
def this_process(given):
    """Requests are answered here, in an empty folder; what is given out is kept no longer than the submission."""
    before = os.getcwd()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that a wrong solution makes
        patch.setitem(sys.modules, "given", None)
        import_given(str(given))
        patch.setattr(Runtime, "_given_out", [])
        runtime = Runtime(types.ModuleType("__main__").__dict__)
        os.chdir(folder)
        try:
            yield lambda request: protocol.decode(runtime.answer(request)[protocol.HEAD_BYTES :])
        finally:
            os.chdir(before)


class SampleTable:
    """The tests of one stage's samples. `stage` is its name.

    same_for_all: the checks whose right answers are the same for all inputs, in the order in which they are asked.
    """

    stage = ""
    same_for_all: frozenset[str] = frozenset()

    def pytest_generate_tests(self, metafunc):
        for fixture, samples in (("right", self.right()), ("wrong", self.wrong())):
            if fixture in metafunc.fixturenames:
                metafunc.parametrize(fixture, samples, ids=[s.name for s in samples])

    def right(self):
        return [s for s in submissions_of(self.stage) if isinstance(s, Right)]

    def wrong(self):
        return [s for s in submissions_of(self.stage) if isinstance(s, Wrong)]

    def results_of_wrong(self):
        return {s.name: graded(self.stage, s.name).results for s in self.wrong()}

    def test_a_right_submission_gets_every_point(self, right):
        results = graded(self.stage, right.name).results
        assert {c: r.message for c, r in results.items() if r.points and not r.passed} == {}

    def test_a_wrong_submission_loses_exactly_its_checks(self, wrong):
        assert graded(self.stage, wrong.name).lost - set(wrong.also) == set(wrong.loses)

    def test_a_wrong_submission_is_told_its_bug_and_no_other(self):
        told = {name: {r.bug.key for r in of.values() if r.bug} for name, of in self.results_of_wrong().items()}
        assert told == {s.name: {s.bug, *s.follows} - {None} for s in self.wrong()}

    def test_where_to_look_is_never_what_an_earlier_stage_gives(self):
        given = {name for stage in earlier_stages(find_stage(self.stage)) for name in stage.functions}
        results = [result for of in self.results_of_wrong().values() for result in of.values()]
        assert {place.partition(".")[0] for result in results for place in result.places} & given == set()

    @pytest.fixture
    def in_a_folder_of_its_own(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # some checks have files written

    @pytest.mark.usefixtures("in_a_folder_of_its_own")
    @pytest.mark.parametrize("seed", range(4))
    def test_the_solution_passes_whatever_the_seed(self, seed):
        assert lost(self.stage, changed(self.stage), seed) == set()

    @pytest.mark.usefixtures("in_a_folder_of_its_own")
    def test_the_released_cells_are_told_to_be_unwritten(self):
        cells = jupytext.read(SOLUTIONS / f"{find_stage(self.stage).module}.py").cells
        stubs = [released(c.source) for c in cells if c.cell_type == "code" and "solution" in c.metadata]
        found = results(self.stage, changed(self.stage, sources=stubs)).values()
        assert {(r.score, r.bug) for r in found} == {(0.0, NOT_WRITTEN)}

    def test_every_check_and_every_step_is_lost_by_some_wrong_submission(self):
        lost = {check for s in self.wrong() for check in s.loses}
        lost |= {c for of in self.results_of_wrong().values() for c, r in of.items() if not r.points and not r.passed}
        assert {c.id for c in checks_and_steps_of(self.stage)} - lost == set()

    def test_what_was_right_for_other_inputs_earns_nothing(self):
        """The order of the questions may be learned at home; answers that were noted there must not fit."""
        replays = {
            check: Replay(graded(self.stage, "solution").answers[check.id].kept) for check in checks_of(self.stage)
        }
        earned = {c.id for c, replay in replays.items() if run_check(c, Student(replay), OTHER_SEED).passed}
        assert earned == self.same_for_all

    def test_a_stage_has_enough_submissions(self):
        assert len(self.wrong()) >= 12
        assert len(self.right()) >= 5  # the solution and four other styles

    def test_a_message_prints_no_hidden_input(self):
        for sample in self.wrong():
            found = graded(self.stage, sample.name)
            told = {check: found.results[check].told() for check in found.asked}
            assert {c: t for c, t in told.items() if shows(t, found.asked[c])} == {}, sample.name

    def test_every_list_of_ids_that_is_asked_is_looked_for(self):
        of_each_check = graded(self.stage, "solution").asked.values()
        lists = {some for found in of_each_check for some in found if min(some) >= 0}
        assert lists
        assert all(shows(f"It fails for {list(some)}.", {some}) for some in lists)
        assert not shows("It fails for 12 of 400 tokens, first for [9, 9, 9].", lists)


NUMBERS = re.compile(r"\d+(?:[,\s]+\d+){2,}")


def shows(message, lists):
    """Whether a message prints three ids in a row of one of the lists, as lists are printed."""
    printed = (re.findall(r"\d+", text) for text in NUMBERS.findall(message))
    numbers = {run for text in printed for run in runs(text)}
    return any(tuple(map(str, run)) in numbers for some in lists for run in runs(some)) if numbers else False


def runs(items):
    return zip(items, items[1:], items[2:], strict=False)


def lists_in(request):
    """The lists of three token ids or more in what a student's process is asked."""
    if isinstance(request, np.ndarray):
        request = request.tolist() if request.dtype.kind in "iu" else ()
    parts = request.values() if isinstance(request, dict) else request if isinstance(request, (list, tuple)) else ()
    if set(map(type, parts)) != {int}:
        for part in parts:
            yield from lists_in(part)
    elif len(parts) > 2:
        yield tuple(parts)


_solved = functools.cache(solved)


def changed(stage_name, *changes, sources=()):
    """The namespace of a stage's solution: changes are (cell, text there, text instead), and sources run after it."""
    cells = dict(solved_cells(stage_name))
    for cell, old, new in changes:
        assert cells[cell].count(old) == 1
        cells[cell] = cells[cell].replace(old, new)
    names = {**vars(_solved(stage_name)), "__name__": "student"}
    for source in (*cells.values(), *sources):
        exec(compile(source, "<student>", "exec"), names)
    return names


def results(stage_name, namespace, seed=HIDDEN_SEED, only=None):
    """What the checks find of a namespace; only: the one check that is run."""
    with np.errstate(all="ignore"):  # of numbers that a wrong solution makes
        student = local_student(namespace)
        return {c.id: judge(c, student, seed) for c in checks_of(stage_name) if only in (None, c.id)}


def lost(stage_name, namespace, seed=HIDDEN_SEED):
    return {check for check, result in results(stage_name, namespace, seed).items() if not result.passed}
