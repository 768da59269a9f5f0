"""The check of swiglu."""

from __future__ import annotations

import math

import numpy as np

from autograder.judge.compare import expect_close
from autograder.judge.framework import check
from autograder.stages.chat_model import bugs as own
from autograder.stages.chat_model import llama
from autograder.stages.chat_model.llama_cases import llamas


@check("swiglu gates one half by the other", points=1, watches=("swiglu",))
def gated_mlp(student, cases):
    """swiglu is down_proj of silu(gate_proj of x) times up_proj of x, for elements of any size."""
    for model in llamas(cases):
        mlp = model.weights.blocks[1].mlp
        matrices = [m.astype(np.float64) for m in (mlp.gate_proj, mlp.up_proj, mlp.down_proj)]
        for size in (1.0, 300.0):
            x = cases.rng("x", model.config.n_embd).standard_normal((5, model.config.n_embd)).astype(np.float32) * size
            x = x.astype(np.float32)
            with np.errstate(over="ignore"):
                expect_close(
                    student.array("swiglu", x, model.part("blocks.1.mlp")) / size**2,
                    llama.swiglu(x.astype(np.float64), *matrices) / size**2, name="swiglu", axes=("row", "element"),
                    where=f"for rows of size {size:g} on {model.about}", atol=1e-4, rtol=1e-3,
                    suspects=[(bug, lambda f=f, x=x, s=size: f(x) / s**2) for bug, f in swiglu_suspects(*matrices)],
                )  # fmt: skip


def swiglu_suspects(gate, up, down):
    def silu(z):
        return z * 0.5 * (1 + np.tanh(z / 2))

    def gelu(z):
        return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))

    return [
        (own.GATE_UP_SWAPPED, lambda x: (x @ gate.T * silu(x @ up.T)) @ down.T),
        (own.GATE_GELU, lambda x: (gelu(x @ gate.T) * (x @ up.T)) @ down.T),
        (own.GATE_SIGMOID, lambda x: (0.5 * (1 + np.tanh(x @ gate.T / 2)) * (x @ up.T)) @ down.T),
        (own.GATE_MISSING, lambda x: (x @ gate.T * (x @ up.T)) @ down.T),
        (own.UP_MISSING, lambda x: silu(x @ gate.T) @ down.T),
    ]
