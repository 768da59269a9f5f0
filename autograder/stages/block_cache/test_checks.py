"""What the table of submissions does not cover: vLLM's published rules, stand-ins of the checks, traces, many seeds."""

import itertools

import numpy as np
import pytest

from autograder.bench.solved import solved
from autograder.grading.grade import grade_submission
from autograder.judge.framework import find_check, run_check
from autograder.judge.student import local_student
from autograder.notebooks.given import given_source
from autograder.sandbox.client import Cell
from autograder.stages import find_stage
from autograder.stages.block_cache.plain_store import PlainStore, Rules
from autograder.stages.sample_tests import changed
from autograder.stages.samples import setup_cells, solved_cells
from autograder.toolkit import traces
from autograder.toolkit.model import GPT2Config, random_model
from autograder.worker.block_keys import keys_of_bits
from autograder.worker.holding import bytes_held

STAGE, KEYS = "block-cache", "keys-full-blocks"
CONTEXT = {"model": "5eed", "tenant": "a"}


@pytest.fixture(scope="module")
def course():
    return solved(STAGE)


@pytest.fixture(scope="module")
def model():
    return random_model(GPT2Config(n_layer=2, n_head=2, n_embd=8, n_ctx=40, n_vocab=50), seed=3)


def served(course, store, model, ids, context=CONTEXT):
    """How many blocks a request found before it was served."""
    n = len(store.match(ids, context))
    course.serve(store, ids, model, context)
    return n


@pytest.mark.parametrize(
    "held",
    ["os.getpid()", "time.strftime('%Y')", "os.getcwd()", "{*context}"],
)
def test_keys_that_hold_something_of_their_process_are_found_out_in_a_new_one(held, tmp_path):
    given = tmp_path / "given.py"
    given.write_text(given_source(find_stage(STAGE)), encoding="utf-8")
    solved_cell = solved_cells(STAGE)["block-keys"]
    cell = "import os, time\n" + solved_cell.replace("json.dumps(context, sort_keys=True)", f"str([context, {held}])")
    cells = [*setup_cells(STAGE), Cell("block-keys", cell)]
    assert run_check(find_check(KEYS), local_student(changed(STAGE, sources=[cell])), 0).passed
    result = grade_submission(cells, find_stage(STAGE), 0, given, checks=[find_check(KEYS)])
    assert "Another process gets other keys" in result.results[0].message


# The rules for full blocks and chained keys on vLLM's page "Automatic Prefix Caching", on a trace written by hand


def test_only_full_blocks_are_kept_and_one_token_is_always_computed(course, model):
    store = course.BlockStore(10, 4)
    a = list(range(15))  # three full blocks and a rest of three tokens
    assert served(course, store, model, a) == 0
    assert len(store) == 3
    b = [*a[:10], 40, 41, 42, 43]  # leaves a within its third block
    assert served(course, store, model, b) == 2
    assert len(store) == 4  # the fourth holds a's tokens 8 and 9, and two of b's
    assert served(course, store, model, a) == 3
    assert served(course, store, model, a[:12]) == 2  # all three would leave no token
    assert len(store) == 4


def test_a_block_is_identified_by_the_block_before_it_its_ids_and_the_extra_facts(course):
    keys = course.block_keys
    first, second = keys([1, 2, 3, 4], 2, CONTEXT)
    assert keys([1, 2, 3, 4, 9], 2, CONTEXT) == [first, second]
    assert keys([3, 4, 3, 4], 2, CONTEXT)[1] != second
    assert set(keys([1, 2, 3, 4], 2, {**CONTEXT, "tenant": "b"})).isdisjoint((first, second))


def test_a_finished_prompt_is_evicted_from_its_end_and_the_one_waiting_longest_first(course, model):
    store = course.BlockStore(5, 2)
    one, two = [1, 2, 3, 4, 5], [1, 2, 6, 7, 8]
    for ids in (one, two, [11, 12, 13, 14]):  # [1 2] [3 4], [6 7] after [1 2], [11 12] [13 14]: five blocks
        served(course, store, model, ids)
    served(course, store, model, [21, 22, 23])
    assert [len(store.match(ids, CONTEXT)) for ids in (one, two, [11, 12, 13, 14, 15])] == [1, 2, 2]


# What a store shares, and holds


def test_a_run_of_blocks_is_read_where_it_is(course, model):
    store = course.BlockStore(10, 4)
    ids = list(range(13))
    course.serve(store, ids, model, CONTEXT)
    one, two = store.match(ids, CONTEXT), store.match(ids, CONTEXT)
    assert all(np.shares_memory(a, b) for a, b in zip(one, two, strict=True))
    assert not any(rows.flags.writeable for rows in one)


def test_bytes_held_counts_what_a_view_keeps_alive():
    array = np.zeros(100_000)
    assert bytes_held([array[:2]]) > array.nbytes
    assert bytes_held([array[:2].copy()]) < 1000
    assert bytes_held({"f": bytes_held}) < 1000  # code is nobody's


# The stand-ins of the checks


def test_keys_of_four_bits_are_chained_and_often_equal():
    keys = keys_of_bits(4)
    many = {tuple(keys([i, j], 1, CONTEXT)) for i, j in itertools.product(range(40), repeat=2)}
    assert len(many) <= 256 and {key for pair in many for key in pair} == set("0123456789abcdef")
    assert keys([1, 2, 3], 1, CONTEXT)[:2] == keys([1, 2], 1, CONTEXT)


def test_the_plain_store_evicts_the_leaf_that_was_used_least_recently():
    store = PlainStore(3, 1)
    store.put([1, 2], "a")
    store.put([1, 3], "a")
    assert store.match([1, 2, 9], "a") == 2  # 3 is now the older leaf
    store.put([4], "a")
    assert [store.match([1, n, 9], "a") for n in (2, 3)] == [2, 1]


@pytest.mark.parametrize("capacity", [0, 1, 3])
def test_the_plain_store_keeps_the_first_blocks_of_a_prompt_that_is_too_long(capacity):
    store = PlainStore(capacity, 2)
    store.put([9, 9], "a")
    store.put(list(range(10)), "a")
    assert len(store) == store.match(list(range(10)), "a") == capacity


def test_each_wrong_rule_differs_from_the_right_one_somewhere():
    rng = np.random.default_rng(0)
    calls = [(name, rng.integers(3, size=rng.integers(1, 6)).tolist()) for name in ("put", "match") * 300]

    def seen(rules):
        store = PlainStore(4, 1, rules)
        return [(getattr(store, name)(ids, "a"), len(store)) for name, ids in calls]

    rules = [{"first_in": True}, {"leaves_first": False}, {"match_is_use": False}, {"leaves_a_token": False}]
    assert all(seen(Rules(**changed)) != seen(Rules()) for changed in rules)


def test_no_seed_draws_ids_whose_change_to_0_is_none(course):
    student = local_student(vars(course))
    assert all(run_check(find_check("keys-chained"), student, seed).passed for seed in range(100))


# The traces


@pytest.mark.parametrize("name", traces.TRACES)
@pytest.mark.parametrize("capacity", [0, 5, 40, 1000])
def test_no_store_computes_fewer_tokens_than_the_best_possible(course, name, capacity):
    trace = traces.TRACES[name](500, 60)
    best = traces.best_possible(trace, capacity, 16)
    own = traces.replay(course.BlockStore(capacity, 16), trace)
    first_in = traces.first_in_first_out(trace, capacity, 16)
    assert best <= min(own, first_in) <= max(own, first_in) <= traces.n_tokens(trace)
    if capacity in (0, 1000):  # no room, or room for all
        assert best == own == first_in
    if capacity == 1000:
        assert best == traces.with_window(trace, None, 16)


def test_the_best_possible_by_hand():
    turns = [traces.Request([n, 9]) for n in (1, 2, 3, 1, 2, 3)]
    assert traces.best_possible(turns, 2, 1) == 12 - 2  # two are kept for the second round, and the third is not
    assert traces.first_in_first_out(turns, 2, 1) == 12


def test_a_window_forgets_where_prompts_part():
    system = list(range(8))
    users = [traces.Request([*system, 50 + i, 60 + i, 70 + i, 80 + i]) for i in range(2)]
    talk = [traces.Request(list(range(8))), traces.Request(list(range(12)))]
    assert traces.with_window(users, 2, 2) == 24
    assert traces.with_window(users, 12, 2) == 24 - 8
    assert traces.with_window(talk, 2, 2) == 20 - 8


@pytest.mark.parametrize("name", traces.TRACES)
def test_a_trace_is_the_same_each_time_and_fits_the_trained_model(name):
    trace = traces.TRACES[name](500)
    assert len(trace) == 200 and trace == traces.TRACES[name](500)
    assert max(len(request.token_ids) for request in trace) <= 512
