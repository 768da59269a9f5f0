"""The course's own chat with the real model."""

import pytest

from autograder.bench.solved import solved
from autograder.toolkit.chat_lab.real import QUESTIONS


@pytest.fixture(scope="module")
def course():
    return solved("chat-model")


def test_what_is_the_capital_of_france(course, weights, tokenizer):
    chat = course.Chat(weights, tokenizer)
    assert "Paris" in tokenizer.decode(chat.send("What is the capital of France?", 30))


def test_eight_turns_with_reuse_give_the_same_ids_as_without(course, weights, tokenizer):
    cold, reusing = (course.Chat(weights, tokenizer, reuse=reuse) for reuse in (False, True))
    for question in QUESTIONS:
        assert reusing.send(question, 12) == cold.send(question, 12)
    assert all(row["reused"] == 0 for row in cold.log)
    for before, row in zip(reusing.log, reusing.log[1:], strict=False):
        assert row["reused"] >= before["prompt"]


def test_the_course_renders_as_the_models_own_template(course, tokenizer):
    talk = []
    for question in QUESTIONS:
        talk.append({"role": "user", "content": question})
        assert course.render_chatml(talk, True) == tokenizer.render(talk, add_generation_prompt=True)
        talk.append({"role": "assistant", "content": f"{question} \n"})
        assert course.render_chatml(talk) == tokenizer.render(talk)
    system = [{"role": "system", "content": " Be brief."}, *talk]
    assert course.render_chatml(system) == tokenizer.render(system)
