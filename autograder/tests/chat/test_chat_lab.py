"""The chat-model notebook's trials and widget, on a small random model."""

import re

import pytest

from autograder.bench.solved import solved
from autograder.toolkit import chat_lab
from autograder.toolkit.chat import LlamaConfig, byte_tokenizer, random_llama
from autograder.toolkit.chat_lab import real as real_module
from autograder.toolkit.model import ModelError

SHAPE = LlamaConfig(2, 4, 2, n_embd=16, n_inner=20, n_ctx=4096, n_vocab=259)


@pytest.fixture(scope="module")
def course():
    return solved("chat-model")


@pytest.fixture(scope="module")
def small():
    return random_llama(SHAPE, 1), byte_tokenizer()


def test_without_the_download_the_command_is_named(monkeypatch, capsys):
    def missing(name):
        raise ModelError(f"{name} is not on this machine; run `autograder fetch {name}`")

    monkeypatch.setattr(real_module, "load_llama", missing)
    assert chat_lab.real_model() is None
    assert "run `autograder fetch smollm2`" in capsys.readouterr().out


def test_eight_turns_announces_its_time_and_whether_the_answers_agree(course, small, capsys):
    logs = chat_lab.eight_turns(course.Chat, *small)
    announced, *_, agreed = capsys.readouterr().out.splitlines()
    assert re.search(r"this will take about \d+ s here\.$", announced)
    assert agreed == "The answers are the same."
    cold, reusing = logs["cold"], logs["with reuse"]
    assert [row["prompt"] for row in cold] == [row["prompt"] for row in reusing] and len(cold) == 8
    assert all(row["reused"] == 0 for row in cold) and all(row["reused"] > 0 for row in reusing[1:])


def test_a_chat_that_answers_differently_with_reuse_is_reported(course, small, capsys):
    class Silent(course.Chat):
        def send(self, text, n_new=100, each=None):
            new_ids = super().send(text, n_new, each)
            return [] if self.reuse else new_ids

    chat_lab.eight_turns(Silent, *small)
    assert "The answers differ." in capsys.readouterr().out


@pytest.fixture
def server(course, small):
    return chat_lab.Server(*small, course.advance_llama, course.ModelCache, course.lookup, course.explain_miss)


def test_drift_grows_over_six_turns_and_the_repair_does_not(course, server):
    taken = server.six_turns(course.render_chatml)
    drifting, repaired = ([row["computed"] for row in rows] for rows in taken.values())
    assert drifting == sorted(drifting) and drifting[-1] > 2 * drifting[0]
    assert max(repaired[1:]) < min(drifting)


def test_a_lookup_that_admits_the_whole_prompt_computes_it_all(course, server):
    _, _, wrong, right = server.ranking(course.render_chatml)
    assert (wrong["prompt"], wrong["reused"], wrong["computed"]) == (2432, 0, 2432)
    assert "the suffix is empty" in wrong["log"]
    assert (right["reused"], right["computed"]) == (2328, 104)


def test_a_chat_room_shows_what_was_reused_and_the_message_of_a_refusal(course, small):
    room = chat_lab.ChatRoom(course.Chat, *small, n_new=5)
    room.say("Who?")
    room.say("And?")
    told = room.still()[0]["text/plain"]
    first, second = room.chat.log
    assert f"reused 0 of {first['prompt']}" in told
    assert f"reused {second['reused']} of {second['prompt']} tokens" in told and second["reused"] > 0
    assert "s cold)" in told
    room.say("Why?", reuse=False)
    assert room.chat.log[-1]["reused"] == 0
    room.say("long " * 1000)
    assert "The message was refused" in room.still()[0]["text/plain"]
    assert len(room.chat.log) == 3
