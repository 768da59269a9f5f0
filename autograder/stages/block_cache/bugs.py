"""The bugs that only the checks of block-cache meet."""

from __future__ import annotations

from autograder.judge.bugs import define

KEY_FOR_A_PART = define(
    "key-for-a-part",
    "a block that is not full has a key",
    "There is a key for the tokens after the last full block: such a block would change with the next token.",
)
KEYS_SEE_AHEAD = define(
    "keys-see-ahead",
    "a key depends on later ids",
    "It looks as if a key depended on ids after its block, or on the length of the prompt: only what comes before "
    "decides a block's keys and values.",
)
KEYS_OF_A_PROCESS = define(
    "keys-of-a-process",
    "keys differ between processes",
    "hash() of a string is another number in every process: take a digest of hashlib.",
)
KEYS_SHORT = define(
    "keys-short", "keys of too few bits", "A short digest makes different blocks equal by chance: keep more of it."
)
KEYS_UNCHAINED = define(
    "keys-unchained",
    "keys of the block's own ids alone",
    "It looks as if a key were made of its own block's ids: put the key of the block before into the digest.",
)
KEYS_CHAIN_SHORT = define(
    "keys-chain-short",
    "keys that look back one block only",
    "It looks as if a key looked back one block and no further: put the key of the block before into the digest, "
    "not its ids.",
)
CONTEXT_ORDER = define(
    "context-order",
    "order of the context in the key",
    "A dict is the same in any order: sort the facts, for example by json.dumps(context, sort_keys=True).",
)
CONTEXT_IN_FIRST_KEY = define(
    "context-in-first-key",
    "context missing from later keys",
    "The first block's key depends on the context, and a later one does not: chain the keys.",
)
WHOLE_PROMPT_MATCHED = define(
    "whole-prompt-matched",
    "no token left to compute",
    "When the whole prompt is stored, the last block is not taken: logits come from computing at least one token.",
)
TRUSTS_THE_KEY = define(
    "trusts-the-key",
    "key trusted without comparing ids",
    "A key is an index and no proof: compare the block's ids with the prompt's.",
)
BLOCK_BEFORE_NOT_COMPARED = define(
    "block-before-not-compared",
    "only the block's own ids compared",
    "The ids of the block are right, and those before it are not: compare these too, or which block stands before it.",
)
FIRST_IN_EVICTED = define(
    "first-in-evicted",
    "first in, first out",
    "It evicts what came first: what was used since then stays, and what was not used for longest goes.",
)
NEWEST_EVICTED = define(
    "newest-evicted", "most recently used evicted", "It evicts what was used most recently: take the other end."
)
MATCH_IS_NO_USE = define(
    "match-is-no-use", "match does not count as use", "It looks as if match did not mark the blocks it finds as used."
)
PUT_IS_NO_USE = define(
    "put-is-no-use",
    "put does not count as use",
    "It looks as if put did not mark the blocks that are there already as used.",
)
ROOT_EVICTED = define(
    "root-evicted",
    "a block evicted before those that continue it",
    "It evicts a block that others continue, and these can never be found again: take leaves only.",
)
OWN_RUN_EVICTED = define(
    "own-run-evicted",
    "the prompt's own blocks evicted",
    "It evicts blocks of the very prompt that is put in: when nothing else is left, the rest of that prompt is not "
    "kept.",
)
SHARES_THE_CACHE = define(
    "shares-the-cache",
    "blocks are views of the caller's cache",
    "A slice of an array is a view of it: copy the rows that are kept.",
)
ROWS_CAN_BE_WRITTEN = define(
    "rows-can-be-written",
    "the caller can write into the blocks",
    "Give out copies, or set rows.flags.writeable = False.",
)
KEEPS_WHOLE_CACHES = define(
    "keeps-whole-caches",
    "whole caches kept for a few blocks",
    "It looks as if the whole cache were kept, or a view of it, which is the same: keep a copy of the block's rows "
    "alone.",
)
KEEPS_THE_EVICTED = define(
    "keeps-the-evicted",
    "memory grows after the store is full",
    "Something is kept of blocks that were evicted, such as their keys in a second dict.",
)
TENANTS_SHARE = define(
    "tenants-share",
    "another tenant's blocks used",
    "The rows are those of another tenant: keep the context with a block and compare it, as the ids are compared.",
)
BLOCKS_UNUSED = define(
    "blocks-unused",
    "stored blocks not used",
    "The answer is that of computing everything: the rows that match gives belong into the cache.",
)
FAILING_REQUEST_STORED = define(
    "failing-request-stored",
    "a failing request changes the store",
    "Put the blocks into the store after the pass, when nothing can fail any more.",
)
ONE_SCALE_FOR_ALL = define(
    "one-scale-for-all",
    "one scale for the whole array",
    "A large row then takes the precision from all others: the last axis has a scale for each row.",
)
CUT_NOT_ROUNDED = define(
    "cut-not-rounded", "cut off, not rounded", "astype(np.int8) cuts off: round first, with np.rint."
)
NOT_KEPT_AS_INT8 = define(
    "not-kept-as-int8",
    "not kept as encode gives it",
    "It looks as if the rows themselves were kept: keep what encode gives, and decode it in match.",
)
