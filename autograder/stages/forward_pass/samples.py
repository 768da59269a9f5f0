"""Sample submissions of stage 1, the forward pass."""

from autograder.stages.samples import Right, Wrong

_HEAD_BY_HEAD = Right(
    "head-by-head",
    "A Python loop over the heads, each a slice of columns; the results are concatenated.",
    {
        "split-heads": "",
        "merge-heads": "",
        "attention-weights": "",
        "causal-self-attention": """
def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def causal_self_attention(x, attn, n_head):
    n_embd = x.shape[1]
    d = n_embd // n_head
    qkv = x @ attn.c_attn.weight + attn.c_attn.bias
    q, k, v = qkv[:, :n_embd], qkv[:, n_embd : 2 * n_embd], qkv[:, 2 * n_embd :]
    mask = np.triu(np.ones((len(x), len(x))), k=1).astype(bool)
    results = []
    for h in range(n_head):
        part = slice(h * d, (h + 1) * d)
        scores = q[:, part] @ k[:, part].T / np.sqrt(d)
        scores[mask] = -np.inf
        results.append(softmax(scores) @ v[:, part])
    return np.concatenate(results, axis=1) @ attn.c_proj.weight + attn.c_proj.bias
""",
        "generate-recompute": """
def generate_recompute(prompt_ids, n_new, weights):
    new_ids = []
    while len(new_ids) < n_new:
        logits = forward(prompt_ids + new_ids, weights)
        new_ids = new_ids + [np.argmax(logits[-1])]
    return new_ids
""",
    },
)

_FLOAT64 = Right(
    "float64-einsum",
    "Everything in float64, with einsum and np.var; returns arrays of np.int64.",
    {
        "gelu": """
def gelu(x):
    x = np.asarray(x, dtype=np.float64)
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return x / (1 + np.exp(-2 * inner))  # 0.5 * (1 + tanh(z)) is the sigmoid of 2z
""",
        "layer-norm": """
def layer_norm(x, weight, bias, eps=1e-5):
    x = np.asarray(x, dtype=np.float64)
    return weight * (x - np.mean(x, -1)[..., None]) / np.sqrt(np.var(x, -1)[..., None] + eps) + bias
""",
        "causal-self-attention": """
def causal_self_attention(x, attn, n_head):
    x = x.astype(np.float64)
    T, C = x.shape
    q, k, v = np.moveaxis((x @ attn.c_attn.weight + attn.c_attn.bias).reshape(T, 3, n_head, C // n_head), 1, 0)
    att = np.einsum("qhd,khd->hqk", q, k) * (C // n_head) ** -0.5
    att = np.where(np.arange(T)[:, None] >= np.arange(T), att, -1e10)
    att = np.exp(att - att.max(-1)[:, :, None])
    att /= att.sum(-1)[:, :, None]
    return np.einsum("hqk,khd->qhd", att, v).reshape(T, C) @ attn.c_proj.weight + attn.c_proj.bias
""",
        "forward": """
def forward(token_ids, weights):
    T = len(token_ids)
    if T == 0:
        raise IndexError("no tokens")
    x = np.stack([weights.wte[t].astype(np.float64) + weights.wpe[p] for p, t in enumerate(token_ids)])
    for i in range(weights.config.n_layer):
        x = transformer_block(x, weights.blocks[i], weights.config.n_head)
    x = layer_norm(x, weights.ln_f.weight, weights.ln_f.bias)
    return np.einsum("te,ve->tv", x, weights.wte)
""",
        "generate-recompute": """
def generate_recompute(prompt_ids, n_new, weights):
    ids = np.array(prompt_ids)
    for _ in range(n_new):
        ids = np.append(ids, forward(ids.tolist(), weights)[-1].argmax())
    return ids[len(prompt_ids) :]
""",
    },
)

_OBJECTS = Right(
    "objects",
    "Classes, copies of the weights, progress on stdout and a warning; the block written out in place.",
    {
        "transformer-block": """
import warnings


class Linear:
    def __init__(self, layer):
        self.w, self.b = np.array(layer.weight), np.array(layer.bias)

    def __call__(self, x):
        return np.add(np.matmul(x, self.w), self.b)


class Norm(Linear):
    def __call__(self, x):
        return layer_norm(x, self.w, self.b)


class Block:
    def __init__(self, block, n_head):
        self.ln_1, self.ln_2 = Norm(block.ln_1), Norm(block.ln_2)
        self.up, self.down = Linear(block.mlp.c_fc), Linear(block.mlp.c_proj)
        self.attn, self.n_head = block.attn, n_head

    def __call__(self, x):
        residual = x.copy()
        residual += causal_self_attention(self.ln_1(residual), self.attn, self.n_head)
        residual += self.down(gelu(self.up(self.ln_2(residual))))
        return residual


def transformer_block(x, block, n_head):
    warnings.warn("building the block anew for each call is slow")
    return Block(block, n_head)(x)
""",
        "forward": """
def forward(token_ids, weights):
    n = len(token_ids)
    print("forward over", n, "tokens")
    if n < 1:
        raise ValueError("token_ids is empty")
    positions = list(range(n))
    x = weights.wte[token_ids] + weights.wpe[positions]  # IndexError past n_ctx
    blocks = [Block(b, weights.config.n_head) for b in weights.blocks]
    for block in blocks:
        x = block(x)
    return np.matmul(Norm(weights.ln_f)(x), np.transpose(weights.wte))
""",
        "generate-recompute": """
def generate_recompute(prompt_ids, n_new, weights):
    def rest(ids, n):
        if n == 0:
            return []
        best = forward(ids, weights)[-1].argmax()
        return [best, *rest([*ids, int(best)], n - 1)]

    return rest(prompt_ids, n_new)
""",
    },
)

_ONE_PASS_VARIANCE = Right(
    "one-pass-variance",
    "The mean of squares minus the square of the mean; softmax through logaddexp; a mask that is added.",
    {
        "layer-norm": """
def layer_norm(x, weight, bias, eps=1e-5):
    n = x.shape[-1]
    mean = x.sum(axis=-1, keepdims=True) / n
    variance = np.square(x).sum(axis=-1, keepdims=True) / n - mean**2
    return (x - mean) * (weight / np.sqrt(np.maximum(variance, 0) + eps)) + bias
""",
        "attention-weights": """
def attention_weights(q, k):
    n_seq = q.shape[1]
    mask = -1e10 * np.triu(np.ones((n_seq, n_seq), dtype=np.float32), 1)
    scores = np.matmul(q * q.shape[-1] ** -0.5, np.swapaxes(k, 1, 2)) + mask
    return np.exp(scores - np.logaddexp.reduce(scores, axis=-1)[..., np.newaxis])
""",
        "forward": """
def forward(token_ids, weights):
    if not token_ids or len(token_ids) > len(weights.wpe):
        raise ValueError("bad length")
    x = np.take(weights.wte, token_ids, axis=0) + np.resize(weights.wpe, (len(token_ids), weights.wpe.shape[1]))
    for block in weights.blocks:
        x = transformer_block(x, block, n_head=weights.config.n_head)
    return (weights.wte @ layer_norm(x, weights.ln_f.weight, weights.ln_f.bias).T).T
""",
    },
)

RIGHT = [_HEAD_BY_HEAD, _FLOAT64, _OBJECTS, _ONE_PASS_VARIANCE]

_POST_1 = "layer_norm(x + causal_self_attention(x, block.attn, n_head), block.ln_1.weight, block.ln_1.bias)"
_POST_2 = "return layer_norm(x + feed_forward(x, block.mlp), block.ln_2.weight, block.ln_2.bias)"
_MOMENTS = """centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)"""
_HIDDEN = "np.where(np.tri(n_seq, dtype=bool), scores, -np.inf)"
_OUTPUT = "linear(merge_heads(heads), attn.c_proj)"
_START = "    token_ids = list(prompt_ids)\n"
_GELU = "return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))"
_WEIGHTS = f"return softmax({_HIDDEN})"
_MLP = "feed_forward(layer_norm(x, block.ln_2.weight, block.ln_2.bias), block.mlp)"
_ATTENDED = "x + causal_self_attention(layer_norm(x, block.ln_1.weight, block.ln_1.bias), block.attn, n_head)"

# The checks a mistake loses: what calls a wrong function is wrong too.
_FORWARD = ("forward-recompute", "generate-greedy")
_BLOCK = ("block-pre-norm", "forward-recompute", "generate-greedy")
_ATTENTION = ("attention-heads", "attention-large-scores", "block-pre-norm", "forward-recompute", "generate-greedy")
_ATTENTION_AND_CAUSALITY = ("attention-causal", *_ATTENTION)
_NORM = ("layer-norm-rows", "block-pre-norm", "forward-recompute")

_ALL_OF_ATTENTION = (*_ATTENTION_AND_CAUSALITY, "forward-limits")


def wrong(name, about, mark, old, new, *loses, bug=None, also=()):
    return Wrong(name, about, ((mark, old, new),), loses, bug, also)


WRONG = [
    wrong("gelu-with-erf", "The exact GELU, which other models use.", "gelu", _GELU,
          "return 0.5 * x * (1 + np.vectorize(__import__('math').erf)(x / 2**0.5))", "gelu-tanh", bug="gelu-exact"),
    wrong("gelu-bracket", "The cube is of the whole parenthesis.", "gelu", "(x + 0.044715 * x * x * x)",
          "(x + 0.044715 * x) ** 3", "gelu-tanh", *_BLOCK, bug="gelu-bracket"),
    wrong("gelu-times-3", "x * 3 where x**3 belongs.", "gelu", "x * x * x", "x * 3", "gelu-tanh", *_BLOCK,
          bug="gelu-power"),
    wrong("relu", "ReLU, which has the same ends.", "gelu", _GELU, "return np.maximum(x, 0.0)", "gelu-tanh",
          "block-pre-norm", "forward-recompute", "generate-greedy"),
    wrong("gelu-rounded", "The factor of the cube without its last two digits.", "gelu", "0.044715", "0.0447",
          "gelu-tanh"),
    wrong("gelu-own-tanh", "tanh written with exp, which overflows.", "gelu", _GELU,
          """y = (2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + (np.exp(y) - np.exp(-y)) / (np.exp(y) + np.exp(-y)))""", "gelu-tanh"),
    Wrong("gelu-in-one-buffer", "What is returned is overwritten by the next call with an array of the same shape.",
          (("gelu", "def gelu(x):", "buffers = {}\n\n\ndef gelu(x):"),
          ("gelu", _GELU, """out = buffers.setdefault(x.shape, np.empty_like(x))
    out[:] = 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))
    return out""")), ("gelu-tanh",)),
    wrong("norm-with-n-minus-1", "The sample variance, ddof=1.", "layer-norm",
          "(centered * centered).mean(axis=-1, keepdims=True)", "x.var(axis=-1, keepdims=True, ddof=1)", *_NORM,
          bug="norm-sample-variance"),
    wrong("norm-eps-added-to-the-deviation", "eps outside the root.", "layer-norm", "np.sqrt(variance + eps)",
          "(np.sqrt(variance) + eps)", "layer-norm-rows", bug="norm-eps-outside"),
    wrong("norm-eps-1e-12", "The eps of another model as the default.", "layer-norm", "eps=1e-5", "eps=1e-12",
          "layer-norm-rows", bug="norm-eps"),
    wrong("norm-eps-1e-3", "The eps of another library as the default.", "layer-norm", "eps=1e-5", "eps=1e-3", *_NORM,
          bug="norm-eps"),
    wrong("norm-without-root", "Divided by the variance.", "layer-norm", "np.sqrt(variance + eps)", "(variance + eps)",
          *_NORM, "generate-greedy", bug="norm-without-root"),
    wrong("norm-not-centered", "x itself is divided.", "layer-norm", "return centered /", "return x /", *_NORM,
          "generate-greedy", bug="norm-not-centered"),
    wrong("norm-mean-of-features", "The mean along the first axis, the variance along the last.", "layer-norm",
          "x - x.mean(axis=-1, keepdims=True)", "x - x.mean(axis=0)", *_NORM, "generate-greedy", bug="norm-wrong-axis"),
    wrong("norm-eps-hard-coded", "The parameter eps is not used.", "layer-norm", "variance + eps", "variance + 1e-5",
          "layer-norm-rows"),
    wrong("norm-of-the-whole-array", "One mean and one variance for all rows together.", "layer-norm", _MOMENTS,
          """centered = x - x.mean()
    variance = (centered * centered).mean()""", *_NORM, "generate-greedy", bug="norm-wrong-axis"),
    wrong("norm-of-flat-rows", "Rows that hardly differ are taken for rows of equal values.", "layer-norm",
          "return centered / np.sqrt(variance + eps)",
          "return np.where(variance < 1e-6, 0, centered) / np.sqrt(variance + eps)", "layer-norm-rows"),
    wrong("norm-weight-forgotten", "Shifted by the bias and not scaled by the weight.", "layer-norm",
          " * weight + bias", " + bias", *_NORM, "generate-greedy"),
    wrong("norm-weight-and-bias-exchanged", "Scaled by the bias and shifted by the weight.", "layer-norm",
          "* weight + bias", "* bias + weight", *_NORM, "generate-greedy", bug="norm-parts-exchanged",
          also=("forward-limits",)),
    wrong("gelu-not-returned", "The return of gelu is forgotten.", "gelu", "    return 0.5", "    0.5", "gelu-tanh",
          *_BLOCK, "forward-limits"),
    wrong("eps-of-ln_2", "Another eps is passed for ln_2 alone.", "transformer-block", "block.ln_2.bias)",
          "block.ln_2.bias, eps=1e-6)", "block-pre-norm"),
    wrong("norm-axis-1", "axis=1, which is the last one only for two axes.", "layer-norm", _MOMENTS,
          """axis = min(1, x.ndim - 1)
    centered = x - x.mean(axis=axis, keepdims=True)
    variance = (centered * centered).mean(axis=axis, keepdims=True)""", "layer-norm-rows", bug="norm-wrong-axis"),
    wrong("norm-axis-by-its-size",
          "The axis that has as many numbers as the weight, which is the first one when there are as many rows.",
          "layer-norm", _MOMENTS, """axis = x.shape.index(len(weight))
    centered = x - x.mean(axis=axis, keepdims=True)
    variance = (centered * centered).mean(axis=axis, keepdims=True)""", "layer-norm-rows", "forward-recompute",
          bug="norm-wrong-axis"),
    wrong("norm-in-place", "Subtracts the mean from the caller's array.", "layer-norm",
          "centered = x - x.mean(axis=-1, keepdims=True)", """x -= x.mean(axis=-1, keepdims=True)
    centered = x""", "layer-norm-rows", "block-pre-norm", bug="input-changed"),
    wrong("heads-merged-by-reshape", "Heads merged without swapping the axes back.", "merge-heads",
          "heads.transpose(1, 0, 2).reshape", "heads.reshape", *_ATTENTION_AND_CAUSALITY, bug="heads-merged-wrong"),
    wrong("heads-merged-by-T", ".T reverses all three axes.", "merge-heads", "heads.transpose(1, 0, 2).reshape",
          "heads.T.reshape", *_ATTENTION_AND_CAUSALITY, bug="heads-merged-wrong"),
    wrong("heads-split-by-reshape", "Heads split by one reshape.", "split-heads",
          "x.reshape(n_seq, n_head, n_embd // n_head).transpose(1, 0, 2)",
          "x.reshape(n_head, n_seq, n_embd // n_head)", *_ATTENTION_AND_CAUSALITY, bug="heads-split-wrong"),
    wrong("heads-of-q-k-v", "c_attn's result cut into heads first, then each head into q, k, v.",
          "causal-self-attention", "(split_heads(part, n_head) for part in np.split(qkv, 3, axis=-1))",
          "np.split(split_heads(qkv, n_head), 3, axis=-1)", *_ATTENTION, bug="qkv-by-heads"),
    wrong("features-in-turn", "q, k and v of each feature in turn.", "causal-self-attention",
          "np.split(qkv, 3, axis=-1)", "(qkv[:, i::3] for i in range(3))", *_ATTENTION, bug="qkv-by-heads"),
    wrong("no-bias-of-c-proj", "c_proj without its bias.", "causal-self-attention", _OUTPUT,
          "merge_heads(heads) @ attn.c_proj.weight", *_ATTENTION, bug="c-proj-bias"),
    wrong("bias-of-c-proj-twice", "linear adds the bias, and so does the last line.", "causal-self-attention", _OUTPUT,
          f"{_OUTPUT} + attn.c_proj.bias", *_ATTENTION, bug="c-proj-bias"),
    wrong("final-norm-twice", "ln_f of ln_f.", "forward", "    return layer_norm(",
          "    x = layer_norm(x, weights.ln_f.weight, weights.ln_f.bias)\n    return layer_norm(",
          "forward-recompute", "generate-greedy", bug="final-norm-twice"),
    wrong("keys-and-values-swapped", "q, v, k.", "causal-self-attention", "q, k, v = (split", "q, v, k = (split",
          *_ATTENTION, bug="keys-values-swapped"),
    wrong("k-q-v", "k, q, v.", "causal-self-attention", "q, k, v = (split", "k, q, v = (split", *_ATTENTION,
          bug="qkv-order"),
    wrong("no-mask", "Every token sees all tokens.", "attention-weights", _WEIGHTS, "return softmax(scores)",
          *_ATTENTION_AND_CAUSALITY, bug="no-causal-mask"),
    wrong("mask-one-too-far", "Every token also sees the next one.", "attention-weights", "np.tri(n_seq, dtype=bool)",
          "np.tri(n_seq, k=1, dtype=bool)", *_ATTENTION_AND_CAUSALITY, bug="mask-sees-next"),
    wrong("mask-of-minus-10000", "Hidden scores are -10,000, which is above some visible ones.", "attention-weights",
          "scores, -np.inf)", "scores, -1e4)", "attention-large-scores", bug="mask-too-small"),
    wrong("mask-without-diagonal", "A token does not see itself, and the first one sees nothing.",
          "attention-weights", "np.tri(n_seq, dtype=bool)", "np.tri(n_seq, k=-1, dtype=bool)", *_ALL_OF_ATTENTION,
          bug="mask-strict"),
    wrong("mask-by-multiplying", "Scores multiplied by the mask, so hidden ones are 0.", "attention-weights", _HIDDEN,
          "scores * np.tri(n_seq)", *_ATTENTION_AND_CAUSALITY, bug="mask-zeros"),
    wrong("mask-by-zeros", "A mask that multiplies, after which every score of exactly 0 counts as hidden.",
          "attention-weights", _WEIGHTS, """scores = np.tril(scores)
    scores[scores == 0] = -np.inf
    return softmax(scores)""", "attention-heads"),
    wrong("mask-times-infinity", "-inf multiplied by the mask, and 0 * inf is NaN.", "attention-weights", _HIDDEN,
          "scores - (1 - np.tri(n_seq)) * np.inf", *_ALL_OF_ATTENTION, bug="mask-times-infinity"),
    wrong("mask-after-the-softmax", "Weights set to 0 after the softmax.", "attention-weights", _WEIGHTS,
          "return np.tri(n_seq) * softmax(scores)", *_ATTENTION_AND_CAUSALITY),
    Wrong("softmax-over-queries", "The softmax along the wrong axis.",
          (("softmax", "scores.max(axis=-1, keepdims=True)", "scores.max(axis=-2, keepdims=True)"),
          ("softmax", "exps.sum(axis=-1, keepdims=True)", "exps.sum(axis=-2, keepdims=True)")),
          _ATTENTION_AND_CAUSALITY, "softmax-over-queries"),
    wrong("softmax-without-keepdims", "The sums of the rows, without an axis that lines up.", "softmax",
          "exps.sum(axis=-1, keepdims=True)", "exps.sum(axis=-1)", *_ALL_OF_ATTENTION),
    wrong("no-biases", "linear without its bias.", "linear", " + layer.bias", "", *_ATTENTION,
          bug="biases-missing"),
    wrong("heads-not-mixed", "The merged heads are returned without c_proj.", "causal-self-attention", _OUTPUT,
          "merge_heads(heads)", *_ATTENTION, bug="c-proj-missing"),
    wrong("not-scaled", "Scores not divided by anything.", "attention-weights", " / head_dim**0.5", "", *_ATTENTION,
          bug="scores-unscaled"),
    wrong("scaled-by-n-head", "Scores divided by sqrt(n_head).", "attention-weights", "head_dim**0.5", "len(q) ** 0.5",
          *_ATTENTION, bug="scores-scaled-by-n-head"),
    wrong("log-softmax", "The logarithms of the weights.", "softmax", "return exps / exps.sum(axis=-1, keepdims=True)",
          "return np.log(exps / exps.sum(axis=-1, keepdims=True))", *_ALL_OF_ATTENTION, bug="log-softmax"),
    Wrong("tables-remembered-by-id", "wte and wpe are kept by the id() of the weights.",
          (("forward", "def forward(", "tables = {}\n\n\ndef forward("),
           ("forward", "x = weights.wte[np.asarray(token_ids)] + weights.wpe[:n_seq]",
            "wte, wpe = tables.setdefault(id(weights), (weights.wte, weights.wpe))\n"
            "    x = wte[np.asarray(token_ids)] + wpe[:n_seq]")),
          ("forward-recompute",)),
    wrong("one-row-of-wpe", "The first row of wpe for all tokens.", "forward", "weights.wpe[:n_seq]", "weights.wpe[0]",
          "forward-recompute", "generate-greedy", bug="one-position"),
    wrong("last-row-of-wpe", "The row of the last position for all tokens.", "forward", "weights.wpe[:n_seq]",
          "weights.wpe[n_seq - 1]", "forward-recompute", "generate-greedy", bug="one-position"),
    wrong("scaled-by-n-embd", "Scores divided by sqrt(n_embd).", "attention-weights", "head_dim**0.5",
          "(head_dim * len(q)) ** 0.5", *_ATTENTION, bug="scores-scaled-by-n-embd"),
    wrong("scaled-without-root", "Scores divided by head_dim.", "attention-weights", "head_dim**0.5", "head_dim",
          *_ATTENTION, bug="scores-no-root"),
    wrong("softmax-naive", "exp of the scores as they are.", "softmax", "scores - scores.max(axis=-1, keepdims=True)",
          "scores", "attention-large-scores", bug="softmax-overflow"),
    Wrong("softmax-naive-float64", "The same for float64 scores, which overflow at 709, not at 88.",
          (("attention-weights", "head_dim**0.5", "np.sqrt(head_dim)"),
          ("softmax", "scores - scores.max(axis=-1, keepdims=True)", "scores")), ("attention-large-scores",),
          "softmax-overflow"),
    wrong("softmax-one-maximum", "The largest score of all rows subtracted.", "softmax",
          "scores.max(axis=-1, keepdims=True)", "scores.max()", "attention-large-scores", bug="softmax-overflow"),
    wrong("softmax-maximum-before-mask", "The largest score looked for among the hidden ones too.",
          "attention-weights", _WEIGHTS, """scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores = np.where(np.tri(n_seq, dtype=bool), scores, 0)
    return scores / scores.sum(axis=-1, keepdims=True)""", "attention-large-scores",
          bug="softmax-overflow"),
    wrong("n-head-of-the-notebook", "The notebook's own model gives the number of heads.", "causal-self-attention",
          "    qkv = linear", """    n_head = weights.config.n_head
    qkv = linear""", *_ALL_OF_ATTENTION),
    Wrong("post-norm", "Layer norm after each addition.",
          (("transformer-block", _ATTENDED, _POST_1),
          ("transformer-block", f"return x + {_MLP}", _POST_2)),
          _BLOCK, "post-norm"),
    Wrong("residual-of-the-normalized", "x is overwritten by its layer norm before the addition.",
          (("transformer-block", _ATTENDED, """layer_norm(x, block.ln_1.weight, block.ln_1.bias)
    x = x + causal_self_attention(x, block.attn, n_head)"""),
          ("transformer-block", f"return x + {_MLP}", """x = layer_norm(x, block.ln_2.weight, block.ln_2.bias)
    return x + feed_forward(x, block.mlp)""")), _BLOCK, "normed-residual"),
    Wrong("no-residual", "Attention and the MLP both replace x.",
          (("transformer-block", "x = x + causal", "x = causal"),
          ("transformer-block", "return x + feed", "return feed")), _BLOCK, "no-residual"),
    wrong("ln-1-forgotten", "Attention gets x as it is.", "transformer-block",
          "layer_norm(x, block.ln_1.weight, block.ln_1.bias)", "x", *_BLOCK, bug="no-ln-1"),
    wrong("ln-2-forgotten", "The MLP gets x as it is.", "transformer-block",
          "layer_norm(x, block.ln_2.weight, block.ln_2.bias)", "x", *_BLOCK, bug="no-ln-2"),
    wrong("ln-1-for-both", "ln_1 copied where ln_2 belongs.", "transformer-block",
          "block.ln_2.weight, block.ln_2.bias", "block.ln_1.weight, block.ln_1.bias", *_BLOCK, bug="ln-1-twice"),
    Wrong("parallel", "The MLP reads the block's input.", (("transformer-block", "x = x + causal", """block_input = x
    x = x + causal"""), ("transformer-block", "layer_norm(x, block.ln_2", "layer_norm(block_input, block.ln_2")),
          _BLOCK, "mlp-of-old-x"),
    Wrong("block-with-another-eps",
          "layer_norm is right, and the block calls it with the eps of another model; told as a wrong default is.",
          (("transformer-block", "block.ln_1.weight, block.ln_1.bias", "block.ln_1.weight, block.ln_1.bias, 1e-6"),
          ("transformer-block", "block.ln_2.weight, block.ln_2.bias", "block.ln_2.weight, block.ln_2.bias, 1e-6")),
          ("block-pre-norm",)),
    wrong("gelu-after-c-proj", "gelu after the second projection.", "feed-forward",
          "linear(gelu(linear(x, mlp.c_fc)), mlp.c_proj)", "gelu(linear(linear(x, mlp.c_fc), mlp.c_proj))", *_BLOCK,
          bug="gelu-place"),
    wrong("final-norm-in-the-loop", "ln_f after every block.", "forward",
          """        x = transformer_block(x, block, config.n_head)
    return layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @""",
          """        x = layer_norm(
            transformer_block(x, block, config.n_head), weights.ln_f.weight, weights.ln_f.bias
        )
    return x @""", *_FORWARD),
    wrong("no-positions", "wpe is not added.", "forward", " + weights.wpe[:n_seq]", "", *_FORWARD,
          bug="positions-missing"),
    wrong("positions-from-1", "The first token gets position 1.", "forward", "weights.wpe[:n_seq]",
          "weights.wpe[np.arange(n_seq) + 1]", "forward-recompute", "forward-limits", "generate-greedy",
          bug="positions-shifted-+1"),
    wrong("no-final-norm", "ln_f left out.", "forward", "layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @",
          "x @", *_FORWARD, bug="no-final-layer-norm"),
    wrong("layers-in-the-order-of-text", "Blocks visited in the order of their names: 0, 1, 10, 11, 2.", "forward",
          """for block in weights.blocks:
""", """for name in sorted(str(i) for i in range(config.n_layer)):
        block = weights.blocks[int(name)]
""", *_FORWARD, bug="layers-sorted-as-text"),
    wrong("last-block-forgotten", "The loop ends one block early.", "forward", "in weights.blocks:",
          "in weights.blocks[: config.n_layer - 1]:", *_FORWARD),
    wrong("probabilities-returned", "A softmax at the end.", "forward",
          "return layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T",
          """logits = layer_norm(x, weights.ln_f.weight, weights.ln_f.bias) @ weights.wte.T
    exps = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)""", "forward-recompute", bug="probabilities-for-logits"),
    wrong("last-row-returned", "Only the logits after the last token.", "forward", "layer_norm(x, weights",
          "layer_norm(x[-1:], weights", "forward-recompute", "forward-limits"),
    wrong("empty-accepted", "Nothing in, nothing out.", "forward", "    if not 1 <=", """    if n_seq == 0:
        return np.zeros((0, config.n_vocab))
    if not 1 <=""", "forward-limits"),
    wrong("ids-clipped", "An id that is too large counts as the last one.", "forward",
          "weights.wte[np.asarray(token_ids)]", "weights.wte.take(token_ids, axis=0, mode='clip')", "forward-limits"),
    Wrong("logits-by-token", "The logits come with the tokens of the vocabulary first.",
          (("forward", "@ weights.wte.T", "@ weights.wte.T).T"),
          ("forward", "return layer_norm(x", "return (layer_norm(x")),
          ("forward-recompute", "forward-limits", "generate-greedy")),
    Wrong("answers-remembered", "Equal tokens get the logits that they got before, whatever the model.",
          (("forward", "def forward(token_ids, weights):", """seen = {}


def forward(token_ids, weights):"""),
          ("forward", "    n_seq, config = len(token_ids), weights.config",
           """    n_seq, config = len(token_ids), weights.config
    key = (*token_ids, config)
    if key in seen:
        return seen[key]"""), ("forward", "return layer_norm(x", "seen[key] = layer_norm(x"),
          ("forward", "@ weights.wte.T", """@ weights.wte.T
    return seen[key]""")), _FORWARD),
    wrong("tokens-cut-off", "Too long a sequence is cut to its last n_ctx tokens.", "forward",
          "if not 1 <= n_seq <= config.n_ctx:", """token_ids = token_ids[-config.n_ctx :]
    n_seq = len(token_ids)
    if n_seq < 1:""", "forward-limits", "generate-greedy", bug="limit-ignored"),
    wrong("limit-one-too-low", "Exactly n_ctx tokens are refused.", "forward", "<= n_seq <= config.n_ctx",
          "<= n_seq < config.n_ctx", "forward-recompute", "forward-limits", "generate-greedy"),
    wrong("limit-of-the-trained-model", "n_ctx is written as a number.", "forward", "<= n_seq <= config.n_ctx",
          "<= n_seq <= 512", "forward-recompute", "generate-greedy"),
    wrong("layers-of-the-trained-model", "n_layer is written as a number.", "forward", "in weights.blocks:",
          "in weights.blocks[:12]:", "forward-recompute"),
    Wrong("goes-on-with-the-last-text", "What was written last is taken up again, whatever the model.",
          (("generate-recompute", "def generate_recompute(", """last = []


def generate_recompute("""), ("generate-recompute", _START, """    n = len(prompt_ids)
    begin = last if last[:n] == prompt_ids else prompt_ids
    token_ids, n_known = list(begin), len(begin) - n
"""), ("generate-recompute", "range(n_new)", "range(max(0, n_new - n_known))"),
           ("generate-recompute", "return token_ids[len(prompt_ids) :]", """last[:] = token_ids
    return token_ids[len(prompt_ids) :][:n_new]""")), ("generate-greedy",)),
    wrong("empty-prompt-accepted", "No prompt, no ids.", "generate-recompute", "    token_ids = list(prompt_ids)",
          """    if not prompt_ids:
        return []
    token_ids = list(prompt_ids)""", "generate-greedy"),
    wrong("prompt-returned", "The prompt is returned with the new ids.", "generate-recompute",
          "token_ids[len(prompt_ids) :]", "token_ids", "generate-greedy", bug="prompt-returned"),
    wrong("prompt-appended-to", "The new ids are appended to the caller's list.", "generate-recompute", _START,
          """    n_prompt, token_ids = len(prompt_ids), prompt_ids
""", "generate-greedy", bug="input-changed"),
    wrong("argmax-of-all-rows", "argmax of the whole table of logits.", "generate-recompute", "[-1].argmax()",
          ".argmax()", "generate-greedy", bug="argmax-of-all-rows"),
    wrong("first-row-chosen", "argmax of the first row.", "generate-recompute", "[-1].argmax()", "[0].argmax()",
          "generate-greedy", bug="one-token-decides"),
    wrong("last-token-alone", "Only the newest token is fed.", "generate-recompute", "forward(token_ids, weights)",
          "forward(token_ids[-1:], weights)", "generate-greedy", bug="one-token-decides"),
    wrong("one-id-too-many", "The loop runs once too often.", "generate-recompute", "range(n_new)",
          "range(n_new + 1)", "generate-greedy"),
    wrong("sampled", "The next id is drawn at random.", "generate-recompute",
          "forward(token_ids, weights)[-1].argmax()",
          "(forward(token_ids, weights)[-1] + np.random.gumbel(size=weights.config.n_vocab)).argmax()",
          "generate-greedy"),
    wrong("stops-at-end-of-text", "The loop ends at the last id of the vocabulary, GPT-2's end-of-text token.",
          "generate-recompute", """weights)[-1].argmax()))
""", """weights)[-1].argmax()))
        if token_ids[-1] == weights.config.n_vocab - 1:
            break
""", "generate-greedy"),
    wrong("twenty-at-most", "n_new is never more than 20.", "generate-recompute", "range(n_new)",
          "range(min(n_new, 20))", "generate-greedy"),
    Wrong("ids-remembered", "The ids of a prompt are remembered, whatever the model.",
          (("generate-recompute", "def generate_recompute(", """seen = {}


def generate_recompute("""), ("generate-recompute", _START, """    key = weights.config, tuple(prompt_ids), n_new
    if key in seen:
        return seen[key]
    token_ids = list(prompt_ids)
"""), ("generate-recompute", "return token_ids[len(prompt_ids) :]", """seen[key] = token_ids[len(prompt_ids) :]
    return seen[key]""")), ("generate-greedy",)),
    Wrong("one-list-for-all-calls", "A default argument, which is made once, is emptied, filled and returned.",
          (("generate-recompute", "n_new, weights):", "n_new, weights, new_ids=[]):"),
           ("generate-recompute", "    return token_ids[len(prompt_ids) :]",
            "    new_ids[:] = token_ids[len(prompt_ids) :]\n    return new_ids")), ("generate-greedy",)),
    wrong("last-id-counted", "Refuses when prompt + n_new is more than n_ctx, though the last new id is never fed.",
          "generate-recompute", _START, """    token_ids = list(prompt_ids)
    if len(token_ids) + n_new > weights.config.n_ctx:
        raise ValueError('too long')
""", "generate-greedy"),
    wrong("window-slides", "Drops the oldest tokens when the context is full.", "generate-recompute",
          "forward(token_ids, weights)", "forward(token_ids[-weights.config.n_ctx :], weights)", "generate-greedy",
          bug="limit-ignored"),
]  # fmt: skip
