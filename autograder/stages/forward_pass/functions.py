"""The checks of gelu and layer_norm."""

from __future__ import annotations

import math

import numpy as np

from autograder.judge.cases import Cases
from autograder.judge.compare import expect_close
from autograder.judge.framework import check
from autograder.judge.reference import gelu, layer_norm
from autograder.judge.student import Student
from autograder.stages.forward_pass import bugs as own

_erf = np.vectorize(math.erf, otypes=[float])
_C, _K = math.sqrt(2 / math.pi), 0.044715
_BRACKETS = (  # of 0.5 * x * (1 + tanh(_C * (x + _K * x**3)))
    lambda x: 0.5 * x * (1 + np.tanh(_C * (x + _K * x) ** 3)),
    lambda x: 0.5 * x * (1 + np.tanh(_C * (x + (_K * x) ** 3))),
    lambda x: 0.5 * x * (1 + np.tanh((_C * (x + _K * x)) ** 3)),
    lambda x: 0.5 * x * (1 + np.tanh(_C * x + _K * x**3)),
    lambda x: 0.5 * x * (1 + np.tanh(_C) * (x + _K * x**3)),
    lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2) / math.pi * (x + _K * x**3))),
    lambda x: 0.5 * x * 1 + np.tanh(_C * (x + _K * x**3)),
    lambda x: 0.5 * x + np.tanh(_C * (x + _K * x**3)) * x,
)
_POWERS = (
    lambda x: 0.5 * x * (1 + np.tanh(_C * (x + _K * 3 * x))),
    lambda x: 0.5 * x * (1 + np.tanh(_C * (x + _K * x**2))),
)


@check("gelu is GPT-2's tanh form", points=1, watches=("gelu",))
def gelu_tanh(student: Student, cases: Cases) -> None:
    """gelu computes the tanh form of GELU, element by element, for an array of any shape and numbers of any size."""
    rng = cases.rng()
    n, m = (int(i) for i in rng.permutation(np.arange(3, 8))[:2])
    for axes, shape in ((("row", "column"), (n, m)), (("table", "row", "column"), (2, m, n)), (("element",), (1100,))):
        x = rng.uniform(-5, 5, shape).astype(np.float32)
        expect_close(
            student.array("gelu", x),
            gelu(x),
            name="gelu",
            where=f"for shape {list(shape)} between -5 and 5",
            axes=axes,
            suspects=[
                (own.GELU_EXACT, lambda x=x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
                *((own.GELU_POWER, lambda x=x, wrong=wrong: wrong(x.astype(np.float64))) for wrong in _POWERS),
                *((own.GELU_BRACKET, lambda x=x, wrong=wrong: wrong(x.astype(np.float64))) for wrong in _BRACKETS),
            ],
            atol=6e-6,  # 0.0447 for 0.044715 is up to 9e-6 away, the exact GELU 5e-4, float32 less than 1e-6
            rtol=1e-7,
        )
    x = (rng.uniform(20, 1000, 1100) * np.resize([-1, 1], 1100)).astype(np.float32)
    where = "for x as large as 1000"
    expect_close(student.array("gelu", x), gelu(x), name="gelu", where=where, axes=("element",), atol=5e-5, rtol=1e-5)


@check("layer_norm normalizes every row", points=2, watches=("layer_norm",))
def layer_norm_rows(student: Student, cases: Cases) -> None:
    """layer_norm brings each row to mean 0 and variance 1, with eps inside the root, then applies weight and bias."""
    rng = cases.rng()
    n_embd = int(rng.integers(6, 12))
    weight = rng.uniform(0.5, 2, n_embd).astype(np.float32)
    bias = rng.uniform(-1, 1, n_embd).astype(np.float32)

    def compare(x, where, **given_eps):
        x = x.astype(np.float32)
        expect_close(
            student.array("layer_norm", x, weight, bias, **given_eps),
            layer_norm(x, weight, bias, **given_eps),
            name="layer_norm",
            where=where,
            axes=("sequence", "row", "feature")[-x.ndim :],
            suspects=[] if given_eps else _wrong_norms(x, weight, bias),
            atol=1e-4,
            rtol=1e-3,
        )

    def rows(*shape):
        return rng.normal(0, 1, (*shape, n_embd)) * rng.uniform(0.5, 3, (*shape, 1)) + rng.uniform(-2, 2, (*shape, 1))

    compare(rows(4), f"for 4 rows of {n_embd}")
    for shape in ((n_embd,), (), (2, 3)):
        compare(rows(*shape), f"for x of shape {[*shape, n_embd]}")
    for size in (0.0003, 0.001, 0.003, 0.01, 0.05):
        compare(rows(3) * size, f"for rows whose values differ by about {size:g}, where eps matters")
    flat = np.full((2, n_embd), rng.choice([0.25, 0.5, -0.5]))
    compare(flat, "for rows of equal values, whose variance is 0")
    compare(rows(3), "with eps=0.1 passed to it", eps=0.1)


def _wrong_norms(x, weight, bias):
    def norm(axis=-1, spread=-1, ddof=0, eps=1e-5, outside=0.0, power=0.5, center=True, scale=weight, shift=bias):
        """axis: along which the mean is taken; spread: along which the squares are."""
        mean = np.mean(x, axis, np.float64, keepdims=True)
        squares = np.square(x - mean)
        n = squares.size // np.mean(squares, spread, keepdims=True).size
        variance = np.sum(squares, spread, keepdims=True) / (n - ddof)
        return (x - mean * center) / ((variance + eps) ** power + outside) * scale + shift

    for bug, wrong in (
        *((own.NORM_EPS, {"eps": eps}) for eps in (1e-12, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2)),
        (own.NORM_SAMPLE_VARIANCE, {"ddof": 1}),
        (own.NORM_EPS_OUTSIDE, {"eps": 0.0, "outside": 1e-5}),
        (own.NORM_WITHOUT_ROOT, {"power": 1.0}),
        (own.NORM_NOT_CENTERED, {"center": False}),
        (own.NORM_PARTS_EXCHANGED, {"scale": bias, "shift": weight}),
        *(
            (own.NORM_WRONG_AXIS, dict.fromkeys(names, axis))
            for axis in (None, *range(x.ndim - 1))
            for names in (("axis", "spread"), ("axis",), ("spread",))
        ),
    ):
        yield bug, lambda wrong=wrong: norm(**wrong)
