"""The functions of the earlier stages (The forward pass), as the course solved them. Made from the course's solutions,
so that a stage can be solved and graded for itself, whatever became of the ones before. Changes made here count for
nothing: the file is replaced when the work is graded. To build on functions of your own, load your notebook: mine =
autograder.load_notebook("../01-forward-pass/forward_pass.ipynb").
"""

import numpy as np

# 1. The forward pass


def linear(x, layer):
    """x: [..., n_in]; layer.weight: [n_in, n_out]; layer.bias: [n_out]. Returns [..., n_out]."""
    return x @ layer.weight + layer.bias


def gelu(x):
    """GPT-2's GELU, the tanh form, of every element of x; an array of the same shape, whatever that is.

    x is not changed. Elements may be as large as they like.
    """
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))


def layer_norm(x, weight, bias, eps=1e-5):
    """Normalize every row of x to mean 0 and variance 1, then scale by weight and shift by bias.

    x: [..., n_embd], where ... is any number of axes, or none. weight, bias: [n_embd].
    Returns an array of x's shape; x is not changed.
    """
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + eps) * weight + bias


def split_heads(x, n_head):
    """[n_seq, n_embd] to [n_head, n_seq, head_dim]: head h has features h * head_dim to (h + 1) * head_dim - 1."""
    n_seq, n_embd = x.shape
    return x.reshape(n_seq, n_head, n_embd // n_head).transpose(1, 0, 2)


def merge_heads(heads):
    """[n_head, n_seq, head_dim] back to [n_seq, n_embd]: undoes split_heads."""
    n_head, n_seq, head_dim = heads.shape
    return heads.transpose(1, 0, 2).reshape(n_seq, n_head * head_dim)


def softmax(scores):
    """exp(scores), each row along the last axis divided by its sum. Scores may be of any size, or -inf.

    scores: [..., n], at least one of each row finite. Returns an array of the same shape; scores is not changed.
    """
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def attention_weights(q, k):
    """The causal attention weights, [n_head, n_seq, n_seq]: what query i gives to each of the keys 0 to i, else 0.

    q, k: [n_head, n_seq, head_dim]. The last axis of the result adds up to 1. Scores of any size are allowed,
    of either sign: a million is nothing special.
    """
    n_seq, head_dim = q.shape[1:]
    scores = q @ k.transpose(0, 2, 1) / head_dim**0.5  # [n_head, n_seq, n_seq]: query by key
    return softmax(np.where(np.tri(n_seq, dtype=bool), scores, -np.inf))


def causal_self_attention(x, attn, n_head):
    """Multi-head causal self-attention: each row gathers from itself and the rows before it.

    x: [n_seq, n_embd]. attn.c_attn.weight: [n_embd, 3 * n_embd], for q, k and v in this order;
    attn.c_proj.weight: [n_embd, n_embd]; both have a bias. Returns [n_seq, n_embd].
    """
    qkv = linear(x, attn.c_attn)  # [n_seq, 3 * n_embd]
    q, k, v = (split_heads(part, n_head) for part in np.split(qkv, 3, axis=-1))
    heads = attention_weights(q, k) @ v  # [n_head, n_seq, head_dim]
    return linear(merge_heads(heads), attn.c_proj)


def feed_forward(x, mlp):
    """The MLP: linear, gelu, linear. mlp.c_fc widens x, [n_seq, n_embd], to 4 * n_embd; mlp.c_proj narrows it."""
    return linear(gelu(linear(x, mlp.c_fc)), mlp.c_proj)


def transformer_block(x, block, n_head):
    """One pre-norm GPT-2 block: attention of ln_1(x) is added to x, and then the MLP of ln_2(x) to this new x.

    x: [n_seq, n_embd]. block has ln_1 and ln_2 (weight, bias), attn, and mlp with c_fc and c_proj.
    Returns [n_seq, n_embd]; x is not changed.
    """
    x = x + causal_self_attention(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn, n_head)
    return x + feed_forward(layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp)


def forward(token_ids, weights):
    """The logits [n_seq, n_vocab]: row i scores the token that follows token i.

    token_ids: a list of n_seq ints. ValueError unless 1 <= n_seq <= weights.config.n_ctx; ValueError or IndexError
    for an id of n_vocab or more.
    weights: wte [n_vocab, n_embd], wpe [n_ctx, n_embd], blocks (in their order), ln_f, and config with n_head.
    """
    n_seq, config = len(token_ids), weights.config
    if not 1 <= n_seq <= config.n_ctx:
        raise ValueError(f"forward needs 1 to {config.n_ctx} token ids, got {n_seq}")
    x = weights.wte[np.asarray(token_ids)] + weights.wpe[:n_seq]
    for block in weights.blocks:
        x = transformer_block(x, block, config.n_head)
    return layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T


def generate_recompute(prompt_ids, n_new, weights):
    """The n_new greedy next ids, a list of n_new ints without the prompt; the whole sequence is run again for each.

    prompt_ids: a list of at least one id; it is not changed.
    ValueError when the prompt is empty, or when more than n_ctx tokens would have to be fed at once.
    """
    token_ids = list(prompt_ids)
    for _ in range(n_new):
        token_ids.append(int(forward(token_ids, weights)[-1].argmax()))
    return token_ids[len(prompt_ids) :]
