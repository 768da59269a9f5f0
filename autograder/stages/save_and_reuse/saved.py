"""The check of what save_prefix_cache returns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.judge.bugs import HALF_PRECISION
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.compare import Suspects, Sweep, expect_close
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.student import Handle, Student
from autograder.stages.save_and_reuse.shared import SAVE, UNIT, case, wrong_saved


@check("The saved cache holds the prefix, all of it and nothing else", points=2, watches=("save_prefix_cache",))
def saved_prefix_exact(student: Student, cases: Cases) -> None:
    """In every layer the saved cache holds the keys and values of the prefix's tokens, one row a token."""
    sweep = Sweep(UNIT)
    small, middle, _ = cases.odd
    for model, lengths in (
        (small, range(1, small.config.n_ctx + 1)),  # chunks and buffers of any size up to there, full and not
        (middle, (1, middle.config.n_ctx)),
        # Blocks of 8 to 128, all full, and one row past them; one row past the context of GPT-2. One layer is enough.
        (cases.far, (32, 33, 48, 65, 128, 1025)),
        (cases.trained, (5,)),
    ):
        ids = cases.ids(model, max(lengths), "prefix")
        for p in lengths:
            with sweep.at(p):
                _expect_rows(student, model, ids, p, sweep.close)
    sweep.finish()
    # The same ids, saved with one model and then with another of its shape, which has its id(), and in another order
    prefix, other = cases.ids(small, 6, "of two models"), random_judge_model(small.config, cases.number("another"))
    weights = student.keep(small)
    student.handle(SAVE, prefix, weights)
    student.replace(weights)
    _expect_rows(student, other, prefix, len(prefix), weights=student.keep(other))
    _expect_rows(student, other, prefix, len(prefix))
    _expect_rows(student, other, prefix[::-1], len(prefix))


def _expect_rows(
    student: Student,
    model: JudgeModel,
    ids: list[int],
    p: int,
    close: Callable[..., None] = expect_close,
    weights: Handle | None = None,
) -> None:
    """The keys and values that are saved are those of ids[:p], to float32. weights: the model's, if they are kept."""
    saved: KV = student.read_cache(student.handle(SAVE, ids[:p], weights or model), SAVE)
    right = part_of_rows(model.reference.run(ids).kv, 0, p)  # a later token changes no earlier row
    if len(saved) != len(right):
        raise Failure(f"The cache has {count(len(saved), 'layer')} instead of {len(right)} ({case(model, p)}).")
    for layer in range(len(right)):
        for part, name in enumerate(("keys", "values")):
            actual, expected = saved[layer][part], right[layer][part]
            scale = float(np.sqrt((expected**2).mean()))  # float32 is right to 1e-5 of it, float16 to 1e-3
            close(
                actual,
                expected,
                name=f"Layer {layer}'s array of {name}",
                where=case(model, p),
                axes=("head", "row", "element"),
                suspects=_suspects(actual, model, ids[:p], layer, part),
                atol=1e-4 * scale,
                rtol=1e-4,
            )


def _suspects(actual: np.ndarray, model: JudgeModel, prefix: list[int], layer: int, part: int) -> Suspects:
    if actual.any():
        yield HALF_PRECISION, lambda: actual.astype(np.float16)
    for bug, wrong in wrong_saved(model, prefix):
        yield bug, lambda wrong=wrong: wrong()[layer][part]
