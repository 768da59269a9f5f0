"""The checks of gelu and layer_norm."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import BUGS
from autograder.judge.cases import Cases
from autograder.judge.compare import expect_close
from autograder.judge.framework import check
from autograder.judge.reference import gelu, layer_norm
from autograder.judge.student import Student
from autograder.judge.variants import GELU, NORM
from autograder.stages.forward_pass import bugs as own
from autograder.stages.forward_pass.shared import STAGE


@check(stage=STAGE, id="gelu-tanh", points=1, title="gelu is GPT-2's tanh form", watches=("gelu",))
def gelu_tanh(student: Student, cases: Cases) -> None:
    """gelu computes the tanh form of GELU, element by element, for an array of any shape and numbers of any size."""
    rng = cases.rng()
    n, m = (int(i) for i in rng.permutation(np.arange(3, 8))[:2])
    for shape in ((64,), (n, m), (2, m, n)):
        x = rng.uniform(-5, 5, shape).astype(np.float32)
        expect_close(
            student.array("gelu", x),
            gelu(x),
            name="gelu",
            where=f"for {_axes(shape)} between -5 and 5",
            axes={1: ("element",), 2: ("row", "column"), 3: ("table", "row", "column")}[len(shape)],
            suspects=(
                (own.GELU_EXACT, lambda x=x: GELU["gelu-exact"](x)),
                (own.GELU_SIGMOID, lambda x=x: GELU["gelu-sigmoid"](x)),
                (own.GELU_RELU, lambda x=x: GELU["gelu-relu"](x)),
                (own.GELU_SQUARE, lambda x=x: _tanh_gelu(x, power=2)),
                (own.GELU_NO_ROOT, lambda x=x: _tanh_gelu(x, factor=2 / np.pi)),
                (own.GELU_NO_ROOT, lambda x=x: _tanh_gelu(x, factor=np.sqrt(2) / np.pi)),
                (own.GELU_NO_HALF, lambda x=x: GELU["gelu-no-half"](x)),
                (own.GELU_CUBE_OF_SUM, lambda x=x: _tanh_gelu(x, whole=True)),
                *((own.GELU_ROUNDED, lambda x=x, c=c: _tanh_gelu(x, cube=c)) for c in (0.0447, 0.045, 0.04)),
                *((own.GELU_ROUNDED, lambda x=x, f=f: _tanh_gelu(x, factor=f)) for f in (0.798, 0.8)),
            ),
            atol=6e-6,  # 0.0447 for 0.044715 is up to 9e-6 away, the exact GELU 5e-4, float32 less than 1e-6
            rtol=1e-7,
        )
    x = (rng.uniform(20, 1000, 8) * np.array([-1, 1] * 4)).astype(np.float32)
    y = student.array("gelu", x)
    bug = None if np.isfinite(y.astype(np.float64)).all() else own.GELU_OVERFLOW
    expect_close(
        y, gelu(x), name="gelu", where="for x as large as 1000", axes=("element",), bug=bug, atol=5e-5, rtol=1e-5
    )


def _tanh_gelu(
    x: np.ndarray, factor: float = np.sqrt(2 / np.pi), cube: float = 0.044715, power: int = 3, whole: bool = False
) -> np.ndarray:
    x = x.astype(np.float64)
    inner = (x + cube * x) ** power if whole else x + cube * x**power
    return 0.5 * x * (1 + np.tanh(factor * inner))


@check(stage=STAGE, id="layer-norm-rows", points=2, title="layer_norm normalizes every row", watches=("layer_norm",))
def layer_norm_rows(student: Student, cases: Cases) -> None:
    """layer_norm brings each row to mean 0 and variance 1, with eps inside the root, then applies weight and bias."""
    rng = cases.rng()
    n_embd = int(rng.integers(6, 12))
    weight = rng.uniform(0.5, 2, n_embd).astype(np.float32)
    bias = rng.uniform(-1, 1, n_embd).astype(np.float32)

    def suspects(x, given_eps):
        eps = given_eps or 1e-5
        if given_eps:
            yield own.NORM_EPS_FIXED, lambda: layer_norm(x, weight, bias)
        else:
            for bug, others in ((own.NORM_EPS_SMALL, (1e-12, 1e-8, 1e-6)), (own.NORM_EPS_LARGE, (1e-4, 1e-3, 1e-2))):
                for other in others:
                    yield bug, lambda other=other: layer_norm(x, weight, bias, other)
        for name, wrong in NORM.items():
            yield BUGS[name], lambda wrong=wrong: wrong(x, weight, bias, eps)
        for axis in range(x.ndim - 1):
            yield own.NORM_AXIS, lambda axis=axis: _norm_along(x, weight, bias, eps, axis)

    def compare(x, where, given_eps=None):
        x = x.astype(np.float32)
        options = {} if given_eps is None else {"eps": given_eps}
        expect_close(
            student.array("layer_norm", x, weight, bias, **options),
            layer_norm(x, weight, bias, **options),
            name="layer_norm",
            where=where,
            axes=("sequence", "row", "feature")[-x.ndim :],
            suspects=suspects(x, given_eps),
            atol=1e-4,
            rtol=1e-3,
        )

    def rows(*shape):
        return rng.normal(0, 1, (*shape, n_embd)) * rng.uniform(0.5, 3, (*shape, 1)) + rng.uniform(-2, 2, (*shape, 1))

    compare(rows(4), f"for 4 rows of {n_embd}")
    for shape in ((n_embd,), (), (2, 3)):
        compare(rows(*shape), f"for x of {_axes((*shape, n_embd))}")
    for size in (0.001, 0.003, 0.01, 0.05):
        compare(rows(3) * size, f"for rows whose values differ by about {size:g}, where eps matters")
    flat = np.full((2, n_embd), rng.choice([0.25, 0.5, -0.5]))
    compare(flat, "for rows of equal values, whose variance is 0")
    compare(rows(3), "with eps=0.1 passed to it", given_eps=0.1)


def _norm_along(x, weight, bias, eps, axis):
    x = x.astype(np.float64)
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps) * weight + bias


def _axes(shape: tuple[int, ...]) -> str:
    return f"shape {list(shape)}"
