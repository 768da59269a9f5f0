"""A GGUF file made into a Hugging Face folder, on a small file written by the library."""

import numpy as np
import pytest

gguf = pytest.importorskip("gguf", reason="the extra [chat] is not installed")

from autograder.toolkit.chat.config import LlamaConfig  # noqa: E402
from autograder.toolkit.chat.gguf_file import _IN_BLOCK, _TOP, convert  # noqa: E402
from autograder.toolkit.chat.load import load_llama  # noqa: E402
from autograder.toolkit.chat.random_weights import random_llama  # noqa: E402
from autograder.toolkit.chat.tokenizer import END, START, load_chat_tokenizer  # noqa: E402
from autograder.toolkit.chat.weights import tensors_of  # noqa: E402
from autograder.toolkit.model import ModelError  # noqa: E402

TOKENS = [START, END, "a", "b", "ab", "1"]
SHAPE = LlamaConfig(
    n_layer=2, n_head=4, n_kv_head=2, n_embd=24, n_inner=32, n_ctx=16, n_vocab=len(TOKENS), rope_theta=3000.0
)


def as_neighbors(matrix, n_head):
    """The rows of each head as the converter of llama.cpp orders them: row i + d / 2 right after row i."""
    d = len(matrix) // n_head
    order = [h * d + i + half * (d // 2) for h in range(n_head) for i in range(d // 2) for half in (0, 1)]
    return matrix[order]


@pytest.fixture
def write(tmp_path):
    def run(architecture="llama", left_out="", pre="smollm"):
        writer = gguf.GGUFWriter(tmp_path / "model.gguf", architecture)
        writer.add_block_count(SHAPE.n_layer)
        writer.add_context_length(SHAPE.n_ctx)
        writer.add_embedding_length(SHAPE.n_embd)
        writer.add_feed_forward_length(SHAPE.n_inner)
        writer.add_head_count(SHAPE.n_head)
        writer.add_head_count_kv(SHAPE.n_kv_head)
        writer.add_rope_freq_base(SHAPE.rope_theta)
        writer.add_layer_norm_rms_eps(SHAPE.norm_eps)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(TOKENS)
        writer.add_token_types([3, 3, 1, 1, 1, 1])
        writer.add_token_merges(["a b"])
        writer.add_chat_template("{{ messages[0].content }}")
        theirs = {ours: name for name, ours in {**_TOP, **_IN_BLOCK}.items()}
        for name, array in tensors_of(random_llama(SHAPE, 3)).items():
            part = name.removesuffix(".weight").split(".", 3)
            in_block = part[:2] == ["model", "layers"]
            known = f"blk.{part[2]}.{theirs[part[3]]}" if in_block else theirs[".".join(part)]
            if known.endswith(("attn_q", "attn_k")):
                array = as_neighbors(array, SHAPE.n_head if known.endswith("q") else SHAPE.n_kv_head)
            if known != left_out:
                writer.add_tensor(f"{known}.weight", np.array(array))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return tmp_path / "model.gguf"

    return run


def test_weights_tokenizer_and_template_come_out_as_they_were(write, tmp_path):
    convert(write(), tmp_path / "folder")
    weights, tokenizer = load_llama(tmp_path / "folder"), load_chat_tokenizer(tmp_path / "folder")
    assert weights.config == SHAPE
    for name, array in tensors_of(random_llama(SHAPE, 3)).items():
        assert np.array_equal(tensors_of(weights)[name], array), name
    assert tokenizer.encode(f"{START}ab11{END}") == [0, 4, 5, 5, 1]
    assert tokenizer.render([{"role": "user", "content": "Who?"}]) == "Who?"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "gemma"}, "the architecture is 'gemma'"),
        ({"left_out": "blk.1.attn_q"}, "missing model.layers.1.self_attn.q_proj.weight"),
        ({"pre": "llama-bpe"}, "the tokenizer is of kind"),
    ],
)
def test_what_cannot_be_used_leaves_no_folder_that_counts(write, tmp_path, change, message):
    with pytest.raises(ModelError, match=message):
        convert(write(**change), tmp_path / "folder")
    assert not (tmp_path / "folder" / "config.json").exists()


def test_a_file_that_is_not_gguf(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"nothing of the kind" * 10)
    with pytest.raises(ModelError, match="cannot be read as GGUF"):
        convert(tmp_path / "model.gguf", tmp_path / "folder")
