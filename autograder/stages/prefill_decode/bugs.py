"""The bugs that only the checks of prefill-decode meet."""

from __future__ import annotations

from autograder.judge.bugs import define

OWN_CACHE = define(
    "rows-not-in-the-cache",
    "new rows not in the cache that was passed",
    "The new keys and values are not in the cache that was passed: continue that one, not an empty one or a clone, and "
    "append to it.",
    look="the cache that is appended to",
)
FED_TWICE = define(
    "two-rows-a-token",
    "two rows for each new token",
    "The cache has 2x the tokens that came in: they went through the model twice, were appended twice, or a slice of "
    "wpe is too long and makes two rows of one token.",
    look="how often a token is appended",
)
ATTENDS_TOO_EARLY = define(
    "decode-attends-too-early",
    "attends before it appends",
    "It looks as if the new token did not see itself: append its keys and values first, then attend.",
    look="the order of append and attend",
)
POSITION_IGNORED = define(
    "decode-position-ignored",
    "position ignored",
    "The position that was passed is not used, as if it were always len(cache): use it, or raise a ValueError when the "
    "two differ.",
    look="the positions of the new tokens",
)
LAST_TOKEN_TWICE = define(
    "generate-last-token-twice",
    "last prompt token fed twice",
    "It looks as if the last token of the prompt had been fed again after prefill: prefill's own logits give the first "
    "new token.",
    look="what is fed first after prefill",
)
FED_AGAIN = define(
    "generate-feeds-all-again",
    "all tokens fed again with the cache",
    "It looks as if prompt and new tokens were all fed again at each step: the cache has 2x the tokens you have seen, "
    "and more. With the cache, feed the newest token alone.",
    look="what is fed at each step",
)
NEW_CACHE_EACH_STEP = define(
    "generate-new-cache-each-step",
    "an empty cache at each step",
    "It looks as if each new token had been fed to an empty cache, or to none: continue the cache that prefill filled.",
    look="the cache that is passed on",
)
STATE_KEPT = define(
    "generate-state-kept",
    "a cache kept from call to call",
    "The first call was right and an equal call after it is not: make a new ModelCache inside generate each time. A "
    "default argument is made once for all calls.",
    look="where the cache is made",
)
RECOMPUTES = define(
    "generate-recomputes",
    "recomputes at each step",
    "That is the work of running the whole sequence again for each new token: after prefill, feed the newest alone.",
    look="what is fed at each step",
)
PROMPT_RUN_TWICE = define(
    "generate-prompt-run-twice",
    "prompt run two times",
    "It looks as if the prompt went through the model two times: one prefill gives both the cache and the logits.",
    look="the calls of prefill",
)
ONE_STEP_TOO_MANY = define(
    "generate-one-step-too-many",
    "one decode step too many",
    "It looks as if the last new token were fed to the model as well: nothing is chosen after it, so it needs no step "
    "and no row. The cache ends with prompt + n_new - 1 rows.",
    look="the last step",
)
