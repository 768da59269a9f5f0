"""The checks of transformer_block and forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from autograder.judge import bugs
from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel, random_judge_model
from autograder.judge.compare import Sweep, expect_close, matches
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count, tokens
from autograder.judge.reference import Reference, gelu, layer_norm, softmax
from autograder.judge.student import NoAnswer, Student, StudentError
from autograder.judge.variants import suspects_from
from autograder.stages.forward_pass import bugs as own
from autograder.stages.forward_pass.shared import row_counts, rows

BLOCK = "transformer_block"
CLOSE = {"atol": 2e-5, "rtol": 1e-6}  # one block: float32 is within 2e-6, another eps is 5e-5 away, another gelu 3e-4


@check(f"{BLOCK} is a pre-norm block", points=2, watches=(BLOCK,))
def block_pre_norm(student: Student, cases: Cases) -> None:
    """transformer_block adds attention of ln_1(x) to x, and then the MLP of ln_2(x) to this new x."""
    tolerance = CLOSE if _parts_are_right(student, cases) else {}
    for model in cases.odd:
        layer = int(cases.rng("layer", model.config.n_layer).integers(model.config.n_layer))
        sweep = Sweep("numbers of rows")
        for n_seq in row_counts(model):
            x = rows(cases, model, n_seq) * np.float32(0.7)
            suspects = suspects_from(own.BLOCK, model.reference, Reference.block, x, layer)
            with sweep.at(n_seq):
                _expect_block(student, model, layer, x, sweep.close, suspects=suspects, **tolerance)
        sweep.finish()
        if tolerance:
            small = rows(cases, model, 4) * np.float32(0.003)
            _expect_block(student, _with_little_attention(model, layer), layer, small, expect_close, **tolerance)


def _expect_block(student: Student, model: JudgeModel, layer: int, x: np.ndarray, close: Callable, **options) -> None:
    close(
        student.array(BLOCK, x, model.part(f"blocks.{layer}"), model.config.n_head),
        model.reference.block(x, layer),
        name=BLOCK,
        where=f"for {count(len(x), 'row')} of size {np.abs(x).max():.1g}, block {layer} of {model.about}",
        axes=("row", "feature"),
        **options,
    )


def _with_little_attention(model: JudgeModel, layer: int) -> JudgeModel:
    """The model with a block in which rows that are so small that eps matters are still small at the second norm."""
    name, c_proj = f"h.{layer}.attn.c_proj", model.weights.blocks[layer].attn.c_proj
    return model.patched(f"{name}.weight", c_proj.weight / 1000).patched(f"{name}.bias", c_proj.bias / 1000)


def _parts_are_right(student: Student, cases: Cases) -> bool:
    """Whether gelu and layer_norm are: they have checks of their own, and their small errors cost no other."""
    x, norm = rows(cases, cases.odd[0], 3, "parts"), cases.odd[0].weights.blocks[0].ln_1
    small = x * np.float32(0.01)  # where eps matters
    try:
        return matches(student.array("gelu", x), gelu(x), **CLOSE) and matches(
            student.array("layer_norm", small, norm.weight, norm.bias), layer_norm(small, norm.weight, norm.bias)
        )
    except NoAnswer:
        return False


@check("forward gives GPT-2's logits at every length", points=2, watches=("forward",))
def forward_recompute(student: Student, cases: Cases) -> None:
    """forward gives the logits of a from-scratch GPT-2 in float64, for every position and every length up to n_ctx."""
    # Many blocks of a shape on which the exact gelu or another eps, which have checks of their own, stay well inside
    # the tolerance. On the trained model they graze it; its 12 blocks are seen in its greedy ids, which are clear.
    for model, lengths in (
        *((model, range(1, model.config.n_ctx + 1)) for model in cases.odd),
        (cases.deep, (1, 15, 17)),  # 15: as many tokens as n_embd
        (cases.long, (15, 32, 33, 65, 150)),
    ):
        ids = cases.ids(model, max(lengths))
        expected = model.reference.logits(ids)  # causal, so its first n rows are the logits of the first n tokens
        sweep = Sweep("lengths")
        for n_seq in lengths:
            with sweep.at(n_seq):
                sweep.close(
                    student.array("forward", ids[:n_seq], model),
                    expected[:n_seq],
                    name="forward",
                    where=f"for {tokens(n_seq)} on {model.about}",
                    axes=("position", "token id"),
                    suspects=_wrong_logits(model, ids[:n_seq]),
                )
        sweep.finish()

    def expect(model, ids, where, weights=None):
        right, axes = model.reference.logits(ids), ("position", "token id")
        expect_close(student.array("forward", ids, weights or model), right, name="forward", where=where, axes=axes)

    for model, ids in cases.beyond:
        expect(model, ids, f"for {tokens(len(ids))} on {model.about}")
    model = cases.odd[1]
    twin, ids = random_judge_model(model.config, cases.number("twin")), cases.ids(model, 6)
    weights = student.keep(model)
    student.array("forward", ids, weights)
    student.replace(weights)  # with the next, which has its id()
    where = "for tokens that another model of the same shape, which is gone, has just been given"
    expect(twin, ids, where, student.keep(twin))


def _wrong_logits(model: JudgeModel, ids: list[int]) -> Iterator[tuple[Bug, Callable[[], np.ndarray]]]:
    logits = model.reference.logits
    for shift in (1, -1):
        positions = [(i + shift) % model.config.n_ctx for i in range(len(ids))]
        yield bugs.positions_shifted(shift), lambda p=positions: logits(ids, positions=p)
    for one in (0, len(ids) - 1):
        yield bugs.ONE_POSITION, lambda one=one: logits(ids, positions=[one] * len(ids))
    yield from suspects_from(own.FORWARD, model.reference, Reference.logits, ids)
    yield own.PROBABILITIES_FOR_LOGITS, lambda: softmax(logits(ids))


@check("forward takes 1 to n_ctx tokens and refuses others", points=1)
def forward_limits(student: Student, cases: Cases) -> None:
    """forward takes up to n_ctx tokens; no token, one more than n_ctx, or an id of n_vocab is an error."""
    for model in cases.odd[:2]:
        n_ctx, n_vocab = model.config.n_ctx, model.config.n_vocab
        ids = cases.ids(model, n_ctx + 1)
        try:
            full = student.array("forward", ids[:n_ctx], model)
        except StudentError as error:
            if not error.refusal:
                raise
            raise Failure(f"For exactly n_ctx = {n_ctx} tokens, {error.sentence}") from None
        if full.shape != (n_ctx, n_vocab) or not np.isfinite(full.astype(np.float64)).all():
            detail = f"For exactly n_ctx = {n_ctx} tokens, forward does not give finite numbers [{n_ctx}, {n_vocab}]."
            raise Failure(detail)
        probes = [
            ("equal", ids[:n_ctx]),
            ("changed", [(ids[0] + 1) % n_vocab, *ids[1:n_ctx]]),
            ("an empty list of tokens", []),
            (f"the id {n_vocab} with n_vocab = {n_vocab}", [*ids[:2], n_vocab]),
            (f"{n_ctx + 1} tokens with n_ctx = {n_ctx}", ids),
        ]
        for i in cases.rng("order", n_ctx).permutation(len(probes)):  # so no answer is known by its place
            what, asked = probes[i]
            if i > 1:
                student.expect_error(
                    "forward", asked, model, what=what, bug=own.LIMIT_IGNORED if asked is ids else None
                )
            elif matches(student.array("forward", asked, model)[-1:], full[-1:]) != (what == "equal"):
                raise Failure(
                    f"For exactly n_ctx = {n_ctx} tokens, the last row of forward is not decided by the tokens: equal "
                    "calls must agree, and another first token must change it."
                )
