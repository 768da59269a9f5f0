"""What the tables of submissions do not cover: garbage, cheats, the unsolved file, odd but honest code, many seeds."""

import functools

import pytest

from autograder.judge.framework import checks_of
from autograder.stages import sample_tests

STAGE = "prefill-decode"
ALL = {check.id for check in checks_of(STAGE)}
changed = functools.partial(sample_tests.changed, STAGE)
results = functools.partial(sample_tests.results, STAGE)


def lost(*changes, sources=(), **options):
    return sample_tests.lost(STAGE, changed(*changes, sources=sources), **options)


def message(check, *changes, sources=()):
    return results(changed(*changes, sources=sources), only=check)[check].told()


# Nothing for nothing

PARTS = """
def prefill(prompt_ids, weights, cache):
    {body}
def decode_step(token_id, position, weights, cache):
    {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "return np.zeros(weights.config.n_vocab, np.float32)",
        "return np.full(weights.config.n_vocab, np.nan)",
        "return np.random.default_rng(0).normal(size=weights.config.n_vocab)",
        "return None",
        "raise ValueError('no')",
        "raise IndexError",
        "return weights.wte[0] @ weights.wte.T",
    ],
)
def test_garbage_earns_nothing(body):
    assert lost(sources=[PARTS.format(body=body)]) == ALL


@pytest.mark.parametrize(
    "body", ["return [0] * n_new", "return []", "raise ValueError('no')", "return None", "return list(range(n_new))"]
)
def test_a_generate_that_only_looks_like_one_earns_nothing(body):
    source = f"def generate(prompt_ids, n_new, weights):\n    {body}"
    assert lost(sources=[source]) == {"generate-ids", "generate-work", "decode-context-limit"}


# Work

INLINED = """
def own_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
def own_norm(x, p):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * np.array(p.weight) + np.array(p.bias)
def own_linear(x, p):
    return x @ np.array(p.weight) + np.array(p.bias)
def own_pass(ids, start, weights, kv):
    x = np.array(weights.wte)[ids] + np.array(weights.wpe)[start : start + len(ids)]
    for i, block in enumerate(weights.blocks):
        qkv = own_linear(own_norm(x, block.ln_1), block.attn.c_attn)
        q, k, v = qkv.reshape(len(ids), 3, weights.config.n_head, -1).transpose(1, 2, 0, 3)
        if i in kv:
            k, v = np.concatenate([kv[i][0], k], 1), np.concatenate([kv[i][1], v], 1)
        kv[i] = k, v
        scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
        scores = np.where(np.tri(*scores.shape[1:], start, dtype=bool), scores, -np.inf)
        weights_ = np.exp(scores - scores.max(-1, keepdims=True))
        heads = weights_ / weights_.sum(-1, keepdims=True) @ v
        x = x + own_linear(heads.swapaxes(0, 1).reshape(x.shape), block.attn.c_proj)
        x = x + own_linear(own_gelu(own_linear(own_norm(x, block.ln_2), block.mlp.c_fc)), block.mlp.c_proj)
    return own_norm(x, weights.ln_f)[-1] @ np.array(weights.wte).T
def generate(prompt_ids, n_new, weights):
    if not prompt_ids or len(prompt_ids) + n_new - 1 > weights.config.n_ctx:
        raise ValueError("empty or too long")
    new, kv, feed, start = [], {}, list(prompt_ids), 0
    while len(new) < n_new:
        new.append(int(own_pass(feed, start, weights, kv).argmax()))
        {next}
    return new
"""
NEWEST = "feed, start = new[-1:], start + len(feed)"
EVERYTHING = "feed, kv = list(prompt_ids) + new, {}"


@pytest.mark.parametrize("next_feed", [NEWEST, EVERYTHING])
def test_work_that_cannot_be_seen_is_held_against_nobody(next_feed):
    """Plain copies of every weight, and no function of the course."""
    assert lost(sources=[INLINED.replace("{next}", next_feed)]) == set()


@pytest.mark.parametrize("seen", ["wte", "c_attn", "gelu"])
def test_one_weight_or_function_used_as_it_is_makes_the_work_seen(seen):
    change = {
        "wte": ("np.array(weights.wte)[ids]", "weights.wte[ids]"),
        "c_attn": ("own_linear(own_norm(x, block.ln_1), block.attn.c_attn)",
                   "own_norm(x, block.ln_1) @ block.attn.c_attn.weight + block.attn.c_attn.bias"),
        "gelu": ("own_gelu(own_linear", "gelu(own_linear"),
    }[seen]  # fmt: skip
    assert INLINED.count(change[0]) == 1
    source = INLINED.replace(*change)
    assert lost(sources=[source.replace("{next}", NEWEST)]) == set()
    again = source.replace("{next}", EVERYTHING)
    assert lost(sources=[again]) == {"generate-work"}
    assert "running the whole sequence again" in message("generate-work", sources=[again])


# Honest, in ways one does not think of

DECODE = "logits = decode_step(new_ids[-1], len(cache), weights, cache)"
ONLY_WHILE_NEEDED = "if len(new_ids) < n_new:  # nothing is chosen after the last one"
HONEST = {
    "prefill also decodes": ("generate", DECODE, "logits = prefill([new_ids[-1]], weights, cache)"),
    "the last id is fed where there is room": ("generate", ONLY_WHILE_NEEDED, "if len(cache) < n_ctx:"),
    "float64 logits": ("advance", "@ weights.wte.T", "@ weights.wte.T.astype(np.float64)"),
    "a position that is not the next is an IndexError": (
        "decode-step", "    return", "    if position != len(cache):\n        raise IndexError(position)\n    return"),
    "keyword arguments": (
        "generate", DECODE,
        "logits = decode_step(token_id=new_ids[-1], position=len(cache), weights=weights, cache=cache)"),
    "a generator of ids": ("generate", "return new_ids", "return (i for i in new_ids)"),
    "ids as NumPy scalars": ("generate", "int(logits.argmax())", "np.argmax(logits)"),
    "rows appended one by one": (
        "cached-block", "layer_cache.append(k, v)",
        "for i in range(len(x)):\n        layer_cache.append(k[:, i : i + 1], v[:, i : i + 1])"),
}  # fmt: skip


@pytest.mark.parametrize("change", HONEST.values(), ids=HONEST)
def test_honest_code_gets_every_point(change):
    assert lost(change) == set()


# Details that decide


def test_a_position_past_the_next_may_be_refused_and_not_replaced():
    replaced = ("decode-step", "[token_id], position,", "[token_id], min(position, len(cache)),")
    assert lost(replaced) == {"decode-position"}
    accident = ("decode-step", "    return", "    assert position == len(cache)\n    return")
    assert lost(accident) == {"decode-position"}


def test_a_silent_limit_is_found_where_one_row_is_left_to_broadcast():
    silent = ("advance", "if position < 0 or end > config.n_ctx:", "if position < 0:")
    told = message("decode-context-limit", silent)
    assert "a chunk of 2 tokens after 12 cached" in told
    assert "broadcast" in told


def test_a_step_that_stands_one_too_far_is_not_called_a_limit_that_is_too_low():
    shifted = ("generate", "len(cache), weights, cache)", "len(cache) + 1, weights, cache)")
    told = message("decode-context-limit", shifted)
    assert "just fits into n_ctx" in told
    assert "limit were one too low" not in told


def test_an_id_outside_the_vocabulary_must_not_be_repaired():
    unchecked = ("advance", "if min(token_ids) < 0 or max(token_ids) >= config.n_vocab:", "if False:")
    repaired = ("advance", "np.asarray(token_ids)", "np.asarray(token_ids) % config.n_vocab")
    assert lost(unchecked, repaired) == {"decode-context-limit"}


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        ("[cache.layers[0]] * len(weights.blocks)", "hold 3, 0, 0 rows where 1 belong"),
        ("[LayerCache(), *cache.layers[1:]]", "hold 0, 1, 1 rows where 1 belong"),
        ("[LayerCache() for _ in weights.blocks]", "hold 0 rows each where 1 belong"),
    ],
)
def test_layers_without_rows_are_told(layers, told):
    zipped = ("advance", "zip(weights.blocks, cache.layers, strict=True)", f"zip(weights.blocks, {layers})")
    assert told in message("prefill-cache", zipped)


def test_prefill_is_judged_before_decode_step_is_written():
    unwritten = "def decode_step(token_id, position, weights, cache):\n    raise NotImplementedError()"
    assert results(changed(sources=[unwritten]), only="prefill-in-chunks")["prefill-in-chunks"].passed


def test_a_prompt_after_decode_steps_does_not_begin_anew():
    anew = """
def decode_step(token_id, position, weights, cache):
    cache.decoding = True
    return advance([token_id], position, weights, cache)
def prefill(prompt_ids, weights, cache):
    if not prompt_ids:
        raise ValueError("empty")
    return advance(prompt_ids, 0 if hasattr(cache, "decoding") else len(cache), weights, cache)
"""
    assert lost(sources=[anew]) == {"prefill-in-chunks"}
    assert "after a prompt of 4 tokens and 2 decode steps" in message("prefill-in-chunks", sources=[anew])


def test_too_few_ids_are_no_work_to_be_counted():
    short = ("generate", "while len(new_ids) < n_new:", "while len(new_ids) < min(n_new, 4):")
    assert "generate returned 4 ids where n_new is 14" in message("generate-work", short)


def test_every_failing_length_is_listed():
    short = "    if len(prompt_ids) % 4 == 0:\n        prompt_ids = prompt_ids[:-1]\n    return"
    told = message("prefill-logits", ("prefill", "    return", short))
    assert "Failing prompt lengths: 4, 8, 12, 32, 64 (of 1 to 13, 19, 26, 32, 37, 64, 65, 129)" in told
