"""The bugs that only the checks of block-cache meet."""

from __future__ import annotations

from autograder.judge.bugs import define

KEYS_UNCHAINED = define(
    "keys-unchained",
    "keys without the blocks before",
    "It looks as if a key were made of its own block's ids, or of those and one block more: put the key of the block "
    "before into the digest.",
    look="what goes into a digest",
)
WHOLE_PROMPT_MATCHED = define(
    "whole-prompt-matched",
    "no token left to compute",
    "When the whole prompt is stored, the last block is not taken: logits come from computing at least one token.",
    look="how many blocks are looked for",
)
TRUSTS_THE_KEY = define(
    "trusts-the-key",
    "key trusted without comparing ids",
    "A key is an index and no proof: compare the block's ids with the prompt's.",
    look="what is compared",
)
OWN_IDS_ALONE = define(
    "own-ids-alone",
    "only the block's own ids compared",
    "The same ids after other blocks have other rows: what stands before a block is compared too.",
    look="what is compared",
)
FIRST_IN_EVICTED = define(
    "first-in-evicted",
    "first in, first out",
    "It evicts what came first: what was used since then stays, and what was used least recently goes.",
    look="which block is evicted",
)
MATCH_IS_NO_USE = define(
    "match-is-no-use",
    "match does not count as use",
    "It looks as if match did not mark the blocks it finds as used.",
    look="what marks a block as used",
)
ROOT_EVICTED = define(
    "root-evicted",
    "a block evicted before those that continue it",
    "It evicts a block that others continue, and these can never be found again: take leaves only. Where the oldest "
    "block is taken, match and put have to mark a run from its last block to its first.",
    look="which block is evicted",
)
STORES_SHARE = define(
    "stores-share",
    "two stores share their blocks",
    "A dict in the class, in the module or among the defaults of __init__ is made once, for all stores: make it in "
    "__init__.",
    look="where the blocks are kept",
)
SHARES_THE_CACHE = define(
    "shares-the-cache",
    "blocks are views of the caller's cache",
    "A slice of an array is a view of it: copy the rows that are kept.",
    look="the rows that are kept",
)
KEEPS_WHOLE_CACHES = define(
    "keeps-whole-caches",
    "whole caches kept for a few blocks",
    "It looks as if the whole cache were kept, or a view of it, which is the same: keep a copy of the block's rows "
    "alone.",
    look="the rows that are kept",
)
TENANTS_SHARE = define(
    "tenants-share",
    "another tenant's blocks used",
    "The rows are those of another tenant: keep the context with a block and compare it, as the ids are compared.",
    look="what is compared",
)
RUN_FED_AGAIN = define(
    "run-fed-again",
    "reused tokens computed again",
    "It looks as if tokens whose rows were reused were computed once more: after a run the model gets "
    "prompt_ids[len(cache):].",
    look="which tokens are computed",
)
FRACTION_DROPPED = define(
    "fraction-dropped",
    "numbers cut and not rounded",
    "It looks as if the fractions were dropped, as astype(np.int8) does: round first.",
    look="the rounding",
)
BLOCKS_UNUSED = define(
    "blocks-unused",
    "stored blocks not used",
    "The answer is that of computing everything: the rows that match gives belong in the cache.",
    look="what becomes of the rows that match gives",
)
