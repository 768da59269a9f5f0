"""The checks of render_chatml."""

from __future__ import annotations

from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.stages.chat_model import bugs as own
from autograder.stages.chat_model.shared import DEFAULT_SYSTEM, END, START, chatml

WORDS = ("Who", "are", "you?", "Count", "1, 2", "naïve", "  x", "y \n", "")


def conversation(cases, n_turn: int, system: str | None, *label: object) -> list[dict[str, str]]:
    """A system message, if there is one, and n_turn turns of random words, some with blanks at their ends."""
    rng = cases.rng("conversation", n_turn, *label)
    messages = [] if system is None else [{"role": "system", "content": system}]
    for _ in range(n_turn):
        for role in ("user", "assistant"):
            content = " ".join(WORDS[i] for i in rng.integers(0, len(WORDS), rng.integers(1, 6)))
            messages.append({"role": role, "content": content + (" \n", "", "\n")[rng.integers(0, 3)]})
    return messages


def render(student, messages, prompt):
    text = student.plain("render_chatml", messages, add_generation_prompt=prompt)
    if not isinstance(text, str):
        raise Failure(f"render_chatml returned {type(text).__name__}, and a text is expected.")
    return text


@check("render_chatml writes the model's template", points=1, watches=("render_chatml",))
def chatml_template(student, cases):
    """The text is the one that the model's own template makes."""
    for i in range(12):
        system = (None, "Be brief. ", "", None)[i % 4]
        messages = conversation(cases, i // 3, system, i)
        messages.append({"role": "user", "content": f" {i}{END} \n"})
        for prompt in (False, True):
            expect_text(render(student, messages, prompt), messages, prompt)
    for role in ("user", "system"):  # a system message that is not the first takes no default's place
        messages = [{"role": "assistant", "content": "Hello."}, {"role": role, "content": "Who?"}]
        expect_text(render(student, messages, True), messages, True)
    messages = conversation(cases, 1, None, "default")
    if student.plain("render_chatml", messages) != chatml(messages):
        raise Failure("Without add_generation_prompt, the text is not that of False.")


def expect_text(text, messages, prompt):
    right = chatml(messages, prompt)
    if text == right:
        return
    default = f"{START}system\n{DEFAULT_SYSTEM}{END}\n"
    stripped = chatml([{**m, "content": m["content"].strip()} for m in messages], prompt)
    bug = None
    if text == right.removeprefix(default):
        bug = own.DEFAULT_SYSTEM_MISSING
    elif text == default + right:
        bug = own.DEFAULT_SYSTEM_ALWAYS
    elif text == stripped:
        bug = own.CONTENT_STRIPPED
    elif prompt and text == chatml(messages):
        bug = own.GENERATION_PROMPT_MISSING
    elif not prompt and text == chatml(messages, True):
        bug = own.GENERATION_PROMPT_ALWAYS
    at = next((i for i, (a, b) in enumerate(zip(text, right, strict=False)) if a != b), min(len(text), len(right)))
    has = "a" if messages[0]["role"] == "system" else "no"
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
        prompts = [render(student, messages[: i + 1], True) for i in starts]
        for turn, (i, now, after) in enumerate(zip(starts, prompts, prompts[1:], strict=False), 1):
            said = now + messages[i + 1]["content"] + END
            if not after.startswith(said):
                same = next((k for k, (a, b) in enumerate(zip(said, after, strict=False)) if a != b), len(after))
                raise Failure(
                    f"The prompt of turn {turn} with its answer has {len(said)} characters, and the prompt of turn "
                    f"{turn + 1} has only the first {same} of them."
                )
        if not prompts or not all(prompts):
            raise Failure("A prompt is empty.")
