"""The check that the answer comes from the saved cache."""

from __future__ import annotations

import numpy as np

from autograder.judge.compare import expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.student import StudentError
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import (
    STAGE,
    append_rows,
    case,
    reuse_prefix,
    right_logits,
    save_prefix,
)
from autograder.stages.save_and_reuse.suspects import reuse_suspects


@check(stage=STAGE, id="cache-is-used", points=1, title="The answer comes from the saved keys and values")
def cache_is_used(student, cases):
    """The saved keys and values of every layer decide the answer; the prefix is neither run again nor remembered."""
    for model in (cases.odd[0], cases.odd[1]):  # with a first and a last layer alone, and with one between them
        prefix, other, suffix = (cases.ids(model, n, name) for n, name in ((9, "prefix"), (9, "other"), (3, "suffix")))
        p, where = len(prefix), case(model, len(prefix), len(suffix))
        expected = right_logits(model, prefix, suffix)
        kv = model.reference.run(prefix).kv
        rng = cases.rng("altered", model.config.n_layer)

        saved = save_prefix(student, prefix, model)
        answer = reuse_prefix(student, saved, p, suffix, model)
        options = {"name": "generate_with_prefix", "axes": ("id",)}
        expect_close(answer, expected, where=where, suspects=reuse_suspects(model, prefix, suffix), **options)

        wpe = model.weights.wpe.copy()
        wpe[:p] = rng.normal(size=wpe[:p].shape) * wpe.std()
        spoiled = model.patched("wpe.weight", wpe)
        saved = save_prefix(student, prefix, model)
        answer = reuse_prefix(student, saved, p, suffix, spoiled)
        again = [(own.RECOMPUTED, lambda m=spoiled, a=prefix, b=suffix: right_logits(m, a, b))]
        place = f"with other numbers in the rows of wpe that only the prefix needs, {where}"
        expect_close(answer, expected, where=place, suspects=again, **options)

        saved = save_prefix(student, prefix, model)
        answer, n_run = student.counted_array("generate_with_prefix", saved, p, suffix, model)
        expect_close(answer, expected, where=where, **options)
        if n_run is not None and n_run > len(suffix) + 1.5:
            detail = f"{n_run:.0f} tokens went through the model where the suffix has {len(suffix)} ({where})."
            raise Failure(None, detail, own.RECOMPUTED)
        _expect_no_memory(student, model, saved, kv, suffix, answer, where)

        save_prefix(student, other, model)
        past, positions = model.reference.run(other).kv, range(p, p + len(suffix))
        of_other = model.reference.run(suffix, past=past, positions=positions).logits[-1]
        noticed = False
        for layer in range(model.config.n_layer):
            for part, name in enumerate(("keys", "values")):
                altered, wrong = _altered(model, kv, layer, part, suffix, expected, rng)
                handle = student.make_cache(model, altered)
                answer = reuse_prefix(student, handle, p, suffix, model)
                if matches(answer, expected):
                    detail = f"Other {name} in layer {layer} of the cache change nothing ({where})."
                    raise Failure(None, detail, own.ONE_LAYER_IGNORED if noticed else own.ANSWERS_FROM_MEMORY)
                place = f"with other {name} in layer {layer} of the cache, {where}"
                last_saved = [(own.ONE_CACHE_FOR_ALL, lambda e=of_other: e)]
                expect_close(answer, wrong, where=place, suspects=last_saved, **options)
                noticed = True


def _expect_no_memory(student, model, saved, kv, suffix, answer, where):
    """With one row more in the very same cache there must be another answer, or a clear error.

    A saved cache that cannot be appended to, as it is write-protected or has other layers, is let be; and so is who
    reads the first prefix_len rows only, and gives this answer for a copy of the longer cache too.
    """
    p = kv[0][0].shape[1]
    try:
        append_rows(student, saved, [tuple(np.asarray(3 * a[:, :1], np.float32) for a in pair) for pair in kv])
        copy = student.method(saved, "clone", returns="handle")
    except StudentError:
        return
    try:
        again = reuse_prefix(student, saved, p, suffix, model)
    except StudentError as error:
        if error.loud:
            return
        raise
    if np.array_equal(again, answer) and not matches(reuse_prefix(student, copy, p, suffix, model), answer):
        raise Failure(None, f"One row more in the same cache changes nothing ({where}).", own.ANSWERS_FROM_MEMORY)


def _altered(model, kv, layer, part, suffix, expected, rng):
    """The K/V with one layer's keys or values changed, enough to change the logits; and those logits."""
    scale = 1.0
    while True:
        array = kv[layer][part]
        changed = array + scale * array.std() * rng.normal(size=array.shape)
        changed = changed.astype(np.float32).astype(np.float64)  # what the student gets, to the bit
        pair = (changed, kv[layer][1]) if part == 0 else (kv[layer][0], changed)
        altered = [*kv[:layer], pair, *kv[layer + 1 :]]
        logits = model.reference.run(suffix, past=altered).logits[-1]
        if not matches(logits, expected, atol=1e-2, rtol=5e-2):
            return altered, logits
        scale *= 3
