# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 5. How prefix reuse fails
#
# A reused prefix cache is right only if three things hold: the positions continue, the saved cache stays as it was, and
# the new prompt really begins with the saved ids. When one of them fails, nothing crashes. Either the answers are
# wrong, or they are right and every request pays the full price, and nobody is told. In this notebook each failure is
# reproduced, measured, and diagnosed, from section c on with tools that you write; then it is repaired. The token
# counts are those of failures that happened in practice.
#
# **You will build:** a count of the shared prefix, a log of lookup decisions, the lookup itself, a one-line diagnosis
# of a miss, a chat template and a prompt that reuse well, and the key under which a saved cache may be found.
#
# **Time:** about 5 hours. **You should know:** stages 3 and 4 (prefill, decode, saving and reusing a cache). What
# they built is in `given.py`. `autograder.glossary("tenant")` explains a term, `autograder.glossary()` all.

# %% setup="imports"
import hashlib
import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from given import ModelCache, decode_step, forward, generate_with_prefix, prefill, save_prefix_cache, softmax

import autograder
from autograder.toolkit import chat_lab, reuse_costs
from autograder.toolkit.passage import PASSAGE
from autograder.toolkit.prompts import filler

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()

# %% setup="entry-and-template"
START = "<|endoftext|>"  # begins every message; a special token, one id
NO_THOUGHT = "[think]"  # an empty think block: the model is asked to answer at once
GENERATION_PROMPT = f"{START}assistant\n{NO_THOUGHT}"  # where the model takes over


@dataclass(frozen=True, eq=False)
class Entry:
    """One saved prefix: its token ids, and the ModelCache made from them (None where only the ids matter)."""

    token_ids: list[int]
    cache: Any = None
    name: str = ""


def drifting_render_chat(messages, add_generation_prompt=False):
    """A chat template with a fault, which you will find."""
    text = ""
    for message in messages:
        text += f"{START}{message['role']}\n{message['content']}"
    if add_generation_prompt:
        text += GENERATION_PROMPT
    return text


# %% [markdown]
# ## The idea
#
# A saved cache belongs to a list of token ids: the *entry's* ids. A new request has a list of ids too: its prompt.
# The entry can be reused when all its ids are the first ids of the prompt. One different token, and every key and
# value after it differs: each of them depends on all tokens before.
#
# So the question about every failure is the same: **at which token do the two lists diverge, and why?** The picture
# shows two prompts that a person would call the same conversation. The stored one was saved while the assistant was
# about to answer. The live one comes a turn later. They share a beginning, and then they do not.

# %% tags=["chart"]
first_turn = [{"role": "user", "content": "Who?"}]
second_turn = [*first_turn, {"role": "assistant", "content": "Henry."}, {"role": "user", "content": "And now?"}]
prompts = {"stored": first_turn, "live": second_turn}
small = {name: tokenizer.encode(drifting_render_chat(turn, True)) for name, turn in prompts.items()}
autograder.charts.token_strip(
    {name: ["START" if t == START else t for t in tokenizer.tokens(ids)] for name, ids in small.items()},
    title="One conversation, two prompts: where do they diverge?",
    note="Each box is one token. START stands for the special token <|endoftext|>, which begins each message.",
)  # fmt: skip

# %% [markdown]
# ## Tools for measuring
#
# The trained model sees 512 tokens, and some failures need thousands. For these, costs are measured on a model with
# random weights and room for 8,192 tokens, `long`. What it would say is meaningless; what it costs is real.
#
# A cost has three figures. *Tokens*: how many go through the model. *Attention units*: for each of these tokens, 2 for
# every token before it and 1 for itself, which adds up to `total² - reused²`. That is 196 for 14 tokens cold, which
# means with nothing reused, and 96 with 10 of them reused. *Seconds*: measured, the median of three runs, or one run
# where it takes long. On a busy machine the seconds can be twice as many; tokens and units stay.
#
# `record` keeps a line for the table at the end of the notebook.

# %% tags=["chart"]
long = reuse_costs.LongModel(prefill, ModelCache, tokenizer.n_vocab)
cost, failures = long.cost, {}


def saved_entry(token_ids, name=""):
    """An entry of the long model."""
    return Entry(token_ids, long.save(token_ids), name)


def record(failure, diverged, effect):
    """Keep a line for the table of failure modes; a cell that is run again replaces its line."""
    failures[failure] = {"failure": failure, "where it diverged": diverged, "effect": effect}


print("One warm-up run of 1,000 tokens:", cost(list(range(1000))))

# %% [markdown]
# ## a. Positions that do not continue
#
# GPT-2 adds row p of `wpe` to the token at position p. A suffix after a prefix of 200 tokens starts at position 200.
# Common mistakes are to start again at 0 (*position reset*), or one off, here at 201 (*shift by one*, from counting
# one token too many). Neither raises an error: rows 0 and 201 of `wpe` exist.
#
# The next cells save a prefix of a play once, and continue it three ways on the trained model. At every length of the
# suffix, the logits are compared with those of a whole forward pass.

# %% tags=["chart"]
position_off = autograder.guess("The suffix starts one position late. How far off is the worst logit?")
position_off

# %% tags=["chart"]
play_ids = tokenizer.encode(PASSAGE)
prefix_ids, suffix_ids = play_ids[:200], play_ids[200:264]
saved = save_prefix_cache(prefix_ids, weights)
truth = forward(prefix_ids + suffix_ids, weights)[len(prefix_ids) :]  # row i: the logits after suffix token i


def errors_from(start):
    """The largest error of a logit after each suffix token, when the suffix starts at position `start`."""
    cache = saved.clone()
    logits = [decode_step(token_id, start + i, weights, cache) for i, token_id in enumerate(suffix_ids)]
    return abs(np.stack(logits) - truth).max(axis=1)


# %% tags=["chart"]
starts = {"starts again at 0": 0, "starts at 201": 201, "starts at 200": 200}
position_errors = {name: errors_from(start) for name, start in starts.items()}
lengths = range(1, len(suffix_ids) + 1)
autograder.charts.line_chart(
    {name: (lengths[::3], errors[::3]) for name, errors in position_errors.items()}, x_label="length of the suffix",
    x_unit="tokens", y_label="largest error of a logit", log="y", model=weights,
    title="A suffix after 200 cached tokens, by the position it starts at",
).show()  # fmt: skip
position_off.beside(position_errors["starts at 201"].max())

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A right continuation differs from the whole pass by rounding alone, about 0.00001. The two wrong ones are off by ten
# thousand times as much or more, from the first suffix token on, and a longer suffix does not help. Being off by one
# row is no small mistake.
#
# </details>
#
# Now read what the model writes. Would you notice? Three texts are sampled with the same random numbers. (`MODEL =
# "gpt2"` lets the real GPT-2 write, after `autograder fetch gpt2`; where it was not fetched, the cell says so.)


# %% tags=["chart"]
MODEL = None  # or "gpt2"
writer, words = autograder.load_both(MODEL)
begin, more = words.encode(PASSAGE[:500]), words.encode(PASSAGE[500:520])


# %% tags=["chart"]
def text_from(shift, n_new=60):
    """Text after the saved prefix and some tokens more, with every position after the prefix moved by `shift`."""
    cache, ids, dice = save_prefix_cache(begin, writer), list(more), np.random.default_rng(5)
    for i in range(len(more) + n_new):
        logits = decode_step(ids[i], len(begin) + shift + i, writer, cache).astype(float)
        if i >= len(more) - 1:
            ids.append(int(dice.choice(len(logits), p=softmax(logits / 0.7))))
    return words.decode(ids)


# %% tags=["chart"]
for name, shift in (("right", 0), ("starting again at 0", -len(begin)), ("one position late", 1)):
    print(f"--- positions {name}\n{text_from(shift)}\n")
for name, label in (("positions reset", "starts again at 0"), ("positions shifted by one", "starts at 201")):
    errors = position_errors[label]
    record(name, "nowhere: the ids are equal", f"logits off by {min(errors):.2g} to {max(errors):.2g}, no error")

# %% [markdown]
# ## b. A saved cache that is changed by using it
#
# `generate_with_prefix` works on a clone. What if it did not? The next cells serve three requests, with the suffixes
# A, B and A again, from one saved cache, with a clone and without one.

# %% tags=["chart"]
first_wrong = autograder.guess(
    "Without a clone, which of the three answers is wrong first?", choices=["A", "B", "the second A", "none"]
)
first_wrong


# %% tags=["chart"]
def careless_reuse(saved, suffix_ids):
    """Continues in the saved cache itself."""
    for token_id in suffix_ids:
        logits = decode_step(token_id, len(saved), weights, saved)
    return logits


def error_of(logits, suffix):
    """How far logits are off from those of the prefix and this suffix."""
    return abs(logits - forward(prefix_ids + suffix, weights)[-1]).max()


# %% tags=["chart"]
suffix_a, suffix_b = tokenizer.encode("CLARENCE:\nSpeak on."), tokenizer.encode("HASTINGS:\nWhat news, my lord?")
ways = {"clone": lambda saved, ids: generate_with_prefix(saved, 200, ids, weights), "no clone": careless_reuse}
for name, reuse in ways.items():
    shared = save_prefix_cache(prefix_ids, weights)
    for request, suffix in (("A", suffix_a), ("B", suffix_b), ("A", suffix_a)):
        before, error = len(shared), error_of(reuse(shared, suffix), suffix)
        print(f"{name:9} request {request}: saved length {before} -> {len(shared)}, largest error {error:.2g}")
first_wrong.beside("B")

# %% tags=["chart"]
inherited = forward(prefix_ids + suffix_a + suffix_b, weights)[-1]
shared = save_prefix_cache(prefix_ids, weights)
careless_reuse(shared, suffix_a)
second = careless_reuse(shared, suffix_b)
print(f"B's logits against those of prefix + A + B: {abs(second - inherited).max():.2g}")
effect = f"2nd request off by {error_of(second, suffix_b):.2g}: it inherits the 1st one's tokens"
record("saved cache mutated", "nowhere: the ids are equal", effect)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# With a clone, the length stays 200 and all three answers are right. Without, the first
# request is right, which is why a test with one request passes. The second one continues the first one's text: its
# logits are exactly those of prefix + A + B. If A and B came from two people, one has just read what the other wrote.
#
# </details>
#
# In a and b the answers were wrong. In c to f they are right, and the work is done for nothing.

# %% [markdown]
# ## c. Ranking is not matching
#
# ### The first tool: how many ids are shared
#
# Write the function on which every diagnosis below rests.


# %% solution="longest-common-prefix"
def longest_common_prefix(a, b):
    """How many ids the two lists share from the start, as an int.

    a, b: lists of token ids, of any lengths; either may be empty.
    Counting ends at the first difference: [5, 7, 9, 2] and [5, 7, 8, 2] share 2. Where one list is the beginning of
    the other, the result is the length of the shorter one. There is no error to raise.
    """
    ### BEGIN SOLUTION
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n
    ### END SOLUTION


# %% check="common-prefix"
autograder.check("common-prefix")

# %% [markdown]
# <details><summary>Hint</summary>
#
# `zip(a, b)` ends with the shorter list, so no index can run past an end. Count until the first pair that differs.
# Compare ids with `==` or `!=`; `is` asks whether two objects are one, which is another question.
#
# </details>
#
# ### The log of a lookup
#
# A server holds several entries (the class `Entry` is in the second setup cell). For a new prompt it wants the
# longest one that can be reused. Two conditions decide:
#
# - **the key**: all ids of the entry are the first ids of the prompt. A *near miss*, equal but for the last id, is a
#   miss.
# - **the gate**: the entry is shorter than the prompt, `n < len(prompt)`. It must leave at least one token, because
#   the logits of the next token come from computing the last token of the prompt, and the cache holds keys and values
#   only.
#
# An entry that passes both is a *hit* in the log. Before you write the lookup, write its log. A lookup that only
# returns an entry cannot be diagnosed; one that says for each candidate what was decided, and by which figures, can.


# %% solution="candidate-log"
def candidate_log(entries, prompt_ids):
    """What is decided about each entry, and by which figures: a list of dicts, one for each entry, in their order.

    entries: a sequence of objects with .token_ids, maybe empty. prompt_ids: a list of at least one id.
    The keys of each dict:
        "n": the number of ids of the entry
        "common": how many ids entry and prompt share from the start
        "gate": True when the entry is shorter than the prompt
        "key": True when all ids of the entry are the first ids of the prompt
        "hit": True when both are True
    """
    ### BEGIN SOLUTION
    rows = []
    for entry in entries:
        n = len(entry.token_ids)
        common = longest_common_prefix(entry.token_ids, prompt_ids)
        gate, key = n < len(prompt_ids), common == n
        rows.append({"n": n, "common": common, "gate": gate, "key": key, "hit": gate and key})
    return rows
    ### END SOLUTION


# %% check="log-of-candidates"
autograder.check("log-of-candidates")

# %% [markdown]
# <details><summary>Hint</summary>
#
# The key condition needs no second comparison of ids: all ids of the entry match exactly when `common` equals `n`.
# An entry longer than the prompt can share at most `len(prompt_ids)` ids, so it never passes.
#
# </details>
#
# ### The lookup


# %% solution="lookup"
def lookup(entries, prompt_ids):
    """The entry to reuse for a prompt: the very object out of `entries`, or None.

    entries: a sequence of objects with .token_ids, in any order, maybe empty. prompt_ids: a list, not empty.
    Only whole entries count: all ids of the entry begin the prompt, and at least one token of the prompt is left.
    Of those, the longest is returned, or any of them where the same ids are stored twice; None where there is none.
    """
    ### BEGIN SOLUTION
    rows = candidate_log(entries, prompt_ids)
    hits = [entry for entry, row in zip(entries, rows, strict=True) if row["hit"]]
    return max(hits, key=lambda entry: len(entry.token_ids), default=None)
    ### END SOLUTION


# %% check="lookup-longest-entry"
autograder.check("lookup-longest-entry")

# %% check="lookup-leaves-a-token"
autograder.check("lookup-leaves-a-token")

# %% [markdown]
# <details><summary>Hint</summary>
#
# First keep the entries whose row in the log says hit, then take the longest of them. The other order, first the
# longest and then a test of it, misses a shorter entry that fits. `max` takes a `key` and a `default` for an empty
# list.
#
# </details>
#
# ### The failure, measured
#
# A server has a system prompt of 2,328 tokens. A request of 2,432 tokens arrives: the system prompt and 104 more.
# The same request came once before, so there is also an entry of all 2,432. Five entries are stored:
#
# | entry | its ids |
# |---|---|
# | first rules | the first 400 of the system prompt |
# | other system | another system prompt, 2,360 |
# | system | the system prompt, 2,328 |
# | this prompt | the whole prompt of the request, 2,432 |
# | with answer | the same, and a few ids of an answer |
#
# The lookup below is the one the server had. It ranks the entries by length, with `n <= len(prompt)`, and takes the
# longest whose ids match.

# %% tags=["chart"]
taken = autograder.guess(
    "Which entry does the server's lookup take?",
    choices=["first rules", "system", "this prompt", "with answer", "none"],
)
taken


# %% tags=["chart"]
def encode_chat(*messages, asked=False):
    """The ids of messages given as (role, content)."""
    return tokenizer.encode(drifting_render_chat([{"role": r, "content": c} for r, c in messages], asked))


def system_ids(content):
    return encode_chat(("system", content))


def ask(question):
    return encode_chat(("system", system), ("user", question), asked=True)


system = filler(2328, lambda text: len(system_ids(text)))
question = filler(2432, lambda text: len(ask(text)), seed=1)
prompt_ids = ask(question)

# %% tags=["chart"]
other_system = filler(2360, lambda text: len(system_ids(text)), seed=2)
ids_of = {
    "first rules": system_ids(system)[:400],
    "other system": system_ids(other_system),
    "system": system_ids(system),
    "this prompt": prompt_ids,
    "with answer": prompt_ids + tokenizer.encode("Well, sir."),
}
entries = [saved_entry(ids, name) for name, ids in ids_of.items()]


# %% tags=["chart"]
def ranking_lookup(entries, prompt_ids):
    """The longest entry with n <= len(prompt_ids) whose ids begin the prompt; prints what it decides."""
    fitting = []
    for entry in entries:
        n = len(entry.token_ids)
        gate, key = n <= len(prompt_ids), entry.token_ids == prompt_ids[:n]
        print(f"  {entry.name:12}  n {n:,}  gate {gate!s:5}  key {key!s:5}  hit {gate and key}")
        fitting += [entry] * (gate and key)
    return max(fitting, key=lambda entry: len(entry.token_ids), default=None)


# %% tags=["chart"]
def serve_quietly(prompt_ids, find):
    """The server's code. When reuse fails for any reason, it computes the whole prompt."""
    try:
        entry = find(entries, prompt_ids)
        suffix = prompt_ids[len(entry.token_ids) :]
        if not suffix:
            raise ValueError("the suffix is empty")
        return entry, cost(prompt_ids, entry)
    except Exception:
        return None, cost(prompt_ids)


# %% tags=["chart"]
print(f"prompt: {len(prompt_ids):,} tokens. The server's lookup:")
entry, ranking_cost = serve_quietly(prompt_ids, ranking_lookup)
print("  reused:", entry.name if entry else "nothing", "|", ranking_cost)
taken.beside("this prompt", "It leaves nothing to compute, and so nothing of it is reused.")

# %% [markdown]
# Every `key` in the log that should be True is True. The entry of 2,432 is chosen because it is the longest. It leaves
# an empty suffix, the reuse raises, the `except` catches it, and the whole prompt is computed. The answer is right.
# The entry of 2,328, which would have left 104 tokens, lost for being shorter. In the log above, compare the column
# `n` with the prompt's length: there is the fault.
#
# Now your lookup and your log.

# %% tags=["chart"]
print(f"prompt: {len(prompt_ids):,} tokens. Your lookup:")
for entry, row in zip(entries, candidate_log(entries, prompt_ids), strict=True):
    print(f"  {entry.name:12}", "  ".join(f"{key} {value!s:5}" for key, value in row.items()))
entry, lookup_cost = serve_quietly(prompt_ids, lookup)
print("  reused:", entry.name if entry else "nothing", "|", lookup_cost)
diverged = f"nowhere: {len(prompt_ids):,} of {len(prompt_ids):,} ids equal"
record("ranking, not matching", diverged, ranking_cost.against(lookup_cost))

# %% tags=["chart"]
times = {"n <= len(prompt)": ranking_cost.time, "n < len(prompt)": lookup_cost.time}
title = f"One comparison: {ranking_cost.tokens:,} tokens computed, or {lookup_cost.tokens:,}"
autograder.charts.bar_chart(times, label="time to the first logits", title=title, model=long.weights)

# %% [markdown]
# ### Repair the server
#
# The wrong comparison is one fault. The other is the `except`: it hid the first for as long as the server ran. A server
# may fall back to recomputing, but it must say so. The next class stands for a server whose parts behave as one word
# tells them to, so that each case can be tried.


# %% setup="scripted-server"
@dataclass
class ScriptedServer:
    """A server's parts. outcome: "hit" (an entry is found), "miss" (none is), "raises" (the reuse of it fails)."""

    outcome: str

    def find(self):
        return None if self.outcome == "miss" else "entry"

    def reuse(self, entry):
        if self.outcome == "raises":
            raise ValueError("the suffix is empty")
        return "logits by reuse"

    def recompute(self):
        return "logits by recompute"


# %% solution="serve-openly"
def serve_openly(server):
    """Answer one request: (the logits, a line for the log).

    server.find() gives an entry or None, server.reuse(entry) gives logits or raises, and server.recompute() gives
    logits. Without an entry, and where the reuse raises, the logits are recomputed.
    The line is "hit", "miss", or "failed: " and what the error says.
    """
    ### BEGIN SOLUTION
    entry = server.find()
    if entry is None:
        return server.recompute(), "miss"
    try:
        return server.reuse(entry), "hit"
    except Exception as error:
        return server.recompute(), f"failed: {error}"
    ### END SOLUTION


# %% check="step-serve-openly"
autograder.check("step-serve-openly")

# %% [markdown]
# A line that says `failed` can be counted, and an alarm can be set on the count. In the log of the old server, the same
# request was a miss like any other. Here is the log of twelve requests, counted.

# %% tags=["chart"]
outcomes = ["hit"] * 6 + ["miss"] * 2 + ["raises"] * 4
log = [serve_openly(ScriptedServer(outcome))[1] for outcome in outcomes]
for line in dict.fromkeys(log):
    print(f"{log.count(line):2} x {line}")

# %% [markdown]
# ## A miss that explains itself
#
# A miss costs as much as a server without a cache, and the answer does not show it. So it has to be logged, with its
# reason. One line is enough to begin with: how much of the entry matched, and which token came next on each side.


# %% solution="explain-miss"
def explain_miss(stored_ids, live_ids):
    """One line that says where a stored entry and a live prompt diverge.

    stored_ids, live_ids: lists of token ids, of any lengths; either may be empty.
    For stored [5, 7, 9, 2] and live [5, 7, 8], where 2 ids are shared from the start and 4 are stored, the line is

        common=2 of 4; stored next: 9; live next: 8

    The last two numbers are the first id after the shared ones on each side; without an id there, it says `end`.
    For stored [5, 7] and live [5, 7, 8]:

        common=2 of 2; stored next: end; live next: 8
    """
    ### BEGIN SOLUTION
    common = longest_common_prefix(stored_ids, live_ids)

    def next_id(ids):
        return ids[common] if common < len(ids) else "end"

    return f"common={common} of {len(stored_ids)}; stored next: {next_id(stored_ids)}; live next: {next_id(live_ids)}"
    ### END SOLUTION


# %% check="miss-explained"
autograder.check("miss-explained")

# %% [markdown]
# <details><summary>Hint</summary>
#
# After `common` shared ids, the next one is `ids[common]`, if the list is that long. Return the line; printing it is
# up to the caller.
#
# </details>
#
# Try it on the two prompts of the picture at the top: which token comes next on each side?

# %% tags=["chart"]
print(explain_miss(small["stored"], small["live"]))
for name, ids in small.items():
    next_id = ids[longest_common_prefix(small["stored"], small["live"])]
    print(f"{name}: {next_id} is the token {tokenizer.tokens([next_id])[0]!r}")

# %% [markdown]
# ## d. Template drift
#
# A *template* writes the messages of a chat as one string. This one begins each message with `START`, the role and a
# newline. `START` is a special token: the tokenizer never merges anything with it, so messages cannot run together.
# The *generation prompt* at the end opens the assistant's message. It also holds an empty think block, `[think]`,
# which tells the model to answer without thinking aloud. The block must stay there: without it the model would be asked
# for something else.
#
# `drifting_render_chat` (in the second setup cell) puts the block into the generation prompt. But when the answer has
# become history, it writes the assistant's message without the block. The same words become different tokens at the two
# times.
#
# The next cells build a long first turn, which the server stores while it answers, and the second turn.


# %% tags=["chart"]
def first_messages(system):
    question = "Which of the parts is still to be given, and to whom?"
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def second_messages(letter):
    answer = {"role": "assistant", "content": "The part of the messenger. Give it to Peter."}
    question = f"Here is his letter. What do I answer? {letter}"
    return [*first_messages(rules), answer, {"role": "user", "content": question}]


def drifted(messages):
    return tokenizer.encode(drifting_render_chat(messages, add_generation_prompt=True))


# %% tags=["chart"]
rules = filler(5923, lambda text: len(drifted(first_messages(text))))
letter = filler(7380, lambda text: len(drifted(second_messages(text))), seed=1)
turn_1, turn_2 = first_messages(rules), second_messages(letter)
stored_ids, live_ids = drifted(turn_1), drifted(turn_2)
print(f"stored {len(stored_ids):,}, live {len(live_ids):,}")
print(explain_miss(stored_ids, live_ids))
for name, ids in (("stored", stored_ids), ("live", live_ids)):
    print(name, "continues with", tokenizer.tokens(ids[5919:5923]))

# %% [markdown]
# Of 5,923 stored tokens 5,919 match. Four do not: the empty think block. Only whole entries count, so 7,380 tokens
# are computed.
#
# Repair the template. The rule it has to keep: **the prompt of turn n, followed by the answer, is the beginning of
# the prompt of turn n + 1.**


# %% solution="render-chat"
def render_chat(messages, add_generation_prompt=False):
    """The messages as one string, in which turn n's prompt and its answer are the beginning of turn n + 1's prompt.

    messages: a list of dicts with the keys "role" ("system", "user", "assistant", "context") and "content", a
    string of any kind: empty, with spaces and newlines at its ends, or with the template's own markers in it.
    Each message becomes START, its role, a newline, and its content, unchanged. A message of the assistant has
    NO_THOUGHT before its content, as the model had it in front of it when it answered.
    With add_generation_prompt=True the string ends with GENERATION_PROMPT.
    No messages give an empty string, or the generation prompt alone.
    """
    ### BEGIN SOLUTION
    text = ""
    for message in messages:
        thought = NO_THOUGHT if message["role"] == "assistant" else ""
        text += f"{START}{message['role']}\n{thought}{message['content']}"
    return text + GENERATION_PROMPT if add_generation_prompt else text
    ### END SOLUTION


# %% check="turn-is-a-prefix"
autograder.check("turn-is-a-prefix")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Write down the end of the text that the model sees when it answers, and the same place in the next turn's text. They
# differ in one thing, so `drifting_render_chat` needs one more line. Leave the contents alone: no `strip`, no
# `replace`, no test for an empty one. The model's answer is in the cache as it was generated, with every space.
#
# </details>
#
# ### Two call sites
#
# The server calls the template in two places. `remember` runs while it answers, and stores the prompt. `request` runs
# when the next prompt comes, and looks it up. Each has its own copy of the template:
#
#     def remember(messages):  return tokenizer.encode(template_of_remember(messages, add_generation_prompt=True))
#     def request(messages):   return tokenizer.encode(template_of_request(messages, add_generation_prompt=True))
#
# You have a repaired `render_chat`. You look at the stored ids, see the think block at their end, and repair
# `remember`. Which line will `explain_miss` print after this repair?


# %% tags=["chart"]
half_repair = autograder.guess(
    "After the repair of `remember` alone, how does the line begin?",
    choices=["common=5919 of 5923, as before", "common=5923 of 5923", "common=5923 of 5927"],
)
half_repair


# %% tags=["chart"]
def diagnose(template_of_remember, template_of_request):
    """What explain_miss says about the two turns, for each call site's template."""
    stored = tokenizer.encode(template_of_remember(turn_1, add_generation_prompt=True))
    live = tokenizer.encode(template_of_request(turn_2, add_generation_prompt=True))
    return explain_miss(stored, live)


print("nothing repaired:   ", diagnose(drifting_render_chat, drifting_render_chat))
print("`remember` repaired:", diagnose(render_chat, drifting_render_chat))
half_repair.beside("common=5919 of 5923, as before")

# %% [markdown]
# The two lines are equal, to the last digit. It looks as if the repair had not been loaded, or as if the cause were
# elsewhere. Many people undo a correct repair at this point.
#
# Look again at the line: `live next` is the first token of the answer. The side that lacks the block is the *live*
# one, and `request` still has the old template. The stored prompt of a first turn has no assistant message in it, so
# for this prompt both templates write the same text.
#
# The next cell repairs both, and shows what the other half repair does in a conversation with one more turn. The cell
# after it shows a near relative of the drift: an answer ended with a newline, and the program that writes the history
# strips it off.

# %% tags=["chart"]
print("both repaired:               ", diagnose(render_chat, render_chat))
turn_3 = [*turn_2, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And if he will not?"}]
stored_2 = tokenizer.encode(drifting_render_chat(turn_2, add_generation_prompt=True))
live_3 = tokenizer.encode(render_chat(turn_3, add_generation_prompt=True))
print("only `request`, a turn later:", explain_miss(stored_2, live_3))

# %% tags=["chart"]
answer, thanks = {"role": "assistant", "content": "Give it to Peter.\n"}, {"role": "user", "content": "I will."}
stripped = {"role": "assistant", "content": "Give it to Peter."}
as_generated = tokenizer.encode(render_chat([*turn_1, answer]))
in_history = tokenizer.encode(render_chat([*turn_1, stripped, thanks], add_generation_prompt=True))
print("answer stripped in history:", explain_miss(as_generated, in_history))

# %% [markdown]
# What does the drift cost in the long run? Count the tokens that a conversation of six turns has computed so far. Each
# turn stores its prompt for the next one; an entry that does not match is of no use.

# %% tags=["chart"]
more_paid = autograder.guess("After six turns: how many times as many tokens has the drift computed?", unit="times")
more_paid


# %% tags=["chart"]
def paid_by_turn(render):
    messages, entries, paid = [turn_1[0]], [], []
    for turn in range(1, 7):
        messages.append({"role": "user", "content": f"What is said in scene {turn}?"})
        live = tokenizer.encode(render(messages, add_generation_prompt=True))
        found = lookup(entries, live)
        paid.append(len(live) - (len(found.token_ids) if found else 0))
        entries = [Entry(live)]
        messages.append({"role": "assistant", "content": "That the king is dead, my lord."})
    return np.cumsum(paid)


# %% tags=["chart"]
templates = {"drifting template": drifting_render_chat, "repaired": render_chat}
paid = {name: paid_by_turn(render) for name, render in templates.items()}
autograder.charts.line_chart(
    {name: (range(1, 7), tokens) for name, tokens in paid.items()}, x_label="turn", y_label="computed so far",
    y_unit="tokens", title="Drift is paid at every turn",
).show()  # fmt: skip
more_paid.beside(paid["drifting template"][-1] / paid["repaired"][-1])

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Two lines that begin at one point. The repaired one stays nearly flat, the drifting one rises by the whole
# conversation at every turn.
#
# </details>
#
# And what a single turn costs, in seconds too:

# %% tags=["chart"]
good_stored = saved_entry(tokenizer.encode(render_chat(turn_1, add_generation_prompt=True)))
good_live = tokenizer.encode(render_chat(turn_2, add_generation_prompt=True))
drift_cost = cost(live_ids, lookup([Entry(stored_ids)], live_ids))
repaired_cost = cost(good_live, lookup([good_stored], good_live))
print("drifting:", drift_cost)
print("repaired:", repaired_cost)
diverged = f"token {longest_common_prefix(stored_ids, live_ids):,} of {len(stored_ids):,} stored"
record("template drift", diverged, drift_cost.against(repaired_cost))

# %% [markdown] written="two-call-sites" points=2
# **Question 1 (2 points).** Why did repairing `remember` alone change nothing in the diagnosis, although the repair
# was right and necessary? What would you change in the server's code so that this cannot happen again, and which
# one-line test would have found the drift before any user did? Answer in four sentences at most.
#
# ### BEGIN SOLUTION
# **Rubric.** 1 point: the line compares the output of two call sites, and the stored prompt of a first turn holds no
# assistant message, so both templates give the same stored text; the block is missing on the live side, which
# `request` writes with the old template. 1 point: one function builds the prompt and both sites call it (half), and a
# test asserts the property itself (half): `render_chat(turn_2, True).startswith(render_chat(turn_1, True) + answer)`,
# or that the entry stored by one site is found by the other.
# ### END SOLUTION

# %% [markdown]
# ## e. A system block that changes
#
# An *agent* is a program that lets a model work in steps. At each step, the program recalls a note that may help and
# writes it into the system prompt, after the first 314 tokens. The note is chosen by the *newest* message, so at almost
# every step it is another one. Here are six steps of such a conversation; the last prompt has 4,748 tokens.

# %% tags=["chart"]
notes = {
    "sword": "Swords are kept in the chest by the wall, and counted twice.",
    "letter": "A letter is read to the master first.",
    "crown": "Crown and ring lie in the queen's box.",
    "bell": "Ring the second bell when the house is full.",
    "door": "Keep the great door shut in the last scene.",
    "horse": "No horse comes on before the third act.",
}

# %% tags=["chart"]
talk = []
for thing in notes:
    talk.append({"role": "user", "content": f"What do I do about the {thing}?"})
    talk.append({"role": "assistant", "content": f"As the rule says of the {thing}, my lord."})
steps = [talk[: 2 * i + 1] for i in range(len(notes))]  # what was said up to each step


def recall(message):
    """The note that goes with a message."""
    return next(note for thing, note in notes.items() if thing in message["content"])


# %% tags=["chart"]
def agent_prompt(note, messages, rest=""):
    """The prompt of one step, with the note in the middle of the system message."""
    system = {"role": "system", "content": f"{head}\n{note}\n{rest}"}
    return tokenizer.encode(render_chat([system, *messages], add_generation_prompt=True))


head = filler(314, lambda text: len(tokenizer.encode(f"{START}system\n{text}\n")))
rest = filler(4748, lambda text: len(agent_prompt(recall(steps[-1][-1]), steps[-1], text)), seed=1)
by_newest = [agent_prompt(recall(messages[-1]), messages, rest) for messages in steps]
by_first = [agent_prompt(recall(messages[0]), messages, rest) for messages in steps]

# %% tags=["chart"]
part_lost = autograder.guess("The note at token 314 of 4,748 changes. How much is recomputed?", unit="%")
part_lost


# %% tags=["chart"]
def shared_by_step(prompts):
    """For each step after the first: (ids shared with the step before, ids in all)."""
    return [(longest_common_prefix(old, new), len(new)) for old, new in pairwise(prompts)]


for name, prompts in (("newest message", by_newest), ("first message", by_first)):
    print(f"note chosen by the {name}:")
    for step, (common, n) in enumerate(shared_by_step(prompts), 2):
        print(f"  step {step}: {common:,} of {n:,} shared, {(n - common) / n:.1%} recomputed")
part_lost.beside(100 * (1 - longest_common_prefix(*by_newest[-2:]) / len(by_newest[-1])))

# %% [markdown]
# Chosen by the newest message, the note changes token 314 of 4,748, and 93% of the prompt is recomputed at each step,
# including the rules and the whole conversation after the note. Chosen by the *first* message, it stays the same as
# long as the conversation lasts, and only the new messages are computed. That is one repair. It has a price: the note
# no longer fits the newest message.
#
# The other repair keeps the newest note, and puts it where nothing comes after it. What changes goes last.
#
# ### A prompt in the right order
#
# `build_prompt` puts the parts of a prompt in an order that reuses well. The descriptions of the tools, which a
# program may hand over with their keys in any order, are written in one fixed order (*canonical* JSON).


# %% solution="build-prompt"
def build_prompt(system, tools, messages, now=None, notes=()):
    """A whole prompt as a string: what stays the same first, what changes from call to call last.

    system: a string. tools: a list of dicts, such as json.dumps takes. messages: the conversation, as render_chat
    takes it. now: the time as a string, not empty and without a newline, or None. notes: recalled notes, a list of
    such strings, maybe empty.
    What render_chat makes of these, in this order:
        1. a message with the role "system": the text `system`, a newline, and the tools as one JSON list, with
           nothing after it. The order of a dict's keys makes no difference at any depth; the order of a list stays.
        2. the messages, all of them and as they are
        3. one message with the role "context": the time and then the notes, in their order, each on its own line.
           Without a time there is no line for it; without a time and notes there is no such message.
        4. the generation prompt
    """
    ### BEGIN SOLUTION
    tools_json = json.dumps(tools, sort_keys=True)
    changing = ([] if now is None else [now]) + list(notes)
    parts = [{"role": "system", "content": f"{system}\n{tools_json}"}, *messages]
    if changing:
        parts.append({"role": "context", "content": "\n".join(changing)})
    return render_chat(parts, add_generation_prompt=True)
    ### END SOLUTION


# %% check="volatile-last"
autograder.check("volatile-last")

# %% check="canonical-tools"
autograder.check("canonical-tools")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Make one list of messages and hand it to `render_chat` with `add_generation_prompt=True`. Make a new list:
# `[first, *messages]` leaves the caller's `messages` as it was, and `messages.append(...)` does not.
# `json.dumps` has an option `sort_keys`, which sorts at every depth.
#
# </details>
#
# First a small prompt, to look at. Then the same six steps with the newest note last: the chart counts the tokens
# that have to be computed after step 1.

# %% tags=["chart"]
print(build_prompt("Be brief.", [{"name": "find_scene"}], steps[0], now="It is 9:31.", notes=["It rains."]))

# %% tags=["chart"]
note_fewer = autograder.guess(
    "In the system block, the newest note costs how many times as much as at the end?", unit="times"
)
note_fewer

# %% tags=["chart"]
system = f"{head}\n{rest}"
last = [tokenizer.encode(build_prompt(system, [], said, notes=[recall(said[-1])])) for said in steps]
ways = {
    "newest note, in the system block": by_newest,
    "newest note, last": last,
    "first note, in the system block": by_first,
}

# %% tags=["chart"]
computed = {name: sum(n - common for common, n in shared_by_step(prompts)) for name, prompts in ways.items()}
title = "Where the note stands decides the cost"
autograder.charts.bar_chart(computed, label="computed in steps 2 to 6", unit="tokens", title=title).show()
note_fewer.beside(computed["newest note, in the system block"] / computed["newest note, last"])

# %% tags=["chart"]
note_cost = cost(by_newest[-1], saved_entry(by_newest[-1][:314]))
stable_cost = cost(by_first[-1], saved_entry(by_first[-1][: longest_common_prefix(*by_first[-2:])]))
print("step 6, note by the newest message:", note_cost)
print("step 6, note by the first message: ", stable_cost)
diverged = f"token {longest_common_prefix(*by_newest[-2:]):,} of {len(by_newest[-1]):,}"
part = f"{note_cost.tokens / len(by_newest[-1]):.0%} recomputed each step"
record("mutating system block", diverged, f"{part}; {note_cost.seconds:.2g} s, not {stable_cost.seconds:.2g} s")

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Over 20,000 tokens in the first case, a few hundred in the two others.
#
# </details>
#
# ## f. The same text, other tokens
#
# The remaining ways to lose a prefix are small. The next cells take one prompt of 200 tokens as stored, and change
# one thing at a time. For each change they show how many of the stored ids can be reused, and check that an answer
# from the reused part is still right: the saved cache is cut to the shared ids, and the rest of the live prompt is
# computed. (If everything is shared, one token is kept back.)

# %% tags=["chart"]
tool = {"name": "find_scene", "arguments": {"act": 1, "scene": 2}}
tool_swapped = {"arguments": {"scene": 2, "act": 1}, "name": "find_scene"}
question = [{"role": "user", "content": "Who comes on?"}]


def canonical(system, tools=tool, now=None):
    return tokenizer.encode(build_prompt(system, [tools], question, now=now))


def as_it_comes(system, tools=tool, before=""):
    """What many programs do: the time first, and the tools in the order in which they come."""
    first = {"role": "system", "content": f"{before}{system}\n{json.dumps([tools])}"}
    return tokenizer.encode(render_chat([first, *question], add_generation_prompt=True))


# %% tags=["chart"]
early, late = "Today is Monday. It is 9:31.", "Today is Monday. It is 9:32."
text = filler(200, lambda text: len(canonical(text)))
timed_first = filler(200, lambda text: len(as_it_comes(text, before=f"{early}\n")))
timed_last = filler(200, lambda text: len(canonical(text, now=early)))
plain_ids = canonical(text)

# %% tags=["chart"]
cases = {
    "time first": [as_it_comes(timed_first, before=f"{time}\n") for time in (early, late)],
    "time last": [canonical(timed_last, now=time) for time in (early, late)],
    "no time": (plain_ids, canonical(text)),
    "two keys swapped": (as_it_comes(text), as_it_comes(text, tool_swapped)),
    "two keys swapped, sorted": (plain_ids, canonical(text, tool_swapped)),
    "one more space": (plain_ids, canonical(text.replace(". ", ".  ", 1))),
    "start token doubled": (plain_ids, [tokenizer.eot_id, *plain_ids]),
}


# %% tags=["chart"]
def cut(saved, n):
    """A new cache with the first n positions of a saved one. They depend on nothing that comes after them."""
    part = ModelCache(len(saved.layers))
    for old, new in zip(saved.layers, part.layers, strict=True):
        new.append(old.keys[:, :n], old.values[:, :n])
    return part


# %% tags=["chart"]
doubled = autograder.guess("A second start token before the prompt: how many of 200 ids can be reused?")
doubled

# %% tags=["chart"]
reused = {}
for name, (stored, live) in cases.items():
    reused[name] = longest_common_prefix(stored, live)
    keep = min(reused[name], len(live) - 1)  # at least one token is left to compute
    logits = prefill(live[keep:], weights, cut(save_prefix_cache(stored, weights), keep))
    error = abs(logits - forward(live, weights)[-1]).max()
    print(f"{name:25} {explain_miss(stored, live):52} error {error:.0e}")
doubled.beside(reused["start token doubled"])

# %% tags=["chart"]
for name in ("time first", "two keys swapped", "one more space", "start token doubled"):
    stored, live = cases[name]
    record(name, f"token {reused[name]} of {len(stored)} stored", f"{1 - reused[name] / len(live):.0%} recomputed")
title = "One thing changed at a time"
autograder.charts.bar_chart(reused, label="shared with the stored prompt of 200", unit="tokens", title=title)

# %% [markdown]
# The answers are right in each case. A miss is a matter of cost, never of correctness, as long as ids are compared.
#
# The last way is the least visible: the text is the same, and its tokens are not. BPE, the method by which the
# tokenizer merges pieces of text into tokens, works on a whole text, so the tokens of two halves, put together, need
# not be the tokens of the whole. A program that encodes the stored prefix and the rest by themselves, and compares with
# a prompt encoded at once, loses the token at the join, or more.

# %% tags=["chart"]
for left, right in (("Give room, my lord", "s, and hear."), ("Speak, good ", "lord.")):
    joined, whole = tokenizer.encode(left) + tokenizer.encode(right), tokenizer.encode(left + right)
    print(f"same text: {tokenizer.decode(joined) == tokenizer.decode(whole)}, same ids: {joined == whole}")
    print("  in two parts:", tokenizer.tokens(joined))
    print("  at once:     ", tokenizer.tokens(whole))
    print("  the left part as the stored entry:", explain_miss(tokenizer.encode(left), whole))
diverged = f"token {longest_common_prefix(tokenizer.encode(left), whole)} of {len(tokenizer.encode(left))} stored"
record("join where BPE merges", diverged, "the whole entry is lost, though the text is the same")

# %% tags=["chart"]
left, right = tokenizer.encode(f"{START}user\nSpeak, good "), tokenizer.encode(f"{START}user\nHere.")
whole = tokenizer.encode(f"{START}user\nSpeak, good {START}user\nHere.")
print("joined at a special token, same ids:", left + right == whole)

# %% [markdown]
# A space at the end of a part is the usual trap: in GPT-2's vocabulary a space belongs to the word after it. At a
# special token nothing merges, so that is where a prefix may end. This is why each message begins with one.
#
# ### The same meaning in other words
#
# A prefix cache compares ids. It is no cache of answers, and knows nothing of meaning: a question that is asked in
# other words shares what the two prompts have in common from the start, and no more.

# %% tags=["chart"]
paraphrase = autograder.guess(
    "How many ids does 'In what place does the king live?' share with 'Where does the king live?'?"
)
paraphrase


# %% tags=["chart"]
def question_ids(text):
    return tokenizer.encode(render_chat([{"role": "user", "content": text}], add_generation_prompt=True))


asked = question_ids("Where does the king live?")
for text in ("Where does the king live?", "Where does the king live now?", "In what place does the king live?"):
    common = longest_common_prefix(asked, question_ids(text))
    print(f"{text:40} {common:2} of {len(asked)} ids in common")
paraphrase.beside(common, "They are those of the template, before the first word.")

# %% [markdown]
# ### A conversation that is cut short
#
# When a conversation has grown too long, some programs replace its beginning by a summary (*compaction*). From then on
# prompts are shorter. At the turn where it happens, everything after the system prompt is new.

# %% tags=["chart"]
chat = [{"role": "system", "content": filler(120, lambda text: len(tokenizer.encode(text)))}]
computed, stored = [], []
for turn in range(1, 9):
    chat.append({"role": "user", "content": f"And then, my lord? It is act {turn}."})
    if turn == 6:
        chat[1:] = [{"role": "user", "content": f"In short: {rules[:300]}"}, chat[-1]]
    live = tokenizer.encode(render_chat(chat, add_generation_prompt=True))
    computed.append(len(live) - longest_common_prefix(stored, live))
    chat.append({"role": "assistant", "content": "The king goes to France, and the queen stays with her ladies."})
    stored = tokenizer.encode(render_chat(chat))

# %% tags=["chart"]
autograder.charts.line_chart(
    {"computed at this turn": (range(1, 9), computed)}, x_label="turn", y_label="computed", y_unit="tokens",
    title="A conversation whose beginning is summarized at turn 6",
)  # fmt: skip

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A large first number, for the system prompt; then small ones, for each new message; and a larger one at turn 6,
# where the summary and all that follows it are new. It is paid once. A program that compacts at every turn pays it
# every time.
#
# </details>
#
# ## g. The near miss, and the miss that is reported
#
# Stored 5,923, common 5,919: a near miss. The lookup is right to refuse it, as an entry is used whole or not at all.
# What the server does then is a choice, and two things must not happen: a wrong reuse, and silence. In c, `except
# Exception` hid an error for as long as the server ran.
#
# The server below has no `except`. It asserts what reuse depends on before it reuses, it says what it did in one line,
# and on a near miss it falls back to the shared part, which it cuts out of the entry.


# %% tags=["chart"]
def serve(prompt_ids, entries):
    """One request: what is reused, told in one line. Raises when the reuse would be wrong."""
    entry = lookup(entries, prompt_ids)
    if entry is None:
        return fall_back(prompt_ids, entries)
    n = len(entry.token_ids)
    assert prompt_ids[:n] == entry.token_ids and n < len(prompt_ids), "lookup returned an entry that does not fit"
    assert len(entry.cache) == n, "the saved cache is not as long as its ids"
    print(f"HIT  {n:,} tokens reused, {len(prompt_ids) - n:,} computed")
    return entry


# %% tags=["chart"]
def fall_back(prompt_ids, entries):
    """A miss, told with its reason: the part that the nearest entry shares with the prompt, as an entry."""
    nearest = max(entries, key=lambda e: longest_common_prefix(e.token_ids, prompt_ids), default=None)
    if nearest is None:
        print(f"MISS no entries; {len(prompt_ids):,} computed")
        return None
    print("MISS", explain_miss(nearest.token_ids, prompt_ids))
    common = min(longest_common_prefix(nearest.token_ids, prompt_ids), len(prompt_ids) - 1)
    print(f"     falls back to the {common:,} shared tokens, {len(prompt_ids) - common:,} computed")
    return Entry(prompt_ids[:common], cut(nearest.cache, common)) if common else None


# %% tags=["chart"]
print("repaired template:")
serve(good_live, [good_stored])
print("drifting template:")
fallback_cost = cost(live_ids, serve(live_ids, [saved_entry(stored_ids)]))
print("    ", fallback_cost)
print("without the fallback:", drift_cost)
diverged = f"token {longest_common_prefix(stored_ids, live_ids):,} of {len(stored_ids):,} stored"
record("near miss, with fallback", diverged, fallback_cost.against(drift_cost))

# %% [markdown]
# The fallback makes the drift cheap. It does not make it right to keep: the next change to the template may move the
# first difference to token 300, and the line `MISS common=...` in the log is how you would know.
#
# ## h. What belongs in the key
#
# Equal ids are not enough. Keys and values depend on the model's weights. They are stored in some dtype, with some
# order of axes, and with positions counted in some way. Ids mean something only with the tokenizer that made them.
# And there is the *tenant*: the customer on whose behalf a prompt was sent. One tenant's entry must not serve
# another, however equal the ids.
#
# `cache_key` makes one string of all of these. It may be a **digest**: a hash of a fixed length, such as SHA-256 gives.
# Entries are kept in a dict under their keys.


# %% solution="cache-key"
def cache_key(token_ids, model, tokenizer, dtype, layout, positions, tenant):
    """The key, a string, under which the cache of these ids may be found again.

    token_ids: a list of at least one id. A vocabulary may have 200,000 ids and more. All others are strings, of any
    length, with any characters: the fingerprints of model and tokenizer, the dtype and the layout of the stored
    arrays ("float32", "n_head, n_seq, head_dim"), how positions are counted ("wpe from 0"), and the tenant.
    Equal arguments give equal keys, also in another Python process. Arguments that differ in anything give
    different keys: model "ab" with tokenizer "c" is not model "a" with tokenizer "bc", and ids [1, 23] are not
    [12, 3]. If the key is a digest, it keeps at least 64 bits (16 hexadecimal digits), so that keys are not equal
    by chance either.
    """
    ### BEGIN SOLUTION
    fields = [list(token_ids), model, tokenizer, dtype, layout, positions, tenant]
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()
    ### END SOLUTION


# %% check="key-separates"
autograder.check("key-separates")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Python's `hash()` of a string is another number in every process: try it in two terminals. A digest from `hashlib` is
# equal everywhere: `hashlib.sha256(data).hexdigest()`, with `data` as bytes, which `text.encode()` gives. Joining the
# fields with a separator is ambiguous as soon as a field holds the separator. A format that quotes its fields, such as
# `json.dumps` of a list, is not ambiguous; its result is a valid key as it is, and a digest of it is a short one.
#
# </details>
#
# ### The key at work
#
# The dict below holds one entry, which is then asked for under other facts. A digest is an *index*: it says where to
# look. Whether what lies there is the right thing is decided by comparing the ids. With a digest of 256 bits two keys
# are practically never equal by chance. Short ones are: the last cells of this section keep 16 bits of the digest, as
# some caches do to save space, and ask for 1,500 different prompts.

# %% tags=["chart"]
facts = {
    "model": autograder.model_fingerprint(weights),
    "tokenizer": autograder.tokenizer_fingerprint(tokenizer),
    "dtype": "float32",
    "layout": "n_head, n_seq, head_dim",
    "positions": "wpe from 0",
    "tenant": "Globe Theatre",
}
shared_ids = tokenizer.encode(f"{START}system\nYou answer the questions of the company.")
store = {cache_key(shared_ids, **facts): Entry(shared_ids)}

# %% tags=["chart"]
changes = {
    "another model": {"model": autograder.model_fingerprint(long.weights)},
    "another tokenizer": {"tokenizer": "0" * 64},
    "another dtype": {"dtype": "float16"},
    "another layout": {"layout": "n_seq, n_head, head_dim"},
    "other positions": {"positions": "rotary, from 0"},
    "another tenant": {"tenant": "Rose Theatre"},
}


# %% tags=["chart"]
def found(ids, **changed):
    return "hit" if cache_key(ids, **{**facts, **changed}) in store else "miss"


print(f"nothing changed   {found(shared_ids)}")
print(f"other ids         {found(shared_ids[:-1])}")
for about, change in changes.items():
    print(f"{about:17} {found(shared_ids, **change)}, equal ids")

# %% tags=["chart"]
wrong_hits = autograder.guess("Of 1,500 prompts, how many find another prompt's entry under their 16 bits?")
wrong_hits

# %% tags=["chart"]
index, collisions = {}, []
for i in range(1500):
    ids = tokenizer.encode(f"{START}user\nWhat is line {i}?")
    short = hashlib.sha256(cache_key(ids, **facts).encode()).hexdigest()[:4]  # 16 bits
    if index.setdefault(short, ids) != ids:
        collisions.append((index[short], ids))
wrong_hits.beside(len(collisions))

# %% tags=["chart"]
if collisions:
    stored, live = collisions[0]
    print("stored:", repr(tokenizer.decode(stored)), " live:", repr(tokenizer.decode(live)))
    print("comparing the ids refuses it:", explain_miss(stored, live))
    diverged = f"token {longest_common_prefix(stored, live)} of {len(stored)} stored"
    record("short digest trusted", diverged, f"{len(collisions)} of 1,500 prompts would get a wrong cache")

# %% [markdown] written="one-tenant-only" points=2
# **Question 2 (2 points).** A colleague proposes to leave the tenant out of the key: many tenants send the same
# system prompt, the keys and values would be the very same numbers, and much memory would be saved. What can a tenant
# find out about another one if this is done, although every answer is right, and how? Name one kind of prefix for
# which sharing would be harmless. Answer in four sentences at most.
#
# ### BEGIN SOLUTION
# **Rubric.** 1 point: a hit is faster than a miss, so by sending a guessed prompt and timing the first token a tenant
# learns whether somebody else has sent that prefix; by extending a guess token by token, also its content. 1 point: a
# prefix that is public or the operator's own, such as the system prompt all tenants are given, holds nothing of a
# tenant's and may be shared on purpose under a tenant name of its own; saying only "wrong answers" or "it is not
# secure" gives no point, since the answers are right.
# ### END SOLUTION

# %% [markdown]
# ## i. The rules
#
# 1. **Positions continue.** The suffix's token i stands at `prefix_len + i`.
# 2. **A saved cache is never written to.** Work on a clone. Test with three requests, A, B, A; one request proves
#    nothing.
# 3. **Match first, then rank.** All ids of the entry begin the prompt, and `n < len(prompt)`: a token must be left.
# 4. **Turn n's prompt and answer are the beginning of turn n + 1's prompt.** Assert it in a test. One function builds
#    the prompt.
# 5. **What changes goes last.** Time, notes and whatever depends on the newest message come after everything that
#    stays.
# 6. **One form for one content.** Sorted keys, no stray spaces, one start token; end a prefix at a special token.
# 7. **The key holds everything the numbers depend on**, and the tenant. A digest is an index; the ids decide.
# 8. **A miss says why.** How much was shared, and what came next on each side. No silent `except`.
# 9. **Measure the reuse**, not the idea of it: tokens computed per request, in the log, in production.
#
# And the table of what you have measured. Each line was made by your own functions, on this machine.

# %% tags=["chart"]
rows = autograder.live_table(failures.values())

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Thirteen lines. Four of them diverge nowhere: the ids were right, and the use of the cache
# was wrong. In the others the ids first differ at one token. What comes after it is paid for again, or, where nobody
# compares the ids, is wrong.
#
# </details>
#
# Three of the failures occurred in a server with a larger model on other hardware. The next table has its figures in
# the column `source`, beside yours:

# %% tags=["chart"]
more = drift_cost.seconds - repaired_cost.seconds
rows = reuse_costs.beside_the_source(
    ranking=f"{ranking_cost.seconds:.2g} s, then {lookup_cost.seconds:.2g} s",
    drift=f"{more:.2g} s more at each step",
    note=f"{note_cost.tokens / len(by_newest[-1]):.0%} recomputed at each step",
)

# %% [markdown]
# <details><summary>The first of them in a real chat model (optional)</summary>
#
# After `autograder fetch smollm2`, the next cell serves the ranking failure from a chat model with 135 million
# parameters. The prompts are made by its own template and tokenizer. The server first uses a lookup that admits `n <=
# len(prompt)`, then yours. The pass is the grader's own, in float64: it needs 2 GB of memory and a minute or more, and
# says beforehand how long. In stage 7 you write a faster one, and all three failures happen in it.
#
# </details>

# %% tags=["chart"]
real = chat_lab.real_model()
rows = autograder.lab.ranking_in_chat(*real, lookup, explain_miss) if real else None

# %% [markdown]
# ## Find the bug
#
# One more failure of this kind. Play with it, then choose the cause.

# %% tags=["chart"]
bug = autograder.puzzle("failure-modes")
bug

# %% tags=["chart"]
for saved_text in ("Answer the", "Answer the\n", "Answer"):
    print(repr(saved_text), bug.function(saved_text, saved_text + "re is none.", tokenizer.encode))

# %% tags=["chart"]
autograder.question("failure-modes", 1)

# %% tags=["chart"]
autograder.question("failure-modes", 2)

# %% [markdown]
# ## Show a friend
#
# Let a friend change one character of the passage, anywhere, while you look away. Your line finds it.

# %% tags=["chart"]
changed = PASSAGE.replace("winter", "Winter")  # your friend's change
stored, live = tokenizer.encode(PASSAGE), tokenizer.encode(changed)
common = longest_common_prefix(stored, live)
print(explain_miss(stored, live))
print("the same up to:", repr(tokenizer.decode(live[:common])[-40:]))
print(f"{len(live) - common} of {len(live)} tokens are computed again")

# %% [markdown]
# This is the last required stage. You have written GPT-2's inference, given it a memory, saved
# that memory, and seen how it is lost. The tools of this notebook work on any engine whose token ids you can log:
# count the shared prefix of two requests that should share one, and read the line.
