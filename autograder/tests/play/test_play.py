"""Guesses, questions and bugs to find: what a student enters, and the response."""

import pytest

import autograder
from autograder.stages import GRADED_STAGES
from autograder.toolkit.play import puzzle as puzzles

STAGES = [s.name for s in GRADED_STAGES]


def shown(output):
    return output._repr_mimebundle_()[0]


# A guess


@pytest.mark.parametrize(
    ("mine", "result", "said"),
    [
        (5, 8.6, "You guessed 5 times. The result: 8.6 times, off by a factor of 1.72."),
        (8.5, 8.6, "You guessed 8.5 times. The result: 8.6 times, very close."),
        (3, 3, "You guessed 3 times. The result: 3 times, as you guessed."),
        (0, 8.6, "You guessed 0 times. The result: 8.6 times."),
        (None, 8.6, "No guess was entered. The result: 8.6 times."),
    ],
)
def test_a_number_stands_beside_the_result(mine, result, said):
    guess = autograder.guess("How many times faster?", unit="times", mine=mine)
    assert str(guess.beside(result)) == said


@pytest.mark.parametrize(("unit", "result", "told"), [("%", 84.4, "84.4%"), ("tokens", 7380, "7,380 tokens")])
def test_a_result_has_its_unit_and_a_count_all_its_digits(unit, result, told):
    assert str(autograder.guess("How much?", unit=unit).beside(result)).endswith(f"The result: {told}.")


def test_a_choice_is_right_or_told_what_it_is():
    guess = autograder.guess("Which is faster?", choices=["one pass", "steps"], mine="steps")
    assert str(guess.beside("one pass", "By far.")) == "You guessed 'steps'. The answer is 'one pass'. By far."
    assert str(guess.beside("steps")) == "You guessed 'steps'. That is right."


def test_what_is_typed_into_the_box_is_the_guess():
    guess = autograder.guess("How many?", unit="ms")
    assert guess.mine is None
    guess.box.children[1].children[0].value = " 1,200 "
    assert guess.mine == 1200
    guess.box.children[1].children[0].value = "many"
    assert guess.mine is None


def test_where_widgets_do_not_run_the_text_says_how_to_guess():
    assert shown(autograder.guess("How many?"))["text/plain"] == "How many?\nGuess first: mine=a number"
    assert "mine=one of 'a', 'b'" in shown(autograder.guess("Which?", choices=["a", "b"]))["text/plain"]


def test_a_choice_that_is_not_offered_is_refused():
    with pytest.raises(ValueError, match="mine must be one of 'a', 'b', not 'c'"):
        autograder.guess("Which?", choices=["a", "b"], mine="c")


# Questions and bugs to find


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_a_bug_to_find_with_numbers_that_show_it(stage):
    puzzle = autograder.puzzle(stage)
    text = shown(puzzle)["text/plain"]
    assert callable(puzzle.function)
    assert any(c.isdigit() for c in puzzles._content(stage).numbers())
    assert all(choice in text for choice in puzzle.choices)


@pytest.mark.parametrize("stage", STAGES)
def test_every_choice_says_whether_it_is_right_and_why(stage):
    asked = [autograder.puzzle(stage), *(autograder.question(stage, n) for n in (1, 2))]
    for one in asked:
        said = [one.answer(n) for n in range(1, len(one.choices) + 1)]
        assert sum(text.startswith("Right: ") for text in said) == 1
        assert all(len(text) > 20 and text.endswith(".") for text in said)


def test_the_right_choice_is_not_always_at_the_same_place():
    asked = [autograder.puzzle(stage) for stage in STAGES]
    asked += [autograder.question(stage, n) for stage in STAGES for n in (1, 2)]
    assert len({one.choices.index(one.question.right) for one in asked}) >= 3


def test_a_click_is_told_at_once():
    puzzle = autograder.puzzle("kv-cache")
    puzzle.radio.value = puzzle.question.right
    assert "✓ Right: " in puzzle.said.value
    puzzle.radio.value = next(c for c in puzzle.choices if c != puzzle.question.right)
    assert "✗ Not so: " in puzzle.said.value


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: autograder.puzzle("start-here"), "no bug to find for 'start-here'"),
        (lambda: autograder.question("kv-cache", 9), "kv-cache has questions 1 to 2, not 9"),
        (lambda: autograder.puzzle("kv-cache").answer(0), "choose a number from 1 to 4, not 0"),
    ],
)
def test_what_is_not_there_is_said(ask, said):
    with pytest.raises(ValueError, match=said):
        ask()
