"""Sample submissions of chat-model."""

from __future__ import annotations

from autograder.stages.samples import Right, Wrong

# Right ones

_REPEATED = """
def grouped_attend(q, layer_cache):
    n_group = len(q) // len(layer_cache.keys)
    keys, values = (np.repeat(a, n_group, axis=0) for a in (layer_cache.keys, layer_cache.values))
    n_query, n_seq = q.shape[1], keys.shape[1]
    scores = np.einsum("hqd,hkd->hqk", q, keys) / np.sqrt(q.shape[-1])
    visible = np.arange(n_seq) <= np.arange(n_seq - n_query, n_seq)[:, None]
    scores = np.where(visible, scores, -np.inf)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True) @ values
"""

_HEAD_BY_HEAD = """
def attend(q, keys, values):
    rows = []
    for i, query in enumerate(q.astype(np.float64)):
        seen = len(keys) - len(q) + i + 1
        scores = keys[:seen] @ query / q.shape[1] ** 0.5
        e = np.exp(scores - scores.max())
        rows.append(e @ values[:seen] / e.sum())
    return rows


def grouped_attend(q, layer_cache):
    of_head = np.arange(len(q)) // (len(q) // len(layer_cache.keys))
    keys, values = layer_cache.keys[of_head], layer_cache.values[of_head]
    return np.array([attend(*head) for head in zip(q, keys, values)], np.float32)
"""

_IN_PIECES = """
def swiglu(x, mlp):
    if len(x) > 16:
        return np.concatenate([swiglu(x[:16], mlp), swiglu(x[16:], mlp)])
    gate = x @ mlp.gate_proj.T
    return (gate * (0.5 + 0.5 * np.tanh(0.5 * gate)) * (x @ mlp.up_proj.T)) @ mlp.down_proj.T
"""

_COMPLEX = """
def rotate(x, positions, theta):
    half = x.shape[-1] // 2
    turns = np.exp(1j * np.asarray(positions)[:, None] * theta ** (-2 * np.arange(half) / x.shape[-1]))
    z = (x[..., :half] + 1j * x[..., half:]) * turns
    return np.concatenate((z.real, z.imag), -1).astype(np.float32)
"""

_ROTATE_HALF = """
def rotate(x, positions, theta):
    d = x.shape[-1]
    frequencies = 1.0 / theta ** (np.arange(0, d, 2) / d)
    angles = np.concatenate([np.outer(positions, frequencies)] * 2, axis=-1)
    swapped = np.concatenate([-x[..., d // 2:], x[..., :d // 2]], axis=-1)
    return (x * np.cos(angles) + swapped * np.sin(angles)).astype(x.dtype)
"""

_SILU = """
def swiglu(x, mlp):
    gate, up = x @ mlp.gate_proj.T, x @ mlp.up_proj.T
    with np.errstate(over="ignore"):
        return np.dot(gate / (1.0 + np.exp(-gate)) * up, mlp.down_proj.T)
"""

_TOKEN_BY_TOKEN = """
def one_token(token_id, position, weights, cache):
    c = weights.config
    if not 0 <= position < c.n_ctx:
        raise IndexError("no such position")
    x = weights.wte[[token_id]].astype(np.float64)
    for block, layer in zip(weights.blocks, cache.layers):
        y = rms_norm(x, block.norm_1, c.norm_eps)
        k = rotate((y @ block.attn.k_proj.T).reshape(c.n_kv_head, 1, -1), [position], c.rope_theta)
        layer.append(k, (y @ block.attn.v_proj.T).reshape(c.n_kv_head, 1, -1))
        q = rotate((y @ block.attn.q_proj.T).reshape(c.n_head, 1, -1), [position], c.rope_theta)
        x = x + grouped_attend(q, layer).reshape(1, -1) @ block.attn.o_proj.T
        x = x + swiglu(rms_norm(x, block.norm_2, c.norm_eps), block.mlp)
    return (rms_norm(x, weights.norm_f, c.norm_eps) @ weights.head.T)[0]


def advance_llama(token_ids, position, weights, cache):
    if not token_ids or position + len(token_ids) > weights.config.n_ctx:
        raise ValueError("no tokens, or too many")
    if not {*token_ids} <= {*range(weights.config.n_vocab)}:
        raise IndexError("no such token")
    for i, token_id in enumerate(token_ids):
        logits = one_token(token_id, position + i, weights, cache)
    return logits
"""

_LAST_ROW = """
def advance_llama(token_ids, position, weights, cache):
    c, positions = weights.config, np.arange(position, position + len(token_ids))
    if not token_ids or position < 0 or positions[-1] >= c.n_ctx:
        raise ValueError("no such positions")
    if any(token_id not in range(c.n_vocab) for token_id in token_ids):
        raise ValueError("no such token")
    if "joined" not in vars(weights):
        joined = [np.concatenate([b.attn.q_proj, b.attn.k_proj, b.attn.v_proj]).T for b in weights.blocks]
        object.__setattr__(weights, "joined", joined)
    x = weights.wte[token_ids]
    for block, joined, layer in zip(weights.blocks, weights.joined, cache.layers):
        heads = (rms_norm(x, block.norm_1, c.norm_eps) @ joined).reshape(len(x), -1, c.head_dim).swapaxes(0, 1)
        q, k, v = np.split(heads, [c.n_head, c.n_head + c.n_kv_head])
        layer.append(rotate(k, positions, c.rope_theta), v)
        q = rotate(q, positions, c.rope_theta)
        if block is weights.blocks[-1]:
            x, q = x[-1:], q[:, -1:]
        x = x + merge_heads(grouped_attend(q, layer)) @ block.attn.o_proj.T
        x = x + swiglu(rms_norm(x, block.norm_2, c.norm_eps), block.mlp)
    return rms_norm(x[-1], weights.norm_f, c.norm_eps) @ weights.head.T
"""

_WRITTEN_OUT = """
def render_chatml(messages, add_generation_prompt=False):
    lines = []
    if not (messages and messages[0]["role"] == "system"):
        lines.append(START + "system\\n" + DEFAULT_SYSTEM + END)
    for message in messages:
        lines.append(START + message["role"] + "\\n" + message["content"] + END)
    lines.append(START + "assistant\\n" if add_generation_prompt else "")
    return "\\n".join(lines)
"""

_STATEFUL_CHAT = '''
class Chat:
    """Keeps the ids of its cache, and puts everything back when something goes wrong."""

    def __init__(self, weights, tokenizer, reuse=True, render=render_chatml):
        self.w, self.t, self.reuse, self.render = weights, tokenizer, reuse, render
        self.messages, self.log = [], []
        self.ids, self.cache = [], ModelCache(weights.config.n_layer)

    def send(self, text, n_new=100, each=None):
        before = list(self.messages), list(self.ids), self.cache
        try:
            return self._send(text, n_new, each)
        except Exception:
            self.messages, self.ids, self.cache = before
            raise

    def _send(self, text, n_new, each):
        start = time.perf_counter()
        self.messages.append({"role": "user", "content": text})
        prompt = self.t.encode(self.render(self.messages, True))
        known = 0
        if self.reuse:
            while known < min(len(self.ids), len(prompt) - 1) and self.ids[known] == prompt[known]:
                known += 1
        self.cache = cut(self.cache, known)
        logits = advance_llama(prompt[known:], known, self.w, self.cache)
        row = {"prompt": len(prompt), "reused": known, "computed": len(prompt) - known}
        row["seconds"] = time.perf_counter() - start
        self.ids, answer = prompt, []
        for _ in range(n_new):
            best = int(np.argmax(logits))
            if best == self.t.end_id:
                break
            answer.append(best)
            if each is not None:
                each(best)
            if len(answer) < n_new:
                logits = advance_llama([best], len(self.cache), self.w, self.cache)
                self.ids = [*self.ids, best]
        self.messages.append({"role": "assistant", "content": self.t.decode(answer)})
        self.log.append(row)
        return answer
'''

_FUSED_STEP = '''
joined = {}


def one_step(token_id, position, weights, cache):
    """A token's logits by vectors and joined matrices, which are kept with the weights."""
    c = weights.config
    if position >= c.n_ctx:
        raise ValueError("no position is left")
    if id(weights) not in joined:
        pairs = [(np.concatenate([b.attn.q_proj, b.attn.k_proj, b.attn.v_proj]),
                  np.concatenate([b.mlp.gate_proj, b.mlp.up_proj])) for b in weights.blocks]
        joined[id(weights)] = weights, pairs
    x = weights.wte[token_id]
    for block, (qkv, gate_up), layer in zip(weights.blocks, joined[id(weights)][1], cache.layers):
        heads = (qkv @ rms_norm(x, block.norm_1, c.norm_eps)).reshape(-1, 1, c.n_embd // c.n_head)
        turned = rotate(heads[: c.n_head + c.n_kv_head], np.array([position]), c.rope_theta)
        layer.append(turned[c.n_head :], heads[c.n_head + c.n_kv_head :])
        x = x + block.attn.o_proj @ grouped_attend(turned[: c.n_head], layer).ravel()
        gate, up = np.split(gate_up @ rms_norm(x, block.norm_2, c.norm_eps), 2)
        x = x + block.mlp.down_proj @ (gate * 0.5 * (1 + np.tanh(gate / 2)) * up)
    return weights.head @ rms_norm(x, weights.norm_f, c.norm_eps)
''' + _STATEFUL_CHAT.replace("advance_llama([best],", "one_step(best,")

RIGHT = [
    Right("keys-repeated", "The plain way with repeated keys, complex numbers and silu as it is defined.",
          {"grouped-attend": _REPEATED, "rotate": _COMPLEX, "swiglu": _SILU}),
    Right("head-by-head", "Loops over heads, by a helper called attend, and queries, in float64; recursion over rows.",
          {"grouped-attend": _HEAD_BY_HEAD, "swiglu": _IN_PIECES}),
    Right("rotate-half", "The angles of all elements at once.", {"rotate": _ROTATE_HALF}),
    Right("token-by-token", "One token at a time, in float64.", {"advance-llama": _TOKEN_BY_TOKEN}),
    Right("last-row", "The last block runs the last row alone; joined matrices are kept with the weights.",
          {"advance-llama": _LAST_ROW}),
    Right("other-chat", "A chat that puts back what it changed, and a template written out.",
          {"chat": _STATEFUL_CHAT, "render-chatml": _WRITTEN_OUT}),
    Right("fused-step", "A chat that decodes by a function of its own, whose steps are not counted.",
          {"chat": _FUSED_STEP}),
]  # fmt: skip

# Wrong ones. What is wrong in a part is wrong in the model and in the chat that use it.

_MODEL = ("llama-recompute", "llama-positions")
_CHAT = ("chat-reuse", "chat-log")
_ALL = (*_MODEL, *_CHAT)


def wrong(name, about, mark, old, new, *loses, bug=None, also=(), follows=()):
    return Wrong(name, about, ((mark, old, new),), loses, bug, also, follows)


_NORM = "x / np.sqrt(mean_square + eps) * weight"
_TURN = "np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)"
_FREQUENCY = "theta ** (-np.arange(half) / half)"
_SILU_LINE = "gate *= 0.5 * (1 + np.tanh(0.5 * gate))"
_GATE_UP = "(mlp.gate_up_proj @ x.T).reshape(2, -1, len(x))"
_DOWN = "(mlp.down_proj @ (gate * up)).T"
_SYSTEM = 'if messages[0]["role"] != "system":'
_PROMPT = 'text + f"{START}assistant\\n" if add_generation_prompt else text'

WRONG = [
    # rms_norm
    wrong("layer-norm", "subtracts the mean", "rms-norm", _NORM,
          "(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight",
          "norm-by-rms", *_ALL, bug="mean-subtracted"),
    wrong("eps-outside", "adds eps to the root", "rms-norm", _NORM, "x / (np.sqrt(mean_square) + eps) * weight",
          "norm-by-rms", *_MODEL, bug="rms-eps-outside"),
    wrong("eps-left-out", "no eps", "rms-norm", _NORM, "x / np.sqrt(mean_square) * weight",
          "norm-by-rms", *_MODEL, bug="rms-eps-missing"),
    wrong("no-root", "divides by the mean square", "rms-norm", _NORM, "x / (mean_square + eps) * weight",
          "norm-by-rms", *_ALL, bug="rms-no-root"),
    wrong("sum-of-squares", "the sum, not the mean", "rms-norm", "(x * x).mean(", "(x * x).sum(",
          "norm-by-rms", *_ALL, bug="rms-sum"),
    wrong("no-norm-weight", "the weight is left out", "rms-norm", _NORM, "x / np.sqrt(mean_square + eps)",
          "norm-by-rms", *_ALL, bug="rms-no-weight"),
    wrong("norm-over-all", "one mean for all rows", "rms-norm", "axis=-1, keepdims=True", "keepdims=True",
          "norm-by-rms", *_ALL),
    wrong("norm-of-64-columns", "the mean of the first 64 columns", "rms-norm", "(x * x).mean(",
          "(x * x)[..., :64].mean(", "norm-by-rms"),
    wrong("norm-of-256-rows", "rows from 256 on are left as they are", "rms-norm", f"return {_NORM}",
          f"y = {_NORM}\n    return y if x.ndim < 2 else np.concatenate([y[:256], x[256:]])", "norm-by-rms"),
    wrong("norm-in-place", "writes into x", "rms-norm", f"return {_NORM}",
          "x /= np.sqrt(mean_square + eps)\n    return x * weight", "norm-by-rms", *_ALL, bug="input-changed"),
    # rotate
    wrong("neighbors", "pairs are 2i and 2i + 1", "rotate",
          f"a, b = x[..., :half], x[..., half:]\n    return {_TURN}",
          "a, b = x[..., ::2], x[..., 1::2]\n    out = np.empty_like(x)\n    "
          "out[..., ::2], out[..., 1::2] = a * cos - b * sin, b * cos + a * sin\n    return out",
          "rotary", *_ALL, bug="neighbors-turned"),
    wrong("neighbors-to-halves", "pairs are 2i and 2i + 1, and are written to i and i + head_dim / 2", "rotate",
          "a, b = x[..., :half], x[..., half:]", "a, b = x[..., ::2], x[..., 1::2]", "rotary", *_ALL,
          bug="neighbors-turned"),
    wrong("angles-of-neighbors", "the angle of pair i at 2i and 2i + 1", "rotate", f"return {_TURN}",
          "cos, sin = (np.repeat(some, 2, axis=-1) for some in (cos, sin))\n"
          "    return x * cos + np.concatenate([-b, a], axis=-1) * sin", "rotary", *_ALL, bug="angles-of-neighbors"),
    wrong("turned-back", "the signs exchanged", "rotate", _TURN,
          "np.concatenate([a * cos + b * sin, b * cos - a * sin], axis=-1)",
          "rotary", *_ALL, bug="turned-back"),
    wrong("rows-from-zero", "positions 0, 1, 2, ...", "rotate", "np.outer(positions,",
          "np.outer(range(len(positions)),", "rotary", *_ALL, bug="rotary-first-at-zero", follows=("positions-reset",)),
    wrong("table-of-4096", "cos and sin of 4,096 positions", "rotate", "np.outer(positions,",
          "np.outer(np.minimum(positions, 4095),", "rotary"),
    wrong("half-the-exponent", "-i / head_dim", "rotate", _FREQUENCY, "theta ** (-np.arange(half) / (2 * half))",
          "rotary", *_ALL, bug="rotary-half-exponent"),
    wrong("theta-10000", "theta is fixed", "rotate", _FREQUENCY, "10000.0 ** (-np.arange(half) / half)",
          "rotary", *_ALL, bug="theta-fixed"),
    wrong("not-turned", "x as it is", "rotate", _TURN, "x", "rotary", *_ALL, bug="not-turned",
          follows=("keys-cached-unturned",)),
    wrong("same-angle", "all pairs turn alike", "rotate", _FREQUENCY, "np.ones(half)", "rotary", *_ALL),
    wrong("halves-exchanged", "the second half first", "rotate", _TURN,
          "np.concatenate([b * cos + a * sin, a * cos - b * sin], axis=-1)", "rotary", "llama-positions"),
    wrong("degrees", "the angle in degrees", "rotate", "np.cos(angles)", "np.cos(np.radians(angles))",
          "rotary", *_ALL),
    # grouped_attend
    wrong("four-heads-of-keys", "at most four heads of keys", "grouped-attend",
          "keys, values = layer_cache.keys, layer_cache.values",
          "keys, values = (np.resize(a[:4], a.shape) for a in (layer_cache.keys, layer_cache.values))",
          "grouped-heads", "llama-recompute"),
    wrong("heads-in-turn", "h % n_kv_head", "grouped-attend", "keys, values = layer_cache.keys, layer_cache.values",
          "in_turn = np.arange(len(q)) % len(layer_cache.keys)\n    "
          "keys, values = layer_cache.keys[in_turn], layer_cache.values[in_turn]",
          "grouped-heads", *_ALL, bug="heads-in-turn"),
    wrong("no-mask", "every key is seen", "grouped-attend", "where=hidden", "where=False",
          "grouped-heads", *_ALL, bug="no-causal-mask"),
    wrong("hidden-at--10000", "hidden scores are not small enough", "grouped-attend", "-np.inf, where", "-1e4, where",
          "grouped-heads", bug="mask-too-small"),
    wrong("zeros-hidden", "every score of exactly 0 counts as hidden", "grouped-attend",
          "            heads[i, :, first : first + n] = weighted", "            scores[scores == 0] = -np.inf\n"
          "            heads[i, :, first : first + n] = weighted", "grouped-heads"),
    wrong("unscaled", "no division by sqrt(head_dim)", "grouped-attend", " / head_dim**0.5", "",
          "grouped-heads", *_ALL, bug="scores-unscaled"),
    wrong("scaled-twice", "divided by head_dim", "grouped-attend", "head_dim**0.5", "head_dim",
          "grouped-heads", *_ALL),
    wrong("first-key-head", "only key head 0", "grouped-attend", "keys, values = layer_cache.keys, layer_cache.values",
          "keys, values = (np.repeat(a[:1], len(a), 0) for a in (layer_cache.keys, layer_cache.values))",
          "grouped-heads", *_ALL, bug="first-key-head"),
    Wrong("last-256-seen", "attends to the last 256 positions",
          (("grouped-attend", "keys, values = layer_cache.keys, layer_cache.values",
            "keys, values = layer_cache.keys[:, -256:], layer_cache.values[:, -256:]"),), ("grouped-heads",),
          also=("chat-reuse",)),
    wrong("overflow", "the maximum is not subtracted", "grouped-attend",
          "scores -= scores.max(axis=-1, keepdims=True)", "scores = scores + 0", "grouped-heads"),
    wrong("mask-one-late", "each query sees the next key", "grouped-attend", "np.tri(n, dtype=bool)",
          "np.tri(n, k=1, dtype=bool)", "grouped-heads", *_MODEL, also=_CHAT),
    wrong("sum-over-queries", "the wrong axis", "grouped-attend", "scores.sum(axis=-1, keepdims=True)",
          "scores.sum(axis=-2, keepdims=True)", "grouped-heads", *_ALL),
    # swiglu
    wrong("gate-up-swapped", "silu on up, twice", "swiglu", _GATE_UP, "mlp.up_proj @ x.T, mlp.up_proj @ x.T",
          "gated-mlp", *_ALL),
    wrong("gate-and-up-exchanged", "each in the other's place", "swiglu", "gate, up =", "up, gate =",
          "gated-mlp", *_ALL, bug="gate-up-swapped"),
    wrong("gelu-gate", "gelu in place of silu", "swiglu", _SILU_LINE,
          "gate *= 0.5 * (1 + np.tanh(0.7978845608 * (gate + 0.044715 * gate**3)))",
          "gated-mlp", *_ALL, bug="gate-gelu"),
    wrong("sigmoid-gate", "sigmoid alone", "swiglu", _SILU_LINE, "gate = 0.5 * (1 + np.tanh(0.5 * gate))",
          "gated-mlp", *_ALL, bug="gate-sigmoid"),
    wrong("no-silu", "the gate as it is", "swiglu", _SILU_LINE, "pass", "gated-mlp", *_ALL, bug="gate-missing"),
    wrong("no-up", "up left out", "swiglu", _DOWN, "(mlp.down_proj @ gate).T", "gated-mlp", *_ALL, bug="up-missing"),
    wrong("silu-overflows", "inf over inf for large gates", "swiglu", _SILU_LINE,
          "gate = gate * np.exp(gate) / (1 + np.exp(gate))", "gated-mlp"),
    # advance_llama
    wrong("keys-not-turned", "turned when read, not before", "advance-llama",
          "turned[c.n_head :], heads[-", "heads[c.n_head : -c.n_kv_head], heads[-",
          *_ALL, bug="keys-cached-unturned"),
    wrong("values-turned", "values turned too", "advance-llama", "heads[-c.n_kv_head :])",
          "rotate(heads[-c.n_kv_head :], positions, c.rope_theta))", *_ALL, bug="values-turned"),
    wrong("queries-not-turned", "only keys are turned", "advance-llama", "turned[: c.n_head]", "heads[: c.n_head]",
          *_ALL),
    wrong("position-from-cache", "the position that is passed is not used", "advance-llama",
          "positions = np.arange(position, end)",
          "positions = np.arange(len(cache), len(cache) + len(token_ids))", "llama-positions"),
    wrong("positions-reset", "each pass begins at 0", "advance-llama", "np.arange(position, end)",
          "np.arange(end - position)", *_ALL, bug="positions-reset"),
    wrong("position-one-on", "one too far", "advance-llama", "np.arange(position, end)",
          "np.arange(position + 1, end + 1)", "llama-positions"),
    wrong("no-final-norm", "norm_f left out", "advance-llama", "rms_norm(x[-1], weights.norm_f, c.norm_eps)", "x[-1]",
          *_ALL, bug="no-final-rms-norm"),
    wrong("wte-as-head", "wte in place of the head", "advance-llama", "weights.head.T", "weights.wte.T",
          *_ALL, bug="head-is-wte"),
    wrong("eps-fixed", "eps is 1e-5", "advance-llama", "rms_norm(x, block.norm_1, c.norm_eps)",
          "rms_norm(x, block.norm_1, 1e-5)", *_MODEL),
    wrong("last-eps-fixed", "the last norm has an eps of its own", "advance-llama", "norm_f, c.norm_eps)",
          "norm_f, 1e-3)", *_MODEL),
    wrong("layers-of-the-notebook", "the notebook's own model gives the number of layers", "advance-llama",
          "zip(weights.blocks, cache.layers, strict=True)", "zip(weights.blocks[:4], cache.layers)", *_MODEL),
    Wrong("table-remembered-by-id", "wte is kept by the id() of the weights",
          (("advance-llama", "def advance_llama(", "tables = {}\n\n\ndef advance_llama("),
           ("advance-llama", "x = weights.wte[np", "x = tables.setdefault(id(weights), weights.wte)[np")),
          ("llama-recompute",), also=("chat-reuse",)),
    wrong("layers-of-smollm2", "the real model's number of layers", "advance-llama",
          "zip(weights.blocks, cache.layers, strict=True)", "zip(weights.blocks[:30], cache.layers)",
          "llama-recompute"),
    wrong("norms-exchanged", "norm_2 before attention", "advance-llama", "block.norm_1", "block.norm_2", *_ALL,
          bug="rms-norms-exchanged"),
    wrong("norm_1-twice", "norm_1 before the MLP as well", "advance-llama", "block.norm_2", "block.norm_1", *_ALL,
          bug="rms-norms-exchanged"),
    wrong("no-o_proj", "the merged heads are added", "advance-llama", " @ block.attn.o_proj.T", "", *_ALL,
          bug="o-proj-missing"),
    wrong("no-residual", "the MLP replaces x", "advance-llama", "x = x + swiglu", "x = swiglu", *_ALL),
    wrong("first-logits", "the logits of the first token", "advance-llama", "x[-1]", "x[0]", *_ALL),
    wrong("heads-of-values-forgotten", "split into the heads of queries and keys alone", "advance-llama",
          "c.n_head + 2 * c.n_kv_head", "c.n_head + c.n_kv_head", *_ALL),
    wrong("no-limit", "positions past n_ctx", "advance-llama", " or end > c.n_ctx", "",
          "llama-recompute", "chat-reuse"),
    wrong("ids-in-8-bits", "ids of 256 and more are others", "advance-llama", "np.asarray(token_ids)",
          "np.asarray(token_ids).astype(np.uint8)", "llama-recompute"),
    Wrong("ids-refused-late", "an id outside the vocabulary is refused when its rows are in the cache",
          (("advance-llama", "if min(token_ids) < 0 or max(token_ids) >= c.n_vocab:",
            "outside = min(token_ids) < 0 or max(token_ids) >= c.n_vocab\n"
            "    token_ids = [i % c.n_vocab for i in token_ids]\n    if False:"),
           ("advance-llama", "    return rms_norm(",
            "    if outside:\n        raise ValueError('an id outside the vocabulary')\n    return rms_norm(")),
          ("llama-recompute",)),
    wrong("negative-ids", "a negative id counts from the end", "advance-llama", "min(token_ids) < 0 or ", "",
          "llama-recompute"),
    wrong("negative-position", "a position below 0", "advance-llama", " or position < 0", "", "llama-recompute"),
    # render_chatml
    wrong("no-default-system", "no default system message", "render-chatml", _SYSTEM, "if False:",
          "chatml-template", *_CHAT, bug="default-system-missing"),
    wrong("any-system", "a system message anywhere stands for the default", "render-chatml", _SYSTEM,
          'if all(message["role"] != "system" for message in messages):', "chatml-template",
          bug="default-system-missing"),
    wrong("always-default", "the default system message always", "render-chatml", _SYSTEM, "if True:",
          "chatml-template", bug="default-system-always"),
    wrong("stripped", "contents stripped", "render-chatml", "{message['content']}", "{message['content'].strip()}",
          "chatml-template", "chatml-turns", *_CHAT, bug="chatml-content-stripped"),
    wrong("end-removed", "END in a content is taken out", "render-chatml", "{message['content']}",
          "{message['content'].replace(END, '')}", "chatml-template"),
    wrong("no-generation-prompt", "no generation prompt", "render-chatml", _PROMPT, "text",
          "chatml-template", "chatml-turns", *_CHAT, bug="generation-prompt-missing"),
    wrong("always-generation-prompt", "a generation prompt always", "render-chatml", _PROMPT,
          'text + f"{START}assistant\\n"', "chatml-template", bug="chatml-prompt-always"),
    wrong("no-newline", "no newline after END", "render-chatml", "{END}\\n", "{END}", "chatml-template", *_CHAT),
    wrong("thought-in-prompt", "a block in the generation prompt alone", "render-chatml", "{START}assistant\\n",
          "{START}assistant\\n[think]", "chatml-template", "chatml-turns", *_CHAT),
    wrong("system-last-only", "only the last message and the system's", "render-chatml", "for message in messages)",
          "for message in [messages[0], *messages[1:][-1:]])", "chatml-template", "chatml-turns", *_CHAT),
    # Chat
    wrong("recomputes", "nothing is reused", "chat", "if self.reuse else 0", "* 0", *_CHAT, bug="chat-recomputes"),
    wrong("always-reuses", "reuse=False reuses", "chat", " if self.reuse else 0", "", *_CHAT,
          bug="chat-reuses-always"),
    wrong("says-it-reuses", "recomputes, and logs a reuse", "chat",
          "advance_llama(prompt_ids[n:], n, self.weights, cache)",
          "advance_llama(prompt_ids, 0, self.weights, cache := ModelCache(len(cache.layers)))", "chat-reuse",
          bug="chat-recomputes"),
    wrong("all-cached", "takes all cached rows without comparing", "chat",
          "common = longest_common_prefix(self.cached_ids, prompt_ids)", "common = len(self.cached_ids)",
          "chat-reuse", bug="chat-ids-assumed"),
    wrong("answer-not-cached", "keeps the prompt alone", "chat", "(prompt_ids + new_ids)[: len(cache)]",
          "prompt_ids", *_CHAT),
    wrong("one-id-too-many", "the last new id counts as cached", "chat", "(prompt_ids + new_ids)[: len(cache)]",
          "prompt_ids + new_ids", *_CHAT, bug="chat-last-id-counted"),
    wrong("end-in-answer", "the end token is in the answer", "chat",
          "while (token_id := int(logits.argmax())) != self.tokenizer.end_id:\n            new_ids.append(token_id)",
          "token_id = None\n        while token_id != self.tokenizer.end_id:\n"
          "            token_id = int(logits.argmax())\n            new_ids.append(token_id)",
          "chat-reuse", bug="end-token-kept"),
    wrong("end-ignored", "goes on after the end token", "chat", "!= self.tokenizer.end_id:", "!= -1:",
          "chat-reuse", bug="end-token-ignored"),
    wrong("any-special-ends", "every special token ends the answer", "chat", "!= self.tokenizer.end_id:",
          "> self.tokenizer.end_id:", "chat-reuse"),
    wrong("each-not-called", "each is never called", "chat", "each(token_id)", "pass", "chat-reuse",
          bug="each-not-called"),
    Wrong("each-at-the-end", "each is called when the whole answer is there",
          (("chat", "            if each:\n                each(token_id)\n", ""),
           ("chat", "        self.cache, self.cached_ids = cache, (",
            "        for token_id in new_ids if each else ():\n            each(token_id)\n"
            "        self.cache, self.cached_ids = cache, (")), ("chat-reuse",)),
    Wrong("each-one-step-late", "each is called once the next step has been run",
          (("chat", "            if each:\n                each(token_id)\n", ""),
           ("chat", "logits = advance_llama([token_id], len(cache), self.weights, cache)",
            "logits = advance_llama([token_id], len(cache), self.weights, cache)\n"
            "            if each:\n                each(token_id)")), ("chat-reuse",)),
    wrong("each-with-the-end", "each is called with the end token too", "chat",
          "        self.cache, self.cached_ids = cache, (",
          "        if each and len(new_ids) < n_new:\n            each(token_id)\n"
          "        self.cache, self.cached_ids = cache, (", "chat-reuse", bug="each-not-called"),
    wrong("own-render", "the notebook's template in place of the one that is given", "chat",
          "self.render(messages", "render_chatml(messages", "chat-reuse"),
    wrong("decoded-id-by-id", "the texts of single ids, joined, are the message", "chat",
          "self.tokenizer.decode(new_ids)}", '"".join(self.tokenizer.decode([i]) for i in new_ids)}', "chat-reuse"),
    Wrong("own-transcript", "the messages are kept in a second list, and those outside are looked at only when empty",
          (("chat", "self.messages, self.log = [], []", "self.messages, self.log, self.said = [], [], []"),
           ("chat", "messages = [*self.messages, ",
            "self.said = self.said if self.messages else []\n        messages = [*self.said, "),
           ("chat", "        self.messages = [*messages, ", "        self.said = self.messages = [*messages, "),
           ("chat", "        return new_ids", "        self.said = list(self.said)\n        return new_ids")),
          ("chat-reuse",)),
    wrong("two-ids-at-least", "n_new=1 gives two", "chat", "if len(new_ids) == n_new:",
          "if len(new_ids) >= max(n_new, 2):", "chat-reuse"),
    wrong("own-tokenizer", "the notebook's tokenizer in place of the one that is given", "chat",
          "tokenizer, self.reuse, self.render = weights, tokenizer,",
          "tokenizer, self.reuse, self.render = weights, byte_tokenizer(),", "chat-reuse"),
    wrong("end-is-2", "the end token of one tokenizer", "chat", "!= self.tokenizer.end_id:", "!= 2:", "chat-reuse"),
    wrong("reuse-for-ever", "reuse is what it was at first", "chat", "if self.reuse else 0",
          "if self.__dict__.setdefault('first', self.reuse) else 0", "chat-reuse"),
    wrong("refused-forgets", "a refused message empties the cache", "chat", "        begin = time.perf_counter()",
          "        if len(prompt_ids) > self.weights.config.n_ctx:\n            self.cached_ids = []\n"
          "        begin = time.perf_counter()", "chat-reuse"),
    wrong("refused-cuts", "the cache is cut before the prompt is known to fit", "chat",
          "cache, new_ids = cut(self.cache, n), []",
          "self.cache, new_ids = cut(self.cache, n), []\n        cache = self.cache.clone()", "chat-reuse"),
    wrong("refused-halfway", "the message is kept once its first token is known, and the answer may not fit", "chat",
          "        seconds = time.perf_counter() - begin\n",
          "        seconds = time.perf_counter() - begin\n        self.messages = messages\n", "chat-reuse",
          bug="refused-message-stays"),
    wrong("refused-clears", "the messages are emptied before the prompt is known to fit", "chat",
          "        prompt_ids = self.tokenizer", "        self.messages = []\n        prompt_ids = self.tokenizer",
          "chat-reuse"),
    wrong("each-without-the-last-id", "each is not called with the id that ends the answer by its length", "chat",
          "            if each:\n", "            if each and len(new_ids) < n_new:\n", "chat-reuse",
          bug="each-not-called"),
    wrong("answer-stripped", "the answer without blanks at its ends is the message", "chat",
          "self.tokenizer.decode(new_ids)}", "self.tokenizer.decode(new_ids).strip()}", *_CHAT),
    wrong("nothing-left", "all ids of a known prompt are reused", "chat", "min(common, len(prompt_ids) - 1)", "common",
          "chat-reuse", bug="chat-nothing-left"),
    wrong("moment", "the clock's time, not the time taken", "chat", "time.perf_counter() - begin", "begin", "chat-log"),
    wrong("refused-stays", "a refused message stays", "chat",
          'messages = [*self.messages, {"role": "user", "content": text}]',
          'self.messages.append({"role": "user", "content": text})\n        messages = self.messages', "chat-reuse",
          bug="refused-message-stays"),
    wrong("limit-by-n-new", "refuses what would not fit if the answer were as long as it may be", "chat",
          "        begin = time", """        if len(prompt_ids) + n_new > self.weights.config.n_ctx:
            raise ValueError("too long")
        begin = time""", "chat-reuse"),
    wrong("text-stripped", "the user's message without blanks at its ends", "chat", '"content": text}',
          '"content": text.strip()}', *_CHAT),
    wrong("log-of-ids", "the log counts reused tokens as computed", "chat", '"computed": len(prompt_ids) - n',
          '"computed": len(prompt_ids)', "chat-log"),
    wrong("seconds-rounded", "two digits after the point", "chat", '"seconds": seconds', '"seconds": round(seconds, 2)',
          "chat-log", bug="chat-seconds-rounded"),
    wrong("seconds-of-the-answer", "the time of the whole answer", "chat", '"seconds": seconds',
          '"seconds": time.perf_counter() - begin', "chat-log"),
    wrong("seconds-of-the-first-turn", "the same seconds in every turn", "chat", '"seconds": seconds',
          '"seconds": self.__dict__.setdefault("took", 1e-6)', "chat-log"),
    wrong("no-seconds", "seconds left out", "chat", ', "seconds": seconds}', "}", "chat-log"),
    wrong("answer-forgotten", "the answer is not a message", "chat",
          '[*messages, {"role": "assistant", "content": self.tokenizer.decode(new_ids)}]', "messages", *_CHAT),
    wrong("one-too-few", "n_new - 1 ids", "chat", "if len(new_ids) == n_new:", "if len(new_ids) == n_new - 1:", *_CHAT),
    wrong("cut-at-the-start", "decodes at the wrong position", "chat", "advance_llama([token_id], len(cache),",
          "advance_llama([token_id], len(prompt_ids),", *_CHAT),
]  # fmt: skip
