"""The steps of prefill and decode: checks of helpers, worth no points."""

from __future__ import annotations

import numpy as np

from autograder.judge.cases import Cases
from autograder.judge.compare import expect_close
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.student import Student
from autograder.stages.prefill_decode.shared import expect_logits


@check("cached_block continues what the layer's cache holds", points=0, watches=("cached_block",))
def step_cached_block(student: Student, cases: Cases) -> None:
    """cached_block gives the rows of transformer_block, whether they come at once or in parts, and appends each row."""
    name, model = "cached_block", cases.odd[1]
    x = cases.rng().standard_normal((5, model.config.n_embd)).astype(np.float32)
    expected, block = model.reference.block(x, 0), model.part("blocks.0")
    for ends in ((5,), (3, 5), (1, 2, 5)):
        cache = student.handle("LayerCache")
        for start, end in zip((0, *ends), ends, strict=False):
            rows = student.array(name, x[start:end], block, model.config.n_head, cache)
            where = f"for {count(end - start, 'new row')} after {count(start, 'cached one')}"
            expect_close(rows, expected[start:end], name=name, where=where, axes=("row", "feature"))
            if student.length(cache) != end:
                raise Failure(f"After {count(end, 'row')} the cache has {count(student.length(cache), 'position')}.")


@check("advance carries new tokens through the whole model", points=0)
def step_advance(student: Student, cases: Cases) -> None:
    """advance gives the logits after the last new token, whose position is `position` plus its place among them."""
    model = cases.odd[0]
    ids = cases.ids(model, 6)
    cache = student.handle("ModelCache", model.config.n_layer)
    for start, end in ((0, 3), (3, 4), (4, 6)):
        logits = student.array("advance", ids[start:end], start, model, cache)
        where = f"for {count(end - start, 'new token')} at position {start}"
        expect_logits(logits, model, ids[:end], start, end, name="advance", where=where)
