"""The checks of rms_norm and rotate."""

from __future__ import annotations

import math

import numpy as np

from autograder.judge.compare import expect_close
from autograder.judge.framework import check
from autograder.stages.chat_model import bugs as own
from autograder.stages.chat_model import llama
from autograder.stages.chat_model.shared import CLOSE


@check("rms_norm divides by the root mean square", points=1, watches=("rms_norm",))
def norm_by_rms(student, cases):
    """rms_norm divides by sqrt(mean(x^2) + eps), leaves the mean alone, and multiplies by the weight."""
    for shape, eps, size in (
        ((3, 9), 1e-5, 1.0),
        ((8,), 1e-3, 0.02),
        ((2, 3, 7), 1e-2, 5.0),
        ((4, 6), 1e-6, 1e-4),
        ((300, 700), 0.1, 1.0),
    ):
        rng = cases.rng("norm", *shape)
        x = (size * (rng.standard_normal(shape) + 0.7)).astype(np.float32)
        weight = rng.uniform(0.5, 1.5, shape[-1]).astype(np.float32)
        expect_close(
            student.array("rms_norm", x, weight, eps), llama.rms_norm(x, weight, eps), name="rms_norm",
            where=f"for x of shape {list(shape)}, of size {size:g}, and eps = {eps:g}",
            suspects=norm_suspects(x.astype(np.float64), weight, eps), **CLOSE,
        )  # fmt: skip


def norm_suspects(x, weight, eps):
    square, centered = (x**2).mean(-1, keepdims=True), x - x.mean(-1, keepdims=True)
    variance = (centered**2).mean(-1, keepdims=True)
    return [
        (own.MEAN_SUBTRACTED, lambda: centered / np.sqrt(variance + eps) * weight),
        (own.MEAN_SUBTRACTED, lambda: centered / np.sqrt(square + eps) * weight),
        (own.EPS_OUTSIDE, lambda: x / (np.sqrt(square) + eps) * weight),
        (own.EPS_MISSING, lambda: x / np.sqrt(square) * weight),
        (own.NORM_NO_ROOT, lambda: x / (square + eps) * weight),
        (own.NORM_SUM, lambda: x / np.sqrt(square * x.shape[-1] + eps) * weight),
        (own.NORM_NO_WEIGHT, lambda: x / np.sqrt(square + eps)),
    ]


@check("rotate turns each pair by its angle", points=2, watches=("rotate",))
def rotary(student, cases):
    """rotate turns elements i and i + head_dim / 2 by position * theta ** (-2 * i / head_dim)."""
    for n_head, head_dim, theta, positions in (
        (3, 6, 300.0, [4, 5, 6, 7, 8]),
        (2, 10, 1e5, [0, 1, 2]),
        (1, 2, 1e4, [17]),
        (5, 8, 50.0, [9, 2, 30, 2]),
        (2, 16, 1e6, [*range(4000, 4300)]),
    ):
        x = cases.rng("x", n_head, head_dim).standard_normal((n_head, len(positions), head_dim)).astype(np.float32)
        expect_close(
            student.array("rotate", x, np.array(positions), theta), llama.rotate(x, positions, theta), name="rotate",
            axes=("head", "row", "element"), atol=2e-3, rtol=1e-3,
            where=f"for {n_head} heads of {head_dim} elements at {len(positions)} positions, theta = {theta:g}",
            suspects=rotary_suspects(x.astype(np.float64), positions, theta),
        )  # fmt: skip


def rotary_suspects(x, positions, theta):
    half = x.shape[-1] // 2

    def neighbors():
        order = [*range(0, 2 * half, 2), *range(1, 2 * half, 2)]
        out = np.empty_like(x)
        out[..., order] = llama.rotate(x[..., order], positions, theta)
        return out

    def angles_of_neighbors():
        angles = np.outer(positions, np.repeat(theta ** (-np.arange(half) / half), 2))
        return x * np.cos(angles) + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * np.sin(angles)

    return [
        (own.NOT_TURNED, lambda: x),
        (own.NEIGHBORS_TURNED, neighbors),
        (own.NEIGHBORS_TURNED, lambda: neighbors()[..., [*range(0, 2 * half, 2), *range(1, 2 * half, 2)]]),
        (own.ANGLES_OF_NEIGHBORS, angles_of_neighbors),
        (own.TURNED_BACK, lambda: llama.rotate(x, [-p for p in positions], theta)),
        (own.FIRST_AT_ZERO, lambda: llama.rotate(x, range(len(positions)), theta)),
        (own.ONE_FREQUENCY_STEP, lambda: llama.rotate(x, positions, math.sqrt(theta))),
        (own.THETA_FIXED, lambda: llama.rotate(x, positions, 10000.0)),
    ]
