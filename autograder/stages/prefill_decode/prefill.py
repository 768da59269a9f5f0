"""The checks of prefill."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.judge.bugs import LOGITS_REMEMBERED
from autograder.judge.cases import JudgeModel, random_judge_model
from autograder.judge.compare import Sweep, expect_close, in_words
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV
from autograder.judge.student import Handle, Student, StudentError
from autograder.judge.words import tokens
from autograder.stages.prefill_decode import bugs as own
from autograder.stages.prefill_decode.cache_rows import expect_rows, same
from autograder.stages.prefill_decode.shared import STAGE, prefilled
from autograder.stages.prefill_decode.suspects import wrong_logits
from autograder.stages.prefill_decode.turns import expect_turns


@check(
    stage=STAGE,
    id="prefill-logits",
    points=2,
    title="prefill gives the logits after the last prompt token",
    watches=("prefill",),
)
def prefill_logits(student, cases):
    """prefill returns the logits [n_vocab] after the prompt's last token, equal to a recompute of the prompt."""
    sweep = Sweep("prompt lengths")
    middle, small, large = cases.odd
    for model, lengths in (
        (small, (*range(2, small.config.n_ctx + 1), 1)),  # 1 last: it makes the poorest example
        (middle, (1, 2, 3, middle.config.n_ctx)),
        (large, (2, 9, large.config.n_ctx)),
        (cases.long, (32, 64, 65, 129)),  # at and past the sizes of blocks
        (cases.trained, (1, 37)),
    ):
        ids = cases.ids(model, max(lengths))
        for n in lengths:
            with sweep.at(n):
                _, logits = prefilled(student, model, ids[:n])
                sweep.close(
                    logits,
                    model.reference.logits(ids)[n - 1],  # what comes after a token changes nothing before it
                    name="prefill",
                    axes=("id",),
                    where=_after(model, n),
                    suspects=wrong_logits(model, ids[:n]),
                )
    sweep.finish()
    n = 6
    ids, twin = cases.ids(small, small.config.n_ctx)[:n], random_judge_model(small.config, cases.number("twin"))
    expect_close(
        prefilled(student, twin, ids)[1],
        twin.reference.logits(ids)[-1],
        name="prefill",
        axes=("id",),
        where=f"for {tokens(n)} that another model of the same shape has been given before",
        suspects=[(LOGITS_REMEMBERED, lambda: small.reference.logits(ids)[-1])],
    )


@check(stage=STAGE, id="prefill-cache", points=2, title="After prefill the cache holds exactly the prompt")
def prefill_cache(student, cases):
    """After prefill every layer of the cache holds the keys and values of the prompt's tokens, one row a token, and a
    row does not depend on the tokens after it."""
    sweep = Sweep("prompt lengths")
    middle, small, _ = cases.odd
    for model, lengths in (
        (small, (1, 2, 3, 8, small.config.n_ctx)),
        (middle, (1, 5, middle.config.n_ctx)),
        (cases.trained, (19,)),
    ):
        ids = cases.ids(model, max(lengths))
        for n in lengths:
            with sweep.at(n):
                cache, _ = prefilled(student, model, ids[:n])
                kv = _read(student, cache, _after(model, n), n)
                try:
                    expect_rows(kv, model, ids[:n], 0, _after(model, n))
                except Failure as failure:
                    bug = failure.bug if n > 3 else None  # at one to three tokens many mistakes look alike
                    whole = all(a.shape[1] == n for pair in kv for a in pair)  # else the last row may be any token's
                    if n > 3 and bug is None and whole and _looks_ahead(student, model, ids[:n]):
                        bug = own.LOOKS_AHEAD
                    raise Failure(None, failure.detail, bug) from None
    sweep.finish()


def _read(student: Student, cache: Handle, after: str, n: int) -> KV:
    """The rows of the cache after prefill of n tokens; a Failure where some layers have none."""
    if student.length(cache) > 0:
        try:
            return student.read_cache(cache, "the cache")
        except StudentError as error:
            if "NoneType" not in error.message:
                raise
    layers = student.attribute(cache, "layers", returns="handle")
    lengths = [
        student.length(student.method(layers, "__getitem__", i, returns="handle"))
        for i in range(student.length(layers))
    ]
    filled = [i for i, length in enumerate(lengths) if length]
    if not filled:
        raise Failure(None, f"The cache is empty ({after}).", own.OWN_CACHE if n > 1 else None)
    empty = [i for i, length in enumerate(lengths) if not length]
    if not empty:  # what cannot be read, or len(cache), is then another affair
        return student.read_cache(cache, "the cache")
    bug = own.ONE_LAYER_FOR_ALL if len(filled) == 1 and lengths[filled[0]] > n else None
    where = f"layer{'s' if len(empty) > 1 else ''} {in_words(empty)} of 0 to {len(lengths) - 1}"
    raise Failure(None, f"The cache has no rows in {where} ({after}).", bug)


def _looks_ahead(student: Student, model: JudgeModel, ids: list[int]) -> bool:
    """Whether the student's earlier rows change when only the last token does."""
    other = [*ids[:-1], (ids[-1] + 1) % model.config.n_vocab]
    one, two = (student.read_cache(prefilled(student, model, prompt)[0], "the cache") for prompt in (ids, other))
    return any(not same(a[:, :-1], b[:, :-1]) for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True))


@check(stage=STAGE, id="prefill-in-chunks", points=2, title="prefill in chunks equals prefill at once")
def prefill_in_chunks(student, cases):
    """A prompt that comes in chunks, each continuing at len(cache), gives the same logits and the same cache as the
    prompt at once, after decode steps too."""
    _, small, large = cases.odd
    sweep = Sweep("lengths of the first chunk")
    for model, n, firsts in (
        (small, 11, range(1, 11)),
        (large, large.config.n_ctx, (1, 2, 12, 25)),
        (cases.long, 150, (32, 64, 128)),
        (cases.trained, 24, (9,)),
    ):
        ids = cases.ids(model, n)
        for first in firsts:
            with sweep.at(first):
                _, logits = prefilled(student, model, ids[:first], ids[first:])
                where = f"for a chunk of {first} and one of {tokens(n - first)} on {model.about}"
                _compare_chunk(sweep, logits, model, ids, first, where)
    sweep.finish()

    sweep = Sweep("numbers of chunks")
    ids = cases.ids(small, small.config.n_ctx, "many")
    for ends in ((4, 5, 11, 13), (*range(1, 14),)):
        with sweep.at(len(ends)):
            starts = (0, *ends[:-1])
            cache, logits = prefilled(student, small, *(ids[a:b] for a, b in zip(starts, ends, strict=True)))
            where = f"for {tokens(len(ids))} in {len(ends)} chunks on {small.about}"
            _compare_chunk(sweep, logits, small, ids, starts[-1], where)
            expect_rows(student.read_cache(cache, "the cache"), small, ids, 0, where)
    sweep.finish()
    expect_turns(student, cases, small)


def _compare_chunk(sweep: Sweep, logits, model: JudgeModel, ids: Sequence[int], n_past: int, where: str) -> None:
    sweep.close(
        logits,
        model.reference.logits(ids)[-1],
        name="prefill",
        axes=("id",),
        where=where,
        suspects=wrong_logits(model, ids, n_past),
    )


def _after(model: JudgeModel, n_prompt: int) -> str:
    return f"for a prompt of {tokens(n_prompt)} on {model.about}"
