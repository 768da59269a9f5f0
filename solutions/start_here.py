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
# # 0. Start here
#
# **What this is.** The beginning of a course on how a language model is run, and on how to avoid running it twice for
# the same text. You will write GPT-2's inference in NumPy, give it a memory, and share that memory between requests.
# This notebook checks that everything is installed, explains what a token is, and lets you play with the idea of the
# whole course before you write any of it.
#
# **Time.** About 20 minutes. Nothing here is marked.
#
# **What you should know.** Python. How to run a cell of a notebook: click into it and press Shift and Enter.
#
# ## Does the installation work?
#
# Run the next two cells. The first one loads the course's package, its small GPT-2 and the tokenizer. The second one
# says what is installed.

# %% setup="imports"
import autograder
from autograder.cli.doctor import run as doctor

weights = autograder.load_model()
tokenizer = autograder.load_tokenizer()

# %% tags=["chart"]
_ = doctor()  # the command `autograder doctor`, in a notebook

# %% [markdown]
# <details><summary>What you should see</summary>
#
# A list, with "Nothing is missing." as its last line. Below a line that begins with
# `missing`, an arrow shows what to do about it. A line that begins with `note` is of interest to those who mark the
# course, and can be left as it is.
#
# </details>
#
# ## Tokens
#
# A language model does not read letters or words. It reads **tokens**: pieces of text, each with a number, its **token
# id**. The **tokenizer** cuts text into tokens. Ours knows 1,024 of them, and was made from the text that the model
# learned from, a million letters of Shakespeare.

# %% tags=["chart"]
text = "To be, or not to be: that is the question."
token_ids = tokenizer.encode(text)
print(len(text), "letters,", len(token_ids), "tokens")
print(token_ids)
autograder.charts.token_strip(
    {"tokens": tokenizer.tokens(token_ids)}, shared=0, positions=True, title="A text as the model reads it"
)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# Frequent words are one token, rarer ones are cut in pieces. A space belongs to the token
# after it (it is drawn as an open box). The number under a token is its **position**, counted from 0. Put a text of
# your own into the cell and run it again.
#
# </details>
#
# Two things to notice. What a text costs depends on its number of tokens, not of letters. And a small change in the
# text can change the tokens around it:

# %% tags=["chart"]
for text in ("the king", "The king", "theking", "the  king", "the kin", "the kinks"):
    token_ids = tokenizer.encode(text)
    print(f"{text!r:12} {len(token_ids)} tokens: {tokenizer.tokens(token_ids)}  ids {token_ids}")

# %% [markdown]
# To the model, two texts begin alike as far as their token **ids** are the same, and no further. Remember this for lab
# 2.
#
# ## What a language model does
#
# Given some tokens, it says which token is likely to come next. Text is written by taking one, adding it to the end,
# and asking again. So every new token needs a run of the model, and every run looks at all the tokens so far.
#
# Looking back is what **attention** does, in every layer of the model: each token is compared with all the tokens
# before it. With n tokens that is a triangle of n rows; row 0 has one entry, and every row has one more than the row
# above. To talk about its cost we count **attention units**: in each row, 2 units for every earlier token (one to
# compare with it, one to take in what it offers), and 1 for the token itself. A row then costs 1, 3, 5, 7, ... units,
# and n rows cost n * n:
#
#     1 + 3 + 5 + 7 = 16 = 4 * 4          16 tokens cost 256 units
#
# ## Lab 1: prefill once, then decode
#
# The prompt is the beginning of *Richard III*. The first press of **Generate** runs it through the model, which is
# called **prefill**, and gives the first new token. Every further press **decodes**: it adds one token.
#
# With the **KV cache** off, every press runs all tokens again and fills the whole triangle. With the cache on, what
# the model computed for the earlier tokens (their keys and values, hence K and V) has been kept, and only the row of
# the newest token is filled. The model says exactly the same either way.
#
# Pictures of this kind use one convention in the whole course, here and in all later notebooks:

# %% tags=["chart"]
autograder.charts.convention()

# %% [markdown]
# Try this:
#
# 1. Press **Generate** a few times with the cache on. What does a step cost, compared with the first one?
# 2. Switch the cache off, which starts again, and press as often. Compare what was paid so far; the last run's figure
#    stays in the table.
# 3. Pull the prompt to 300 tokens or so, and do both again.
#
# (Everything can be reached with the Tab key. The arrow keys move the slider, and the number can be typed. The space
# bar presses a button and ticks the box.)

# %% tags=["chart"]
autograder.lab.decode_lab(weights, tokenizer)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The prefill of 16 tokens costs 256 units, with the cache and without: this is shown before the first press. The second
# step costs
# 289 units without it and 33 with it, and the gap widens with every token. With the cache on, what was paid so far is
# always the square of the number of tokens: each row has been paid for once.
#
# </details>
#
# The milliseconds are measured, on this machine, with the course's small model. They tell a milder story at 16 tokens,
# and a similar one at 300. Attention is not all a model does: there is other work for each token, which does not
# depend on the tokens before it, and a fixed cost for each run. With a short prompt those are most of the time. The
# units leave them out.
#
# ## Lab 2: the next request
#
# Now somebody else asks something, and both prompts begin with the same instructions to the model, its **system
# prompt**. Keys and values depend only on a token and the tokens before it. So those of the shared beginning, the
# **prefix**, can be taken over from the first request, and only the rest has to be computed.
#
# Both prompts can be edited. Try this:
#
# 1. Look at what the next prompt costs **cold**, with nothing reused, and with the shared prefix reused.
# 2. Change the question at the end. Then press **Change one letter**, which changes the first letter of the system
#    prompt. What is left to reuse?
# 3. Press **Reset**, and change one letter in the middle of the system prompt, or put a second space between two
#    words.

# %% tags=["chart"]
autograder.lab.request_lab(weights, tokenizer)

# %% [markdown]
# <details><summary>What you should see</summary>
#
# The next prompt has 104 tokens, so cold it costs 104 * 104 = 10,816 units. The first 100 tokens
# are shared, and their square has been paid for before: 10,816 - 100 * 100 = 816 units remain, and the milliseconds
# fall as well. (14 tokens of which 10 are shared: 196 - 100 = 96 units. Try it with short prompts: the units fall, and
# the fixed cost of a pass hides it in the milliseconds.) With another first letter, the very first token differs,
# nothing can be reused, and the request is cold. A difference later on keeps what stands before it.
#
# </details>
#
# This is the subject of the course. The prefix cache saves a great deal, as long as prompts begin with exactly the
# same tokens, and the tokens stand at the same positions, and the saved part is not changed by those who use it. In
# stage 4 you build it, and in stage 5 you see how each of these conditions is broken in practice.
#
# ## How the stages work
#
# Each stage is a folder with a notebook. In it there are cells with the words `# YOUR CODE HERE`, which are for you to
# fill in, and below them check cells. A check cell runs your function on many inputs and compares the results with a
# second, independent GPT-2. It looks like this when it passes:
#
#     Passed: keys and values hold every appended row, in order (2 points)
#
# and like this when it does not:
#
# <div style="border-left: 4px solid #c62828; padding-left: 0.8em">
# <b>&times; Not yet: keys and values hold every appended row, in order (2 points)</b><br>
# keys and values are [n_head, n_seq, head_dim] and hold every appended row in order, in appends of any size.
# <table>
# <tr><th>result of</th><td>keys</td></tr>
# <tr><th>shape</th><td>[40, 16, 3]</td></tr>
# <tr><th>expected</th><td>[40, 17, 3]</td></tr>
# <tr><th>case</th><td>after 17 appends of one row</td></tr>
# <tr><th>failing lengths</th><td>17 to 70 (of 1 to 70)</td></tr>
# </table>
# <details><summary>Where to look</summary>Look in LayerCache, and in what it calls.</details>
# <details><summary>The cause</summary>The buffer is full and did not grow: NumPy cuts a slice past the end of an array
# without an error.</details>
# </div>
#
# First the property that should hold; then how large the error is and where. Try to find the mistake from that. Behind
# the first fold is where to look, and behind the second, if the numbers are those of a mistake that is known, which
# mistake. Points are counted by the same checks with other inputs.
#
# Instead of running the check cells you can open a terminal in the stage's folder and type `autograder test --watch`.
# It runs all of the stage's checks whenever you save the notebook; `--hint 2` adds where to look, `--hint 3` the cause.
#
# The glossary explains all terms of the course, in any notebook and wherever it was copied to: `autograder.glossary()`,
# or `autograder.glossary("logits")` for one of them.

# %% tags=["chart"]
autograder.glossary("token")

# %% [markdown]
# **Next:** the folder `01-forward-pass`.
