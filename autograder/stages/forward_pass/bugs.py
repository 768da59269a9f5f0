"""The bugs that only the checks of forward-pass meet."""

from __future__ import annotations

from autograder.judge.bugs import define

GELU_EXACT = define(
    "gelu-exact",
    "exact GELU",
    "It looks like the exact GELU, with erf. GPT-2 was trained with the tanh form, and the two differ by up to 0.0005.",
)
GELU_SIGMOID = define(
    "gelu-sigmoid",
    "sigmoid GELU",
    "It looks like x * sigmoid(1.702 x), another approximation of GELU. GPT-2 uses the tanh form.",
)
GELU_RELU = define("gelu-relu", "ReLU for GELU", "It looks like ReLU: GELU is smooth, and not 0 for small negative x.")
GELU_NONE = define(
    "gelu-missing", "no GELU", "It looks as if gelu were left out between the two linear layers of the MLP."
)
GELU_SQUARE = define(
    "gelu-square", "x squared inside GELU", "It looks as if x were squared inside the tanh, where the cube belongs."
)
GELU_NO_ROOT = define(
    "gelu-no-root",
    "2 / pi without its root",
    "It looks as if the factor inside the tanh were 2 / pi, or sqrt(2) / pi: it is the root of the whole fraction.",
)
GELU_NO_HALF = define(
    "gelu-no-half", "GELU without its half", "It looks as if the factor 1/2 in front of x were left out of gelu."
)
GELU_CUBE_OF_SUM = define(
    "gelu-cube-of-sum",
    "the sum cubed inside GELU",
    "It looks as if the whole sum inside the tanh were cubed: the power belongs to the x of the second term alone.",
)
GELU_ROUNDED = define(
    "gelu-rounded",
    "a rounded constant in GELU",
    "It looks as if a constant of gelu were rounded: take 0.044715 with all its digits, and np.sqrt(2 / np.pi).",
)
GELU_OVERFLOW = define(
    "gelu-overflow",
    "overflow in GELU",
    "It looks as if exp overflowed: np.tanh is exact for any size of x, while a tanh made of exp(x) and exp(-x) "
    "becomes inf / inf.",
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
NORM_EPS_FIXED = define(
    "norm-eps-fixed", "eps ignored", "It looks as if the parameter eps were ignored and 1e-5 used instead."
)
NORM_NO_ROOT = define(
    "norm-no-root", "divided by the variance", "It looks as if the rows were divided by their variance: take its root."
)
NORM_NO_MEAN = define(
    "norm-no-mean", "mean not subtracted", "It looks as if the mean were not subtracted before the variance was taken."
)
NORM_WHOLE = define(
    "norm-whole",
    "one mean for all rows",
    "It looks as if one mean and one variance were taken of the whole array: each row has its own (axis=-1, keepdims).",
)
NORM_AXIS = define(
    "norm-wrong-axis",
    "layer norm over the wrong axis",
    "It looks as if the mean and the variance were taken along another axis than the last.",
)
NORM_NO_WEIGHT = define("norm-no-weight", "layer norm without weight", "It looks as if weight were not applied.")
NORM_NO_BIAS = define("norm-no-bias", "layer norm without bias", "It looks as if bias were not added.")
NORM_EPS_SMALL = define(
    "norm-eps-small",
    "eps too small",
    "It looks as if eps were smaller than 1e-5, or left out, when it is not given: 1e-5 is its default.",
)
NORM_EPS_LARGE = define(
    "norm-eps-large",
    "eps too large",
    "It looks as if eps were larger than 1e-5 when it is not given: 1e-5 is its default.",
)
MASK_STRICT = define(
    "mask-strict",
    "own position masked",
    "It looks as if a token did not see itself: query i sees the keys 0 to i, with i included.",
)
MASK_REVERSED = define(
    "mask-reversed", "mask reversed", "It looks as if the mask were the wrong way round: tokens see only later ones."
)
MASK_ZEROS = define(
    "mask-zeros",
    "hidden scores set to 0",
    "It looks as if the hidden scores were set to 0, and exp(0) is 1, so they still get a share: set them to -np.inf.",
)
MASK_TOO_SMALL = define(
    "mask-too-small",
    "hidden scores not small enough",
    "Hidden keys get through when visible scores are very negative, or hidden ones very large: set hidden scores to "
    "-np.inf, which no score is below, not to a number such as -10000.",
)
MASK_AFTER_SOFTMAX = define(
    "mask-after-softmax",
    "mask after the softmax",
    "It looks as if the mask came after the softmax, so that the rows no longer add up to 1: mask the scores first.",
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
HEADS_INTERLEAVED = define(
    "heads-interleaved",
    "q, k, v split inside each head",
    "It looks as if c_attn's result were cut into heads first and each head into q, k, v: it holds all heads' queries, "
    "then all keys, then all values.",
)
SOFTMAX_OVERFLOW = define(
    "softmax-overflow",
    "softmax without taking off the largest",
    "It looks as if exp overflowed: take each row's largest score off before exp, which leaves the softmax the same.",
)
SOFTMAX_ONE_MAXIMUM = define(
    "softmax-one-maximum",
    "one maximum for all rows",
    "It looks as if the largest score of all rows had been taken off: rows far below it become 0 / 0. Take off each "
    "row's own (axis=-1, keepdims=True).",
)
SOFTMAX_HIDDEN_MAXIMUM = define(
    "softmax-hidden-maximum",
    "maximum taken before the mask",
    "It looks as if the largest score were looked for before the mask was applied: a hidden one may be so large that "
    "all visible ones become 0.",
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
PARALLEL = define(
    "parallel-block",
    "MLP in parallel with attention",
    "It looks as if the MLP read the block's input: it reads the sum of that and what attention gave.",
)
RESIDUAL_INPUT_ONLY = define(
    "residual-input-only",
    "MLP added to the block's input",
    "It looks as if the MLP's result were added to the x from before attention: it is added to the sum of that x and "
    "attention.",
)
NO_LN_1 = define("no-ln-1", "no ln_1", "It looks as if attention read x without ln_1 before it.")
NO_LN_2 = define("no-ln-2", "no ln_2", "It looks as if the MLP read x without ln_2 before it.")
PROBABILITIES = define(
    "probabilities", "softmax of the logits", "It looks as if a softmax were applied at the end: return the logits."
)
BLOCKS_LEFT_OUT = define(
    "blocks-left-out", "last blocks left out", "It looks as if the loop over the blocks ended too early."
)
ONLY_LAST_ROW = define(
    "only-last-row",
    "only the last row of logits",
    "It looks as if only the last token's logits were returned: forward returns one row for every token.",
)
FIXED_SIZES = define(
    "fixed-sizes",
    "sizes of the trained model",
    "The same code gives the right numbers on the trained model, so a size looks fixed to that model's, perhaps "
    "through the notebook's own `weights`: take every size from the arguments.",
)
NOTEBOOK_WEIGHTS = define(
    "notebook-weights",
    "the notebook's own weights",
    "These are the numbers of the trained model: use the weights that are passed, not the notebook's variable.",
)
LOGITS_TRANSPOSED = define(
    "logits-transposed", "logits transposed", "It looks as if rows and columns were swapped: a row is a position."
)
EMPTY_ACCEPTED = define(
    "empty-accepted", "empty sequence accepted", "It looks as if an empty list were not looked for: check the length."
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
ONE_TOO_MANY = define("one-id-too-many", "one id too many", "It looks as if the loop ran once too often.")
ONE_TOO_FEW = define("one-id-too-few", "one id too few", "It looks as if the loop ended one step too early.")
FIRST_ROW_CHOSEN = define(
    "first-row-chosen",
    "id chosen from the first row",
    "It looks as if the ids were chosen from the first row of the logits: what follows the sequence is in the last.",
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
SAMPLED = define(
    "sampled", "sampled, not greedy", "Two equal calls gave different ids: greedy takes the largest logit, by argmax."
)
ARGMAX_OF_ALL_ROWS = define(
    "argmax-of-all-rows",
    "argmax of all rows at once",
    "The id that was fed is none of the vocabulary's. It looks as if argmax were taken of all rows at once: take it of "
    "the last row alone.",
)
SMALLEST_CHOSEN = define(
    "smallest-chosen", "smallest logit chosen", "It looks as if the ids with the smallest logits were chosen."
)
PROMPT_GROWN = define(
    "prompt-grown",
    "the caller's prompt grows",
    "It looks as if the new ids were appended to the caller's list: work on a copy, list(prompt_ids).",
)
IDS_REPLACED = define(
    "ids-replaced",
    "ids outside the vocabulary replaced",
    "It looks as if an id outside the vocabulary were clipped, or counted from 0 again: let the look-up in wte fail, "
    "or raise a ValueError.",
)
EMPTY_PROMPT = define(
    "generate-empty-prompt",
    "empty prompt accepted",
    "There are no logits after no token, and so no id to choose: raise a ValueError, or let forward raise it.",
)
BIAS_MISSING = {
    name: define(
        f"bias-missing-{name.replace('.', '-')}",
        f"no bias in {name}",
        f"It looks as if {name}.bias were not added after the product with {name}.weight.",
    )
    for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
}
