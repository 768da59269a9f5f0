"""Which copy of a solution cell counts when there are several."""

from autograder.notebooks.copies import choose

STUB = "def prefill(ids):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
SOLVED = "def prefill(ids):\n    return ids"
OLDER = "def prefill(ids):\n    return None"


def test_one_cell_is_itself():
    assert choose([SOLVED]).source == SOLVED


def test_the_first_copy_counts():
    choice = choose([SOLVED, OLDER])
    assert (choice.source, choice.dropped) == (SOLVED, (1,))


def test_a_copy_that_is_not_solved_does_not_count():
    choice = choose([STUB, SOLVED, STUB])
    assert (choice.chosen, choice.source, choice.dropped) == (1, SOLVED, (0, 2))


def test_when_none_is_solved_the_first_stub_stands():
    assert choose([STUB, STUB]).source == STUB


def test_a_cell_split_inside_its_function_is_put_together():
    choice = choose(["def prefill(ids):\n    n = len(ids)", "    return n"])
    assert (choice.source, choice.joined) == ("def prefill(ids):\n    n = len(ids)\n    return n", (1,))


def test_a_cell_split_between_its_functions_runs_in_parts():
    choice = choose(["def helper():\n    return 1", SOLVED])
    assert (choice.chosen, choice.kept, choice.dropped) == (0, (1,), ())


def test_the_rest_of_a_copy_that_does_not_count_is_left_out_with_it():
    choice = choose([SOLVED, "def prefill(ids):\n    n = 0", "    return n"])
    assert (choice.source, choice.dropped) == (SOLVED, (1, 2))
