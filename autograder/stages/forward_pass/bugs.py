"""The bugs that only the checks of forward-pass meet."""

from __future__ import annotations

from autograder.judge.bugs import define

GELU_EXACT = define(
    "gelu-exact",
    "exact GELU",
    "It looks like the exact GELU, with erf. GPT-2 was trained with the tanh form, and the two differ by up to 0.0005.",
)
GELU_BRACKET = define(
    "gelu-bracket",
    "a bracket of GELU misplaced",
    "It looks as if a bracket of gelu were misplaced: the cube is of x alone, the root of 2 / pi as a whole, the "
    "factor multiplies both terms inside the tanh, and 0.5 * x multiplies 1 plus the tanh.",
)
GELU_PLACE = define(
    "gelu-place",
    "GELU not between the layers",
    "It looks as if gelu were left out or came after c_proj: the order is c_fc, gelu, c_proj.",
)
NORM_SAMPLE = define(
    "norm-sample-variance",
    "layer norm with n - 1",
    "It looks as if the variance were divided by n - 1 (ddof=1): layer norm divides by n.",
)
NORM_EPS_OUTSIDE = define(
    "norm-eps-outside",
    "eps outside the root",
    "It looks as if eps were added to the standard deviation: it is added to the variance, inside the root.",
)
NORM_EPS = define(
    "norm-eps", "another eps", "It looks as if eps were another number when it is not given: its default is 1e-5."
)
NORM_AXIS = define(
    "norm-wrong-axis",
    "layer norm over the wrong axis",
    "It looks as if the mean and the variance were not taken along the last axis: each row has its own (axis=-1, "
    "keepdims=True).",
)
MASK_STRICT = define(
    "mask-strict",
    "own position masked",
    "It looks as if a token did not see itself: query i sees the keys 0 to i, with i included.",
)
MASK_REVERSED = define(
    "mask-reversed", "mask reversed", "It looks as if the mask were reversed: tokens see only later ones."
)
MASK_ZEROS = define(
    "mask-zeros",
    "hidden scores set to 0",
    "It looks as if the hidden scores were set to 0, and exp(0) is 1, so they still get weight: set them to -np.inf.",
)
MASK_TOO_SMALL = define(
    "mask-too-small",
    "hidden scores not small enough",
    "Hidden keys get through when visible scores are very negative, or hidden ones very large: set hidden scores to "
    "-np.inf, which no score is below, not to a number such as -10000.",
)
SOFTMAX_QUERIES = define(
    "softmax-over-queries",
    "softmax over the queries",
    "It looks as if the softmax ran over the queries: each query's weights add up to 1 over the keys (axis=-1).",
)
SCORES_NO_ROOT = define(
    "scores-no-root",
    "scores divided by head_dim",
    "It looks as if the scores were divided by head_dim: divide by its square root.",
)
SOFTMAX_OVERFLOW = define(
    "softmax-overflow",
    "softmax without subtracting the largest",
    "It looks as if exp overflowed: subtract each row's largest score before exp, which leaves the softmax the same.",
)
OUTPUT_MISSING = define(
    "no-output-projection",
    "no c_proj after the heads",
    "It looks as if the merged heads were returned as they are: one more linear layer, attn.c_proj, follows.",
)
BIASES_MISSING = define("biases-missing", "no biases", "It looks as if the biases of the linear layers were left out.")
POST_NORM = define(
    "post-norm",
    "post-norm block",
    "It looks as if the layer norms came after each addition: GPT-2 normalizes what goes into attention and MLP, and "
    "adds their results to the x that was not normalized.",
)
NO_LN_1 = define("no-ln-1", "no ln_1", "It looks as if attention read x without ln_1 before it.")
NO_LN_2 = define("no-ln-2", "no ln_2", "It looks as if the MLP read x without ln_2 before it.")
LN_F_IN_LOOP = define(
    "ln-f-in-loop",
    "ln_f after every block",
    "It looks as if ln_f were in the loop: it comes once, after the last block.",
)
PROBABILITIES = define(
    "probabilities", "softmax of the logits", "It looks as if a softmax were applied at the end: return the logits."
)
ONLY_LAST_ROW = define(
    "only-last-row",
    "only the last row of logits",
    "It looks as if only the last token's logits were returned: forward returns one row for every token.",
)
NOTEBOOK_WEIGHTS = define(
    "notebook-weights",
    "the notebook's own weights",
    "These are the numbers of the trained model: use the weights that are passed, not the notebook's variable.",
)
LIMIT_IGNORED = define(
    "limit-ignored",
    "more than n_ctx tokens accepted",
    "It looks as if tokens were cut off, or positions reused, to make the sequence fit: raise an error instead.",
)
LIMIT_TOO_LOW = define(
    "limit-too-low",
    "limit one too low",
    "It looks as if the limit were one too low: a sequence of exactly n_ctx tokens is allowed.",
)
WINDOW_SLID = define(
    "window-slid",
    "window slid past the limit",
    "It looks as if the oldest tokens were dropped to make room: raise an error instead, as forward does.",
)
GENERATE_LIMIT_TOO_LOW = define(
    "generate-limit-too-low",
    "the last new token counted against the limit",
    "It looks as if the last new token were counted: it is never fed to the model, so only prompt + n_new - 1 tokens "
    "must fit into n_ctx.",
)
PROMPT_RETURNED = define(
    "prompt-returned", "the prompt is returned too", "It looks as if the prompt were returned with the new ids."
)
LAST_TOKEN_ALONE = define(
    "last-token-alone",
    "only the last token fed",
    "It looks as if only the newest token were fed to forward: without a cache it needs the whole sequence each time.",
)
SEQUENCE_NOT_GROWN = define(
    "sequence-not-grown",
    "new ids not fed back",
    "It looks as if every new id came from the same logits: append each new id before the next pass, and read the last "
    "row.",
)
ARGMAX_OF_ALL_ROWS = define(
    "argmax-of-all-rows",
    "argmax of all rows at once",
    "The id that was fed is not in the vocabulary. It looks as if argmax were taken of all rows at once: take it of "
    "the last row alone.",
)
