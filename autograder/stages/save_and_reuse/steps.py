"""The steps of save and reuse: checks of helpers, worth no points."""

from __future__ import annotations

import numpy as np

from autograder.judge.bugs import SCORES_UNSCALED
from autograder.judge.cases import Cases, random_judge_model
from autograder.judge.compare import expect_close
from autograder.judge.framework import Failure, check
from autograder.judge.plurals import count
from autograder.judge.reference import attention
from autograder.judge.student import Student, StudentError


@check("cache_facts says what the file is", points=0)
def step_cache_facts(student: Student, cases: Cases) -> None:
    """cache_facts gives fingerprint, prefix_len, dtype and layout, each as a string."""
    model = cases.odd[0]
    facts, other = (
        student.plain("cache_facts", cases.ids(model, 4), some)
        for some in (model, random_judge_model(model.config, cases.number("twin")))
    )
    if not isinstance(facts, dict) or not isinstance(facts.get("fingerprint"), str):
        raise Failure("The result is not a dict with a fingerprint, which is a string.")
    for field, value in {"prefix_len": "4", "dtype": "float32", "layout": "n_head, n_seq, head_dim"}.items():
        if facts.get(field) != value:
            raise Failure(f"For 4 ids, {field} must be {value!r}.")
    if facts["fingerprint"] == other["fingerprint"]:
        raise Failure("Two models with other weights have the same fingerprint.")


@check("check_tensors accepts whole caches and names what is wrong", points=0)
def step_check_tensors(student: Student, cases: Cases) -> None:
    """check_tensors returns for a whole cache, and else raises a ValueError that begins with the wrong array's name."""
    model = cases.odd[0]
    n = model.config.n_head + 1  # other axes first is then another shape
    good = {"prefix_ids": np.array(cases.ids(model, n), np.int64)}
    for i, (k, v) in enumerate(model.reference.run(good["prefix_ids"].tolist()).kv):
        good |= {f"layers.{i}.keys": k.astype(np.float32), f"layers.{i}.values": v.astype(np.float32)}
    student.plain("check_tensors", good, model)
    spoiled = good["layers.1.values"].copy()
    spoiled[0, 1, 1] = np.nan
    for what, name, tensors in (
        ("one id too few", "layers.0.keys", {**good, "prefix_ids": good["prefix_ids"][:-1]}),
        ("ids of two axes", "prefix_ids", {**good, "prefix_ids": good["prefix_ids"][:, None]}),
        ("an id of n_vocab", "prefix_ids", {**good, "prefix_ids": good["prefix_ids"] * 0 + model.config.n_vocab}),
        ("an array that is missing", "layers.1.keys", {k: a for k, a in good.items() if k != "layers.1.keys"}),
        ("float16", "layers.0.values", {**good, "layers.0.values": good["layers.0.values"].astype(np.float16)}),
        ("other axes first", "layers.0.keys", {**good, "layers.0.keys": good["layers.0.keys"].swapaxes(0, 1)}),
        ("a value that is not finite", "layers.1.values", {**good, "layers.1.values": spoiled}),
    ):
        try:
            student.plain("check_tensors", tensors, model)
        except StudentError as error:
            if error.type != "ValueError":
                raise
            if not error.message.startswith(name):
                raise Failure(f"For {what}, the message does not begin with {name}.") from None
        else:
            raise Failure(f"For {what}, nothing was raised.")


@check("attend_shared looks at prefix and tail", points=0)
def step_attend_shared(student: Student, cases: Cases) -> None:
    """attend_shared gives the attention of the newest positions over the rows of the prefix and of the tail."""
    rng = cases.rng()
    n_head, n_prefix, n_query, head_dim = 3, 5, 4, 2
    k, v = rng.standard_normal((2, n_head, n_prefix + n_query, head_dim)).astype(np.float32)
    q = rng.standard_normal((n_head, n_query, head_dim)).astype(np.float32)
    saved = student.handle("LayerCache")
    student.method(saved, "append", k[:, :n_prefix], v[:, :n_prefix], returns="none")
    layer = student.handle("SharedLayer", saved)
    student.method(layer, "append", k[:, n_prefix:], v[:, n_prefix:], returns="none")
    expect_close(
        student.array("attend_shared", q, layer),
        attention(q, k, v),
        name="attend_shared",
        where=f"for {count(n_query, 'query', 'queries')} after a prefix of {n_prefix}",
        axes=("head", "query", "feature"),
        suspects=[(SCORES_UNSCALED, lambda: attention(q * np.sqrt(head_dim), k, v))],
    )
