"""The two labs with the real model and tokenizer: numbers, words, drawings, and the widgets that move them."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from autograder.lab import decode_lab, request_lab
from autograder.lab.passes import Passes, timed
from autograder.toolkit.charts import steps_picture
from autograder.toolkit.model import GPT2Config, load_model, load_tokenizer, random_model

SMALL = GPT2Config(n_layer=2, n_head=2, n_embd=8, n_ctx=24, n_vocab=1024)
LONGER = GPT2Config(n_layer=2, n_head=2, n_embd=8, n_ctx=128, n_vocab=1024)


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("tiny")


@pytest.fixture
def lab1(tokenizer):
    return decode_lab(random_model(SMALL, seed=3), tokenizer, n_prompt=5)


@pytest.fixture
def lab2(tokenizer):
    return request_lab(random_model(LONGER, seed=3), tokenizer)


# Lab 1


def test_both_ways_generate_the_same_tokens(tokenizer):
    weights = load_model("tiny")
    made = []
    for use_cache in (True, False):
        lab = decode_lab(weights, tokenizer, n_prompt=16)
        lab.cache.value = use_cache
        for _ in range(4):
            lab.step()
        made.append(lab.new_ids)
    assert made[0] == made[1]


def test_a_prompt_of_sixteen_is_the_start_and_costs_256(tokenizer):
    lab = decode_lab(random_model(SMALL, seed=3), tokenizer)
    assert lab.length.value == min(16, SMALL.n_ctx - 16)
    assert decode_lab(load_model("tiny"), tokenizer).length.value == 16


def test_generate_pays_for_a_step_and_shows_it(lab1):
    lab1.generate.click()
    lab1.generate.click()
    assert lab1.decoding.paid == 36
    assert "Step 2 (decode): 6 tokens" in lab1.output.value
    assert ">36<" in lab1.output.value and ">61<" in lab1.output.value  # with the cache, and 25 + 36 without
    assert lab1.output.value.count(" ms") == 3


def test_reset_slider_and_switch_start_again(lab1):
    for change in (
        lab1.reset.click,
        lambda: setattr(lab1.length, "value", 7),
        lambda: setattr(lab1.cache, "value", False),
    ):
        lab1.generate.click()
        assert lab1.decoding.n_steps == 1
        change()
        assert lab1.decoding.n_steps == 0 and lab1.new_ids == []
    assert (lab1.decoding.n_prompt, lab1.decoding.use_cache) == (7, False)


def test_the_cost_of_the_prefill_is_shown_before_it_is_paid(lab1):
    assert "will cost</th><td>25<" in lab1.output.value
    assert "will cost</th><td>256<" in decode_lab(load_model("tiny"), load_tokenizer("tiny")).output.value


def test_what_a_run_paid_stays_after_the_switch_and_goes_with_reset(lab1):
    lab1.generate.click()
    lab1.generate.click()
    lab1.cache.value = False
    kept = "last run, 2 steps after 5 tokens, cache on</th><td>36<"
    assert kept in lab1.output.value
    lab1.generate.click()
    assert kept in lab1.output.value
    lab1.reset.click()
    assert "last run" not in lab1.output.value


def test_the_length_can_be_typed_as_well(lab1):
    lab1.number.value = 6
    assert (lab1.length.value, lab1.decoding.n_prompt) == (6, 6)
    lab1.length.value = 8
    assert lab1.number.value == 8


def test_generate_stops_at_the_context_limit(lab1):
    while not lab1.generate.disabled:
        lab1.generate.click()
    assert lab1.decoding.n_seq() == SMALL.n_ctx
    lab1.reset.click()
    assert not lab1.generate.disabled


def test_times_are_measured_anew_and_not_remembered():
    weights = random_model(SMALL, seed=3)
    passes = Passes(weights)
    first = passes.run([1, 2, 3])
    again = passes.run([1, 2, 3])
    assert again.seconds > 0
    assert not np.shares_memory(first.kv[0][0], again.kv[0][0])


def test_timed_stops_within_its_budget():
    calls = []
    result, seconds = timed(lambda: calls.append(1) or len(calls), repeats=3, budget=10)
    assert (result, len(calls)) == (3, 3) and seconds > 0
    calls.clear()
    timed(lambda: calls.append(1), repeats=3, budget=0.0000001)
    assert len(calls) == 1


# Lab 2


def test_the_first_two_prompts_share_enough_that_reuse_wins_on_any_machine(lab2):
    request = lab2.request
    assert (len(request.live), request.shared, request.cold, request.warm) == (104, 100, 10816, 816)
    assert (
        "The first token that differs stands at position 100: “Who” in the saved prompt, “Where” in the next one."
        in (lab2.output.value)
    )
    assert ">10,816<" in lab2.output.value and ">816<" in lab2.output.value


def test_one_letter_of_the_system_part_makes_it_cold(lab2):
    lab2.change.click()
    request = lab2.request
    assert request.shared == 0 and request.warm == request.cold
    assert "share no prefix" in lab2.output.value
    lab2.reset.click()
    assert lab2.request.shared == 100


def test_costs_follow_the_tokens_not_the_characters(lab2, tokenizer):
    assert not (lab2.saved.continuous_update or lab2.next.continuous_update)  # five passes, and not at every letter
    lab2.next.value = lab2.SYSTEM + "Who are yon?"
    shared = lab2.request.shared
    assert tokenizer.encode(lab2.saved.value)[:shared] == tokenizer.encode(lab2.next.value)[:shared]
    assert lab2.request.cold == len(tokenizer.encode(lab2.next.value)) ** 2


@pytest.mark.parametrize(
    ("saved", "live", "words"),
    [
        ("", "", "is empty"),
        ("abc", "", "is empty"),
        ("", "abc", "share no prefix"),
        ("abc", "abc", "They are the same"),
        ("abc def", "abc", "The next prompt ends there"),
        ("abc", "abc def", "The saved prompt ends there"),
        ("<b>&amp;</b>", "<b>&lt;</b>", "&lt;"),
    ],
)
def test_every_pair_of_prompts_is_described(lab2, saved, live, words):
    lab2.saved.value, lab2.next.value = saved, live
    assert words in lab2.output.value


def test_prompts_past_the_context_are_counted_and_not_run(lab2):
    lab2.next.value = "word " * 160
    assert "Longer than the model" in lab2.output.value
    assert "not measured" in lab2.output.value


def test_the_html_of_both_labs_is_well_formed(lab1, lab2):
    lab1.generate.click()
    lab2.next.value = lab2.SYSTEM * 6 + "<Who> & \"what\" 'now'?"
    for lab in (lab1, lab2):
        ET.fromstring(f"<root>{lab.results()}</root>")


# Pictures


@pytest.mark.parametrize(("n_prompt", "n_steps"), [(1, 1), (16, 0), (16, 1), (16, 3), (40, 2), (500, 12)])
def test_the_picture_is_svg_with_its_numbers_in_words(n_prompt, n_steps):
    picture = steps_picture(n_prompt, n_steps)
    root = ET.fromstring(picture.svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == str(picture)


def test_the_picture_says_what_was_paid():
    assert "costs 289 units, the KV cache fills 1 row and costs 33 units" in str(steps_picture(16, 2))


def test_a_lab_carries_a_picture_for_where_widgets_do_not_run(lab1, lab2):
    for lab, kind in ((lab1, "image/svg+xml"), (lab2, "image/png")):
        bundle, _ = lab._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in bundle
        assert bundle[kind] and set(lab.still()[0]) == {kind, "text/plain"}


def test_controls_have_labels_and_results_are_announced(lab1, lab2):
    for control in (
        lab1.length,
        lab1.number,
        lab1.cache,
        lab1.generate,
        lab1.reset,
        lab2.saved,
        lab2.next,
        lab2.change,
        lab2.reset,
    ):
        assert control.description
        assert control.tabbable is not False
    assert "role='status'" in lab1.output.value and "role='status'" in lab2.output.value
