"""The bugs that only the checks of prefill-decode meet."""

from __future__ import annotations

from autograder.judge.bugs import define

ALL_ROWS = define(
    "prefill-all-rows",
    "logits of every token returned",
    "There is an axis too many: only the logits after the last token are asked for, one row [n_vocab]. x[-1] is one "
    "row; x and x[-1:] are tables.",
)
SAME_POSITION = define(
    "prefill-one-position",
    "all tokens at one position",
    "It looks as if all tokens of a pass had been given one and the same position: token i stands at position + i.",
)
LAST_TOKEN_MISSING = define(
    "prefill-last-token-missing",
    "last prompt token left out",
    "It looks as if the last token of the prompt were left out: it is fed like all the others, and has a row of keys "
    "and values in the cache.",
)
OWN_CACHE = define(
    "prefill-own-cache",
    "the cache that was passed is not used",
    "It looks as if the pass had an empty cache of its own: continue the one that was passed, and leave the new rows "
    "in it.",
)
FED_TWICE = define(
    "prefill-fed-twice",
    "prompt fed twice",
    "The cache has twice the tokens you have seen: the prompt went through the model two times.",
)
LAST_TOKEN_AGAIN = define(
    "prefill-last-token-again",
    "last prompt token fed twice in prefill",
    "It looks as if prefill fed the last token of the prompt a second time, for its logits: the pass that fills the "
    "cache gives them already.",
)
STEPS_NOT_COUNTED = define(
    "prefill-decode-steps-not-counted",
    "decode steps not counted in prefill's position",
    "It looks as if prefill counted only the tokens that it fed itself: after decode steps the chunk begins further "
    "on, at len(cache).",
)
PAST_FORGOTTEN = define(
    "results-remembered-without-their-past",
    "results remembered without what stands before",
    "These are the numbers of the same tokens at the same positions after another past: keys, values and logits depend "
    "on every token before them, so they cannot be remembered by their own tokens alone.",
)
ONE_LAYER_FOR_ALL = define(
    "prefill-one-layer-for-all",
    "all blocks share one layer's cache",
    "All rows are in one layer: block i appends to cache.layers[i].",
)
LAYERS_MIXED = define(
    "prefill-layers-mixed",
    "layers in another order",
    "Every row is there, in another layer than the one it belongs to: block i uses cache.layers[i].",
)
LOOKS_AHEAD = define(
    "prefill-looks-ahead",
    "later tokens change earlier rows",
    "The rows of earlier tokens change when a later token of the prompt changes, so a token can see what comes after "
    "it: look at the mask.",
)
ATTENDS_TOO_EARLY = define(
    "decode-attends-too-early",
    "attends before it appends",
    "It looks as if the new token did not see itself: append its keys and values first, then attend.",
)
ROW_NOT_KEPT = define(
    "decode-row-not-kept",
    "new token not cached",
    "The cache does not grow: the new token's keys and values must be appended, for the tokens after it to see.",
)
ROW_KEPT_TWICE = define(
    "decode-row-kept-twice",
    "new token cached twice",
    "Each step adds two rows for one token: append a token's keys and values once.",
)
ROWS_REPLACED = define(
    "decode-rows-replaced",
    "earlier rows changed",
    "Rows that were in the cache before the step are different after it: keys and values of earlier tokens never "
    "change.",
)
POSITION_IGNORED = define(
    "decode-position-ignored",
    "position ignored",
    "The position that was passed is not used, as if it were always len(cache): use it, or raise a ValueError when the "
    "two differ.",
)
GENERATE_RESTARTS = define(
    "generate-positions-restart",
    "new tokens at positions 0, 1, 2, ...",
    "It looks as if generate counted the positions of the new tokens from 0: the first stands at len(prompt_ids).",
)
GENERATE_STUCK = define(
    "generate-position-stuck",
    "every new token at the same position",
    "It looks as if every new token stood at position len(prompt_ids): each is one further than the token before it.",
)
LAST_TOKEN_TWICE = define(
    "generate-last-token-twice",
    "last prompt token fed twice",
    "It looks as if the last token of the prompt had been fed again after prefill: prefill's own logits give the first "
    "new token.",
)
FED_AGAIN = define(
    "generate-feeds-all-again",
    "all tokens fed again with the cache",
    "The cache has about 2x the tokens you have seen: it looks as if prompt and new tokens were all fed again at each "
    "step. With the cache, feed the newest token alone.",
)
NOT_FED_BACK = define(
    "generate-not-fed-back",
    "new tokens not fed back",
    "It looks as if one token were decoded again and again: feed the newest id.",
)
PROMPT_RETURNED = define(
    "generate-returns-prompt",
    "the prompt is returned too",
    "It looks as if the prompt were returned along with the new ids.",
)
FIRST_ID_LOST = define(
    "generate-first-id-lost",
    "first new id left out",
    "The ids are right from the second one on: the first new id comes from prefill's logits and belongs in the list.",
)
NUMBER_OF_IDS = define(
    "generate-number-of-ids",
    "wrong number of ids",
    "The ids are right as far as they go: count how often the loop runs.",
)
ZERO_GIVES_ONE = define(
    "generate-zero-gives-one",
    "0 new tokens give one",
    "Every other number is right: with n_new = 0 nothing may be chosen, so look at n_new before the first argmax.",
)
SAMPLED = define(
    "generate-sampled",
    "sampled, not greedy",
    "Two equal calls gave different ids: greedy takes the largest logit, by argmax.",
)
STATE_KEPT = define(
    "generate-state-kept",
    "a cache kept from call to call",
    "The first call was right and an equal call after it is not: make a new ModelCache inside generate each time. A "
    "default argument is made once for all calls.",
)
GOES_ON = define(
    "generate-goes-on-with-the-last-cache",
    "goes on with the last call's cache",
    "It is right by itself, and wrong after a request with which its prompt begins: a cache kept from that call also "
    "holds the tokens that the call generated. Make a new ModelCache in each call.",
)
RECOMPUTES = define(
    "generate-recomputes",
    "recomputes at each step",
    "That is the work of running the whole sequence again for each new token: after prefill, feed only the newest one.",
)
PROMPT_RUN_TWICE = define(
    "generate-prompt-run-twice",
    "prompt run two times",
    "It looks as if the prompt went through the model two times: one prefill gives both the cache and the logits.",
)
ONE_STEP_TOO_MANY = define(
    "generate-one-step-too-many",
    "one decode step too many",
    "It looks as if the last new token were fed to the model as well: nothing is chosen after it, so it needs no step "
    "and no row. The cache ends with prompt + n_new - 1 rows.",
)
GENERATE_LIMIT_TOO_LOW = define(
    "decode-generate-limit-too-low",
    "the last new token counted against n_ctx",
    "It looks as if the last new token were counted against n_ctx: it has no row, so a request fits while "
    "prompt + n_new - 1 is at most n_ctx.",
)
LIMIT_TOO_LOW = define(
    "decode-limit-too-low",
    "limit one too low",
    "It looks as if the limit were one too low: position n_ctx - 1 is the last one and can be used.",
)
POSITION_CLAMPED = define(
    "decode-position-clamped",
    "positions clamped to n_ctx - 1",
    "It looks as if the tokens past the end were given the last position, n_ctx - 1: NumPy also does so silently when "
    "a slice of wpe ends early and one row is left to broadcast. Compare with n_ctx first.",
)
POSITION_WRAPPED = define(
    "decode-position-wrapped",
    "positions start over past n_ctx",
    "It looks as if the positions started over at 0 past the end.",
)
WINDOW_SLID = define(
    "decode-window-slid",
    "oldest rows dropped",
    "It looks as if the oldest rows were dropped to make room: that keeps the code running and spoils what it says.",
)
NEGATIVE_POSITION = define(
    "decode-negative-position",
    "negative position accepted",
    "NumPy takes row -1 of wpe for the last one, without a word: look for a negative position first, and raise a "
    "ValueError.",
)
IDS_UNCHECKED = define(
    "prefill-ids-unchecked",
    "ids outside the vocabulary accepted",
    "An id outside the vocabulary went through: NumPy takes row -1 of wte for the last one, without a word. Compare "
    "the ids with 0 and n_vocab first, and raise a ValueError.",
)
CUT_SHORT = define(
    "generate-cut-short",
    "fewer ids without a word",
    "It stopped at the limit and returned fewer ids than were asked for: nobody notices that. Refuse the request.",
)
EMPTY_PROMPT = define(
    "prefill-empty-prompt",
    "empty prompt accepted",
    "There are no logits after no token: look for an empty prompt first, and raise a ValueError.",
)
