"""The check of what cannot be saved or reused."""

from __future__ import annotations

from autograder.judge.compare import matches
from autograder.judge.framework import check
from autograder.judge.student import StudentError
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import (
    STAGE,
    expect_answer,
    finish_refusals,
    reuse_prefix,
    save_prefix,
)


@check(stage=STAGE, id="reuse-refusals", points=1, title="What cannot be reused is refused with a clear error")
def reuse_refusals(student, cases):
    """An empty prefix or suffix, an id outside the vocabulary, a negative prefix_len, a total past n_ctx are errors."""
    model = cases.odd[1]
    n_ctx, n_vocab = model.config.n_ctx, model.config.n_vocab
    ids = cases.ids(model, n_ctx + 1, "prompt")
    p = n_ctx - 5
    prefix, suffix, rest = ids[:p], ids[p : p + 3], ids[p:n_ctx]
    saved = save_prefix(student, prefix, model)
    known = expect_answer(reuse_prefix(student, saved, p, suffix, model), model, prefix, suffix)
    full, nearly = (save_prefix(student, ids[:n], model) for n in (n_ctx, n_ctx - 1))

    reuse, save = "generate_with_prefix", "save_prefix_cache"
    attempts = (
        ("an empty suffix", own.EMPTY_SUFFIX, reuse, (saved, p, [], model)),
        ("an empty prefix", own.EMPTY_PREFIX, save, ([], model)),
        ("a prefix_len of -1", own.NEGATIVE_PREFIX_LEN, reuse, (saved, -1, suffix[:1], model)),
        ("a suffix that ends one past n_ctx", own.PAST_THE_CONTEXT, reuse, (saved, p, [*rest, ids[n_ctx]], model)),
        ("a suffix to a prefix of n_ctx tokens", own.PAST_THE_CONTEXT, reuse, (full, n_ctx, suffix[:1], model)),
        *(  # here a slice of wpe leaves one row, which NumPy gives to every token
            (
                f"a suffix of {n} to a prefix of n_ctx - 1 tokens",
                own.PAST_THE_CONTEXT,
                reuse,
                (nearly, n_ctx - 1, suffix[:n], model),
            )
            for n in (2, 3)
        ),
        ("a prefix of n_ctx + 1 tokens", own.PAST_THE_CONTEXT, save, (ids, model)),
        (
            "a suffix with the id n_vocab",
            own.OUTSIDE_VOCABULARY,
            reuse,
            (saved, p, [suffix[0], n_vocab, suffix[1]], model),
        ),
        ("a suffix with the id -1", own.OUTSIDE_VOCABULARY, reuse, (saved, p, [suffix[0], -1, suffix[1]], model)),
        ("a prefix with the id n_vocab", own.OUTSIDE_VOCABULARY, save, ([*ids[:2], n_vocab, ids[2]], model)),
        ("a prefix with the id -1", own.OUTSIDE_VOCABULARY, save, ([*ids[:2], -1, ids[2]], model)),
    )
    failed = []
    for what, bug, name, arguments in attempts:
        try:
            student.handle(name, *arguments)
        except StudentError as error:
            if not error.loud:
                failed.append((what, f"{error.sentence[:-1]}; a ValueError is expected", known or bug))
        else:
            if bug is own.NEGATIVE_PREFIX_LEN and _same_whatever_the_length(student, model, p, suffix, saved):
                bug = own.PREFIX_LEN_IGNORED
            failed.append((what, f"{name} returned as if nothing were wrong; a ValueError is expected", known or bug))
    try:
        student.array(reuse, saved, p, rest, model)
    except StudentError as error:
        failed.append(("a suffix that ends exactly at n_ctx, and so fits", error.sentence[:-1], known))
    finish_refusals(failed)


def _same_whatever_the_length(student, model, p, suffix, saved):
    answers = [reuse_prefix(student, saved, n, suffix[:1], model) for n in (p, -1)]
    return matches(*answers)
