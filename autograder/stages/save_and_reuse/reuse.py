"""The checks of the answers that generate_with_prefix gives."""

from __future__ import annotations

from collections.abc import Iterator

from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import Sweep
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import (
    STAGE,
    UNIT,
    case,
    expect_kept_everywhere,
    expect_right,
    same_answer,
    save_prefix,
    with_room_for_chunks,
)


@check(
    stage=STAGE,
    id="reuse-equals-recompute",
    points=2,
    title="Reusing the prefix gives the same logits as recomputing",
    watches=("generate_with_prefix",),
)
def reuse_equals_recompute(student: Student, cases: Cases) -> None:
    """The logits after saved prefix and suffix are those of running the whole prompt from scratch."""
    sweep = Sweep(UNIT)
    for model, pairs in _prompt_lengths(cases):
        ids = cases.ids(model, max(map(sum, pairs)), "prompt")
        for p, s in pairs:
            with sweep.at(p):
                saved = save_prefix(student, ids[:p], model)
                expect_right(student, saved, model, ids[:p], ids[p : p + s], sweep.close, None)
    sweep.finish()
    expect_kept_everywhere(student, cases)


def _prompt_lengths(cases: Cases) -> Iterator[tuple[JudgeModel, list[tuple[int, int]]]]:
    """(prefix length, suffix length) pairs for each model: short and long ones, and up to exactly n_ctx."""
    small, middle, large = cases.odd
    n = small.config.n_ctx
    # Buffers of 4, 8, 10 or 16 rows, one short, full and past it, which in some the suffix is; one token; n_ctx.
    yield small, [(p, min(1 + p % 3, n - p)) for p in (1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, n - 1)]
    n = middle.config.n_ctx
    yield middle, [(1, n - 1), (4, 2), (n // 2, n - n // 2), (n - 1, 1)]  # suffixes longer than a prefix, up to n_ctx
    yield large, [(1, 1), (large.config.n_ctx // 2, 7)]
    longest = with_room_for_chunks(cases)
    # Blocks of 16 to 128: full before the suffix, filled by it, one row past them. Chunks of the suffix: 64 is full
    # ones of 16 and 32; 40 of 5, 8 and 10, and not of 16 or 32. The last is one of 128 and more.
    yield longest, [(16, 1), (32, 3), (64, 64), (65, 40), (128, 22), (30, 130)]
    yield cases.trained, [(11, 4)]


@check(stage=STAGE, id="position-continues", points=2, title="The suffix continues at position prefix_len")
def position_continues(student: Student, cases: Cases) -> None:
    """Token i of the suffix stands at position prefix_len + i, with prefix_len as it was passed."""
    sweep = Sweep(UNIT)
    small, _, large = cases.odd
    # Suffixes of one token, of a few and of many: who handles them apart can get the position wrong in one way alone.
    for model, pairs in (
        (small, ((2, 3), (7, 1), (7, 6), (small.config.n_ctx - 3, 3))),
        (large, ((11, 6), (3, 20))),
        (cases.trained, ((5, 3),)),
    ):
        for p, s in pairs:
            ids = cases.ids(model, p + s, "prompt")
            with sweep.at(p):
                saved = save_prefix(student, ids[:p], model)
                answer = expect_right(student, saved, model, ids[:p], ids[p:], sweep.close, None)
                for wrong in (p - 1,) if model is cases.trained else (0, p - 1, p + 1, p + 3) if s == 3 else (p + 1,):
                    if wrong + s <= model.config.n_ctx and same_answer(student, saved, wrong, ids[p:], model, answer):
                        detail = f"With prefix_len given as {wrong}, the logits are still those of position {p}"
                        raise Failure(None, f"{detail} ({case(model, p, s)}).", own.PREFIX_LEN_IGNORED)
    sweep.finish()
    expect_kept_everywhere(student, cases)
