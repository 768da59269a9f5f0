"""The check of kv_cache_bytes."""

from __future__ import annotations

from autograder.judge.answers import described
from autograder.judge.framework import Failure, check
from autograder.stages.kv_cache import bugs as own
from autograder.toolkit.model import GPT2Config

# Its bills are past what an int of 32 bits holds, and past 2**47 bytes, which no process can allocate. Only the config
# of this model is passed.
LARGE_SHAPE = GPT2Config(n_layer=90, n_head=2, n_embd=40_000_000_000, n_ctx=100, n_vocab=29)
SUSPECTS = (  # wrong numbers, in the order in which they are looked for
    (own.BYTES_OF_KEYS_ONLY, lambda c, n_seq, n_bytes: c.n_layer * n_seq * c.n_embd * n_bytes),
    (own.BYTES_OF_ONE_LAYER, lambda c, n_seq, n_bytes: 2 * n_seq * c.n_embd * n_bytes),
    (own.BYTES_OF_ANOTHER_WIDTH, lambda c, n_seq, n_bytes: 2 * c.n_layer * n_seq * c.head_dim * n_bytes),
    (own.BYTES_OF_ANOTHER_WIDTH, lambda c, n_seq, n_bytes: 2 * c.n_layer * n_seq * c.n_head * n_bytes),
    (own.BYTES_OF_ANOTHER_WIDTH, lambda c, n_seq, n_bytes: 2 * c.n_layer * n_seq * c.n_head * c.n_embd * n_bytes),
    (own.N_BYTES_IGNORED, lambda c, n_seq, n_bytes: 2 * c.n_layer * n_seq * c.n_embd),
    (own.N_BYTES_IGNORED, lambda c, n_seq, n_bytes: 2 * c.n_layer * n_seq * c.n_embd * 4),
    (own.BYTES_OF_FULL_CONTEXT, lambda c, n_seq, n_bytes: 2 * c.n_layer * c.n_ctx * c.n_embd * n_bytes),
)


@check("The memory bill is exact", points=1)
def memory_bytes(student, cases):
    """kv_cache_bytes is, as an int, the number of bytes of the keys and the values of n_seq positions in all layers."""
    details, answers = [], []
    for i, model in enumerate((*cases.odd, cases.random_model(LARGE_SHAPE))):
        c, rng = model.config, cases.rng("sizes", i)
        for given in rng.permutation([0, 0, 2, 8]).tolist():  # n_bytes, and 0 where it is left out
            n_seq, n_bytes = int(rng.integers(c.n_ctx // 2, c.n_ctx - 1)), given or 4
            value = student.plain("kv_cache_bytes", model.part("config"), n_seq, *([given] if given else []))
            right = 2 * c.n_layer * n_seq * c.n_embd * n_bytes
            shape = f"n_layer = {c.n_layer}, n_head = {c.n_head}, n_embd = {c.n_embd}, n_seq = {n_seq}"
            where = f"{shape}, n_bytes {f'= {given}' if given else 'left out'}"
            if type(value) not in (int, float):
                raise Failure(f"kv_cache_bytes returns {described(value)} where an int is expected ({where}).")
            answers.append((value, (c, n_seq, n_bytes)))
            if type(value) is not int or value != right:
                size = f"{value / right:.3g} times the right number"
                if abs(value / right - 1) < 0.005:
                    size = "a float" if value == right else "less than 1% off"
                details.append(f"kv_cache_bytes is {size} ({where}).")
    if details:
        named = (bug for bug, wrong in SUSPECTS if all(value == wrong(*case) for value, case in answers))
        raise Failure(details[0], next(named, None))
