"""The check of what save_prefix_cache returns."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import HALF_PRECISION, Bug
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.student import Student
from autograder.judge.words import count, tokens
from autograder.stages.save_and_reuse.shared import (
    STAGE,
    UNIT,
    rows_of,
    save_prefix,
    saved_rows,
    with_room_for_chunks,
)
from autograder.stages.save_and_reuse.suspects import wrong_saved


@check(
    stage=STAGE,
    id="saved-prefix-exact",
    points=2,
    title="The saved cache holds the prefix, all of it and nothing else",
    watches=("save_prefix_cache",),
)
def saved_prefix_exact(student: Student, cases: Cases) -> None:
    """In every layer the saved cache holds the keys and values of the prefix's tokens, one row a token."""
    sweep = Sweep(UNIT)
    small, middle, _ = cases.odd
    for model, lengths in (
        (small, range(1, small.config.n_ctx + 1)),  # chunks and buffers of any size up to there, full and not
        (middle, (1, middle.config.n_ctx)),
        # blocks of 8 to 256: full, and one row past them
        (with_room_for_chunks(cases), (24, 32, 33, 65, 128, 257)),
        (cases.trained, (12,)),
    ):
        ids = cases.ids(model, max(lengths), "prefix")
        for p in lengths:
            with sweep.at(p):
                saved = save_prefix(student, ids[:p], model)
                _expect_rows(saved_rows(student, saved), model, ids, p)
    sweep.finish()
    _expect_the_models_own(student, cases, small)


def _expect_the_models_own(student: Student, cases: Cases, model: JudgeModel) -> None:
    """The same ids, saved with one model and with another of its shape."""
    prefix, other = cases.ids(model, 6, "of two models"), random_judge_model(model.config, cases.number("another"))
    save_prefix(student, prefix, model)
    _expect_rows(saved_rows(student, save_prefix(student, prefix, other)), other, prefix, len(prefix))


def _expect_rows(kv: KV, model: JudgeModel, ids: list[int], p: int) -> None:
    """The keys and values are those of ids[:p], to float32."""
    config, place = model.config, f"for a prefix of {tokens(p)} on {model.about}"
    right = part_of_rows(model.reference.run(ids).kv, 0, p)  # a later token changes no earlier row
    if len(kv) != config.n_layer:
        raise Failure(None, f"The cache has {count(len(kv), 'layer')} where the model has {config.n_layer} ({place}).")
    shapes = {a.shape for pair in kv for a in pair}
    if {(n_head, head_dim) for n_head, _, head_dim in shapes} != {(config.n_head, config.head_dim)}:
        shape = list(right[0][0].shape)
        detail = f"Keys and values have shape {list(kv[0][0].shape)} where {shape} is expected ({place})."
        raise Failure(None, f"{detail} The axes are [n_head, n_seq, head_dim].")
    counts = {n_seq for _, n_seq, _ in shapes}
    if counts != {p}:
        belong = "belongs" if p == 1 else "belong"
        detail = f"The layers have {rows_of(counts)} where {p} {belong} ({place})."
        raise Failure(None, detail, _bug_of_content(kv, model, ids[:p]))
    for layer, (actual, expected) in enumerate(zip(kv, right, strict=True)):
        for name, a, e in zip(("keys", "values"), actual, expected, strict=True):
            scale = float(np.sqrt((e**2).mean()))  # float32 is right to 1e-5 of it, float16 to 1e-3
            options = {"atol": 1e-4 * scale, "rtol": 1e-4, "axes": ("head", "row", "element")}
            try:
                expect_close(a, e, name=f"Layer {layer}'s array of {name}", where=place, **options)
            except Failure as failure:
                raise Failure(None, failure.detail, _bug_of_content(kv, model, ids[:p])) from None


def _bug_of_content(kv: KV, model: JudgeModel, prefix: list[int]) -> Bug | None:
    flat = np.concatenate([a.ravel() for pair in kv for a in pair])
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(flat).all() and flat.any() and (flat == flat.astype(np.float16)).all():
            return HALF_PRECISION
    for bug, wrong in wrong_saved(model, prefix):
        pairs = zip(kv, wrong(), strict=True)
        if all(matches(a, b) for one, two in pairs for a, b in zip(one, two, strict=True)):
            return bug
    return None
