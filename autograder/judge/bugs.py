"""The bugs the grader can name.

Each has a key (for tables and tests), a label (for the teaching assistant), a sentence that tells the student the cause
and, for a bug in a certain part of the function, a phrase for where to look. Bugs of several stages are here; those of
one stage are in its own bugs.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    key: str
    label: str
    sentence: str
    look: str = ""


BUGS: dict[str, Bug] = {}


def define(key: str, label: str, sentence: str, look: str = "") -> Bug:
    """Register a bug; its key is unique."""
    if key in BUGS:
        raise ValueError(f"the bug {key!r} is defined twice")
    BUGS[key] = Bug(key, label, sentence, look)
    return BUGS[key]


NOT_WRITTEN = define("not-written", "not written yet", "The function still raises NotImplementedError: write its body.")
# Bugs that leave a check nothing to judge; the message of the failure says everything.
NOT_DEFINED = define("not-defined", "a function is not defined", "")
SYNTAX_ERROR = define("syntax-error", "a syntax error", "")
NOT_FINISHED = define("not-finished", "did not finish", "")
NOTHING_TO_JUDGE = (NOT_WRITTEN, NOT_DEFINED, SYNTAX_ERROR, NOT_FINISHED)

INPUT_CHANGED = define(
    "input-changed",
    "an input changed in place",
    "It looks as if the function wrote into what it was given: x = x - m makes a new array, while x -= m changes the "
    "caller's, and so do append, insert and sort on a list.",
)
POSITIONS_RESET = define(
    "positions-reset",
    "positions reset to 0",
    "It looks as if the new tokens were given positions 0, 1, 2, ... again. They continue after the cached ones: the "
    "first new token's position is the number of tokens before it.",
    look="the positions of the new tokens",
)


def positions_shifted(k: int) -> Bug:
    """The bug of positions that are off by k (k is not 0)."""
    key = f"positions-shifted-{k:+d}"
    sentence = (
        f"The positions look shifted by {k:+d}: every new token uses the row of wpe that is {abs(k)} too "
        f"{'late' if k > 0 else 'early'}."
    )
    return BUGS.setdefault(key, Bug(key, f"positions shifted by {k:+d}", sentence, POSITIONS_RESET.look))


POSITIONS_COUNTED_TWICE = define(
    "positions-counted-twice",
    "cached length counted twice in the positions",
    "The positions look as if the cached length had been added twice.",
    look="the positions of the new tokens",
)
POSITIONS_MISSING = define(
    "positions-missing",
    "no position embedding",
    "It looks as if no row of wpe was added to the token embeddings.",
    look="the positions of the new tokens",
)
ONE_POSITION = define(
    "one-position",
    "all tokens at one position",
    "It looks as if all tokens of a pass had been given one and the same row of wpe: each token has its own position.",
    look="the positions of the new tokens",
)
CACHED_ROWS_IGNORED = define(
    "cached-rows-ignored",
    "cached rows ignored",
    "The numbers are those of the new tokens alone: attention does not see the cached keys and values.",
    look="the keys and values that attention sees",
)
NO_CAUSAL_MASK = define(
    "no-causal-mask",
    "no causal mask",
    "It looks as if every token also attends to the tokens after it: mask them.",
    look="the causal mask",
)
MASK_SEES_NEXT = define(
    "mask-sees-next",
    "a token sees the one after it",
    "It looks as if each token also saw the one just after it: the mask ends one position too late.",
    look="the causal mask",
)
MASK_WITHOUT_OFFSET = define(
    "mask-without-offset",
    "causal mask without the offset",
    "The causal mask looks as if it started at cached position 0: query i of n_query stands at position "
    "n_seq - n_query + i and sees every key up to there.",
    look="the causal mask",
)
MASK_TIMES_INFINITY = define(
    "mask-times-infinity",
    "mask multiplied by infinity",
    "Every value is NaN, as when -np.inf is multiplied by a mask of zeros and ones: 0 * inf is NaN. "
    "np.where(mask, scores, -np.inf) chooses without multiplying.",
    look="the causal mask",
)
KEYS_VALUES_SWAPPED = define(
    "keys-values-swapped",
    "K and V swapped",
    "It looks as if keys and values were swapped.",
    look="the order of queries, keys and values",
)
QKV_ORDER = define(
    "qkv-order",
    "Q, K, V exchanged",
    "It looks as if queries, keys and values were exchanged: c_attn's result holds Q, then K, then V, and a row of "
    "scores is one query with all keys.",
    look="the order of queries, keys and values",
)
QKV_BY_HEADS = define(
    "qkv-by-heads",
    "Q, K, V cut out of each head",
    "It looks as if c_attn's result were cut into heads or features first, and each of them into q, k and v: it holds "
    "all queries, then all keys, then all values, so cut it in three first.",
    look="the order of queries, keys and values",
)
HEADS_MERGED_WRONG = define(
    "heads-merged-wrong",
    "heads merged along the wrong axes",
    "It looks as if the heads were merged without swapping the first two axes back: bring [n_head, n_seq, head_dim] to "
    "[n_seq, n_head, head_dim] before the reshape. .T reverses all three axes; transpose(1, 0, 2) swaps the two.",
    look="the shapes and axes of the heads",
)
HEADS_SPLIT_WRONG = define(
    "heads-split-wrong",
    "heads split without the transpose",
    "It looks as if the heads were split by one reshape to [n_head, n_seq, head_dim]: reshape to "
    "[n_seq, n_head, head_dim] first, then swap the axes.",
    look="the shapes and axes of the heads",
)
C_PROJ_MISSING = define(
    "c-proj-missing",
    "no c_proj after attention",
    "It looks as if the merged heads were returned as they are: c_proj, a weight and a bias, comes after them.",
    look="what becomes of the merged heads",
)
C_PROJ_BIAS = define(
    "c-proj-bias",
    "c_proj's bias left out or doubled",
    "It looks as if the bias of attention's c_proj had been left out, or added twice: it is added once.",
    look="what becomes of the merged heads",
)
BIASES_MISSING = define(
    "biases-missing",
    "biases left out",
    "It looks as if only the weights of the linear layers were used: each adds its bias too.",
    look="the linear layers",
)
SCORES_UNSCALED = define(
    "scores-unscaled",
    "scores not scaled",
    "It looks as if the scores were not divided by sqrt(head_dim).",
    look="the scores before the softmax",
)
SCORES_SCALED_BY_EMBD = define(
    "scores-scaled-by-n-embd",
    "scores divided by sqrt(n_embd)",
    "It looks as if the scores were divided by sqrt(n_embd); each head has head_dim numbers: divide by sqrt(head_dim).",
    look="the scores before the softmax",
)
SCORES_SCALED_BY_HEADS = define(
    "scores-scaled-by-n-head",
    "scores divided by sqrt(n_head)",
    "It looks as if the scores were divided by sqrt(n_head), the number of heads: divide by sqrt(head_dim).",
    look="the scores before the softmax",
)
NORMED_RESIDUAL = define(
    "normed-residual",
    "added to the normalized x",
    "It looks as if attention, or the MLP too, were added to the normalized x: keep the x from before the layer norm, "
    "and add to that.",
    look="what each half of the block is added to",
)
NO_RESIDUAL = define(
    "no-residual",
    "no residual connection",
    "It looks as if attention or the MLP, or both, replaced x: the result of each is added to x.",
    look="what each half of the block is added to",
)
LN_1_TWICE = define(
    "ln-1-twice", "ln_1 used twice", "It looks as if ln_1 were used where ln_2 belongs.", look="the layer norms"
)
NO_FINAL_LAYER_NORM = define(
    "no-final-layer-norm",
    "no final layer norm",
    "It looks as if ln_f was left out before the logits.",
    look="the layer norms",
)
FINAL_NORM_TWICE = define(
    "final-norm-twice",
    "final layer norm applied twice",
    "It looks as if ln_f was applied twice before the logits.",
    look="the layer norms",
)
FIRST_TOKEN_LOGITS = define(
    "first-token-logits",
    "logits of the first new token",
    "These are the logits after the first of the new tokens, not the last.",
    look="which row of the logits is returned",
)
HALF_PRECISION = define(
    "half-precision",
    "K/V kept in half precision",
    "The numbers look as if keys and values were kept in half precision (float16): keep them in float32.",
    look="the dtypes of what is stored",
)
LAYERS_AS_TEXT = define(
    "layers-sorted-as-text",
    "layers sorted as strings",
    "The layers look sorted as strings, with layer 10 before layer 2: sort them as numbers.",
    look="the order of the layers",
)
