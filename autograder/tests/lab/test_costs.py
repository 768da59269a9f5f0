"""The labs' cost model: pure functions of numbers of tokens."""

import pytest

from autograder.toolkit.costs import Decoding, NextRequest, attention_units


def run(decoding, n_steps):
    for _ in range(n_steps):
        decoding = decoding.next()
    return decoding


def test_n_tokens_cost_n_squared():
    assert attention_units(16) == 256
    assert attention_units(1) == 1
    assert attention_units(0) == 0


def test_the_token_in_place_i_costs_two_units_for_each_earlier_one_and_one_for_itself():
    assert [attention_units(i, i - 1) for i in range(1, 6)] == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("n_cached", [-1, 6])
def test_no_more_can_be_cached_than_there_is(n_cached):
    with pytest.raises(ValueError, match="can be cached"):
        attention_units(5, n_cached)


def test_nothing_is_paid_before_the_first_step():
    start = Decoding(16, use_cache=True)
    assert (start.n_seq(), start.units(), start.paid, start.paid_without_cache) == (0, 0, 0, 0)


@pytest.mark.parametrize("use_cache", [True, False])
def test_the_prefill_costs_the_same_with_and_without_the_cache(use_cache):
    step = Decoding(16, use_cache).next()
    assert (step.n_seq(), step.units(), step.paid) == (16, 256, 256)


def test_with_the_cache_a_step_costs_its_own_row():
    run_on = run(Decoding(16, use_cache=True), 4)
    assert [run_on.units(step) for step in (1, 2, 3, 4)] == [256, 33, 35, 37]


def test_without_the_cache_a_step_costs_the_whole_triangle():
    run_on = run(Decoding(16, use_cache=False), 4)
    assert [run_on.units(step) for step in (1, 2, 3, 4)] == [256, 17**2, 18**2, 19**2]
    assert run_on.paid == run_on.paid_without_cache == 256 + 289 + 324 + 361


@pytest.mark.parametrize("n_prompt", [1, 7, 16, 100])
@pytest.mark.parametrize("n_steps", [1, 2, 9])
def test_with_the_cache_every_pair_is_paid_once_however_the_tokens_came(n_prompt, n_steps):
    run_on = run(Decoding(n_prompt, use_cache=True), n_steps)
    assert run_on.paid == attention_units(run_on.n_seq())
    assert run_on.n_seq() == n_prompt + n_steps - 1  # the last new token has not been fed


def test_a_prompt_needs_a_token():
    with pytest.raises(ValueError, match="at least one token"):
        Decoding(0, use_cache=True)


def test_fourteen_tokens_cost_196_cold_and_96_with_ten_shared():
    request = NextRequest.of([*range(10), 90, 91, 92, 93], [*range(10), 80, 81, 82, 83])
    assert (request.shared, request.reused) == (10, 10)
    assert (request.cold, request.warm) == (196, 96)


def test_sharing_nothing_costs_as_much_as_cold():
    request = NextRequest.of([1, 2, 3], [4, 2, 3])
    assert (request.shared, request.cold, request.warm) == (0, 9, 9)


@pytest.mark.parametrize("saved", [[1, 2, 3], [1, 2, 3, 4, 5]])
def test_a_prompt_that_is_cached_whole_keeps_back_its_last_token(saved):
    request = NextRequest.of(saved, [1, 2, 3])
    assert (request.shared, request.reused) == (3, 2)
    assert request.warm == 9 - 4


def test_a_saved_prompt_that_ends_early_is_used_to_its_end():
    request = NextRequest.of([1, 2], [1, 2, 3, 4])
    assert (request.shared, request.reused, request.warm) == (2, 2, 16 - 4)


@pytest.mark.parametrize(("saved", "live"), [([], [1]), ([1], [1]), ([], [])])
def test_the_smallest_prompts(saved, live):
    request = NextRequest.of(saved, live)
    assert request.reused == 0
    assert request.warm == request.cold == len(live)
