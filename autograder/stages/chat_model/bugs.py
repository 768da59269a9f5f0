"""The bugs of the chat model that can be named."""

from __future__ import annotations

from autograder.judge.bugs import define

# rms_norm
MEAN_SUBTRACTED = define(
    "mean-subtracted",
    "layer norm in place of RMS norm",
    "It looks as if the mean were subtracted, as in a layer norm: an RMS norm leaves it alone.",
)
EPS_OUTSIDE = define(
    "rms-eps-outside",
    "eps outside the root",
    "It looks as if eps were added to the root: it is added inside.",
    look="the place of eps",
)
EPS_MISSING = define("rms-eps-missing", "eps left out", "It looks as if eps were left out.", look="the place of eps")
NORM_NO_ROOT = define(
    "rms-no-root",
    "divided by the mean square",
    "It looks as if the root were left out: x is divided by it.",
)
NORM_SUM = define("rms-sum", "sum in place of mean", "It looks as if the squares were added up: take their mean.")
NORM_NO_WEIGHT = define("rms-no-weight", "weight left out", "It looks as if the weight were left out.")

# rotate
NEIGHBORS_TURNED = define(
    "neighbors-turned",
    "neighbors taken as pairs",
    "It looks as if elements 2i and 2i + 1 were taken as a pair: element i goes with element i + head_dim / 2.",
    look="which elements are a pair",
)
ANGLES_OF_NEIGHBORS = define(
    "angles-of-neighbors",
    "angles laid out for neighbors",
    "It looks as if elements 2i and 2i + 1 had the angle of pair i: the angles of all pairs belong to the first half "
    "of the elements and, in the same order, to the second.",
    look="the angles",
)
TURNED_BACK = define(
    "turned-back",
    "turned the other way",
    "It looks as if the pairs were turned the other way: look at the signs.",
    look="the signs",
)
FIRST_AT_ZERO = define(
    "rotary-first-at-zero",
    "positions from 0",
    "It looks as if the rows were at positions 0, 1, 2, ...: the positions are passed.",
    look="the angles",
)
ONE_FREQUENCY_STEP = define(
    "rotary-half-exponent",
    "frequencies fall too slowly",
    "It looks as if the exponent were -i / head_dim: pair i has theta to the power of -2 * i / head_dim.",
    look="the angles",
)
THETA_FIXED = define(
    "theta-fixed", "theta is 10000", "It looks as if theta were 10000, whatever is passed.", look="the angles"
)
NOT_TURNED = define("not-turned", "not turned", "The rows came back as they were.")

# grouped_attend
HEADS_IN_TURN = define(
    "heads-in-turn",
    "key heads taken in turn",
    "It looks as if query head h had key head h % n_kv_head: neighbors share one, h // (n_head // n_kv_head).",
    look="which key head a query head has",
)
FIRST_KEY_HEAD = define(
    "first-key-head",
    "all heads use key head 0",
    "It looks as if every head of queries attended to key head 0.",
    look="which key head a query head has",
)

# swiglu
GATE_UP_SWAPPED = define(
    "gate-up-swapped",
    "gate and up swapped",
    "It looks as if silu were applied to the up part: it goes on the gate.",
    look="what silu is applied to",
)
GATE_GELU = define(
    "gate-gelu", "gelu in place of silu", "It looks as if the gate went through gelu: it is silu here.", look="the gate"
)
GATE_SIGMOID = define(
    "gate-sigmoid",
    "sigmoid in place of silu",
    "It looks as if the gate were 1 / (1 + exp(-z)) alone: silu is z times that.",
    look="the gate",
)
GATE_MISSING = define(
    "gate-missing", "no silu", "It looks as if the gate were multiplied as it is: silu is missing.", look="the gate"
)
UP_MISSING = define(
    "up-missing", "no up part", "It looks as if the up part were left out.", look="what the gate is multiplied with"
)

# advance_llama
KEYS_NOT_TURNED = define(
    "keys-cached-unturned",
    "keys cached before they are turned",
    "The keys in the cache are those before rotate: they are cached turned.",
    look="what is appended",
)
VALUES_TURNED = define(
    "values-turned",
    "values turned too",
    "The values in the cache are turned: only q and k are.",
    look="what is appended",
)
WRONG_HEAD = define(
    "head-is-wte",
    "wte in place of the head",
    "It looks as if wte were the output head: it is weights.head.",
    look="the output head",
)
NORMS_EXCHANGED = define(
    "rms-norms-exchanged",
    "norm_1 or norm_2 in the other's place",
    "It looks as if norm_1 and norm_2 were not both used in their places: norm_1 comes before attention, and norm_2 "
    "before the MLP.",
    look="the norms of the block",
)
O_PROJ_MISSING = define(
    "o-proj-missing",
    "no o_proj after attention",
    "It looks as if the merged heads were added as they are: o_proj comes after them.",
    look="what becomes of the merged heads",
)
NO_FINAL_NORM = define(
    "no-final-rms-norm",
    "no final norm",
    "It looks as if norm_f were left out before the logits.",
    look="the norm before the logits",
)

# render_chatml
DEFAULT_SYSTEM_MISSING = define(
    "default-system-missing",
    "no default system message",
    "The default system message is missing: it comes first when the first message is not the system's.",
    look="the first message",
)
DEFAULT_SYSTEM_ALWAYS = define(
    "default-system-always",
    "default system message always",
    "The default system message is there although the conversation has its own.",
    look="the first message",
)
CONTENT_STRIPPED = define(
    "chatml-content-stripped",
    "contents stripped",
    "It looks as if contents were stripped: they stay as they are.",
    look="the contents",
)
GENERATION_PROMPT_MISSING = define(
    "generation-prompt-missing",
    "no generation prompt",
    "The generation prompt at the end is missing.",
    look="the end of the string",
)
GENERATION_PROMPT_ALWAYS = define(
    "chatml-prompt-always",
    "generation prompt always",
    "The generation prompt is there although add_generation_prompt is False.",
    look="the end of the string",
)

# Chat
REUSE_NOT_USED = define(
    "chat-recomputes",
    "every turn recomputes",
    "The ids are right, and every turn ran its whole prompt through the model.",
    look="what goes through the model",
)
REUSE_ALWAYS = define(
    "chat-reuses-always",
    "reuse=False reuses",
    "With reuse=False, tokens of earlier turns were reused anyway.",
    look="what reuse=False changes",
)
IDS_ASSUMED = define(
    "chat-ids-assumed",
    "all cached rows reused without comparing",
    "It looks as if all rows in the cache were reused: compare the ids, because the answer, decoded and encoded again, "
    "can be others.",
    look="how many rows are reused",
)
NOTHING_LEFT = define(
    "chat-nothing-left",
    "all ids of a known prompt reused",
    "Logits come from computing a token: when all ids of the prompt are known, leave the last one to compute.",
    look="how many rows are reused",
)
LAST_ID_COUNTED = define(
    "chat-last-id-counted",
    "the last new id counts as cached",
    "It looks as if the last new id counted as cached: nothing is chosen after it, so it is not fed and has no row.",
    look="which ids have rows",
)
SECONDS_ROUNDED = define(
    "chat-seconds-rounded",
    "rounded seconds in the log",
    "The seconds look rounded. Keep them as the clock gives them, and round only what is printed.",
    look="the seconds of the log",
)
END_KEPT = define(
    "end-token-kept",
    "the end token is in the answer",
    "The answer ends with tokenizer.end_id, which is no part of it.",
    look="when an answer ends",
)
END_IGNORED = define(
    "end-token-ignored",
    "the end token is ignored",
    "The answer goes on after tokenizer.end_id.",
    look="when an answer ends",
)
EACH_NOT_CALLED = define(
    "each-not-called",
    "each is not called",
    "Call each(id) as soon as an id is known, once for each.",
    look="the calls of each",
)
REFUSED_STAYS = define(
    "refused-message-stays",
    "a refused message stays",
    "What is answered after a refused message is what would be answered if it had been sent.",
    look="when messages are changed",
)
