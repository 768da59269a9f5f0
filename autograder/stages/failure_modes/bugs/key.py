"""The bugs of cache_key."""

from __future__ import annotations

from autograder.judge.bugs import define

KEY_SAME_FOR_ALL = define("key-same-for-all", "one key for everything", "Every argument gave the same key.")
KEY_IDS_ALONE = define(
    "key-ids-alone", "only the ids are in the key", "The key depends on the ids alone: all other arguments count too."
)
KEY_NO_IDS = define("key-ignores-ids", "the ids are not in the key", "The key does not depend on the ids.")
KEY_NOT_A_TEXT = define(
    "key-not-a-text",
    "the key is not a text",
    "A number, bytes or a tuple is no key here: the notebook encodes keys and puts them together. Return a text, such "
    "as hexdigest() gives.",
)
KEY_FIELD_CUT = define(
    "key-field-cut",
    "only a part of a text is in the key",
    "Only a part of the text is in the key, such as its beginning or what stands behind a slash: all of it counts.",
)
KEY_LETTERS_LOST = define(
    "key-letters-lost",
    "letters beyond ASCII are dropped or replaced",
    "Letters beyond ASCII look dropped or replaced, as encode does with errors=: encode as UTF-8, which has them all.",
)
KEY_IGNORES_ID_ORDER = define(
    "key-ignores-id-order",
    "ids in another order give the same key",
    "Ids in another order, or with the same sum, give the same key: a key depends on each id and its place.",
)
KEY_SOME_IDS = define(
    "key-some-ids",
    "only some of the ids are in the key",
    "The key depends on some of the ids only: all of them count.",
)
KEY_IDS_WRAP = define(
    "key-ids-wrap",
    "ids kept in too few bits",
    "Ids that differ by a power of two give the same key: they look as if they were kept in too few bits.",
)
KEY_TOO_SHORT = define(
    "key-too-short",
    "keys collide",
    "The key has too few bits, so that different ids meet under one key by chance: keep the whole digest.",
)
KEY_RUNS_TOGETHER = define(
    "key-runs-together",
    "fields run together",
    'The fields are put together without a border that holds: what ends one field can begin the next, so "ab" with '
    '"c" equals "a" with "bc". Quote the fields, as json.dumps of a list does.',
)
KEY_SEPARATOR_IN_FIELD = define(
    "key-separator-in-field",
    "a field that holds the separator is ambiguous",
    "A field that holds the separator itself is ambiguous. Quote the fields, as json.dumps of a list does.",
)
KEY_IDS_RUN_TOGETHER = define(
    "key-ids-run-together",
    "ids run together",
    "The ids were put together without a separator, so [1, 23] and [12, 3] are one.",
)
KEY_SALTED = define(
    "key-salted",
    "the key differs between processes",
    "It looks as if hash() or the order of a set were used: for texts both are others in every Python process, so "
    "nothing is found again after a restart. Use hashlib.",
)
KEY_BY_IDENTITY = define(
    "key-by-identity",
    "equal texts give another key when they are one object",
    "The key depends on whether two equal texts are one object in memory, as what pickle and marshal write does: use "
    "json.dumps.",
)
KEY_FIELDS_EXCHANGED = define(
    "key-fields-exchanged",
    "fields are not told apart",
    "Two fields that exchange their values give the same key: each field has its own place.",
)
KEY_NEVER_FOUND = define(
    "key-never-found",
    "equal arguments, different keys",
    "Equal arguments gave different keys, so an entry would never be found again.",
)
KEY_NORMALIZED = define(
    "key-normalized",
    "texts are changed before they are compared",
    "Texts that differ only in case, in blanks or in how a path is written gave the same key: take each text as it is.",
)
KEY_NUL_LOST = define(
    "key-nul-lost",
    "a NUL character at the end is lost",
    "A NUL character at the end of a text is lost, as in a key of hmac or in an array of texts of NumPy.",
)
KEY_EMPTY_LOST = define(
    "key-empty-lost",
    "empty texts are left out or replaced",
    "An empty text is left out, or something else stands for it, as `or` does: it is a text like any other.",
)
KEY_SEPARATOR_REPLACED = define(
    "key-separator-replaced",
    "separators in fields are replaced",
    "It looks as if the separator were taken out of the fields, or replaced there: then fields that differ in it are "
    "one. Quote the fields, as json.dumps of a list does.",
)
KEY_LONG_TEXT = define(
    "key-long-text",
    "raises for a long text",
    "Texts may have any length: a number of letters that is written in one byte or two has a limit.",
)
KEY_ADDED_UP = define(
    "key-added-up",
    "letters or ids are added up with a factor",
    "It looks as if letters or ids were added up with the powers of a factor: what is more in one place can be less in "
    "another. Use hashlib.",
)
KEY_BY_ARGUMENT_ORDER = define(
    "key-by-argument-order",
    "the key depends on the order of keywords",
    "The key depends on the order in which the arguments are named in the call: give the fields one order.",
)
KEY_OF_ONE_PROCESS = define(
    "key-of-one-process",
    "something of the process is in the key",
    "Something of the process itself is in the key, such as a random number drawn when the cell runs, the time, or a "
    "running number: nothing is found again after a restart.",
)

KEY_FIELDS = {
    "model": "another model's keys and values would be taken for its own",
    "tokenizer": "equal ids that stand for another text would match",
    "dtype": "the stored bytes would be read as other numbers",
    "layout": "the axes of the stored arrays would be taken for others",
    "positions": "keys made with other positions would be reused",
    "tenant": "one tenant's entry would serve another",
}
KEY_IGNORES = {
    field: define(
        f"key-ignores-{field}", f"{field} is not in the key", f"The key does not depend on the {field}, and so {why}."
    )
    for field, why in KEY_FIELDS.items()
}
