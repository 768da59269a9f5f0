"""What the checks of prefill and decode share: caches of the student's, made by prefill or by the judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograder.judge.cases import JudgeModel
from autograder.judge.reference import part_of_rows
from autograder.judge.student import Handle, Student

STAGE = "prefill-decode"


def prefilled(student: Student, model: JudgeModel, *chunks: Sequence[int]) -> tuple[Handle, np.ndarray]:
    """A cache of the student's after prefill of each chunk in turn, and the logits of the last."""
    cache = student.handle("ModelCache", model.config.n_layer)
    for chunk in chunks:
        logits = student.array("prefill", list(chunk), model, cache)
    return cache, logits


def cached(student: Student, model: JudgeModel, ids: Sequence[int], n: int) -> Handle:
    """A cache of the student's that holds the right rows of ids[:n]; no function of the student's made them."""
    return student.make_cache(model, part_of_rows(model.reference.run(ids).kv, 0, n))
