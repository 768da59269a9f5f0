"""Work is counted in tokens through the model, however the code is written."""

import sys
import types

import numpy as np
import pytest

from autograder.judge.cases import random_judge_model
from autograder.judge.student import local_student
from autograder.notebooks.given import given_source
from autograder.stages import find_stage
from autograder.toolkit.model import GPT2Config, random_model
from autograder.worker.counting import Meter

MODEL = random_judge_model(GPT2Config(n_layer=3, n_head=2, n_embd=22, n_ctx=40, n_vocab=37), 5)
PROMPT, N_NEW = [3, 1, 4, 1, 5, 9, 2], 12
CACHED = len(PROMPT) + N_NEW - 1
RECOMPUTED = sum(range(len(PROMPT), len(PROMPT) + N_NEW))

PRODUCTS = {
    "matmul operator": "x @ p.weight",
    "np.matmul": "np.matmul(x, p.weight)",
    "np.matmul into a buffer": "np.matmul(x, p.weight, out=np.empty((len(x), p.weight.shape[1]), x.dtype))",
    "np.dot": "np.dot(x, p.weight)",
    "dot method": "x.dot(p.weight)",
    "dot method of the weight": "p.weight.T.dot(x.T).T",
    "einsum": "np.einsum('ij,jk->ik', x, p.weight)",
    "einsum, transposed": "np.einsum('ij,kj->ik', x, p.weight.T, optimize=True)",
    "tensordot": "np.tensordot(x, p.weight, axes=1)",
    "inner": "np.inner(x, p.weight.T)",
    "float64 by astype": "x @ p.weight.astype(np.float64)",
    "float64 by array": "x @ np.array(p.weight, dtype=np.float64)",
    "asarray": "x @ np.asarray(p.weight)",
    "row by row": "np.stack([row @ p.weight for row in x])",
    "in two halves": "np.concatenate([x @ half for half in np.split(p.weight, 2, axis=1)], axis=1)",
    "with a batch axis": "(x[None] @ p.weight)[0]",
}
ROWS = {
    "index": "weights.wte[ids]",
    "np.take": "np.take(weights.wte, ids, axis=0)",
    "take": "weights.wte.take(ids, axis=0)",
    "one by one": "np.stack([weights.wte[i] for i in ids])",
    "asarray": "np.asarray(weights.wte)[ids]",
}
GENERATE = """
import numpy as np
from given import ModelCache, layer_norm

def linear(x, p):
    return {product} + p.bias

def one_pass(ids, position, weights, cache):
    n_head = weights.config.n_head
    x = {rows} + weights.wpe[position : position + len(ids)]
    for block, layer in zip(weights.blocks, cache.layers):
        qkv = linear(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn.c_attn)
        q, k, v = qkv.reshape(len(x), 3, n_head, -1).transpose(1, 2, 0, 3)
        layer.append(k, v)
        heads = {attend}(q, layer)
        x = x + linear(heads.transpose(1, 0, 2).reshape(x.shape), block.attn.c_proj)
        hidden = linear(layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp.c_fc)
        x = x + linear({gelu}(hidden), block.mlp.c_proj)
    return layer_norm(x[-1], weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T

def generate(prompt_ids, n_new, weights):
    cache = ModelCache(weights.config.n_layer)
    ids = list(prompt_ids)
    feed, position = ids, 0
    for _ in range(n_new):
        ids.append(int(np.argmax(one_pass(feed, position, weights, cache))))
        {next_pass}
    return ids[len(prompt_ids):]
"""
NEXT = {
    CACHED: "feed, position = ids[-1:], len(ids) - 1",
    RECOMPUTED: "feed, cache = ids, ModelCache(weights.config.n_layer)",
}


@pytest.fixture(autouse=True, scope="module")
def given():
    module = types.ModuleType("given")
    exec(given_source(find_stage("prefill-decode")), module.__dict__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "given", module)
        yield


@pytest.fixture
def given_of_stage_4(monkeypatch):
    module = types.ModuleType("given")
    exec(given_source(find_stage("save-and-reuse")), module.__dict__)
    monkeypatch.setitem(sys.modules, "given", module)


def count(source):
    namespace = {}
    exec(source, namespace)
    return local_student(namespace).counted_ids("generate", PROMPT, N_NEW, MODEL)


def inlined(work, product="x @ p.weight", rows="weights.wte[ids]", own=False):
    functions = {"gelu": "given.gelu", "attend": "given.attend"} if own else {"gelu": "gelu", "attend": "attend"}
    source = GENERATE.format(product=product, rows=rows, next_pass=NEXT[work], **functions)
    return source.replace("import numpy as np", "import numpy as np\nimport given\nfrom given import attend, gelu", 1)


@pytest.mark.parametrize("work", [CACHED, RECOMPUTED])
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_each_way_of_multiplying_is_counted_and_changes_no_result(work, product):
    ids, tokens = count(inlined(work, product))
    assert ids == MODEL.reference.greedy(PROMPT, N_NEW)[0]
    assert tokens == pytest.approx(work)


@pytest.mark.parametrize("work", [CACHED, RECOMPUTED])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_without_products_the_next_best_evidence_counts(work, rows):
    product = "x @ np.array(p.weight)"
    assert count(inlined(work, product, rows))[1] == work
    seen = None if "asarray" in rows else work
    assert count(inlined(work, product, rows, own=True))[1] == seen


def test_the_same_product_written_three_times_is_not_three_passes():
    once = "qkv = linear("
    three_times = f"linear(x, block.attn.c_attn), linear(x, block.attn.c_attn)\n        {once}"
    assert count(inlined(CACHED).replace(once, three_times))[1] == CACHED


def test_calls_are_counted_once_whoever_calls_whom():
    source = """
    plain = lambda weights: [np.array(weights.wte)]
    def decode_step(token_id, position, weights, cache):
        cache.append(token_id)
        return plain(weights)[0][token_id]
    def prefill(prompt_ids, weights, cache):
        for i, token_id in enumerate(prompt_ids):
            logits = decode_step(token_id, i, weights, cache)
        return logits
    def generate(prompt_ids, n_new, weights):
        logits, new, cache = prefill(prompt_ids, weights, []), [], []
        for i in range(n_new):
            new.append(i % 7)
            if i < n_new - 1:
                logits = {step}
        return new
    """
    source = "import numpy as np" + source.replace("\n    ", "\n")
    assert count(source.replace("{step}", "decode_step(i % 7, i, weights, cache)"))[1] == CACHED
    again = "prefill(prompt_ids + new, weights, [])"
    assert count(source.replace("{step}", again))[1] == RECOMPUTED


@pytest.mark.parametrize("attend", ["attend", "look_back"])
def test_a_cache_that_is_a_list_counts_as_neither_rows_nor_ids(attend):
    source = """
import numpy as np
class ModelCache(list): pass
def attend(cache, q): pass
def advance(cache, token_ids, weights):
    for _ in weights.blocks:
        attend(cache, np.zeros((2, len(token_ids), 3)))
def generate(prompt_ids, n_new, weights):
    cache = ModelCache([[], np.zeros((2, 3))])
    for i in range(n_new):
        advance(cache, prompt_ids if i == 0 else [i % 7], weights=weights)
    return [i % 7 for i in range(n_new)]
"""
    assert count(source.replace("attend", attend))[1] == CACHED


@pytest.mark.parametrize(
    "part",
    [
        "attend = lambda q: q\nrun = lambda x: [attend(head) for head in (x, x)]",  # head by head
        "attend = lambda q: q\nrun = lambda x: [attend(head[None]) for head in (x, x)]",  # with an axis for the one
        "gelu = lambda x: [gelu(x[:3]), gelu(x[3:])] if len(x) > 3 else x\nrun = lambda x: gelu(x)",  # calls itself
    ],
)
def test_rows_that_are_handled_in_parts_are_counted_once(part):
    source = f"""
import numpy as np
{part}
def advance(token_ids, weights):
    for _ in weights.blocks:
        run(np.zeros((len(token_ids), 3)))
def generate(prompt_ids, n_new, weights):
    for i in range(n_new):
        advance(prompt_ids if i == 0 else [i % 7], weights)
    return [i % 7 for i in range(n_new)]
"""
    assert count(source)[1] == CACHED


def test_models_with_watched_weights_stay_alive_as_long_as_the_student():
    """Code that keeps float64 copies by id() must never get an id that belonged to other weights."""
    source = """
seen = {}
def generate(prompt_ids, n_new, weights):
    array = weights.blocks[0].attn.c_attn.weight
    assert id(array) not in seen, "a freed array's id"
    seen[id(array)] = None
    return [0] * n_new
"""
    namespace = {}
    exec(source, namespace)
    student = local_student(namespace)
    for _ in range(20):
        student.counted_ids("generate", PROMPT, N_NEW, MODEL)


def test_the_students_functions_are_restored_afterwards():
    source = (
        "def prefill(ids, weights, cache): raise ValueError\ndef generate(*args): return [prefill([1], None, None)]"
    )
    namespace = {}
    exec(source, namespace)
    before = dict(namespace)
    with pytest.raises(Exception, match="ValueError"):
        local_student(namespace).counted_ids("generate", PROMPT, 1, MODEL)
    assert namespace == before


@pytest.mark.parametrize(
    "expression",
    [
        "w.T.copy()",
        "w[:, 3:9]",
        "w.astype(np.float64)",
        "np.split(w, 2, axis=1)[1]",
        "w.sum(axis=0)",
        "np.concatenate([w, w])",
        "w * 2 + w",
        "(w[:, None] * w[..., None]).sum(0)",
        "np.ascontiguousarray(w.T)",
        "np.linalg.norm(w)",
        "w.reshape(22, 2, -1).transpose(1, 0, 2)",
        "np.add.reduce(w, axis=1, dtype=np.float64)",
        "np.where(w > 0, w, 0)",
        "w @ w.T",
        "w[[1, 2, 2]]",
        "copy.deepcopy(w)",
        "pickle.loads(pickle.dumps(w))",
        "w.mean(axis=-1, keepdims=True)",
    ],
)
def test_watched_weights_behave_as_arrays(expression):
    import copy
    import pickle

    weights = random_model(MODEL.config, 3)
    watched = Meter().weights(weights)
    assert type(watched) is type(weights)
    assert watched.config is weights.config
    for get in (lambda tree: tree.blocks[1].mlp.c_fc.weight, lambda tree: tree.wte):
        scope = {"np": np, "copy": copy, "pickle": pickle}
        if "22" in expression and get(weights).shape[0] != 22:
            continue
        expected, actual = (eval(expression, scope, {"w": get(tree)}) for tree in (weights, watched))
        assert np.array_equal(expected, np.asarray(actual))
        assert np.shape(expected) == np.shape(actual)
    assert not watched.wte.flags.writeable


def test_a_copy_of_a_watched_weight_can_be_changed_in_place():
    weight = Meter().weights(random_model(MODEL.config, 3)).blocks[0].attn.c_attn.weight.copy()
    before = np.array(weight)
    weight *= 2
    assert np.array_equal(np.asarray(weight), 2 * before)


DECOYS = """
import pickle
import given
from given import {imported}

def generate(prompt_ids, n_new, weights):
    copy, new, cache = pickle.loads(pickle.dumps(weights)), [], given.ModelCache(weights.config.n_layer)
    given_advance(prompt_ids, 0, weights, cache)
    for i in range(n_new):
        new.append(int({whole}(list(prompt_ids) + new, copy)[-1].argmax()))
        if i < n_new - 1:
            given_advance(new[-1:], len(cache), weights, cache)
    return new
"""


@pytest.mark.parametrize(
    ("imported", "whole"),
    [
        ("forward", "forward"),
        ("forward as run", "run"),
        ("forward", "given.forward"),
        ("forward as run", "given.forward"),
    ],
)
def test_a_recompute_behind_a_decoy_is_seen(given_of_stage_4, imported, whole):
    source = DECOYS.format(imported=imported, whole=whole).replace("given_advance", "given.advance")
    ids, tokens = count(source)
    assert ids == MODEL.reference.greedy(PROMPT, N_NEW)[0]
    assert tokens == RECOMPUTED + CACHED  # what the decoys are given goes through the model as well


HONEST = {
    "given's functions": "from given import ModelCache, prefill, decode_step",
    "given's functions by another name": "from given import ModelCache, prefill as start, decode_step as go_on\n"
    "prefill = lambda ids, weights, cache: start(ids, weights, cache)\n"
    "decode_step = lambda i, position, weights, cache: go_on(token_id=i, position=position, weights=weights,"
    " cache=cache)",
    "advance alone": "from given import ModelCache, advance\n"
    "def prefill(ids, weights, cache): return advance(ids, len(cache), weights, cache)\n"
    "def decode_step(i, position, weights, cache): return advance(token_ids=[i], position=position,"
    " weights=weights, cache=cache)",
    "the prompt in decode steps": "from given import ModelCache, decode_step\n"
    "def prefill(ids, weights, cache):\n"
    "    for i in ids: logits = decode_step(i, len(cache), weights, cache)\n"
    "    return logits",
    "all ids passed, those that are not cached are run": "import given\nfrom given import ModelCache\n"
    "seen = []\n"
    "def advance(ids, weights, cache): return given.advance(ids[len(cache):], len(cache), weights, cache)\n"
    "def prefill(ids, weights, cache):\n    seen[:] = ids\n    return advance(seen, weights, cache)\n"
    "def decode_step(i, position, weights, cache):\n    seen.append(i)\n    return advance(seen, weights, cache)",
    "refused first": "from given import ModelCache, prefill, decode_step as step\n"
    "def decode_step(i, position, weights, cache):\n"
    "    try:\n        prefill([0] * 1000, weights, cache)\n    except ValueError:\n        pass\n"
    "    return step(i, position, weights, cache)",
}


@pytest.mark.parametrize("style", HONEST.values(), ids=HONEST)
def test_honest_use_of_the_given_functions_is_counted_once(given_of_stage_4, style):
    loop = """
def generate(prompt_ids, n_new, weights):
    cache, new = ModelCache(weights.config.n_layer), []
    logits = prefill(list(prompt_ids), weights, cache)
    while True:
        new.append(int(logits.argmax()))
        if len(new) == n_new:
            return new
        logits = decode_step(new[-1], len(cache), weights, cache)
"""
    ids, tokens = count(style + loop)
    assert ids == MODEL.reference.greedy(PROMPT, N_NEW)[0]
    assert tokens == CACHED


def test_a_recompute_with_weights_kept_from_before_is_seen(given_of_stage_4):
    """The function under test receives watched weights, and runs all tokens through others."""
    source = """
import given
kept = []
def save_prefix_cache(prefix_ids, weights):
    kept[:] = prefix_ids, weights
    saved = given.ModelCache(weights.config.n_layer)
    given.prefill(prefix_ids, weights, saved)
    return saved
def generate_with_prefix(saved, prefix_len, suffix_ids, weights):
    given.advance(suffix_ids, prefix_len, weights, saved.clone())
    return given.prefill(kept[0] + suffix_ids, kept[1], given.ModelCache(weights.config.n_layer))
"""
    namespace = {}
    exec(source, namespace)
    student = local_student(namespace)
    saved = student.handle("save_prefix_cache", PROMPT, MODEL)
    logits, tokens = student.counted_array("generate_with_prefix", saved, len(PROMPT), [1, 2, 3], MODEL)
    assert np.allclose(logits, MODEL.reference.logits([*PROMPT, 1, 2, 3])[-1], atol=1e-3)
    assert tokens == 3 + len(PROMPT) + 3


def test_given_is_restored_afterwards(given_of_stage_4):
    before = dict(sys.modules["given"].__dict__)
    test_honest_use_of_the_given_functions_is_counted_once(None, HONEST["given's functions"])
    assert sys.modules["given"].__dict__ == before
