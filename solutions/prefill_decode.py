# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 3. Prefill and decode

# %% setup="imports"
import numpy as np
from given import ModelCache, attend, gelu, layer_norm

import autograder

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()


# %% solution="cached-block"
def cached_block(x, block, n_head, layer_cache):
    """One block over n_new new positions, x [n_new, n_embd]; their keys and values are appended to layer_cache."""
    ### BEGIN SOLUTION
    n_new, n_embd = x.shape
    attn, mlp = block.attn, block.mlp
    qkv = layer_norm(x, block.ln_1.weight, block.ln_1.bias) @ attn.c_attn.weight + attn.c_attn.bias
    q, k, v = qkv.reshape(n_new, 3, n_head, n_embd // n_head).transpose(1, 2, 0, 3)
    layer_cache.append(k, v)
    heads = attend(q, layer_cache)  # [n_head, n_new, head_dim]
    x = x + heads.transpose(1, 0, 2).reshape(n_new, n_embd) @ attn.c_proj.weight + attn.c_proj.bias
    hidden = layer_norm(x, block.ln_2.weight, block.ln_2.bias)
    return x + gelu(hidden @ mlp.c_fc.weight + mlp.c_fc.bias) @ mlp.c_proj.weight + mlp.c_proj.bias
    ### END SOLUTION


# %% solution="advance"
def advance(token_ids, position, weights, cache):
    """Logits [n_vocab] after the last of token_ids, whose first stands at `position`; the cache grows by them all."""
    ### BEGIN SOLUTION
    config, end = weights.config, position + len(token_ids)
    if position < 0 or end > config.n_ctx:
        raise ValueError(f"positions {position} to {end - 1} do not fit into n_ctx = {config.n_ctx}")
    if min(token_ids) < 0 or max(token_ids) >= config.n_vocab:
        raise ValueError(f"token ids must lie in 0 to {config.n_vocab - 1}")
    x = weights.wte[np.asarray(token_ids)] + weights.wpe[position:end]
    for block, layer_cache in zip(weights.blocks, cache.layers):
        x = cached_block(x, block, config.n_head, layer_cache)
    return layer_norm(x[-1], weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T
    ### END SOLUTION


# %% solution="prefill"
def prefill(prompt_ids, weights, cache):
    """One pass over the prompt, which continues at len(cache); the logits [n_vocab] after its last token."""
    ### BEGIN SOLUTION
    if len(prompt_ids) == 0:
        raise ValueError("prefill needs at least one token id")
    return advance(prompt_ids, len(cache), weights, cache)
    ### END SOLUTION


# %% solution="decode-step"
def decode_step(token_id, position, weights, cache):
    """One new token at `position`; the logits [n_vocab] of the token after it."""
    ### BEGIN SOLUTION
    return advance([token_id], position, weights, cache)
    ### END SOLUTION


# %% solution="generate"
def generate(prompt_ids, n_new, weights):
    """The n_new greedy next ids: one prefill, then one decode step for each new token but the last."""
    ### BEGIN SOLUTION
    cache = ModelCache(weights.config.n_layer)
    logits = prefill(prompt_ids, weights, cache)
    new_ids = []
    while len(new_ids) < n_new:
        new_ids.append(int(logits.argmax()))
        if len(new_ids) < n_new:  # the last new token needs no step of its own
            logits = decode_step(new_ids[-1], len(cache), weights, cache)
    return new_ids
    ### END SOLUTION
