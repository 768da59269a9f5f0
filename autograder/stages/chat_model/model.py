"""The checks of advance_llama."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autograder.judge.bugs import KEYS_VALUES_SWAPPED, POSITIONS_RESET
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count, tokens
from autograder.judge.student import Student, StudentError
from autograder.stages.chat_model import bugs as own
from autograder.stages.chat_model.llama import LlamaReference, rotate
from autograder.stages.chat_model.llama_cases import JudgeLlama, deep_llama, llamas, random_judge_llama
from autograder.toolkit.chat.weights import LlamaWeights


def advance(student: Student, ids, position, model, cache) -> np.ndarray:
    return student.array("advance_llama", ids, position, model, cache)


def new_cache(student: Student, model: JudgeLlama):
    return student.handle("ModelCache", model.config.n_layer)


@check("advance_llama gives the model's logits", points=2)
def llama_recompute(student, cases):
    """In one pass, in chunks and token by token, the logits are those of the whole text from scratch."""
    sweep = Sweep()
    for i, model in enumerate(llamas(cases)):
        n_ctx = model.config.n_ctx
        ids = cases.ids(model, n_ctx)
        expected = model.reference.logits(ids)
        for sizes in ((n_ctx,), (1,) * 5, (3, 1, 4, 2, n_ctx - 10)) if i else ((1,), (2,), (n_ctx,)):
            cache, n = new_cache(student, model), 0
            for size in sizes:
                with sweep.at(n + size):
                    sweep.close(
                        advance(student, ids[n : n + size], n, model, cache), expected[n + size - 1],
                        name="advance_llama", axes=("id",), suspects=suspects(model.weights, ids[: n + size]),
                        where=f"for {size} of {tokens(n + size)} on {model.about}",
                    )  # fmt: skip
                n += size
    sweep.finish()
    deep = deep_llama(cases)
    ids = [*cases.ids(deep, 4), deep.config.n_vocab - 1]
    twin = random_judge_llama(deep.config, cases.number("twin"))
    for model, after in ((deep, ""), (twin, ", after another of this shape, which is gone")):
        weights = student.keep(model)
        logits = advance(student, ids, 0, weights, new_cache(student, model))
        student.replace(weights)  # with the next, which has its id()
        where = f"for {len(ids)} tokens on {model.about}{after}"
        expect_close(logits, model.reference.logits(ids)[-1], name="advance_llama", axes=("id",), where=where)
    model = llamas(cases)[1]
    n_ctx, n_vocab = model.config.n_ctx, model.config.n_vocab
    past = model.reference.run(cases.ids(model, 3)).kv
    for what, ids, position in (
        ("no token", [], 3),
        ("a position past n_ctx - 1", [1, 2], n_ctx - 1),
        ("a negative position", [1], -1),
        ("an id outside the vocabulary", [1, n_vocab, 2], 3),
        ("a negative id", [1, -1], 3),
    ):
        cache = student.make_cache(model, past)
        student.expect_error("advance_llama", ids, position, model, cache, what=what)
        if any(a.shape[1] != 3 for pair in student.read_cache(cache, "the cache") for a in pair):
            raise Failure(f"After {what}, which was refused, the cache has other rows than before.")


def suspects(weights: LlamaWeights, ids: list[int]):
    def last(config=weights.config, **changes):
        return LlamaReference(replace(weights, config=config, **changes)).logits(ids)[-1]

    def with_norms(first, second):
        return lambda: last(
            blocks=tuple(replace(b, norm_1=getattr(b, first), norm_2=getattr(b, second)) for b in blocks)
        )

    def without_o_proj():
        nothing = np.eye(weights.config.n_embd, dtype=np.float32)
        return last(blocks=tuple(replace(b, attn=replace(b.attn, o_proj=nothing)) for b in blocks))

    blocks = weights.blocks
    return [
        *(
            (own.RMS_NORMS_EXCHANGED, with_norms(*names))
            for names in (("norm_1", "norm_1"), ("norm_2", "norm_2"), ("norm_2", "norm_1"))
        ),
        (own.O_PROJ_MISSING, without_o_proj),
        *([] if weights.config.tied else [(own.HEAD_IS_WTE, lambda: last(head=weights.wte))]),
        (own.NO_FINAL_RMS_NORM, lambda: LlamaReference(weights).run(ids).x[-1] @ weights.head.T),
        (own.THETA_FIXED, lambda: last(replace(weights.config, rope_theta=10000.0))),
    ]


@check("Keys are cached turned, and positions continue", points=2)
def llama_positions(student, cases):
    """Keys are cached turned by their own positions, and new tokens stand at the position that is passed."""
    for model in llamas(cases):
        n, n_new = model.config.n_ctx - 8, 5
        ids = cases.ids(model, n + n_new, "positions")
        right = model.reference.run(ids)
        cache = new_cache(student, model)
        advance(student, ids[:n], 0, model, cache)
        expect_rows(student.read_cache(cache, "the cache"), model.reference.run(ids[:n]).kv, model)
        saved = student.read_cache(cache, "the cache")
        reset = model.reference.run(ids[n:], past=saved, positions=range(n_new)).logits[-1]
        expect_close(
            advance(student, ids[n:], n, model, cache), right.logits[-1], name="advance_llama", axes=("id",),
            where=f"for {tokens(n_new)} after {n} on {model.about}",
            suspects=[(POSITIONS_RESET, lambda reset=reset: reset)],
        )  # fmt: skip
        for wrong in (0, n + 1, n - 1):
            expected = model.reference.run(ids[n:], past=saved, positions=range(wrong, wrong + n_new)).logits[-1]
            again = student.make_cache(model, saved)
            try:
                moved = advance(student, ids[n:], wrong, model, again)
            except StudentError as error:
                if error.refusal:
                    continue
                raise
            where = f"for {tokens(n_new)} at position {wrong} after {count(n, 'cached one')} on {model.about}"
            if matches(moved, right.logits[-1]):
                raise Failure(
                    f"advance_llama gave the logits of the right position, {where}: it does not use the one passed.",
                    prop="A wrong position gives wrong logits, or an error.",
                )
            expect_close(moved, expected, name="advance_llama", axes=("id",), where=where)
        altered = [(k.copy(), v.copy()) for k, v in saved]
        altered[1][0][:, 1] += 1
        altered[-1][1][:, 2] -= 1
        expected = model.reference.run(ids[n:], past=altered).logits[-1]
        expect_close(
            advance(student, ids[n:], n, model, student.make_cache(model, altered)), expected, name="advance_llama",
            where=f"with other keys and values in the cache, on {model.about}", axes=("id",),
            prop="The cached keys and values are used.",
        )  # fmt: skip


def expect_rows(rows, expected, model: JudgeLlama) -> None:
    """Pass when the cache holds the right keys and values in every layer."""
    c = model.config
    for layer, ((keys, values), (k, v)) in enumerate(zip(rows, expected, strict=False)):
        positions = range(k.shape[1])
        where = f"for {k.shape[1]} tokens on {model.about}"
        expect_close(
            keys, k, name=f"The array of keys in layer {layer}", axes=("head", "position", "element"), where=where,
            suspects=[
                (own.KEYS_CACHED_UNTURNED, lambda k=k, p=positions: rotate(k, [-i for i in p], c.rope_theta)),
                (KEYS_VALUES_SWAPPED, lambda v=v: v),
            ],
        )  # fmt: skip
        expect_close(
            values, v, name=f"The array of values in layer {layer}", axes=("head", "position", "element"), where=where,
            suspects=[(own.VALUES_TURNED, lambda v=v, p=positions: rotate(v, p, c.rope_theta))],
        )  # fmt: skip
    if len(rows) != len(expected):
        raise Failure(f"The cache has {count(len(rows), 'layer')}, and the model has {len(expected)}.")
