"""The checks of Chat."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np

from autograder.judge.compare import common
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count, tokens
from autograder.judge.reference import KV
from autograder.judge.student import StudentError
from autograder.stages.chat_model import bugs as own
from autograder.stages.chat_model.chatml import chatml
from autograder.stages.chat_model.llama_cases import JudgeLlama, random_judge_llama
from autograder.toolkit.chat.config import LlamaConfig
from autograder.toolkit.chat.tokenizer import ChatTokenizer, byte_tokenizer
from autograder.worker.arguments import ByteTokenizer, NotesWork, PlainRender, plain_render

SHAPE = LlamaConfig(2, 4, 2, n_embd=24, n_inner=31, n_ctx=420, n_vocab=259, rope_theta=2000.0, tied=False)
N_NEW = 6
CLEAR = 0.02  # the two likeliest ids are never closer: rounding does not decide
PAUSE = 0.005  # seconds that a call of `each` takes in the first turn of a log
TEXTS = ("Who?", " And 12\n", "why", "so it is", "Ah.", "no")


@dataclass
class Turn:
    """What a turn must come to."""

    text: str
    new_ids: list[int]
    prompt: int  # tokens of the prompt
    shared: int  # of which this many are known from the turns before
    rows: int  # in the cache afterwards
    assumed: list[int]  # the answer where all rows are reused, and ids are not compared


@dataclass
class Conversation:
    """A conversation by the judge's model. The margin is that of the closest decision.

    other: whether its tokenizer and its render are not those of the notebook.
    """

    model: JudgeLlama
    other: bool = False
    messages: list[dict[str, str]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    margin: float = np.inf
    _known: list[int] = field(default_factory=list)
    _assumed: KV = field(default_factory=list)  # of one who does not compare ids

    def send(self, text: str) -> Turn:
        tokenizer = byte_tokenizer(self.other)
        self.messages.append({"role": "user", "content": text})
        ids = tokenizer.encode((plain_render if self.other else chatml)(self.messages, True))
        new_ids, kv, margin = self._answer(ids, [])
        self.margin = min(self.margin, margin)
        n = min(len(self._known), len(ids) - 1)
        assumed, self._assumed, _ = self._answer(ids[n:], [(k[:, :n], v[:, :n]) for k, v in self._assumed])
        rows = kv[0][0].shape[1]
        shared = min(common(ids, self._known), len(ids) - 1)
        self._known = (ids + new_ids)[:rows]
        self.messages.append({"role": "assistant", "content": tokenizer.decode(new_ids)})
        self.turns.append(Turn(text, new_ids, len(ids), shared, rows, assumed))
        return self.turns[-1]

    def _answer(self, ids: list[int], past: KV) -> tuple[list[int], KV, float]:
        """The answer after ids that follow `past`, the rows then, and the margin."""
        end_id, reference = byte_tokenizer(self.other).end_id, self.model.reference
        run, new_ids, margin = reference.run(ids, past=past), [], np.inf
        while True:
            second, first = np.sort(run.logits[-1])[-2:]
            margin = min(margin, first - second)
            token_id = int(run.logits[-1].argmax())
            if token_id == end_id:
                break
            new_ids.append(token_id)
            if len(new_ids) == N_NEW:
                break
            run = reference.run([token_id], past=run.kv)
        return new_ids, run.kv, margin


def clear_conversation(cases, texts: tuple[str, ...], kind: str) -> Conversation:
    """Of a random model for which no decision is close.

    kind: "bytes" for answers that are not UTF-8, so that encoded again they are other ids, and whoever does not compare
    them answers otherwise, with a special token in them that ends nothing; "text" for answers of letters, the first of
    which ends with a blank; "ends" for letters, where the first answer is three ids, and then the end token; "other"
    for the same with another tokenizer and another render.
    """
    return _conversation(cases.number("chat", kind), texts, kind)


@lru_cache(maxsize=8)
def _conversation(seed: int, texts: tuple[str, ...], kind: str) -> Conversation:
    for attempt in range(60):
        model = random_judge_llama(SHAPE, seed + attempt)
        tokenizer, ends_early = byte_tokenizer(kind == "other"), kind in ("ends", "other")
        talk = Conversation(model if kind == "bytes" else _of_letters(model, tokenizer), kind == "other")
        said = talk.send(texts[0]).new_ids
        if len(said) < N_NEW:  # it ends by itself
            continue
        blank, special = (tokenizer.encode(token)[0] for token in (" ", "<|endoftext|>"))
        if ends_early:
            pair = tokenizer.end_id, said[3]
        else:
            pair = (blank, said[-1]) if kind == "text" else (special, said[0])
        talk = Conversation(_swapped(talk.model, *pair), kind == "other")
        for text in texts:
            talk.send(text)
        known = all(b.shared >= a.prompt + len(a.new_ids) for a, b in pairwise(talk.turns))
        ends = [turn.rows == turn.prompt + len(turn.new_ids) for turn in talk.turns]
        told = any(turn.assumed != turn.new_ids for turn in talk.turns)
        fits = (not known and told and not any(ends)) if kind == "bytes" else (ends[0] == ends_early)
        fits = fits and (kind != "text" or talk.messages[1]["content"][-1:].isspace())
        fits = fits and (not ends_early or len(talk.turns[0].new_ids) == 3)  # said[3] may stand earlier too
        if talk.margin > CLEAR and fits:
            return talk
    raise AssertionError(f"no clear conversation of kind {kind} in 60")


def _of_letters(model: JudgeLlama, tokenizer: ChatTokenizer) -> JudgeLlama:
    """The same model, of which all logits but those of letters are 0."""
    head = model.weights.head.copy()
    letters = [tokenizer.encode(letter)[0] for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    head[[i for i in range(len(head)) if i not in letters]] = 0
    return model.patched("lm_head.weight", head)


def _swapped(model: JudgeLlama, one: int, other: int) -> JudgeLlama:
    """The same model, which says either id where it said the other."""
    head = model.weights.head.copy()
    head[[one, other]] = head[[other, one]]
    return model.patched("lm_head.weight", head)


def begin(student, model, reuse):
    """A new conversation; reuse is what a Chat does when nothing is said about it."""
    return student.handle("Chat", model, ByteTokenizer(), *([] if reuse else [False]))


def send(student, chat, text, model):
    return student.counted_method(chat, "send", text, N_NEW, n_layer=model.config.n_layer)[:2]


def answered(student, chat, text, model, prop, bug=None):
    """The new ids for a message that must not be refused: where it is, the failure names the case by `prop`."""
    try:
        return send(student, chat, text, model)[0]
    except StudentError as error:
        if not error.refusal:
            raise
        raise Failure(error.sentence, bug, prop=prop) from None


@check("A conversation with reuse says the same for less work", points=2)
def chat_reuse(student, cases):
    """A conversation has the same ids with reuse and without, and with it only what is new goes through the model."""
    for kind, reuse in (("bytes", True), ("ends", True), ("text", False)):
        talk = clear_conversation(cases, TEXTS[3:] if kind == "bytes" else TEXTS[:3], kind)
        chat = begin(student, talk.model, reuse)
        for number, turn in enumerate(talk.turns, 1):
            new_ids, work = send(student, chat, turn.text, talk.model)
            what = f"turn {number} of a conversation with reuse={reuse}"
            expect_ids(new_ids, turn.new_ids, what, turn.assumed)
            shared = turn.shared if reuse else 0
            least = turn.rows - shared  # what is neither reused nor, like the last new id, needed
            if work is not None and work > least + 1:
                raise Failure(
                    f"In {what}, {tokens(round(work))} went through the model where {least} are enough.",
                    own.CHAT_RECOMPUTES if number > 1 and work >= turn.rows else None,
                )
            # In the last layer, the last row is all that is needed: it may have seen next to nothing of the prompt.
            if work is not None and not reuse and work < least * (1 - 1 / SHAPE.n_layer):
                raise Failure(f"In {what}, only {work:g} of {least} tokens were run.", own.CHAT_REUSES_ALWAYS)
    given(student, cases)
    again(student, cases)
    taken_back(student, cases)
    refused(student, cases)


def given(student, cases):
    """A conversation with another tokenizer, which ends answers with another id, and with another render."""
    talk = clear_conversation(cases, TEXTS[:2], "other")
    chat = student.handle("Chat", talk.model, ByteTokenizer(turned=True), render=PlainRender())
    for number, turn in enumerate(talk.turns, 1):
        if send(student, chat, turn.text, talk.model)[0] != turn.new_ids:
            detail = f"In turn {number} with another tokenizer and another render, other ids came back."
            raise Failure(detail, prop="A Chat uses the tokenizer and the render that it is given.")


def again(student, cases):
    """After messages.clear() the first message is sent once more: of its prompt every id is known. The answer ends with
    the end token, with which each is not called. Once more without reuse, as may be said between turns, none is known.
    """
    talk = clear_conversation(cases, TEXTS[:3], "ends")
    chat, spare = (begin(student, talk.model, True) for _ in range(2))
    turn = talk.turns[0]
    shown = student.attribute(spare, "messages", returns="handle")  # a list in the student's process
    each = student.attribute(shown, "append", returns="handle")
    expect_ids(student.method(chat, "send", turn.text, N_NEW, each, returns="ids"), turn.new_ids, "the first turn")
    called = student.attribute(spare, "messages")
    if not isinstance(called, list) or called != turn.new_ids:
        raise Failure(
            "The calls of each do not have the ids of the answer, in their order.",
            own.EACH_NOT_CALLED,
            prop="each is called with each new id.",
        )
    (one_id, for_one, of_one), (_, work, noted) = (
        student.counted_method(
            begin(student, talk.model, True), "send", turn.text, n_new, NotesWork(), n_layer=talk.model.config.n_layer
        )
        for n_new in (1, N_NEW)
    )
    # The end token takes one more step. Steps in code of their own are not counted: then one id takes as much as all.
    if noted and work is not None and noted[-1] == work != for_one:
        raise Failure("A step was run before the call.", prop="each is called with an id as soon as it is known.")
    expect_ids(one_id, turn.new_ids[:1], "a turn with n_new=1")
    if len(of_one) != 1:
        detail = f"In a turn with n_new=1, each was called {count(len(of_one), 'time')}."
        raise Failure(detail, own.EACH_NOT_CALLED, prop="each is called with each new id.")
    for reuse, prop in (
        (True, "Of a prompt whose ids are all known, one is computed."),
        (False, "After reuse was changed to False, nothing is reused."),
    ):
        student.method(chat, "__setattr__", "reuse", reuse, returns="none")
        student.method(student.attribute(chat, "messages", returns="handle"), "clear", returns="none")
        new_ids = answered(student, chat, turn.text, talk.model, prop, own.CHAT_NOTHING_LEFT if reuse else None)
        expect_ids(new_ids, turn.new_ids, "a conversation that begins anew with the same message")
        reused, right = reused_last(student, chat), turn.prompt - 1 if reuse else 0
        if reused != right:
            detail = "After messages.clear(), the first message was sent again, and the log has"
            raise Failure(f"{detail} reused {reused} where {right} is right.", prop=prop)


def taken_back(student, cases):
    """The second turn is taken out of messages and sent again: its prompt is the same, and all of it is known."""
    talk = clear_conversation(cases, TEXTS[:3], "ends")
    chat = begin(student, talk.model, True)
    first, second = talk.turns[:2]
    for turn in (first, second):
        expect_ids(send(student, chat, turn.text, talk.model)[0], turn.new_ids, "a conversation with reuse=True")
    messages = student.attribute(chat, "messages", returns="handle")
    for _ in range(2):
        student.method(messages, "pop", returns="none")
    prop = "The prompt is made of messages as they are."
    new_ids = answered(student, chat, second.text, talk.model, prop)
    if new_ids != second.new_ids or reused_last(student, chat) != second.prompt - 1:
        detail = "A turn was taken out of messages and sent again, and this was not the same prompt, all of it known."
        raise Failure(detail, prop=prop)


def reused_last(student, chat):
    """What the log says of the last turn; None where it says nothing."""
    log = student.attribute(chat, "log")
    row = log[-1] if isinstance(log, list) and log else None
    return row.get("reused") if isinstance(row, dict) else None


def expect_ids(new_ids, right, what, assumed=(), prop=None):
    if new_ids == right:
        return
    end, n = byte_tokenizer().end_id, len(right)
    bug = own.CHAT_IDS_ASSUMED if new_ids == assumed else None
    if new_ids[:n] == right and new_ids[n : n + 1] == [end]:
        bug = own.END_TOKEN_KEPT if len(new_ids) == n + 1 else own.END_TOKEN_IGNORED
    begins = f"begins with {common(new_ids, right)} of the {count(n, 'right id')}"
    raise Failure(f"In {what}, the answer {begins}, and has {len(new_ids)} in all.", bug, prop=prop)


def refused(student, cases):
    """After a message that does not fit, the conversation goes on as if it had not been sent."""
    talk = clear_conversation(cases, TEXTS[1:3], "text")
    first, second = talk.turns
    fills = "x" * (SHAPE.n_ctx - second.prompt + len(second.text))  # its prompt takes the whole context
    chat, just = begin(student, talk.model, True), SHAPE.n_ctx + 1 - N_NEW - first.prompt + len(first.text)
    prop = "What just fits into n_ctx is answered: the last of n_new ids is not fed."
    if len(answered(student, chat, "x" * just, talk.model, prop)) != N_NEW:
        raise Failure(f"There are not {N_NEW} new ids.", prop=prop)
    for texts, cleared in (
        (["long " * 100], False),
        (["long " * 100, "again " * 90], False),
        ([fills], False),
        (["long " * 100], True),  # of a prompt that has less in common with what the cache holds
    ):
        chat = begin(student, talk.model, True)
        expect_ids(send(student, chat, first.text, talk.model)[0], first.new_ids, "the first turn")
        if cleared:
            student.method(student.attribute(chat, "messages", returns="handle"), "clear", returns="none")
        for text in texts:
            student.expect_error("send", text, N_NEW, of=chat, what="a prompt that does not fit into n_ctx")
        prop = "A message that is refused leaves nothing behind."
        after, shared = (first, first.prompt - 1) if cleared else (second, second.shared)
        new_ids = answered(student, chat, after.text, talk.model, prop, own.REFUSED_MESSAGE_STAYS)
        expect_ids(new_ids, after.new_ids, "the turn after a refused message", prop=prop)
        if len(student.attribute(chat, "log")) != 2:
            raise Failure("The log has another number of turns than were answered.", prop=prop)
        if reused_last(student, chat) != shared:
            raise Failure("The turn after it does not reuse what the turn before it left.", prop=prop)


@check("The log and the messages tell what happened", points=1)
def chat_log(student, cases):
    """log has prompt, reused, computed and seconds of each turn, and messages the whole conversation."""
    for reuse in (True, False):
        talk = clear_conversation(cases, TEXTS[:4], "text")
        chat = begin(student, talk.model, reuse)
        taken = []
        for turn in talk.turns:
            each = [] if taken else [NotesWork(PAUSE)]
            start = time.perf_counter()
            *_, noted = student.counted_method(chat, "send", turn.text, N_NEW, *each, n_layer=talk.model.config.n_layer)
            taken.append(time.perf_counter() - start - PAUSE * max(0, len(noted) - 1))  # after the first id was known
        log = student.attribute(chat, "log")
        if not isinstance(log, list) or len(log) != len(talk.turns):
            raise Failure(f"After {len(talk.turns)} turns, log is not a list of {len(talk.turns)} dicts.")
        for number, (row, turn) in enumerate(zip(log, talk.turns, strict=True), 1):
            shared = turn.shared if reuse else 0
            right = {"prompt": turn.prompt, "reused": shared, "computed": turn.prompt - shared}
            said = row if isinstance(row, dict) else {}
            wrong = [f"{key} {said[key]} where {n} is right" if type(said.get(key)) is int else f"no int as {key}"
                     for key, n in right.items() if said.get(key) != n]  # fmt: skip
            seconds = said.get("seconds")
            rounded = isinstance(seconds, float) and seconds == round(seconds, 4)  # to 0.0, mostly
            if rounded:
                wrong.append(f"seconds {seconds}")
            elif not isinstance(seconds, float) or not 0 < seconds <= taken[number - 1]:
                wrong.append("other seconds than it took until the first new token")
            if wrong:
                counted = number > 1 and (said.get("prompt"), said.get("reused")) == (turn.prompt, shared + 1)
                bug = own.CHAT_LAST_ID_COUNTED if reuse and counted else own.CHAT_SECONDS_ROUNDED if rounded else None
                raise Failure(f"In turn {number} with reuse={reuse}, log has {'; '.join(wrong)}.", bug)
        if len({row["seconds"] for row in log}) == 1:
            raise Failure(f"In all {len(log)} turns with reuse={reuse}, log has the same seconds.")
        if student.attribute(chat, "messages") != talk.messages:
            raise Failure(f"After {len(talk.turns)} turns, messages are not those that were exchanged.")
