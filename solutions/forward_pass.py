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
# # 1. The forward pass

# %% setup="imports"
import numpy as np

import autograder

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()


# %% solution="gelu"
def gelu(x):
    """GPT-2's GELU, the tanh approximation, element by element; any shape."""
    ### BEGIN SOLUTION
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi).astype(np.float32) * (x + 0.044715 * x * x * x)))
    ### END SOLUTION


# %% solution="layer-norm"
def layer_norm(x, weight, bias, eps=1e-5):
    """Normalize each row of x [..., n_embd] to mean 0 and variance 1, then scale by weight and shift by bias."""
    ### BEGIN SOLUTION
    mean = x.mean(axis=-1, keepdims=True)
    centered = x - mean
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + eps) * weight + bias
    ### END SOLUTION


# %% solution="causal-self-attention"
def causal_self_attention(x, attn, n_head):
    """Multi-head causal self-attention; x and the result are [n_seq, n_embd]."""
    ### BEGIN SOLUTION
    n_seq, n_embd = x.shape
    head_dim = n_embd // n_head
    qkv = x @ attn.c_attn.weight + attn.c_attn.bias  # [n_seq, 3 * n_embd]
    q, k, v = qkv.reshape(n_seq, 3, n_head, head_dim).transpose(1, 2, 0, 3)  # each [n_head, n_seq, head_dim]
    scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(head_dim))  # [n_head, n_seq, n_seq]
    scores = np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attention = scores / scores.sum(axis=-1, keepdims=True)
    heads = attention @ v  # [n_head, n_seq, head_dim]
    merged = heads.transpose(1, 0, 2).reshape(n_seq, n_embd)
    return merged @ attn.c_proj.weight + attn.c_proj.bias
    ### END SOLUTION


# %% solution="transformer-block"
def transformer_block(x, block, n_head):
    """One pre-norm GPT-2 block: attention, then the MLP, each added to its input; [n_seq, n_embd]."""
    ### BEGIN SOLUTION
    x = x + causal_self_attention(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn, n_head)
    hidden = layer_norm(x, block.ln_2.weight, block.ln_2.bias)
    hidden = gelu(hidden @ block.mlp.c_fc.weight + block.mlp.c_fc.bias)
    return x + hidden @ block.mlp.c_proj.weight + block.mlp.c_proj.bias
    ### END SOLUTION


# %% solution="forward"
def forward(token_ids, weights):
    """Logits [n_seq, n_vocab] of the token that follows each position; ValueError outside 1 <= n_seq <= n_ctx."""
    ### BEGIN SOLUTION
    n_seq, config = len(token_ids), weights.config
    if not 1 <= n_seq <= config.n_ctx:
        raise ValueError(f"forward needs 1 to {config.n_ctx} token ids, got {n_seq}")
    x = weights.wte[np.asarray(token_ids)] + weights.wpe[np.arange(n_seq)]
    for block in weights.blocks:
        x = transformer_block(x, block, config.n_head)
    return layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T
    ### END SOLUTION


# %% solution="generate-recompute"
def generate_recompute(prompt_ids, n_new, weights):
    """The n_new greedy next ids, by running the whole sequence again for each one."""
    ### BEGIN SOLUTION
    token_ids = list(prompt_ids)
    for _ in range(n_new):
        token_ids.append(int(forward(token_ids, weights)[-1].argmax()))
    return token_ids[len(prompt_ids) :]
    ### END SOLUTION
