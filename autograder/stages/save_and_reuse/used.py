"""The check that the answer comes from the saved cache."""

from __future__ import annotations

import numpy as np

from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.reference import KV, part_of_rows
from autograder.judge.student import Handle, Student, StudentError
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import (
    STAGE,
    append_rows,
    case,
    expect_kept_everywhere,
    expect_right,
    reuse_prefix,
    same_answer,
    save_prefix,
)


@check(stage=STAGE, id="cache-is-used", points=1, title="The answer comes from the saved keys and values")
def cache_is_used(student: Student, cases: Cases) -> None:
    """The saved keys and values of every layer decide the answer; the prefix is neither run again nor remembered."""
    for model in (cases.odd[0], cases.odd[1]):  # with a first and a last layer alone, and with one between them
        prefix, suffix = cases.ids(model, 9, "prefix"), cases.ids(model, 3, "suffix")
        p, where = len(prefix), case(model, len(prefix), len(suffix))
        whole = model.reference.run(prefix + suffix)
        kv, expected = part_of_rows(whole.kv, 0, p), whole.logits[-1]
        rng = cases.rng("altered", model.config.n_layer)
        options = {"name": "generate_with_prefix", "axes": ("id",)}

        expect_right(student, save_prefix(student, prefix, model), model, prefix, suffix)

        wpe = model.weights.wpe.copy()
        wpe[:p] = rng.normal(size=wpe[:p].shape) * wpe.std()
        spoiled = model.patched("wpe.weight", wpe)
        answer = reuse_prefix(student, save_prefix(student, prefix, model), p, suffix, spoiled)
        again = [(own.RECOMPUTED, lambda m=spoiled, ids=prefix + suffix: m.reference.logits(ids)[-1])]
        place = f"with other numbers in the rows of wpe that only the prefix needs, {where}"
        expect_close(answer, expected, where=place, suspects=again, **options)

        saved = save_prefix(student, prefix, model)
        answer, n_run = student.counted_array("generate_with_prefix", saved, p, suffix, model)
        expect_close(answer, expected, where=where, **options)
        if n_run is not None and n_run > len(suffix) + 1.5:
            detail = f"{n_run:.0f} tokens went through the model where the suffix has {len(suffix)} ({where})."
            raise Failure(None, detail, own.RECOMPUTED)
        _expect_no_memory(student, model, saved, kv, suffix, answer, where)

        for layer in range(model.config.n_layer):
            for part, name in enumerate(("keys", "values")):
                altered, wrong = _altered(model, kv, layer, part, suffix, expected, rng)
                answer = reuse_prefix(student, student.make_cache(model, altered), p, suffix, model)
                if matches(answer, expected):
                    raise Failure(None, f"Other {name} in layer {layer} of the cache change nothing ({where}).")
                place = f"with other {name} in layer {layer} of the cache, {where}"
                expect_close(answer, wrong, where=place, **options)
    expect_kept_everywhere(student, cases)


def _expect_no_memory(
    student: Student, model: JudgeModel, saved: Handle, kv: KV, suffix: list[int], answer: np.ndarray, where: str
) -> None:
    """With one row more in the very same cache there must be another answer, or a clear error.

    Two kinds of code are left out: with a saved cache that cannot be appended to, and code that reads the first
    prefix_len rows only, and so gives this answer for a copy of the longer cache too.
    """
    p = kv[0][0].shape[1]
    try:
        append_rows(student, saved, [tuple(np.asarray(3 * a[:, :1], np.float32) for a in pair) for pair in kv])
        copy = student.method(saved, "clone", returns="handle")
    except StudentError:
        return
    if same_answer(student, saved, p, suffix, model, answer) and not matches(
        reuse_prefix(student, copy, p, suffix, model), answer
    ):
        raise Failure(None, f"One row more in the same cache changes nothing ({where}).")


def _altered(
    model: JudgeModel,
    kv: KV,
    layer: int,
    part: int,
    suffix: list[int],
    expected: np.ndarray,
    rng: np.random.Generator,
) -> tuple[KV, np.ndarray]:
    """The K/V with one layer's keys or values changed, enough to change the logits; and those logits."""
    scale = 1.0
    while True:
        pair = list(kv[layer])
        noise = scale * pair[part].std() * rng.normal(size=pair[part].shape)
        pair[part] = (pair[part] + noise).astype(np.float32).astype(np.float64)  # what the student gets, to the bit
        altered = [*kv[:layer], tuple(pair), *kv[layer + 1 :]]
        logits = model.reference.run(suffix, past=altered).logits[-1]
        if not matches(logits, expected, atol=1e-2, rtol=5e-2):
            return altered, logits
        scale *= 3
