"""The check of quantize and dequantize, by themselves and in a store."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases
from autograder.judge.framework import Failure, check
from autograder.judge.student import Student
from autograder.stages.block_cache import bugs
from autograder.stages.block_cache.shared import (
    blocks_of,
    context_of,
    expect_arrays,
    kv_of,
    make_cache,
    make_store,
)
from autograder.worker.arguments import Function

SLACK = 1 + 1e-3  # of half a step: the scale is rounded to float32


@check(
    "Blocks of int8 are off by half a step at most, and take a quarter of the memory",
    points=1,
    watches=("quantize", "dequantize"),
)
def int8_blocks(student: Student, cases: Cases) -> None:
    """dequantize(quantize(x)) is x up to half a step of each row's own scale, in int8; a store can keep blocks so."""
    rng = cases.rng("arrays")
    for shape in ((7,), (3, 5), (2, 2, 2, 4, 16)):
        array = rng.normal(size=shape).astype(np.float32)
        array *= (10.0 ** rng.integers(-4, 5, (*shape[:-1], 1))).astype(np.float32)  # rows of all sizes
        if len(shape) > 1:
            array[..., 0, :] = 0
        _expect_near(student, array)
    numbers, scales = np.array([[-127, 0, 64]], np.int8), np.array([[0.5]], np.float32)
    back = student.array("dequantize", [numbers, scales])
    if not (back.shape == (1, 3) and np.allclose(back, [[-63.5, 0, 32]])):
        raise Failure("dequantize of given numbers and scales is not numbers * scales.")
    _expect_in_store(student, cases)


def _expect_near(student: Student, array: np.ndarray) -> None:
    where = f"for an array of shape {list(array.shape)}"
    pair = student.plain("quantize", array)
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(a, (np.ndarray, int, float)) for a in pair)):
        raise Failure(f"quantize gave no pair of arrays ({where}).")
    # max without keepdims=True gives a number for a row of numbers, which is judged as an array
    pair = [a if isinstance(a, np.ndarray) else np.asarray(a, np.float32) for a in pair]
    numbers, scales = pair
    if numbers.dtype != np.int8 or numbers.shape != array.shape:
        detail = f"The numbers are {numbers.dtype} {list(numbers.shape)}; int8 of the array's shape is due ({where})."
        raise Failure(detail)
    if scales.size != array.size // array.shape[-1]:
        raise Failure(f"The number of scales is {scales.size}; each row has one of its own ({where}).")
    back = student.array("dequantize", pair)
    if back.shape != array.shape or back.dtype != np.float32:
        detail = f"dequantize gave {back.dtype} {list(back.shape)}; float32 of the array's shape is due ({where})."
        raise Failure(detail)
    steps = np.abs(array).max(axis=-1, keepdims=True) / 127
    for scale, step in zip(scales.ravel(), steps.ravel(), strict=True):
        if step and not np.isclose(scale, step, rtol=2e-3):
            where += f"; a row's scale is {scale:.3g}, and its largest absolute value / 127 is {step:.3g}"
            break
    cut = np.array_equal(numbers, np.trunc(array / np.where(steps == 0, 1, steps)))
    _expect_within_half_a_step(back, array, where, bugs.FRACTION_DROPPED if cut else None)


def _expect_within_half_a_step(back: np.ndarray, array: np.ndarray, where: str, bug: Bug | None = None) -> None:
    if not np.isfinite(back).all():
        raise Failure(f"Some values are not finite ({where}).")
    step = np.abs(array).max(axis=-1, keepdims=True) / 127
    error = np.abs(back.astype(np.float64) - array)
    if (error > SLACK * step / 2).any():
        steps = float((error / np.where(step == 0, 1, step)).max())
        raise Failure(f"A value is off by {steps:.2g} times its row's step; half a step is the most ({where}).", bug)


def _expect_in_store(student: Student, cases: Cases) -> None:
    size, shape = 4, (2, 2, 32)
    ids = cases.rng("ids").integers(0, 1000, 3 * size + 1).tolist()
    rows = kv_of(ids, "a", shape)
    rows *= cases.rng("signs").choice((-1, 1), rows.shape)
    asked, held = (ids, context_of("a")), {}
    for name, options in (
        ("float32", {}),
        ("int8", {"encode": Function("quantize"), "decode": Function("dequantize")}),
    ):
        store = make_store(student, 10, size, **options)
        student.method(store, "put", *asked, make_cache(student, rows), returns="none")
        held[name] = student.bytes_held(store)
    run = student.method(store, "match", *asked)
    expect_arrays(run, " of a BlockStore with encode and decode")
    if len(run) != 3:
        raise Failure("A BlockStore with encode and decode did not find the three blocks that were put in.")
    for actual, expected in zip(run, blocks_of(rows, size, 3), strict=True):
        if actual.shape != expected.shape:
            raise Failure(f"A BlockStore with encode and decode gave {list(actual.shape)} for {list(expected.shape)}.")
        _expect_within_half_a_step(actual, expected, "rows from a store with encode and decode")
    if held["int8"] > 0.6 * held["float32"]:
        detail = f"A BlockStore of int8 holds {held['int8']:,} bytes where one of float32 holds {held['float32']:,}."
        raise Failure(detail)
