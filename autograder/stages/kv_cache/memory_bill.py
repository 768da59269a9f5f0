"""The check of kv_cache_bytes."""

from __future__ import annotations

from autograder.judge.bugs import Bug
from autograder.judge.framework import Failure, check
from autograder.stages.kv_cache import bugs as own
from autograder.stages.kv_cache.shared import STAGE

BYTES_BUGS = (  # in the order in which they are looked for
    own.BYTES_FLOAT,
    own.BYTES_KEYS_ONLY,
    own.BYTES_ONE_LAYER,
    own.BYTES_ONE_HEAD,
    own.BYTES_NO_SIZE,
    own.BYTES_IGNORED,
    own.BYTES_N_CTX,
    own.BYTES_HEADS_TWICE,
    own.BYTES_DEFAULT,  # any other number, and only where n_bytes is left out
)


@check(stage=STAGE, id="memory-bytes", points=1, title="The memory bill is exact")
def kv_cache_bytes(student, cases):
    """kv_cache_bytes is, as an int, the number of bytes of the keys and the values of n_seq positions in all layers."""
    failures: list[Failure] = []
    explained: list[set[Bug]] = []
    for model in (*cases.odd, cases.trained):
        c, config = model.config, model.part("config")
        for n_seq, sizes in ((1, ()), (c.n_ctx - 2, ()), (5, (2,)), (9, (8,))):
            value = student.plain("kv_cache_bytes", config, n_seq, *sizes)
            n_bytes = sizes[0] if sizes else 4
            row = c.n_layer * c.n_embd * n_bytes
            right = 2 * row * n_seq
            shape = f"n_layer = {c.n_layer}, n_head = {c.n_head}, n_embd = {c.n_embd}, n_seq = {n_seq}"
            where = f"{shape}, n_bytes {f'= {n_bytes}' if sizes else 'left out'}"
            if type(value) not in (int, float):
                raise Failure(None, f"kv_cache_bytes returns {_kind(value)} where an int is expected ({where}).")
            suspects = {
                own.BYTES_FLOAT: right,
                own.BYTES_KEYS_ONLY: row * n_seq,
                own.BYTES_ONE_LAYER: 2 * c.n_embd * n_seq * n_bytes,
                own.BYTES_ONE_HEAD: 2 * c.n_layer * c.head_dim * n_seq * n_bytes,
                own.BYTES_NO_SIZE: 2 * c.n_layer * c.n_embd * n_seq,
                own.BYTES_IGNORED: 2 * c.n_layer * c.n_embd * n_seq * 4,
                own.BYTES_N_CTX: 2 * row * c.n_ctx,
                own.BYTES_HEADS_TWICE: 2 * row * n_seq * c.n_head,
                own.BYTES_DEFAULT: right if sizes else value,
            }
            explained.append({bug for bug, wrong in suspects.items() if value == wrong})
            if type(value) is int and value == right:
                continue
            size = "a float" if value == right else f"{value / right:.3g} times the right number"
            failures.append(Failure(None, f"kv_cache_bytes is {size} ({where})."))
    if failures:
        bug = next((bug for bug in BYTES_BUGS if all(bug in bugs for bugs in explained)), None)
        raise Failure(None, failures[0].detail, bug)


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
