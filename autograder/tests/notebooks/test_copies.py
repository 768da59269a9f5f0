"""Which copy of a solution cell counts in rare cases; the usual copies are in tests/broken/cases.py."""

from autograder.notebooks.copies import choose

STUB = "def prefill(ids):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
SOLVED = "def prefill(ids):\n    return ids"


def test_when_none_is_solved_the_first_stub_stands():
    assert choose([STUB, STUB]).source == STUB


def test_a_cell_split_between_its_functions_runs_in_parts():
    choice = choose(["def helper():\n    return 1", SOLVED])
    assert (choice.chosen, choice.kept, choice.dropped) == (0, (1,), ())


def test_the_rest_of_a_copy_that_does_not_count_is_left_out_with_it():
    choice = choose([SOLVED, "def prefill(ids):\n    n = 0", "    return n"])
    assert (choice.source, choice.dropped) == (SOLVED, (1, 2))
