"""The bugs that the checks of forward-pass name, and the variants of the reference by which they are recognized.

Those of attention are named in kv-cache as well.
"""

from __future__ import annotations

from autograder.judge import bugs, variants
from autograder.judge.bugs import define
from autograder.judge.variants import Suspect

GELU_EXACT = define(
    "gelu-exact",
    "exact GELU",
    "It looks like the exact GELU, with erf. GPT-2 was trained with the tanh form, and the two differ by up to 0.0005.",
)
GELU_BRACKET = define(
    "gelu-bracket",
    "a parenthesis of GELU misplaced",
    "It looks as if a parenthesis of gelu were misplaced: the cube is of x alone, the root is of 2 / pi as a whole, "
    "the factor multiplies both terms inside the tanh, and 0.5 * x multiplies 1 plus the tanh.",
    look="the parentheses of the formula",
)
GELU_POWER = define(
    "gelu-power",
    "no cube in GELU",
    "It looks as if x were not raised to the third power inside the tanh: x**3 is the cube, x * 3 and x**2 are not.",
    look="the powers in the formula",
)
GELU_PLACE = define(
    "gelu-place",
    "GELU not between the layers",
    "It looks as if gelu were left out or came after c_proj: the order is c_fc, gelu, c_proj.",
    look="the MLP",
)
LN_F_IN_LOOP = define(
    "ln-f-in-loop",
    "ln_f after every block",
    "It looks as if ln_f were in the loop: it comes once, after the last block.",
    look="the layer norms",
)
NORM_SAMPLE = define(
    "norm-sample-variance",
    "layer norm with n - 1",
    "It looks as if the variance were divided by n - 1 (ddof=1): layer norm divides by n.",
    look="the variance",
)
NORM_EPS_OUTSIDE = define(
    "norm-eps-outside",
    "eps outside the root",
    "It looks as if eps were added to the standard deviation: it is added to the variance, inside the root.",
    look="the place of eps",
)
NORM_EPS = define(
    "norm-eps",
    "another eps",
    "It looks as if another eps stood in the root: its default is 1e-5, and it is added to the variance as it is.",
    look="the default of eps",
)
NORM_AXIS = define(
    "norm-wrong-axis",
    "layer norm over the wrong axis",
    "It looks as if the mean and the variance were not taken along the last axis: each row has its own (axis=-1, "
    "keepdims=True).",
    look="the mean and the variance",
)
NORM_NO_ROOT = define(
    "norm-without-root",
    "layer norm divides by the variance",
    "It looks as if the rows were divided by the variance: divide by the root of variance + eps.",
    look="what the rows are divided by",
)
NORM_NOT_CENTERED = define(
    "norm-not-centered",
    "layer norm leaves the mean in",
    "It looks as if x were divided with its mean still in it: divide x - mean.",
    look="the mean",
)
NORM_PARTS_EXCHANGED = define(
    "norm-parts-exchanged",
    "layer norm's weight and bias exchanged",
    "It looks as if weight and bias of the layer norm were exchanged: multiply by the weight, and add the bias.",
    look="the weight and the bias of the layer norm",
)
MASK_STRICT = define(
    "mask-strict",
    "own position masked",
    "It looks as if a token did not see itself: a query sees the keys up to its own position, that one included.",
    look="the causal mask",
)
MASK_REVERSED = define(
    "mask-reversed",
    "mask reversed",
    "It looks as if the mask were reversed: tokens see only later ones.",
    look="the causal mask",
)
MASK_ZEROS = define(
    "mask-zeros",
    "hidden scores set to 0",
    "It looks as if the hidden scores were set to 0, and exp(0) is 1, so they still get weight: set them to -np.inf.",
    look="the causal mask",
)
MASK_TOO_SMALL = define(
    "mask-too-small",
    "hidden scores not small enough",
    "Hidden keys get through when visible scores are very negative, or hidden ones very large: set hidden scores to "
    "-np.inf, which no score is below, not to a number such as -10000.",
    look="the causal mask",
)
SOFTMAX_QUERIES = define(
    "softmax-over-queries",
    "softmax over the queries",
    "It looks as if the softmax ran over the queries: each query's weights add up to 1 over the keys (axis=-1).",
    look="the softmax",
)
SCORES_NO_ROOT = define(
    "scores-no-root",
    "scores divided by head_dim",
    "It looks as if the scores were divided by head_dim: divide by its square root.",
    look="the scores before the softmax",
)
SOFTMAX_OVERFLOW = define(
    "softmax-overflow",
    "softmax overflows",
    "exp overflows, or is 0 for a whole row, so the weights are inf / inf or 0 / 0: subtract each row's own largest "
    "visible score before exp, which leaves the softmax the same.",
    look="the softmax",
)
LOG_SOFTMAX = define(
    "log-softmax",
    "the logarithm of the softmax",
    "It looks as if softmax returned the logarithms of the weights: return the weights, which add up to 1.",
    look="what is returned",
)
POST_NORM = define(
    "post-norm",
    "post-norm block",
    "It looks as if the layer norms came after each addition: GPT-2 normalizes what goes into attention and MLP, and "
    "adds their results to the x that was not normalized.",
    look="the layer norms",
)
NO_LN_1 = define(
    "no-ln-1", "no ln_1", "It looks as if attention read x without ln_1 before it.", look="the layer norms"
)
NO_LN_2 = define("no-ln-2", "no ln_2", "It looks as if the MLP read x without ln_2 before it.", look="the layer norms")
MLP_OF_OLD_X = define(
    "mlp-of-old-x",
    "the MLP reads the block's input",
    "It looks as if the MLP read the x from before attention: add attention's result first, and normalize that sum.",
    look="what the MLP reads",
)
SOFTMAXED = define(
    "probabilities-for-logits",
    "probabilities in place of logits",
    "These are probabilities: forward returns the logits, without a softmax.",
    look="what is returned",
)
LIMIT_IGNORED = define(
    "limit-ignored",
    "more than n_ctx tokens accepted",
    "It looks as if tokens were dropped, or positions reused, to make the sequence fit: raise an error instead.",
    look="what is refused",
)
LIMIT_TOO_LOW = define(
    "limit-too-low",
    "limit one too low",
    "It looks as if the limit were one too low: exactly n_ctx tokens may be fed, and the last new id is never fed.",
    look="what is refused",
)
PROMPT_RETURNED = define(
    "prompt-returned",
    "the prompt is returned too",
    "It looks as if the prompt were returned with the new ids.",
    look="what is returned",
)
ARGMAX_OF_ALL_ROWS = define(
    "argmax-of-all-rows",
    "argmax of all rows at once",
    "The id that was fed is not in the vocabulary. It looks as if argmax were taken of all rows at once: take it of "
    "the last row alone.",
    look="the row that argmax is taken of",
)
ONE_TOKEN_DECIDES = define(
    "one-token-decides",
    "one token alone decides the next",
    "Each new id is decided by one token alone: feed the whole sequence each time, and take argmax of the last row of "
    "the logits, [-1].",
    look="what is fed, and which row argmax is taken of",
)

SCORES: tuple[Suspect, ...] = (  # of attention as a function of q, k and v
    (bugs.MASK_SEES_NEXT, "mask-sees-next"),  # with two rows it is the same as no mask
    (bugs.NO_CAUSAL_MASK, "no-causal-mask"),
    (MASK_STRICT, "mask-strict"),
    (MASK_REVERSED, "mask-reversed"),
    (MASK_ZEROS, "mask-zeros"),
    (SOFTMAX_QUERIES, "softmax-over-queries"),
    (bugs.SCORES_UNSCALED, "scores-unscaled"),
    (bugs.SCORES_SCALED_BY_EMBD, "scores-scaled-by-n-embd"),
    (bugs.SCORES_SCALED_BY_HEADS, "scores-scaled-by-n-head"),
    (SCORES_NO_ROOT, "scores-no-root"),
)
FINITE_MASKS: tuple[Suspect, ...] = tuple((MASK_TOO_SMALL, name) for name in variants.MASK_TOO_SMALL)
ATTENTION: tuple[Suspect, ...] = (
    *SCORES,
    (bugs.KEYS_VALUES_SWAPPED, "qkv-qvk"),
    *((bugs.QKV_ORDER, f"qkv-{order}") for order in ("kqv", "kvq", "vqk", "vkq")),
    *((bugs.QKV_BY_HEADS, f"qkv-by-{parts}") for parts in ("heads", "features")),
    (bugs.HEADS_SPLIT_WRONG, "heads-split-wrong"),
    *((bugs.HEADS_MERGED_WRONG, name) for name in variants.HEADS if name.startswith("heads-merged")),
    (bugs.C_PROJ_MISSING, "c-proj-missing"),
    *((bugs.C_PROJ_BIAS, f"c-proj-bias-{times}") for times in (0, 2)),
    (bugs.BIASES_MISSING, "biases-missing"),
)
BLOCK: tuple[Suspect, ...] = (
    (POST_NORM, "post-norm"),
    *((bugs.NORMED_RESIDUAL, name) for name in ("normed-residual", "normed-attention")),
    *((bugs.NO_RESIDUAL, name) for name in ("no-residual-attention", "no-residual-mlp", "no-residual")),
    (NO_LN_1, "no-ln-1"),
    (NO_LN_2, "no-ln-2"),
    (bugs.LN_1_TWICE, "ln-1-twice"),
    (MLP_OF_OLD_X, "mlp-of-old-x"),
    (NORM_PARTS_EXCHANGED, "norm-parts-exchanged"),
    *((GELU_PLACE, name) for name in ("gelu-missing", "gelu-last")),
    *ATTENTION,
)
FORWARD: tuple[Suspect, ...] = (
    (bugs.POSITIONS_MISSING, "positions-missing"),
    (bugs.NO_FINAL_LAYER_NORM, "no-final-layer-norm"),
    (bugs.FINAL_NORM_TWICE, "final-norm-twice"),
    (bugs.LAYERS_AS_TEXT, "layers-sorted-as-text"),
    *BLOCK,
)
