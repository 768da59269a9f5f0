"""A GGUF file of a Llama made into a Hugging Face folder with float32 weights, by the library gguf.

The file format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from autograder.toolkit.chat.config import LlamaConfig, config_to_hf
from autograder.toolkit.chat.load import write_float32
from autograder.toolkit.chat.tokenizer import bpe
from autograder.toolkit.chat.weights import weights_from_tensors
from autograder.toolkit.model.config import ModelError

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_IN_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL = 3  # the type of a special token


def convert(path: Path, folder: Path) -> None:
    """Write config.json, tokenizer.json, tokenizer_config.json and model.safetensors to the folder.

    config.json comes last: a folder without it counts as not there. ModelError when the file is not a plain Llama.
    """
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ModelError("a GGUF file is read by the library gguf; run `pip install gguf`") from None
    try:
        reader = GGUFReader(path)
        values = {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, IndexError, KeyError, OSError) as error:
        raise ModelError(f"{path}: cannot be read as GGUF ({error})") from None
    config = _config(values, tied=all(tensor.name != "output.weight" for tensor in reader.tensors))
    tensors = _tensors(reader, config)
    weights_from_tensors(config, tensors)  # says what is missing or wrong
    folder.mkdir(parents=True, exist_ok=True)
    write_float32(folder / "model.safetensors", tensors)
    _tokenizer(values).save(str(folder / "tokenizer.json"))
    template = {"chat_template": values["tokenizer.chat_template"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(template), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config_to_hf(config), indent=1), encoding="utf-8")


def _config(values: dict[str, Any], tied: bool) -> LlamaConfig:
    if values.get("general.architecture") != "llama":
        raise ModelError(f"the architecture is {values.get('general.architecture')!r}, and only 'llama' can be read")
    try:
        n_head = values["llama.attention.head_count"]
        return LlamaConfig(
            n_layer=values["llama.block_count"],
            n_head=n_head,
            n_kv_head=values.get("llama.attention.head_count_kv", n_head),
            n_embd=values["llama.embedding_length"],
            n_inner=values["llama.feed_forward_length"],
            n_ctx=values["llama.context_length"],
            n_vocab=len(values["tokenizer.ggml.tokens"]),
            rope_theta=float(values.get("llama.rope.freq_base", 10000.0)),
            norm_eps=float(str(np.float32(values["llama.attention.layer_norm_rms_epsilon"]))),  # 1e-5, not its float32
            tied=tied,
        )
    except KeyError as error:
        raise ModelError(f"{error.args[0]} is missing") from None


def _tensors(reader: Any, config: LlamaConfig) -> dict[str, np.ndarray]:
    from gguf.quants import dequantize

    tensors = {}
    for tensor in reader.tensors:
        name = tensor.name.removesuffix(".weight")
        block = re.fullmatch(r"blk\.(\d+)\.(\w+)", name)
        if name == "rope_freqs":
            raise ModelError("the file scales its rotary positions, which cannot be computed")
        array = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        if block and block[2] in ("attn_q", "attn_k"):
            array = _in_halves(array, config.n_head if block[2] == "attn_q" else config.n_kv_head)
        part = _IN_BLOCK.get(block[2]) if block else _TOP.get(name)
        known = f"model.layers.{block[1]}.{part}" if block else part
        tensors[f"{known}.weight" if part else tensor.name] = array
    return tensors


def _in_halves(matrix: np.ndarray, n_head: int) -> np.ndarray:
    """The rows of each head in the order of Hugging Face's files.

    A rotary position turns pairs of elements. In GGUF files of a Llama the two of a pair are neighbors, 2i and 2i + 1;
    in Hugging Face's they are half a head apart, i and i + head_dim / 2.
    """
    n_out, n_in = matrix.shape
    pairs = matrix.reshape(n_head, n_out // n_head // 2, 2, n_in)
    return pairs.swapaxes(1, 2).reshape(n_out, n_in)


def _tokenizer(values: dict[str, Any]) -> Any:
    kind = (values.get("tokenizer.ggml.model"), values.get("tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise ModelError(f"the tokenizer is of kind {kind}, and only ('gpt2', 'smollm') can be made")
    tokens = values["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in values["tokenizer.ggml.merges"]]
    kinds = values["tokenizer.ggml.token_type"]
    return bpe(tokens, merges, [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL])
