"""Live comparison with `transformers`, where PyTorch is installed (`make test-peers`).

Its logits are float32 and the judge's float64, so they agree to the rounding of a float32 pass: 1e-4 is asked. The
course's own functions, float32 as well, are held to the same.
"""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.numpy import save_file  # noqa: E402

from autograder.bench.solved import solved  # noqa: E402
from autograder.judge.reference import Reference  # noqa: E402
from autograder.places import ROOT  # noqa: E402
from autograder.toolkit.model import GPT2Config, load_model, load_tokenizer, random_model, tensors_of  # noqa: E402
from autograder.toolkit.model.config import config_to_hf  # noqa: E402
from autograder.toolkit.model.load import model_folder  # noqa: E402

TOLERANCE = 1e-4

# The published models' layers and heads, with heads of 8 elements; and shapes whose figures are all odd ones.
SHAPES = {
    "gpt2": GPT2Config(n_layer=12, n_head=12, n_embd=96, n_ctx=64, n_vocab=199),
    "gpt2-medium": GPT2Config(n_layer=24, n_head=16, n_embd=128, n_ctx=64, n_vocab=199),
    "gpt2-large": GPT2Config(n_layer=36, n_head=20, n_embd=160, n_ctx=64, n_vocab=199),
    "gpt2-xl": GPT2Config(n_layer=48, n_head=25, n_embd=200, n_ctx=64, n_vocab=199),
    "the smallest": GPT2Config(n_layer=1, n_head=1, n_embd=2, n_ctx=3, n_vocab=2),
    "one head": GPT2Config(n_layer=2, n_head=1, n_embd=17, n_ctx=19, n_vocab=23),
    "heads of one element": GPT2Config(n_layer=3, n_head=7, n_embd=7, n_ctx=29, n_vocab=31),
    "primes": GPT2Config(n_layer=11, n_head=5, n_embd=35, n_ctx=41, n_vocab=97),
    "a long context": GPT2Config(n_layer=2, n_head=2, n_embd=16, n_ctx=700, n_vocab=13),
}


@pytest.fixture(scope="module")
def course():
    """The course's own functions, of all stages."""
    return solved(sharing=True)


def transformers_model(config: GPT2Config, seed: int):
    """A GPT2LMHeadModel with transformers' random weights, changed so that biases and layer norms matter."""
    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**config_to_hf(config))).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            elif name.endswith(("wte.weight", "wpe.weight")):
                parameter.mul_(5)  # 0.02 would leave the logits near zero
    return model


def saved_and_loaded(name: str, seed: int, folder):
    """A transformers model of one of the shapes, and the weights read from the folder to which it was saved."""
    model = transformers_model(SHAPES[name], seed)
    model.save_pretrained(folder)
    return model, load_model(folder)


def logits_of(model, ids: list[int]) -> np.ndarray:
    """[n_seq, n_vocab]"""
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()


def some_ids(config: GPT2Config, n_seq: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, config.n_vocab, n_seq).tolist()


def assert_same(model, weights, lengths) -> None:
    reference = Reference(weights)
    for n_seq in lengths:
        ids = some_ids(weights.config, n_seq, seed=n_seq)
        np.testing.assert_allclose(reference.logits(ids), logits_of(model, ids), atol=TOLERANCE, rtol=0)


def lengths_to_the_limit(config: GPT2Config) -> list[int]:
    return sorted({n for n in (1, 2, 3, config.n_ctx // 2, config.n_ctx - 1, config.n_ctx) if n >= 1})


@pytest.mark.parametrize("name", SHAPES)
def test_every_position_of_every_shape(tmp_path, name):
    config = SHAPES[name]
    model, weights = saved_and_loaded(name, 1, tmp_path)
    assert weights.config == config
    assert_same(model, weights, lengths_to_the_limit(config))


def greedy(model, prompt: list[int], n_new: int) -> list[int]:
    """The n_new greedy next ids, each from a transformers pass over everything before it."""
    ids = list(prompt)
    for _ in range(n_new):
        ids.append(int(logits_of(model, ids)[-1].argmax()))
    return ids[len(prompt) :]


def clear_prompt(reference: Reference, n_prompt: int, n_new: int) -> list[int]:
    """A prompt after which the two likeliest ids are never so close that rounding could decide between them."""
    for seed in range(100):
        prompt = some_ids(reference.config, n_prompt, seed)
        if min(reference.greedy(prompt, n_new)[1]) > 10 * TOLERANCE:
            return prompt
    raise AssertionError("no such prompt in 100")


@pytest.mark.parametrize("name", SHAPES)
def test_greedy_text_with_the_cache(tmp_path, course, name):
    """50 tokens, or as many as the context has room for; the course's generate, and the judge without a cache."""
    config = SHAPES[name]
    model, weights = saved_and_loaded(name, 2, tmp_path)
    reference = Reference(weights)
    n_prompt = min(4, config.n_ctx - 1)
    n_new = min(50, config.n_ctx - n_prompt + 1)
    prompt = clear_prompt(reference, n_prompt, n_new)
    expected = greedy(model, prompt, n_new)
    assert course.generate(prompt, n_new, weights) == expected
    assert reference.greedy(prompt, n_new)[0] == expected
    assert course.generate_recompute(prompt, min(n_new, 5), weights) == expected[:5]


@pytest.mark.parametrize("name", SHAPES)
def test_the_courses_functions_at_every_position(tmp_path, course, name):
    """In one pass, in chunks, and on a saved prefix."""
    config = SHAPES[name]
    model, weights = saved_and_loaded(name, 7, tmp_path)
    for n_seq in lengths_to_the_limit(config):
        ids = some_ids(config, n_seq, seed=n_seq)
        expected = logits_of(model, ids)
        same = {"atol": TOLERANCE, "rtol": 0}
        np.testing.assert_allclose(course.forward(ids, weights), expected, **same)
        cache = course.ModelCache(config.n_layer)
        for start in range(0, n_seq, 100):
            chunk = ids[start : start + 100]
            np.testing.assert_allclose(course.prefill(chunk, weights, cache), expected[start + len(chunk) - 1], **same)
        if n_seq > 1:
            n_prefix = n_seq // 2
            saved = course.save_prefix_cache(ids[:n_prefix], weights)
            for use in (course.generate_with_prefix, generate_on_a_shared_prefix(course)):
                np.testing.assert_allclose(use(saved, n_prefix, ids[n_prefix:], weights), expected[-1], **same)


def generate_on_a_shared_prefix(course):
    return lambda saved, n, ids, weights: course.generate_sharing(course.SharedCache(saved), n, ids, weights)


@pytest.mark.parametrize("name", ["gpt2", "the smallest", "primes", "a long context"])
def test_the_end_of_the_context(tmp_path, course, name):
    """One before the limit, exactly at it, and one past it, where every engine refuses."""
    config = SHAPES[name]
    model, weights = saved_and_loaded(name, 8, tmp_path)
    reference = Reference(weights)
    for n_rows in (config.n_ctx - 1, config.n_ctx):  # rows of the cache: the last new id needs none
        n_new = min(3, n_rows)
        prompt = clear_prompt(reference, n_rows - n_new + 1, n_new)
        assert course.generate(prompt, n_new, weights) == greedy(model, prompt, n_new)
        with pytest.raises(ValueError, match="n_ctx"):
            course.generate(prompt, n_new + 1 + config.n_ctx - n_rows, weights)
    too_long = some_ids(config, config.n_ctx + 1)
    for run in (
        lambda: course.forward(too_long, weights),
        lambda: course.prefill(too_long, weights, course.ModelCache(config.n_layer)),
        lambda: reference.logits(too_long),
        lambda: logits_of(model, too_long),
    ):
        with pytest.raises((ValueError, IndexError)):
            run()


def test_a_model_saved_without_its_head_has_no_prefix(tmp_path):
    model = transformers_model(SHAPES["primes"], seed=3)
    model.transformer.save_pretrained(tmp_path)
    assert_same(model, load_model(tmp_path), [9])


def test_a_model_saved_in_several_files(tmp_path):
    model = transformers_model(SHAPES["gpt2"], seed=3)
    model.save_pretrained(tmp_path, max_shard_size="1MB")
    assert (tmp_path / "model.safetensors.index.json").exists() and not (tmp_path / "model.safetensors").exists()
    assert_same(model, load_model(tmp_path), [9])


def test_float16_files(tmp_path, course):
    config = SHAPES["primes"]
    transformers_model(config, seed=4).half().save_pretrained(tmp_path)
    weights = load_model(tmp_path)
    assert weights.note.endswith("widened from float16")
    wide = transformers.GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert_same(wide, weights, lengths_to_the_limit(config))
    prompt = clear_prompt(Reference(weights), 4, config.n_ctx - 3)
    assert course.generate(prompt, config.n_ctx - 3, weights) == greedy(wide, prompt, config.n_ctx - 3)


def test_bfloat16_files_are_refused_with_an_instruction_that_works(tmp_path):
    model = transformers_model(SHAPES["primes"], seed=5).bfloat16()
    model.save_pretrained(tmp_path / "bfloat16")
    with pytest.raises(ValueError, match="is bfloat16, which NumPy cannot read") as caught:
        load_model(tmp_path / "bfloat16")
    command = str(caught.value).split(": ")[-1]
    assert command.startswith("AutoModelForCausalLM")
    folders = {"FOLDER": tmp_path / "bfloat16", "NEW_FOLDER": tmp_path / "float32"}
    eval(command, {"AutoModelForCausalLM": transformers.AutoModelForCausalLM, **folders})
    assert_same(model.float(), load_model(tmp_path / "float32"), [9])


@pytest.mark.parametrize("name", SHAPES)
def test_transformers_reads_our_random_models_alike(tmp_path, name):
    weights = random_model(SHAPES[name], seed=6)
    (tmp_path / "config.json").write_text(json.dumps(config_to_hf(weights.config)))
    tensors = {f"transformer.{key}": array.copy() for key, array in tensors_of(weights).items()}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert_same(model, weights, lengths_to_the_limit(weights.config))


# The committed model


@pytest.fixture(scope="module")
def committed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return transformers.AutoModelForCausalLM.from_pretrained(model_folder("tiny")).eval()


def test_the_committed_model_at_every_position(committed):
    assert isinstance(committed, transformers.GPT2LMHeadModel)
    assert_same(committed, load_model("tiny"), [1, 2, 100, 511, 512])


def test_the_committed_tokenizer(committed):
    peer, ours = transformers.AutoTokenizer.from_pretrained(model_folder("tiny")), load_tokenizer("tiny")
    assert len(peer) == ours.n_vocab == committed.config.vocab_size
    assert peer.eos_token_id == ours.eot_id == committed.config.eos_token_id
    text = (ROOT / "data" / "tinyshakespeare.txt").read_text(encoding="utf-8")[-20_000:]
    for sample in (text, "  naïve\t🙂<|endoftext|>\r\n"):
        ids = peer(sample, verbose=False)["input_ids"]
        assert ids == ours.encode(sample)
        assert peer.decode(ids) == ours.decode(ids) == sample
