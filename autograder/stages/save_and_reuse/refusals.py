"""The check of what cannot be saved or reused."""

from __future__ import annotations

from autograder.judge.bugs import Bug
from autograder.judge.cases import Cases, JudgeModel
from autograder.judge.compare import matches
from autograder.judge.framework import check
from autograder.judge.student import Handle, Student, StudentError
from autograder.stages.save_and_reuse import bugs as own
from autograder.stages.save_and_reuse.shared import STAGE, expect_right, finish_refusals, reuse_prefix, save_prefix


@check(stage=STAGE, id="reuse-refusals", points=1, title="What cannot be reused is refused with a clear error")
def reuse_refusals(student: Student, cases: Cases) -> None:
    """An empty prefix or suffix, an id outside the vocabulary, a negative prefix_len, a total past n_ctx are errors."""
    model = cases.odd[1]
    n_ctx, n_vocab = model.config.n_ctx, model.config.n_vocab
    ids = cases.ids(model, n_ctx + 1, "prompt")
    p = n_ctx - 5
    saved = save_prefix(student, ids[:p], model)
    expect_right(student, saved, model, ids[:p], ids[p : p + 3])
    full, nearly = (save_prefix(student, ids[:n], model) for n in (n_ctx, n_ctx - 1))
    one, two = ids[p : p + 1], ids[p : p + 2]

    def reuse(what, bug, cache, n, suffix):
        return what, bug, "generate_with_prefix", (cache, n, suffix, model)

    def save(what, bug, prefix):
        return what, bug, "save_prefix_cache", (prefix, model)

    failed: list[tuple[str, str, Bug | None]] = []
    for what, bug, name, arguments in (
        reuse("an empty suffix", own.EMPTY_SUFFIX, saved, p, []),
        save("an empty prefix", None, []),
        reuse("a prefix_len of -1", own.NEGATIVE_PREFIX_LEN, saved, -1, one),
        reuse("a suffix that ends one past n_ctx", own.PAST_THE_CONTEXT, saved, p, ids[p:]),
        reuse("a suffix to a prefix of n_ctx tokens", own.PAST_THE_CONTEXT, full, n_ctx, one),
        # here a slice of wpe leaves one row, which NumPy gives to every token
        reuse("a suffix of 2 to a prefix of n_ctx - 1 tokens", own.PAST_THE_CONTEXT, nearly, n_ctx - 1, two),
        reuse("a suffix of 3 to a prefix of n_ctx - 1 tokens", own.PAST_THE_CONTEXT, nearly, n_ctx - 1, [*two, 0]),
        save("a prefix of n_ctx + 1 tokens", own.PAST_THE_CONTEXT, ids),
        reuse("a suffix with the id n_vocab", own.OUTSIDE_VOCABULARY, saved, p, [*one, n_vocab, *one]),
        reuse("a suffix with the id -1", own.OUTSIDE_VOCABULARY, saved, p, [*one, -1, *one]),
        save("a prefix with the id n_vocab", own.OUTSIDE_VOCABULARY, [*two, n_vocab, *one]),
        save("a prefix with the id -1", own.OUTSIDE_VOCABULARY, [*two, -1, *one]),
    ):
        try:
            student.handle(name, *arguments)
        except StudentError as error:
            if not error.loud:
                seen = f"{error.sentence[:-1]}; a ValueError is expected"
                failed.append((what, seen, bug if error.type == "UnboundLocalError" else None))
        else:
            if bug is own.NEGATIVE_PREFIX_LEN and _ignores_length(student, model, saved, p, one):
                bug = own.PREFIX_LEN_IGNORED
            failed.append((what, f"{name} returned as if nothing were wrong; a ValueError is expected", bug))
    try:
        student.handle("generate_with_prefix", saved, p, ids[p:n_ctx], model)
    except StudentError as error:
        failed.append(("a suffix that ends exactly at n_ctx, and so fits", error.sentence[:-1], None))
    finish_refusals(failed)


def _ignores_length(student: Student, model: JudgeModel, saved: Handle, p: int, suffix: list[int]) -> bool:
    return matches(*(reuse_prefix(student, saved, n, suffix, model) for n in (p, -1)))
