"""What the checks of the forward pass say beyond the table in test_samples.py."""

import numpy as np
import pytest

import autograder
from autograder.judge.bugs import NOT_WRITTEN
from autograder.judge.cases import VISIBLE_SEED, Cases
from autograder.judge.framework import checks_of, run_check
from autograder.judge.student import local_student
from autograder.stages.samples import solved_cells

HIDDEN_SEED = 4
FUNCTIONS = ("gelu", "layer_norm", "causal_self_attention", "transformer_block", "forward", "generate_recompute")


def solved(**cells):
    """The namespace of the solution, with some cells' sources replaced (mark with _ for -)."""
    namespace = {"np": np, "weights": autograder.load_model()}
    replaced = {mark.replace("_", "-"): source for mark, source in cells.items()}
    assert replaced.keys() <= solved_cells("forward-pass").keys()
    for source in {**solved_cells("forward-pass"), **replaced}.values():
        exec(source, namespace)
    return namespace


def changed(mark, old, new):
    """The namespace of the solution with a piece of one cell replaced."""
    source = solved_cells("forward-pass")[mark]
    assert source.count(old) == 1
    return solved(**{mark.replace("-", "_"): source.replace(old, new)})


def results(namespace, seed=HIDDEN_SEED, only=None):
    with np.errstate(all="ignore"):
        student = local_student(namespace)
        return {c.id: run_check(c, student, seed) for c in checks_of("forward-pass") if only in (None, c.id)}


def passed(namespace, seed=HIDDEN_SEED):
    return {check for check, result in results(namespace, seed).items() if result.passed}


def test_the_stage_has_14_points_in_9_checks():
    checks = checks_of("forward-pass")
    assert (len(checks), sum(c.points for c in checks)) == (9, 14)


@pytest.mark.parametrize("seed", range(12))
def test_the_solution_passes_whatever_the_seed(seed):
    assert {c: r.message for c, r in results(solved(), seed).items() if not r.passed} == {}


def test_what_is_not_written_is_called_so():
    def stub(*args, **kwargs):
        raise NotImplementedError()

    for result in results(dict.fromkeys(FUNCTIONS, stub)).values():
        assert (result.score, result.bug) == (0.0, NOT_WRITTEN)


def test_what_is_not_defined_is_called_so():
    for result in results({}).values():
        assert result.score == 0
        assert "is not defined" in result.message


@pytest.mark.parametrize("helper", ["split_heads", "attention_weights", "merge_heads"])
def test_a_helper_that_is_not_written_is_called_so(helper):
    namespace = solved(**{helper: f"def {helper}(*args):\n    raise NotImplementedError()"})
    result = results(namespace, only="attention-heads")["attention-heads"]
    assert result.bug == NOT_WRITTEN


def _shaped(make):
    """The six functions, each returning an array of the right shape with make(shape) in it."""

    def like_x(x, *args, **kwargs):
        return make(x.shape)

    def forward(token_ids, weights):
        if not 1 <= len(token_ids) <= weights.config.n_ctx:
            raise ValueError("length")
        return make((len(token_ids), weights.config.n_vocab))

    def generate_recompute(prompt_ids, n_new, weights):
        if len(prompt_ids) + n_new - 1 > weights.config.n_ctx:
            raise ValueError("length")
        return [0] * n_new

    return {**dict.fromkeys(FUNCTIONS[:4], like_x), "forward": forward, "generate_recompute": generate_recompute}


@pytest.mark.parametrize(
    "make",
    [
        np.zeros,
        np.ones,
        lambda shape: np.full(shape, np.nan),
        lambda shape: np.full(shape, np.inf),
        lambda shape: np.random.default_rng().normal(size=shape),
        lambda shape: np.random.default_rng(0).normal(size=shape),
    ],
    ids=["zeros", "ones", "nan", "inf", "noise", "the same noise"],
)
def test_garbage_of_the_right_shape_earns_nothing(make):
    assert passed(_shaped(make)) == set()


def test_an_identity_earns_nothing():
    assert not passed({**_shaped(np.zeros), **dict.fromkeys(FUNCTIONS[:4], lambda x, *args, **kwargs: x)})


def _key(value):
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    return repr(value)


def test_answers_memorized_from_the_visible_run_earn_nothing_in_marking():
    memory = {}

    def remember(name, function):
        def call(*args, **kwargs):
            key = (name, *map(_key, args), _key(kwargs))
            try:
                memory[key] = function(*args, **kwargs)
            except (ValueError, IndexError) as error:
                memory[key] = error
                raise
            return memory[key]

        return call

    def recall(name):
        def call(*args, **kwargs):
            answer = memory.get((name, *map(_key, args), _key(kwargs)))
            if answer is None:
                return _shaped(np.zeros)[name](*args, **kwargs)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    namespace = solved()
    every = {c.id for c in checks_of("forward-pass")}
    assert passed({name: remember(name, namespace[name]) for name in FUNCTIONS}, VISIBLE_SEED) == every
    memorized = {name: recall(name) for name in FUNCTIONS}
    assert passed(memorized, VISIBLE_SEED) == every
    assert passed(memorized, HIDDEN_SEED) == set()


def test_a_sweep_lists_every_failing_length():
    namespace = changed(
        "forward",
        "    x = weights.wte",
        "    if n_seq in (4, 8, 9, 10): return np.zeros((n_seq, config.n_vocab))\n    x = weights.wte",
    )
    message = results(namespace, only="forward-recompute")["forward-recompute"].message
    assert "Failing lengths: 4, 8 to 10 (of 1 to 19)." in message
    assert "for 4 tokens on a random model with 2 blocks" in message


_MLP = "linear(gelu(linear(x, mlp.c_fc)), mlp.c_proj)"
_REVERSED = ("attention-causal", "mask-reversed")
_BLOCK = "block-pre-norm"


@pytest.mark.parametrize(
    ("mark", "old", "new", "check", "bug"),
    [
        ("attention-weights", "np.tri(n_seq, dtype=bool)", "np.triu(np.ones((n_seq, n_seq), bool))", *_REVERSED),
        ("attention-weights", "scores, -np.inf", "-np.inf, scores", *_REVERSED),
        ("attention-weights", "scores, -np.inf", "-np.inf, scores", "attention-large-scores", "mask-reversed"),
        ("attention-weights", "head_dim**0.5", "len(q) ** 0.5", "attention-heads", None),
        ("attention-weights", "head_dim**0.5", "n_seq**0.5", "attention-heads", None),
        ("causal-self-attention", "split_heads(part, n_head)", "split_heads(part, 1)", "attention-heads", None),
        (
            "split-heads",
            "(n_seq, n_head, n_embd",
            "(n_head, n_seq, n_embd",
            "forward-limits",
            None,
        ),  # runs for 3 tokens
        ("feed-forward", "gelu(", "(", _BLOCK, "gelu-place"),
        ("feed-forward", _MLP, "gelu(linear(linear(x, mlp.c_fc), mlp.c_proj))", _BLOCK, "gelu-place"),
        ("transformer-block", "x = x + causal", "x = causal", _BLOCK, "no-residual-attention"),
        ("gelu", "x * x * x", "x * x", "gelu-tanh", None),
        ("gelu", "(x + 0.044715 * x * x * x)", "(x + 0.044715 * x) ** 3", "gelu-tanh", "gelu-bracket"),
        ("gelu", "(2 / np.pi) ** 0.5", "2.0**0.5 / np.pi", "gelu-tanh", "gelu-bracket"),
        ("gelu", "(x + 0.044715 * x * x * x)", "x + 0.044715 * x * x * x", "gelu-tanh", "gelu-bracket"),
        ("gelu", "(1 + np.tanh(", "1 + (np.tanh(", "gelu-tanh", "gelu-bracket"),
        ("layer-norm", "x - x.mean(axis=-1, keepdims=True)", "x - x.mean()", "layer-norm-rows", None),
        ("forward", "in weights.blocks", "in weights.blocks[::-1]", "forward-recompute", None),
        ("forward", "in weights.blocks", "in weights.blocks[:1]", "forward-recompute", None),
        ("forward", "weights.wpe[:n_seq]", "weights.wpe[-n_seq:]", "forward-recompute", None),
        ("generate-recompute", "forward(token_ids,", "forward(prompt_ids,", "generate-greedy", "sequence-not-grown"),
        ("generate-recompute", "range(n_new)", "range(n_new - 1)", "generate-greedy", None),
        ("generate-recompute", "range(n_new)", "range(max(1, n_new))", "generate-greedy", None),
    ],
)
def test_a_name_is_given_where_the_numbers_are_those_of_the_mistake(mark, old, new, check, bug):
    result = results(changed(mark, old, new), only=check)[check]
    assert not result.passed
    assert (result.bug.key if result.bug else None) == bug


@pytest.mark.parametrize(
    ("mark", "old", "new", "check", "meaning"),
    [
        ("gelu", "np.tanh(", "__import__('math').tanh(", "gelu-tanh", "NumPy's of that name take arrays"),
        ("layer-norm", "x - x.mean(axis=-1, keepdims=True)", "x - x.mean(axis=-1)", "layer-norm-rows", "shapes must"),
        ("attention-weights", "k.transpose(0, 2, 1)", "k.T", "attention-heads", ".T reverses all axes"),
    ],
)
def test_an_error_of_numpy_is_told_with_what_it_means(mark, old, new, check, meaning):
    assert meaning in results(changed(mark, old, new), only=check)[check].cause


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "hidden",
    [
        "np.where(np.tri(n_seq, dtype=bool), scores, -100)",
        "np.where(np.tri(n_seq, dtype=bool), scores, -5000)",
        "np.where(np.tri(n_seq, dtype=bool), scores, -65504.0)",
        "np.where(np.tri(n_seq, dtype=bool), scores, -1e6)",
        "scores - 1e6 * (1 - np.tri(n_seq))",
        "scores - 1e4 * (1 - np.tri(n_seq))",
        "scores - np.float32(1e4) * (1 - np.tri(n_seq, dtype=np.float32))",
    ],
)
def test_a_finite_mask_is_found(hidden, seed):
    old = "np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)"
    check = "attention-large-scores"
    result = results(changed("attention-weights", old, hidden), seed, only=check)[check]
    assert not result.passed
    assert result.bug.key == "mask-too-small"


@pytest.mark.parametrize("ids", ["np.asarray(token_ids) % config.n_vocab", "np.clip(token_ids, 0, config.n_vocab - 1)"])
def test_an_id_that_is_replaced_is_found(ids):
    result = results(changed("forward", "np.asarray(token_ids)", ids), only="forward-limits")["forward-limits"]
    assert "the id" in result.message


def replaced_in(mark, *pairs):
    source = solved_cells("forward-pass")[mark]
    for old, new in pairs:
        assert source.count(old) == 1
        source = source.replace(old, new)
    return solved(**{mark.replace("-", "_"): source})


def test_a_final_norm_in_the_loop_is_named():
    forward = replaced_in(
        "forward",
        ("x = transformer_block(", "x = layer_norm(transformer_block("),
        ("config.n_head)\n", "config.n_head), weights.ln_f.weight, weights.ln_f.bias)\n"),
        ("return layer_norm(x, weights.ln_f.weight, weights.ln_f.bias)", "return x"),
    )
    assert results(forward, only="forward-recompute")["forward-recompute"].bug.key == "ln-f-in-loop"


@pytest.mark.parametrize(
    ("subtracted", "bug"),
    [
        ("0", "softmax-overflow"),
        ("scores[:, np.tri(n_seq, dtype=bool)].max()", None),
        ("scores.max(axis=-1, keepdims=True)", None),
    ],
    ids=["nothing", "one maximum", "a hidden maximum"],
)
@pytest.mark.parametrize("root", ["head_dim**0.5", "np.sqrt(head_dim)"], ids=["float32", "float64"])
def test_overflow_is_named_where_nothing_is_subtracted(root, subtracted, bug):
    """np.sqrt(head_dim) makes float64 scores, which overflow at 709, not at 88."""
    namespace = replaced_in(
        "attention-weights",
        ("head_dim**0.5", root),
        (
            "return softmax(np.where(np.tri(n_seq, dtype=bool), scores, -np.inf))",
            f"""exps = np.exp(np.where(np.tri(n_seq, dtype=bool), scores - {subtracted}, -np.inf))
    return exps / exps.sum(axis=-1, keepdims=True)""",
        ),
    )
    result = results(namespace, only="attention-large-scores")["attention-large-scores"]
    assert not result.passed
    assert (result.bug.key if result.bug else None) == bug


def test_the_notebooks_own_weights_are_noticed():
    for mark in ("forward", "generate_recompute"):
        source = solved_cells("forward-pass")[mark.replace("_", "-")]
        namespace = solved(**{mark: source.replace("weights):", "model):")})
        check = {"forward": "forward-recompute", "generate_recompute": "generate-greedy"}[mark]
        assert results(namespace, only=check)[check].bug.key == "notebook-weights"


@pytest.mark.parametrize(
    ("mark", "old", "new"),
    [
        ("attention-weights", "-np.inf", "np.float32(-1e9)"),
        ("attention-weights", "-np.inf", "np.finfo(np.float32).min"),
        (
            "attention-weights",
            "np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)",
            "scores - 1e9 * (1 - np.tri(n_seq))",
        ),
        (
            "attention-weights",
            "np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)",
            "scores - np.float32(1e9) * (1 - np.tri(n_seq, dtype=np.float32))",
        ),
        (
            "attention-weights",
            "q @ k.transpose(0, 2, 1) / head_dim**0.5",
            "(q / head_dim**0.25) @ (k / head_dim**0.25).transpose(0, 2, 1)",
        ),
        ("forward", "@ weights.wte.T", "@ np.asfortranarray(weights.wte.T).astype(np.longdouble).astype(np.float64)"),
        ("forward", "    return layer_norm(x,", "    return layer_norm(np.ascontiguousarray(x[::-1])[::-1],"),
        (
            "forward",
            "weights.wte[np.asarray(token_ids)]",
            "np.eye(config.n_vocab, dtype=np.float32)[token_ids] @ weights.wte",
        ),
        (
            "generate-recompute",
            "    return token_ids[len(prompt_ids) :]",
            "    return tuple(np.int64(i) for i in token_ids[len(prompt_ids) :])",
        ),
        (
            "generate-recompute",
            "forward(token_ids, weights)[-1].argmax()",
            "np.argsort(forward(token_ids, weights)[-1], kind='stable')[-1]",
        ),
        ("gelu", "x * x * x", "np.power(x, 3)"),
        ("gelu", "(2 / np.pi) ** 0.5", "0.7978845608"),
        ("gelu", "(2 / np.pi) ** 0.5", "np.sqrt(2 / 3.1416)"),
        ("gelu", "np.tanh(", "(lambda y: 1 - 2 / (np.exp(np.float32(2) * np.clip(y, -40, 40)) + 1))("),
    ],
)
def test_odd_but_honest_ways_pass(mark, old, new):
    assert len(passed(changed(mark, old, new))) == 9


def test_the_prompts_of_the_greedy_check_are_clear():
    """No honest rounding can change the ids: each is ahead of the second best by far more than the tolerance."""
    from autograder.stages.forward_pass.greedy import clear_prompt

    cases = Cases(HIDDEN_SEED, "generate-greedy")
    for model in (*cases.odd, cases.trained):
        prompt, ids = clear_prompt(cases, model, 4, 4)
        greedy, gaps = model.reference.greedy(prompt, 4)
        assert greedy == ids
        assert min(gaps) > 0.15
