"""The checks of render_chatml."""

from __future__ import annotations

from autograder.judge.compare import common
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.stages.chat_model import bugs as own

WORDS = ("Who", "are", "you?", "Count", "1, 2", "naïve", "  x", "y \n", "")
START, END = "<|im_start|>", "<|im_end|>"
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def chatml(messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
    """The right text of a conversation."""
    text = ""
    if messages[0]["role"] != "system":
        text = f"{START}system\n{DEFAULT_SYSTEM}{END}\n"
    for message in messages:
        text += START + message["role"] + "\n" + message["content"] + END + "\n"
    return text + (f"{START}assistant\n" if add_generation_prompt else "")


def conversation(cases, n_turn: int, system: str | None, *label: object) -> list[dict[str, str]]:
    """A system message, if there is one, and n_turn turns of random words, some with blanks at their ends."""
    rng = cases.rng("conversation", n_turn, *label)
    messages = [] if system is None else [{"role": "system", "content": system}]
    for _ in range(n_turn):
        for role in ("user", "assistant"):
            content = " ".join(WORDS[i] for i in rng.integers(0, len(WORDS), rng.integers(1, 6)))
            messages.append({"role": role, "content": content + (" \n", "", "\n")[rng.integers(0, 3)]})
    return messages


@check("render_chatml writes the model's template", points=1, watches=("render_chatml",))
def chatml_template(student, cases):
    """The text is the one that the model's own template makes."""
    for i in range(12):
        system = (None, "Be brief. ", "", None)[i % 4]
        messages = conversation(cases, i // 3, system, i)
        messages.append({"role": "user", "content": f" {i}{END} \n"})
        for prompt in (False, True):
            expect_text(student.string("render_chatml", messages, add_generation_prompt=prompt), messages, prompt)
    for role in ("user", "system"):  # a system message that is not the first takes no default's place
        messages = [{"role": "assistant", "content": "Hello."}, {"role": role, "content": "Who?"}]
        expect_text(student.string("render_chatml", messages, add_generation_prompt=True), messages, True)
    messages = conversation(cases, 1, None, "default")
    if student.plain("render_chatml", messages) != chatml(messages):
        raise Failure("Without add_generation_prompt, the text is not that of False.")


def expect_text(text, messages, prompt):
    right = chatml(messages, prompt)
    if text == right:
        return
    default = f"{START}system\n{DEFAULT_SYSTEM}{END}\n"
    stripped = chatml([{**m, "content": m["content"].strip()} for m in messages], prompt)
    wrong = (
        (own.DEFAULT_SYSTEM_MISSING, right.removeprefix(default)),
        (own.DEFAULT_SYSTEM_ALWAYS, default + right),
        (own.CHATML_CONTENT_STRIPPED, stripped),
        (own.GENERATION_PROMPT_MISSING if prompt else own.CHATML_PROMPT_ALWAYS, chatml(messages, not prompt)),
    )
    bug = next((bug for bug, other in wrong if text == other), None)
    at, has = common(text, right), "a" if messages[0]["role"] == "system" else "no"
    raise Failure(
        f"For {count(len(messages), 'message')} with {has} system message, add_generation_prompt={prompt}, the text "
        f"has {count(len(text), 'character')} instead of {len(right)} and differs from character {at} on.",
        bug,
    )


@check("Turn n with its answer begins turn n + 1", points=1)
def chatml_turns(student, cases):
    """The prompt of a turn, with the answer and END, is the beginning of the next turn's prompt."""
    for system in (None, "You are brief."):
        messages = conversation(cases, 5, system, "turns")
        starts = [i for i, m in enumerate(messages) if m["role"] == "user"]
        prompts = [student.string("render_chatml", messages[: i + 1], add_generation_prompt=True) for i in starts]
        for turn, (i, now, after) in enumerate(zip(starts, prompts, prompts[1:], strict=False), 1):
            said = now + messages[i + 1]["content"] + END
            if not after.startswith(said):
                raise Failure(
                    f"The prompt of turn {turn} with its answer has {len(said)} characters, and the prompt of turn "
                    f"{turn + 1} has only the first {common(said, after)} of them."
                )
        if not prompts or not all(prompts):
            raise Failure("A prompt is empty.")
