"""The grader, graded: every right submission gets all points, every wrong one loses exactly the checks it should.

Each stage's test_samples.py makes a class of SampleTable, so that its table is a file of its own to pytest. What a
stage's test_checks.py asks of changed solutions runs in this process: see `changed` and `results`.
"""

import collections
import contextlib
import functools
import re

import jupytext
import numpy as np
import pytest

from autograder.bench.solved import solved
from autograder.judge.bugs import NOT_WRITTEN
from autograder.judge.framework import checks_and_steps_of, checks_of, run_check
from autograder.judge.reference import Reference
from autograder.judge.student import Student, local_student
from autograder.notebooks.given import given_source
from autograder.notebooks.regions import released
from autograder.places import SOLUTIONS
from autograder.sandbox.client import Cell, Worker
from autograder.sandbox.processes import new_processes
from autograder.stages import earlier_stages, find_stage
from autograder.stages.samples import Right, Wrong, setup_cells, solved_cells, submissions_of

HIDDEN_SEED = 20_011  # any seed but the visible one
OTHER_SEED = 20_012


@pytest.fixture(scope="session")
def asked():
    """The lists of ids that a sample submission was asked about in a check, by stage, submission and check."""
    return collections.defaultdict(set)


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


@pytest.fixture(scope="session")
def answered():
    """What the solution answered in a check, by stage and check."""
    return collections.defaultdict(Replay)


_greedy = functools.lru_cache(maxsize=2000)(Reference.greedy)


def judge(check, student, seed):
    """run_check, with the greedy ids computed once for all submissions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reference, "greedy", lambda self, ids, n_new: _greedy(self, tuple(ids), n_new))
        return run_check(check, student, seed)


@pytest.fixture(scope="session")
def grade(tmp_path_factory, asked, answered):
    """Grades a sample submission, once, in a process that is forked from one that the stage's submissions share."""
    with contextlib.ExitStack() as at_the_end:

        @functools.cache
        def processes_of(stage):
            given = tmp_path_factory.mktemp("given") / "given.py"
            given.write_text(given_source(stage) or "", encoding="utf-8")  # none for the first stage
            return at_the_end.enter_context(contextlib.closing(new_processes(given)))

        @functools.cache
        def graded(stage_name, name):
            stage = find_stage(stage_name)
            submission = next(s for s in submissions_of(stage_name) if s.name == name)
            cells = setup_cells(stage_name) + [Cell(m, s) for m, s in submission.sources(stage).items()]
            with Worker(processes=processes_of(stage)) as worker:
                for cell in cells:
                    error = worker.run_cell(cell)
                    assert error is None, f"{cell.label}: {error}"
                results, known = {}, {}
                for check in checks_and_steps_of(stage_name):
                    lists = asked[stage_name, name, check.id]

                    def perform(request, lists=lists):
                        lists.update(lists_in(request))
                        return worker.request(request)

                    if name == "solution":
                        perform = answered[stage_name, check.id].keeping(perform)
                    results[check.id] = judge(check, Student(perform, known=known), HIDDEN_SEED)
                return results

        yield graded


class SampleTable:
    """The tests of one stage's samples. `stage` is its name.

    same_for_all: the checks whose right answers are the same for all inputs, in the order in which they are asked.
    """

    stage = ""
    same_for_all: frozenset[str] = frozenset()

    def pytest_generate_tests(self, metafunc):
        for fixture, kind in (("right", Right), ("wrong", Wrong)):
            if fixture in metafunc.fixturenames:
                chosen = [s for s in submissions_of(self.stage) if isinstance(s, kind)]
                metafunc.parametrize(fixture, chosen, ids=[s.name for s in chosen])

    def test_a_right_submission_gets_every_point(self, grade, right):
        results = grade(self.stage, right.name)
        assert {c: r.message for c, r in results.items() if r.points and not r.passed} == {}

    def test_a_wrong_submission_loses_exactly_its_checks(self, grade, wrong):
        lost = {c for c, r in grade(self.stage, wrong.name).items() if r.points and not r.passed}
        assert lost - set(wrong.also) == set(wrong.loses)

    def test_a_wrong_submission_is_told_its_bug_and_no_other(self, grade, wrong):
        told = {r.bug.key for r in grade(self.stage, wrong.name).values() if r.bug is not None}
        assert told == {wrong.bug, *wrong.follows} - {None}

    def test_where_to_look_is_never_what_an_earlier_stage_gives(self, grade, wrong):
        given = {name for stage in earlier_stages(find_stage(self.stage)) for name in stage.functions}
        named = {place.partition(".")[0] for r in grade(self.stage, wrong.name).values() for place in r.places}
        assert named & given == set()

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

    def test_every_check_is_lost_by_some_wrong_submission(self):
        lost = {check for s in submissions_of(self.stage) if isinstance(s, Wrong) for check in s.loses}
        assert {c.id for c in checks_of(self.stage)} - lost == set()

    def test_every_step_is_lost_by_some_wrong_submission(self, grade):
        results = [grade(self.stage, s.name) for s in submissions_of(self.stage) if isinstance(s, Wrong)]
        lost = {c for result in results for c, r in result.items() if not r.passed}
        assert {c.id for c in checks_and_steps_of(self.stage) if not c.graded} - lost == set()

    def test_what_was_right_for_other_inputs_earns_nothing(self, grade, answered):
        """The order of the questions may be learned at home; answers that were noted there must not fit."""
        assert grade(self.stage, "solution")
        replays = {check: Replay(answered[self.stage, check.id].kept) for check in checks_of(self.stage)}
        earned = {c.id for c, replay in replays.items() if run_check(c, Student(replay), OTHER_SEED).passed}
        assert earned == self.same_for_all

    def test_a_stage_has_enough_submissions(self):
        wrong = [s for s in submissions_of(self.stage) if isinstance(s, Wrong)]
        right = [s for s in submissions_of(self.stage) if isinstance(s, Right)]
        assert len(wrong) >= 12
        assert len(right) >= 5  # the solution and four other styles

    def test_a_message_prints_no_hidden_input(self, grade, asked, wrong):
        for check_id, result in grade(self.stage, wrong.name).items():
            assert not shows(result.told(), asked[self.stage, wrong.name, check_id]), result.told()

    def test_every_list_of_ids_that_is_asked_is_looked_for(self, grade, asked):
        assert grade(self.stage, "solution")
        of_the_solution = [lists for (_, name, _), lists in asked.items() if name == "solution"]
        lists = {some for found in of_the_solution for some in found if min(some) >= 0}
        assert lists
        assert all(shows(f"It fails for {list(some)}.", {some}) for some in lists)
        assert not shows("It fails for 12 of 400 tokens, first for [9, 9, 9].", lists)


def shows(message, lists):
    """Whether a message prints three ids in a row of one of the lists, as lists are printed."""
    printed = (re.findall(r"\d+", text) for text in re.findall(r"\d+(?:[,\s]+\d+){2,}", message))
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
