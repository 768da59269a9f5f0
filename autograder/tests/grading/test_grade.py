"""One submission's code, graded: the parent judges, a worker answers, and code that ends it fails only one check."""

from dataclasses import replace

import pytest

from autograder.grading import grade
from autograder.grading.grade import GradingError, Limits, grade_submission
from autograder.judge.bugs import INPUT_CHANGED, NOT_DEFINED, NOT_FINISHED, POSITIONS_RESET, SYNTAX_ERROR
from autograder.judge.framework import Check, Failure
from autograder.sandbox.client import Cell
from autograder.stages import find_stage
from autograder.stages.sample_tests import shared_worker

STAGE = replace(find_stage("prefill-decode"), functions=("f", "g", "h"))
HIDDEN = [1789, 4242, 977]
QUICK = Limits(cell=2, call=1.5, call_after_timeout=0.5, total=30)


def returns_one(student, cases):
    """f returns 1."""
    if student.plain("f", HIDDEN) != 1:
        raise Failure("f does not return 1.")


def returns_two(student, cases):
    """g returns 2."""
    if student.plain("g") != 2:
        raise Failure("g does not return 2.")


def still_there(student, cases):
    """h returns 3, whatever happened before."""
    if student.plain("h") != 3:
        raise Failure("h does not return 3.")


F, G, H = "def f(x):\n    return 1", "def g():\n    return 2", "def h():\n    return 3"


@pytest.fixture
def graded(monkeypatch):
    """Grades these cells with three small checks of 1, 2 and 3 points."""
    checks = [
        Check(STAGE.name, name, points, name, function)
        for points, (name, function) in enumerate({"f": returns_one, "g": returns_two, "h": still_there}.items(), 1)
    ]
    monkeypatch.setattr(grade, "checks_of", lambda name: checks)

    def run(*sources, **options):
        cells = [Cell(f"cell {i}", source) for i, source in enumerate(sources, 1)]
        given = options.pop("given", None)
        return grade_submission(cells, STAGE, 7, given, limits=QUICK, start_worker=shared_worker, **options)

    return run


def outcome(result):
    return {r.id: r.passed for r in result.results}


def sentences(result):
    return [note.sentence for note in result.notes]


def test_points_are_those_of_the_checks_that_pass(graded):
    result = graded(F, "def g():\n    return 5", H)
    assert outcome(result) == {"f": True, "g": False, "h": True}
    assert (result.score, sentences(result)) == (4.0, [])


def test_results_are_reported_one_at_a_time(graded):
    seen = []
    result = graded(F, G, H, on_result=seen.append)
    assert tuple(seen) == result.results


def test_a_function_that_ends_the_process_costs_its_check_only(graded):
    result = graded(F, "import os\ndef g():\n    os._exit(0)", H)
    assert outcome(result) == {"f": True, "g": False, "h": True}
    assert "Your code did not finish: the process ended while running g (exit status 0)." in result.results[1].message
    assert result.results[1].bug is NOT_FINISHED


def test_a_function_that_never_ends_costs_its_check_only(graded):
    stubborn = (
        "def g():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"
    )
    result = graded(F, stubborn, H)
    assert outcome(result) == {"f": True, "g": False, "h": True}
    assert sentences(result) == ["In the check g: no answer within 1.5 s while running g."]


def test_after_a_timeout_calls_get_less_time(graded):
    result = graded(*(f"{d}:\n    while True: pass" for d in ("def f(x)", "def g()", "def h()")))
    assert [s.split(" while")[0] for s in sentences(result)] == [
        "In the check f: no answer within 1.5 s",
        "In the check g: no answer within 0.5 s",
        "In the check h: no answer within 0.5 s",
    ]


def test_the_time_of_a_notebook_is_limited(graded, monkeypatch):
    monkeypatch.setattr(grade.time, "monotonic", iter(range(0, 100_000, 40)).__next__)
    result = graded(F, G, H)
    assert result.score == 0
    assert "the 30 s for the whole notebook are used up" in result.results[0].message


def test_a_missing_function_is_reported_as_missing(graded):
    result = graded(F, H).results[1]
    assert "g is not defined. Run the cell that defines it" in result.message
    assert result.bug is NOT_DEFINED


@pytest.mark.parametrize(
    ("source", "why", "bug"),
    [
        (
            "def g()\n    return 2",
            "The cell with g raised SyntaxError: expected ':' (line 1 of the cell with g: def g()).",
            SYNTAX_ERROR,
        ),
        ("def g():\nreturn 2", "The cell with g raised IndentationError: expected an indented block", SYNTAX_ERROR),
        (
            "1 / 0\ndef g(): 2",
            "The cell with g raised ZeroDivisionError: division by zero (line 1 of the cell with g: 1 / 0).",
            NOT_DEFINED,
        ),
        ("while True: pass\ndef g(): return 2", "The cell with g was left out: no answer within 2 s", NOT_DEFINED),
    ],
)
def test_a_function_whose_cell_did_not_run_is_missing_for_that_reason(graded, source, why, bug):
    said = []
    result = graded(F, source, H, on_cell_error=said.append)
    assert outcome(result) == {"f": True, "g": False, "h": True}
    assert f"g is not defined. {why}" in result.results[1].message
    assert result.results[1].bug is bug
    assert len(said) == 1 and said[0].startswith(why)


def test_a_value_that_a_check_cannot_judge_fails_it_and_the_assistant_learns_where(graded, monkeypatch):
    def broken(student, cases):
        """A check."""
        student.array("f", [1])
        raise KeyError(HIDDEN[0])

    monkeypatch.setattr(grade, "checks_of", lambda name: [Check(name, "broken", 1, "Broken", broken)])
    result = graded(F)
    assert result.score == 0
    assert "f returned an array of shape [] and dtype" in result.results[0].message
    lost = "The check broken was lost to a value that it cannot judge (KeyError in test_grade.py, line "
    assert sentences(result)[0].startswith(lost)
    assert str(HIDDEN[0]) not in result.results[0].message + sentences(result)[0]


def test_a_grader_that_cannot_start_gives_no_score(graded, tmp_path):
    given = tmp_path / "given.py"
    given.write_text("import no_such_module")
    with pytest.raises(GradingError, match=r"given\.py cannot be imported"):
        graded(F, G, H, given=given)


# One cause is told once

AS_F = 'This follows from the check "f".'


def told(result):
    """What a later check says after its property."""
    return {r.id: r.told().splitlines()[1:] for r in result.results if not r.passed}


def test_a_syntax_error_is_explained_once_even_if_other_functions_miss_its_definitions(graded):
    result = graded("def f(x)\n    return 1", "def g():\n    return f(0)", H)
    assert [r.bug for r in result.results] == [SYNTAX_ERROR, SYNTAX_ERROR, None]
    colon = "SyntaxError: expected ':'"
    assert told(result) == {
        "f": [f"f is not defined. The cell with f raised {colon} (line 1 of the cell with f: def f(x))."],
        "g": ["g raised NameError: name 'f' is not defined.", AS_F],
    }


def test_a_syntax_error_in_a_function_without_a_check_is_the_cause_of_what_uses_it(graded):
    result = graded("def used(x)\n    return 1", "def f(x):\n    return used(x)", G, H).results[0]
    assert result.bug is SYNTAX_ERROR
    seen, where, *_, cause = result.told().splitlines()[1:]
    assert seen == "f raised NameError: name 'used' is not defined."
    assert where == "Look at line 2 of the cell with f: return used(x)"
    assert cause == "The cell with used raised SyntaxError: expected ':' (line 1 of the cell with used: def used(x))."


def test_an_unwritten_function_is_reported_once(graded):
    result = told(graded("def f(x):\n    raise NotImplementedError", "def g():\n    return f(0)", H))
    assert result["f"][1:] == [
        "Look at line 2 of the cell with f: raise NotImplementedError",
        "The function still raises NotImplementedError: write its body.",
    ]
    assert result["g"] == [AS_F]


def test_a_notebook_without_cells_is_reported_once(graded):
    result = told(graded())
    assert result["f"] == ["f is not defined. None of the stage's functions is in the notebook."]
    assert result["g"] == result["h"] == [AS_F]


def test_a_line_that_raises_is_reported_once(graded):
    result = told(
        graded("def f(x):\n    return [][len(str(x))]", "def g():\n    return f('')", "def h(): return f('')")
    )
    line = "Look at line 2 of the cell with f: return [][len(str(x))]"
    rest = "Then look in the rest of f, and in any function of yours that it calls."
    assert result["f"][-2:] == [line, rest]
    assert result["g"][-1] == result["h"][-1] == AS_F


def test_two_values_that_are_none_may_have_two_causes(graded):
    result = told(graded("def f(x):\n    return None + 1", "def g():\n    return [None][0] + 1", H))
    assert result["f"][-1].startswith("It means that a value is None there")
    assert result["g"][1] == "Look at line 2 of the cell with g: return [None][0] + 1"
    assert result["g"][-1] == 'A value is None in the check "f" too: begin there.'


def test_a_named_bug_is_explained_once_and_its_first_check_is_named(graded, monkeypatch):
    def named(student, cases):
        """The positions go on."""
        raise Failure(f"f is off by {student.plain('f', 0)}.", POSITIONS_RESET)

    def changed(student, cases):
        """Nothing is changed."""
        raise Failure(f"{student.plain('f', 0)} was changed.", INPUT_CHANGED)

    def changed_too(student, cases):
        """Nothing else is."""
        raise Failure("g was changed.", INPUT_CHANGED)

    checks = [Check(STAGE.name, str(i), 1, str(i), run) for i, run in enumerate([named, named, changed, changed_too])]
    monkeypatch.setattr(grade, "checks_of", lambda name: checks)
    results = graded(F, G, H).results
    assert results[0].told().splitlines()[2:] == [
        "Look at the positions of the new tokens: in f, and in any function of yours that it calls.",
        POSITIONS_RESET.sentence,
    ]
    assert results[1].message.splitlines()[-1] == 'This follows from the check "0".'
    assert results[1].bug is POSITIONS_RESET  # the class's report counts it
    assert [r.cause for r in results[2:]] == [INPUT_CHANGED.sentence] * 2  # of two functions


def test_a_failure_without_a_known_cause_refers_to_no_other_check(graded):
    result = told(graded("def f(x): return 5", "def g(): return 5", H))
    assert result == {
        "f": ["f does not return 1.", "Look in f, and in any function of yours that it calls."],
        "g": ["g does not return 2.", "Look in g, and in any function of yours that it calls."],
    }


def test_if_a_function_that_it_uses_also_fails_the_student_begins_there(graded):
    result = told(graded("def f(x): return 5", "def helper(): return f(0)", "def g(): return helper()", H))
    assert result["g"][1:] == ['Begin with the check "f": g builds on f.']


def test_methods_that_every_class_has_do_not_count_as_uses(graded):
    class_in_each = "class {}:\n    def __init__(self): pass\n{}"
    f, g = class_in_each.format("A", "def f(x): return 5"), class_in_each.format("B", "def g(): return 5")
    assert told(graded(f, g, H))["g"][1:] == ["Look in g, and in any function of yours that it calls."]


def test_where_to_look_lists_what_was_called_the_failures_subject_first(graded, monkeypatch):
    def refused(student, cases):
        """What is wrong is refused."""
        student.plain("g"), student.plain("f", 0)
        raise Failure(f"For no token, {subject} returned as if nothing were wrong; a ValueError is expected.")

    monkeypatch.setattr(grade, "checks_of", lambda name: [Check(STAGE.name, "f", 1, "f", refused)])
    for subject, other in (("f", "g"), ("g", "f")):
        assert (
            graded(F, G, H).results[0].look
            == f"Look in {subject} and {other}, and in any function of yours that they call."
        )


def test_where_to_look_names_methods_but_none_of_an_earlier_stages_class(graded, monkeypatch):
    def grown(student, cases):
        """It grows."""
        layer, cache = student.handle("LayerCache"), student.handle("ModelCache", 1)
        student.method(layer, "append", 1, 2, returns="none")
        raise Failure(f"len() is {student.length(layer)} and {student.length(cache)}.")

    classes = """
class LayerCache:
    def append(self, k, v): pass
    def __len__(self): return 0
class ModelCache(LayerCache):
    def __init__(self, n_layer): pass"""
    of_layer, of_model = "LayerCache (__init__, append, __len__)", "ModelCache (__init__, __len__)"
    for stage, look in (
        ("kv-cache", f"Look in {of_layer} and {of_model}, and in any function of yours that they call."),
        ("prefill-decode", ""),
    ):
        monkeypatch.setattr(grade, "checks_of", lambda name, stage=stage: [Check(stage, "c", 1, "c", grown)])
        assert graded(classes).results[0].look == look


# Hidden inputs


@pytest.mark.parametrize(
    "message",
    ["f'bad {x}'", "f'{x!r} and {[x, x]}'", "' '.join(map(str, x * 2))", "f'{np.array(x * 400)!r}'", "str(x * 400)"],
)
def test_a_message_of_the_students_shows_no_hidden_input(graded, message):
    source = f"import numpy as np\ndef f(x):\n    raise ValueError({message})"
    text = graded(source, G, H).results[0].told()
    assert "f raised ValueError" in text and "line 3 of the cell with f: " in text
    assert not any(str(number) in text for number in HIDDEN)


def test_a_shape_in_a_message_stays(graded):
    text = (
        graded("import numpy as np\ndef f(x):\n    return np.ones((3, 4)) @ np.ones((3, 5))", G, H).results[0].message
    )
    assert "a's last axis is 4 long, and b's last but one is 3 long" in text


def test_a_line_that_is_not_in_the_cells_is_not_shown(graded):
    forged = (
        "import linecache\ndef f(x):\n"
        "    linecache.cache['<cell 1>'] = (1, None, [f'{x}\\n'] * 9, '<cell 1>')\n    raise ValueError('no')"
    )
    text = graded(forged, G, H).results[0].told()
    assert "f raised ValueError: no." in text and "line 4" not in text


def test_a_message_cannot_control_a_terminal(graded):
    text = graded("def f(x):\n    raise ValueError('\\x1b[31mred\\x07')", G, H).results[0].message
    assert "\x1b" not in text and "\x07" not in text
