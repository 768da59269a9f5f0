"""Sample submissions of stage 5, failure-modes."""

from autograder.stages.samples import Right, Wrong

# Whole cells in other styles

SLICES = {
    "longest-common-prefix": '''
def longest_common_prefix(a, b):
    """By halves: a[:n] == b[:n] holds up to some n, and not beyond."""
    few, many = 0, min(len(a), len(b)) + 1
    while many - few > 1:
        n = (few + many) // 2
        if list(a[:n]) == list(b[:n]):
            few = n
        else:
            many = n
    return few
''',
    "candidate-log": """
def candidate_log(entries, prompt_ids):
    def row(entry):
        ids = list(entry.token_ids)
        gate = len(ids) < len(prompt_ids)
        key = prompt_ids[: len(ids)] == ids
        return dict(n=len(ids), common=longest_common_prefix(ids, prompt_ids), gate=gate, key=key, hit=gate and key)

    return list(map(row, entries))
""",
    "lookup": """
def lookup(entries, prompt_ids):
    for entry in sorted(entries, key=lambda entry: -len(entry.token_ids)):
        n = len(entry.token_ids)
        if n < len(prompt_ids) and prompt_ids[:n] == entry.token_ids:
            return entry
    return None
""",
    "explain-miss": """
def explain_miss(stored_ids, live_ids):
    n = longest_common_prefix(stored_ids, live_ids)
    stored, live = ([*ids, "end"][n] for ids in (stored_ids, live_ids))
    return f"common={n} of {len(stored_ids)}; stored next: {stored}; live next: {live}"
""",
    "render-chat": """
def render_chat(messages, add_generation_prompt=False):
    before = {"assistant": NO_THOUGHT}
    parts = [START + m["role"] + "\\n" + before.get(m["role"], "") + m["content"] for m in messages]
    return "".join(parts + [GENERATION_PROMPT] * add_generation_prompt)
""",
    "build-prompt": """
def build_prompt(system, tools, messages, now=None, notes=()):
    first = {"role": "system", "content": system + "\\n" + json.dumps(tools, sort_keys=True, indent=1)}
    lines = [line for line in (now, *notes) if line is not None]
    context = [{"role": "context", "content": "\\n".join(lines)}] if lines else []
    return render_chat([first] + list(messages) + context, True)
""",
    "cache-key": """
def cache_key(token_ids, model, tokenizer, dtype, layout, positions, tenant):
    return repr((tuple(token_ids), model, tokenizer, dtype, layout, positions, tenant))
""",
}

WITH_NUMPY = {
    "longest-common-prefix": """
def longest_common_prefix(a, b):
    n = min(len(a), len(b))
    differs = np.asarray(a[:n], np.int64) != np.asarray(b[:n], np.int64)
    return np.argmax(differs) if differs.any() else np.int64(n)
""",
    "candidate-log": """
def candidate_log(entries, prompt_ids):
    n = np.array([len(entry.token_ids) for entry in entries], dtype=int)
    common = np.array([longest_common_prefix(entry.token_ids, prompt_ids) for entry in entries], dtype=int)
    gate, key = n < len(prompt_ids), common == n
    columns = {"n": n, "common": common, "gate": gate, "key": key, "hit": gate & key}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(n))]
""",
    "lookup": """
def lookup(entries, prompt_ids):
    rows = candidate_log(entries, prompt_ids)
    lengths = [row["n"] if row["hit"] else -1 for row in rows]
    if not lengths or max(lengths) < 0:
        return None
    return entries[int(np.argmax(lengths))]
""",
    "cache-key": """
def cache_key(token_ids, model, tokenizer, dtype, layout, positions, tenant):
    digest = hashlib.blake2b(np.asarray(token_ids, "<i4").tobytes())
    for field in (model, tokenizer, dtype, layout, positions, tenant):
        digest.update(hashlib.sha256(field.encode()).digest())
    return digest.hexdigest()
""",
}

LONG_HAND = {
    "longest-common-prefix": """
def longest_common_prefix(a, b):
    count = 0
    while count < len(a) and count < len(b) and a[count] == b[count]:
        count = count + 1
    return count
""",
    "candidate-log": '''
def candidate_log(entries, prompt_ids):
    """Compares id by id, and keeps a column of its own."""
    log = []
    for number, entry in enumerate(entries):
        row = {"number": number, "n": len(entry.token_ids)}
        row["common"] = longest_common_prefix(entry.token_ids, prompt_ids)
        row["gate"] = int(len(entry.token_ids) + 1 <= len(prompt_ids))
        row["key"] = int(row["common"] == len(entry.token_ids))
        row["hit"] = row["gate"] * row["key"]
        log.append(row)
    return log
''',
    "lookup": """
def lookup(entries, prompt_ids):
    print("looking up", len(prompt_ids), "ids")
    best = None
    for entry in entries:
        ids = entry.token_ids
        if len(ids) >= len(prompt_ids):
            continue
        if any(ids[i] != prompt_ids[i] for i in range(len(ids))):
            continue
        if best is None or len(ids) > len(best.token_ids):
            best = entry
    return best
""",
    "explain-miss": """
def explain_miss(stored_ids, live_ids):
    common = longest_common_prefix(stored_ids, live_ids)
    text = "common=%d of %d" % (common, len(stored_ids))
    for name, ids in (("stored", stored_ids), ("live", live_ids)):
        if common == len(ids):
            text += "; " + name + " next: end"
        else:
            text += "; " + name + " next: " + str(ids[common]) + " " + str(tokenizer.tokens([ids[common]]))
    return text
""",
    "build-prompt": '''
def build_prompt(system, tools, messages, now=None, notes=()):
    """Sorts the keys by hand and renders the parts one by one."""

    def ordered(value):
        if isinstance(value, dict):
            return {key: ordered(value[key]) for key in sorted(value)}
        return [ordered(item) for item in value] if isinstance(value, list) else value

    text = render_chat([{"role": "system", "content": f"{system}\\n{json.dumps(ordered(tools))}"}])
    text += render_chat(messages)
    volatile = ""
    if now is not None:
        volatile += now + "\\n"
    for note in notes:
        volatile += note + "\\n"
    if volatile:
        text += render_chat([{"role": "context", "content": volatile}])
    return text + GENERATION_PROMPT
''',
    "cache-key": """
def cache_key(token_ids, model, tokenizer, dtype, layout, positions, tenant):
    parts = [str(len(token_ids))] + [str(i) for i in token_ids] + [model, tokenizer, dtype, layout, positions, tenant]
    return "".join(f"{len(part)}:{part}" for part in parts)
""",
}

OBJECTS = {
    "longest-common-prefix": """
import os.path


def longest_common_prefix(a, b):
    return len(os.path.commonprefix([list(a), list(b)]))
""",
    "candidate-log": """
@dataclass
class Decision:
    n: int
    common: int
    gate: bool
    key: bool

    @property
    def hit(self):
        return self.gate and self.key


def decide(entry, prompt_ids):
    n, common = len(entry.token_ids), longest_common_prefix(entry.token_ids, prompt_ids)
    return Decision(n, common, len(prompt_ids) - n >= 1, common >= n)


def candidate_log(entries, prompt_ids):
    return [{**vars(d), "hit": d.hit} for d in (decide(entry, prompt_ids) for entry in entries)]
""",
    "lookup": """
def lookup(entries, prompt_ids):
    best, longest = None, 0
    for entry in entries:
        decision = decide(entry, prompt_ids)
        if decision.hit and decision.n > longest:
            best, longest = entry, decision.n
    return best
""",
    "render-chat": '''
class Template:
    """Appends to what is there; what was rendered once stays."""

    def __init__(self):
        self.text = ""

    def open(self, role):
        self.text += GENERATION_PROMPT if role == "assistant" else f"{START}{role}\\n"
        return self

    def say(self, content):
        self.text += content


def render_chat(messages, add_generation_prompt=False):
    template = Template()
    for message in messages:
        template.open(message["role"]).say(message["content"])
    if add_generation_prompt:
        template.open("assistant")
    return template.text
''',
    "cache-key": """
def cache_key(token_ids, **fields):
    lines = [f"{name}={value!r}" for name, value in sorted(fields.items())]
    return hashlib.md5("\\n".join([str(list(token_ids)), *lines]).encode()).hexdigest()
""",
}

CHATTY = {
    "candidate-log": """
def candidate_log(entries, prompt_ids):
    rows = []
    for entry in entries:
        common = longest_common_prefix(entry.token_ids, prompt_ids)
        n, cached = len(entry.token_ids), 0 if entry.cache is None else len(entry.cache)
        gate, key = n < len(prompt_ids), common == n
        rows.append({"name": entry.name, "cached": cached, "n": n, "common": common, "gate": gate, "key": key})
        rows[-1]["hit"] = gate and key
    return rows
""",
    "lookup": """
def lookup(entries, prompt_ids):
    best = None
    for entry, row in zip(entries, candidate_log(entries, prompt_ids)):
        print(f"  {entry.name:12}", row)
        if row["hit"] and (best is None or row["n"] > len(best.token_ids)):
            best = entry
    return best
""",
    "explain-miss": """
def explain_miss(stored_ids, live_ids):
    common = longest_common_prefix(stored_ids, live_ids)

    def told(ids):
        return f"{ids[common]} {tokenizer.tokens([ids[common]])[0]!r}" if common < len(ids) else "end"

    share = 100 * common // max(1, len(stored_ids))
    return (
        f"common={common} of {len(stored_ids)} ({share}%, {len(live_ids)} live); "
        f"stored next: {told(stored_ids)}; live next: {told(live_ids)}"
    )
""",
    "build-prompt": """
def build_prompt(system, tools, messages, now=None, notes=()):
    content = system + "\\n" + json.dumps(tools, sort_keys=True, ensure_ascii=False, separators=(",", ":")) + "\\n"
    lines = [] if now is None else ["Time: " + now]
    lines += ["- " + note for note in notes]
    prompt = [dict(role="system", content=content)]
    prompt.extend(dict(message) for message in messages)
    if lines:
        prompt.append(dict(role="context", content="\\n".join(lines) + "\\n"))
    return render_chat(messages=prompt, add_generation_prompt=True)
""",
    "cache-key": """
import base64


def cache_key(token_ids, model, tokenizer, dtype, layout, positions, tenant):
    def quoted(text):
        return text.replace("\\\\", "\\\\\\\\").replace("|", "\\\\|").replace("=", "\\\\=")

    fields = dict(model=model, tokenizer=tokenizer, dtype=dtype, layout=layout, positions=positions, tenant=tenant)
    text = " ".join(map(str, token_ids)) + "".join(f"|{name}={quoted(value)}" for name, value in fields.items())
    return "kv:" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())[:22].decode()
""",
}

SHORT_DIGEST = {
    "render-chat": """
def render_chat(messages, add_generation_prompt=False):
    if not messages:
        return GENERATION_PROMPT if add_generation_prompt else ""
    *before, last = messages
    text = render_chat(before) + f"{START}{last['role']}\\n"
    text += (NO_THOUGHT if last["role"] == "assistant" else "") + last["content"]
    return text + GENERATION_PROMPT * bool(add_generation_prompt)
""",
    "cache-key": """
def cache_key(token_ids, model, tokenizer, dtype, layout, positions, tenant):
    what = np.array(token_ids, dtype="<u2").tobytes()
    for text in (model, tokenizer, dtype, layout, positions, tenant):
        data = text.encode()
        what += len(data).to_bytes(8, "little") + data
    return hashlib.blake2b(what, digest_size=8).hexdigest()
""",
}

RIGHT = [
    Right("slices", "Slices, halves and comprehensions; the key is a readable text.", SLICES),
    Right("numpy", "NumPy throughout: np.int64 and np.bool_ come back.", WITH_NUMPY),
    Right(
        "long-hand",
        "Plain loops, a line printed, the token's text in the diagnosis, a lookup without the log.",
        LONG_HAND,
    ),
    Right("objects", "Classes and helpers of its own; the key takes its fields by name.", OBJECTS),
    Right(
        "chatty",
        "Names and caches of entries in the log, tokens in the diagnosis, words before time and notes.",
        CHATTY,
    ),
    Right("short-digest", "A recursive template; a key of 64 bits, from ids in two bytes each.", SHORT_DIGEST),
]


def _wrong(name, about, *changes, loses, bug=None):
    return Wrong(name, about, changes, loses, bug or name)


LCP, LOG, LOOKUP, MISS = "longest-common-prefix", "candidate-log", "lookup", "explain-miss"
CHAT, PROMPT, KEY = "render-chat", "build-prompt", "cache-key"
LOOP = """    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n"""
LINES = """    changing = ([] if now is None else [now]) + list(notes)
"""
CONTEXT = """        parts.append({"role": "context", "content": "\\n".join(changing)})"""
SYSTEM = """{"role": "system", "content": f"{system}\\n{tools_json}"}"""
DIGEST = "hashlib.sha256(json.dumps(fields).encode()).hexdigest()"
FIELDS = "[list(token_ids), model, tokenizer, dtype, layout, positions, tenant]"
HITS = 'if row["hit"]'


def without(field):
    return FIELDS.replace(f" {field},", "")


LONGEST = "max(hits, key=lambda entry: len(entry.token_ids), default=None)"

WRONG = [
    # longest_common_prefix, on which the log and the diagnosis stand
    _wrong(
        "counts-equal-places",
        "Counts equal places behind the first difference too.",
        (LCP, LOOP, "    return sum(x == y for x, y in zip(a, b))"),
        loses=("common-prefix", "log-of-candidates", "miss-explained"),
    ),
    _wrong(
        "counts-last-index",
        "Returns the index of the last shared id.",
        (LCP, "    return n", "    return n - 1"),
        loses=("common-prefix", "lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates", "miss-explained"),
    ),
    _wrong(
        "compares-with-is",
        "Compares ids with `is not`.",
        (LCP, "x != y", "x is not y"),
        loses=("common-prefix", "lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates", "miss-explained"),
    ),
    _wrong(
        "runs-past-the-end",
        "Looks for the first difference without watching the ends.",
        (LCP, LOOP, "    while a[n] == b[n]:\n        n += 1\n    return n"),
        loses=("common-prefix", "lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates", "miss-explained"),
    ),
    _wrong(
        "no-difference-found",
        "Returns from inside the loop at the first difference, and 0 where there is none.",
        (
            LCP,
            LOOP,
            "    for n, (x, y) in enumerate(zip(a, b)):\n        if x != y:\n            return n\n    return 0",
        ),
        loses=("common-prefix", "lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates", "miss-explained"),
    ),
    _wrong(
        "gives-the-ids",
        "Returns the shared ids.",
        (LCP, "    return n", "    return a[:n]"),
        loses=("common-prefix", "lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates", "miss-explained"),
    ),
    _wrong(
        "common-ids-as-a-set",
        "Counts the ids that stand in both lists.",
        (LCP, LOOP, "    return len(set(a) & set(b))"),
        loses=("common-prefix", "lookup-longest-entry", "log-of-candidates", "miss-explained"),
    ),
    _wrong(
        "zero-is-no-id",
        "Fills the shorter list with zeros.",
        (
            LCP,
            LOOP,
            "    from itertools import zip_longest\n\n"
            + LOOP.replace("zip(a, b, strict=False)", "zip_longest(a, b, fillvalue=0)"),
        ),
        loses=("common-prefix", "lookup-longest-entry", "log-of-candidates", "miss-explained"),
    ),
    _wrong(
        "difference-looked-up",
        "Looks up the id that differs, and finds an earlier place of it.",
        (LCP, "            break", "            return a.index(x)"),
        loses=("common-prefix", "log-of-candidates", "miss-explained"),
    ),
    # candidate_log and lookup
    _wrong(
        "lookup-takes-whole-prompt",
        "The gate lets an entry pass that covers the whole prompt.",
        (LOG, "n < len(prompt_ids)", "n <= len(prompt_ids)"),
        loses=("lookup-leaves-a-token", "log-of-candidates"),
    ),
    _wrong(
        "lookup-leaves-two",
        "The gate wants two tokens left.",
        (LOG, "n < len(prompt_ids)", "n < len(prompt_ids) - 1"),
        loses=("lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates"),
    ),
    _wrong(
        "gate-by-shared-ids",
        "The gate looks at the shared ids and not at the entry's length.",
        (LOG, "n < len(prompt_ids)", "common < len(prompt_ids)"),
        loses=("log-of-candidates",),
    ),
    _wrong(
        "log-hits-only",
        "Only entries that pass the gate are in the log.",
        (LOG, "        rows.append(", "        if not gate:\n            continue\n        rows.append("),
        (LOOKUP, HITS, 'if len(entry.token_ids) < len(prompt_ids) and row["key"]'),
        loses=("lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates"),
    ),
    _wrong(
        "log-more-rows",
        "A row of sums above the others.",
        (LOG, "    rows = []", '    rows = [{"n": 0, "common": 0, "gate": False, "key": False, "hit": False}]'),
        loses=("lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates"),
    ),
    _wrong(
        "log-hit-without-gate",
        "The log's hit is the key condition alone.",
        (LOG, "gate and key}", "key}"),
        (LOOKUP, HITS, 'if row["gate"] and row["key"]'),
        loses=("log-of-candidates",),
    ),
    _wrong(
        "log-key-is-any",
        "The log's key says that something is shared.",
        (LOG, "common == n", "common > 0"),
        (LOOKUP, HITS, 'if row["gate"] and row["common"] == row["n"]'),
        loses=("log-of-candidates",),
    ),
    _wrong(
        "lookup-first-hit",
        "The first hit.",
        (LOOKUP, LONGEST, "hits[0] if hits else None"),
        loses=("lookup-longest-entry", "lookup-leaves-a-token"),
    ),
    _wrong(
        "lookup-last-hit",
        "The last hit.",
        (LOOKUP, LONGEST, "hits[-1] if hits else None"),
        loses=("lookup-longest-entry",),
    ),
    _wrong(
        "lookup-shortest",
        "min for max.",
        (LOOKUP, "max(", "min("),
        loses=("lookup-longest-entry", "lookup-leaves-a-token"),
    ),
    _wrong(
        "lookup-near-miss",
        "The entry that shares the most ids, whether all of its own match or not.",
        (LOOKUP, HITS, 'if row["gate"] and row["common"]'),
        (LOOKUP, "len(entry.token_ids)", "longest_common_prefix(entry.token_ids, prompt_ids)"),
        loses=("lookup-longest-entry", "lookup-leaves-a-token"),
    ),
    _wrong(
        "lookup-ranks-first",
        "Takes the longest entry that passes the gate, and only then looks whether it matches.",
        (LOOKUP, HITS, 'if row["gate"]'),
        (
            LOOKUP,
            f"    return {LONGEST}",
            f"    best = {LONGEST}\n"
            "    return best if best and prompt_ids[: len(best.token_ids)] == best.token_ids else None",
        ),
        loses=("lookup-longest-entry", "lookup-leaves-a-token"),
    ),
    _wrong(
        "lookup-stops-at-a-miss",
        "Goes through the entries from the shortest on, up to the first that misses.",
        (
            LOOKUP,
            f"    return {LONGEST}",
            "    best = None\n"
            "    for entry in sorted(entries, key=lambda entry: len(entry.token_ids)):\n"
            "        if entry not in hits:\n"
            "            break\n"
            "        best = entry\n"
            "    return best",
        ),
        loses=("lookup-longest-entry",),
    ),
    _wrong(
        "lookup-some-ids",
        "Compares 32 ids.",
        (LOOKUP, HITS, 'if row["gate"] and row["common"] >= min(row["n"], 32)'),
        loses=("lookup-longest-entry",),
    ),
    _wrong(
        "lookup-gives-up-on-whole",
        "Takes the longest match and gives up when it covers the prompt.",
        (LOOKUP, HITS, 'if row["key"]'),
        (
            LOOKUP,
            f"    return {LONGEST}",
            f"    best = {LONGEST}\n    return None if best and len(best.token_ids) == len(prompt_ids) else best",
        ),
        loses=("lookup-leaves-a-token",),
    ),
    _wrong(
        "lookup-longer-than-prompt",
        "Compares entry and prompt pair by pair, so a longer entry matches.",
        (LOOKUP, HITS, 'if row["common"] == min(row["n"], len(prompt_ids)) and row["n"] != len(prompt_ids)'),
        loses=("lookup-longest-entry",),
    ),
    _wrong(
        "lookup-not-an-entry",
        "Returns the entry's ids.",
        (LOOKUP, f"return {LONGEST}", "return max((entry.token_ids for entry in hits), key=len, default=None)"),
        loses=("lookup-longest-entry", "lookup-leaves-a-token"),
    ),
    _wrong(
        "lookup-fails-on-no-hit",
        "max without a default.",
        (LOOKUP, ", default=None", ""),
        loses=("lookup-longest-entry", "lookup-leaves-a-token"),
    ),
    _wrong(
        "lookup-compares-entries",
        "max of pairs of a length and an entry.",
        (LOOKUP, LONGEST, "max(((len(e.token_ids), e) for e in hits), default=(0, None))[1]"),
        loses=("lookup-longest-entry",),
    ),
    _wrong(
        "lookup-sorts-the-entries",
        "Sorts the caller's list of entries.",
        (LOOKUP, "    hits =", "    entries.sort(key=lambda entry: len(entry.token_ids))\n    hits ="),
        loses=("lookup-longest-entry",),
        bug="input-changed",
    ),
    # explain_miss
    _wrong(
        "miss-of-live",
        "The number of live ids.",
        (MISS, "of {len(stored_ids)}", "of {len(live_ids)}"),
        loses=("miss-explained",),
    ),
    _wrong(
        "miss-sides-swapped",
        "The two sides exchanged.",
        (
            MISS,
            "stored next: {next_id(stored_ids)}; live next: {next_id(live_ids)}",
            "stored next: {next_id(live_ids)}; live next: {next_id(stored_ids)}",
        ),
        loses=("miss-explained",),
    ),
    _wrong(
        "miss-last-shared",
        "The last shared id on each side.",
        (MISS, "return ids[common] if", "return ids[common - 1] if"),
        loses=("miss-explained",),
    ),
    _wrong(
        "miss-no-end",
        "No thought of a side that has ended.",
        (MISS, 'ids[common] if common < len(ids) else "end"', "ids[common]"),
        loses=("miss-explained",),
    ),
    _wrong(
        "miss-ends-early",
        "Says end where one id is left.",
        (MISS, "if common <", "if common + 1 <"),
        loses=("miss-explained",),
    ),
    _wrong(
        "miss-empty-list",
        "A share in percent, which divides by the number of stored ids.",
        (MISS, "of {len(stored_ids)};", "of {len(stored_ids)} ({100 * common // len(stored_ids)}%);"),
        loses=("miss-explained",),
    ),
    _wrong(
        "miss-printed",
        "Prints the line.",
        (MISS, "    return f", "    print(f"),
        (MISS, '(live_ids)}"', '(live_ids)}")'),
        loses=("miss-explained",),
    ),
    # render_chat
    _wrong(
        "think-dropped",
        "The template as it was found.",
        (CHAT, 'NO_THOUGHT if message["role"] == "assistant" else ""', '""'),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "think-only-latest",
        "The think block stays with the newest message alone.",
        (CHAT, 'if message["role"] == "assistant"', 'if message["role"] == "assistant" and message is messages[-1]'),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "think-for-others",
        "The think block in front of the context too.",
        (CHAT, 'if message["role"] == "assistant"', 'if message["role"] not in ("user", "system")'),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "think-after-answer",
        "The think block behind the answer.",
        (CHAT, "{thought}{message['content']}", "{message['content']}{thought}"),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "think-not-doubled",
        "No think block where the answer begins with one.",
        (
            CHAT,
            'if message["role"] == "assistant"',
            'if message["role"] == "assistant" and not message["content"].startswith(NO_THOUGHT)',
        ),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "think-not-asked",
        "Repaired by leaving the block out of the generation prompt.",
        (CHAT, 'NO_THOUGHT if message["role"] == "assistant" else ""', '""'),
        (CHAT, "text + GENERATION_PROMPT", "text + GENERATION_PROMPT.replace(NO_THOUGHT, '')"),
        loses=("turn-is-a-prefix", "volatile-last"),
    ),
    _wrong(
        "content-stripped",
        "Strips contents.",
        (CHAT, "{message['content']}", "{message['content'].strip()}"),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "carriage-returns-removed",
        "Line ends made the same everywhere.",
        (CHAT, "{message['content']}", "{message['content'].replace(chr(13), '')}"),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "no-messages-refused",
        "An error for an empty list of messages.",
        (CHAT, '    text = ""\n', '    if not messages:\n        raise ValueError("no messages")\n    text = ""\n'),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "markers-removed",
        "Removes the think block from contents.",
        (CHAT, "{message['content']}", "{message['content'].replace(NO_THOUGHT, '')}"),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "empty-message-dropped",
        "Leaves out a message without content.",
        (CHAT, "        thought =", '        if not message["content"]:\n            continue\n        thought ='),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "messages-not-one-by-one",
        "Puts neighbors of one role together.",
        (
            CHAT,
            "    for message in messages:\n",
            "    role = None\n"
            "    for message in messages:\n"
            '        if message["role"] == role:\n'
            """            text += f"\\n{message['content']}"\n"""
            "            continue\n"
            '        role = message["role"]\n',
        ),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "content-normalized",
        "Brings letters and accents into one form.",
        (CHAT, "{message['content']}", "{__import__('unicodedata').normalize('NFC', message['content'])}"),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "generation-prompt-left-out",
        "No generation prompt behind an answer.",
        (
            CHAT,
            "if add_generation_prompt",
            'if add_generation_prompt and [m["role"] for m in messages][-1:] != ["assistant"]',
        ),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "generation-prompt-always",
        "Adds the generation prompt in any case.",
        (CHAT, " if add_generation_prompt else text", ""),
        loses=("turn-is-a-prefix",),
    ),
    _wrong(
        "history-adds-an-end",
        "Ends each message with a newline, which the model had not written.",
        (CHAT, "{message['content']}", "{message['content']}\\n"),
        loses=("turn-is-a-prefix",),
    ),
    # build_prompt
    _wrong(
        "changes-first",
        "The time before the system text.",
        (PROMPT, SYSTEM, """{"role": "system", "content": f"{now or ''}{system}\\n{tools_json}"}"""),
        loses=("volatile-last",),
    ),
    _wrong(
        "time-before-messages",
        "The time behind the tools.",
        (PROMPT, SYSTEM, """{"role": "system", "content": f"{system}\\n{tools_json}{now or ''}"}"""),
        loses=("volatile-last",),
    ),
    _wrong(
        "notes-before-messages",
        "The notes in the system message, the time last.",
        (PROMPT, SYSTEM, """{"role": "system", "content": "\\n".join([system, tools_json, *notes])}"""),
        (PROMPT, LINES, "    changing = [] if now is None else [now]\n"),
        loses=("volatile-last",),
    ),
    _wrong(
        "changes-before-last-message",
        "The context before the newest message.",
        (PROMPT, "parts.append(", "parts.insert(len(parts) - 1, "),
        loses=("volatile-last",),
    ),
    _wrong(
        "time-left-out",
        "No time at all.",
        (PROMPT, "([] if now is None else [now]) + list", "list"),
        loses=("volatile-last",),
    ),
    _wrong(
        "notes-left-out", "The newest note only.", (PROMPT, "list(notes)", "list(notes)[-1:]"), loses=("volatile-last",)
    ),
    _wrong(
        "none-in-prompt",
        "Writes None for no time.",
        (PROMPT, "([] if now is None else [now])", "[str(now)]"),
        loses=("volatile-last",),
    ),
    _wrong(
        "no-generation-prompt",
        "Does not ask the model to answer.",
        (PROMPT, ", add_generation_prompt=True", ""),
        loses=("volatile-last",),
    ),
    _wrong(
        "generation-prompt-twice",
        "Asks render_chat for the generation prompt, and adds it.",
        (PROMPT, "generation_prompt=True)", "generation_prompt=True) + GENERATION_PROMPT"),
        loses=("volatile-last",),
    ),
    _wrong(
        "prompt-reads-the-clock",
        "Adds the clock's time to the time that was given.",
        (PROMPT, "([] if now is None else [now])", "[str(now), str(__import__('time').perf_counter_ns())]"),
        loses=("volatile-last", "canonical-tools"),
    ),
    _wrong(
        "empty-context",
        "A context message in any case.",
        (PROMPT, "if changing:", "if True:"),
        loses=("volatile-last",),
    ),
    _wrong(
        "context-lines",
        "Time and notes on one line.",
        (PROMPT, '"\\n".join(changing)', '" ".join(changing)'),
        loses=("volatile-last",),
    ),
    _wrong(
        "context-lines-run-on",
        "A letter that runs into the next line's first word.",
        (PROMPT, '"\\n".join(changing)', '"\\nx".join(changing)'),
        loses=("volatile-last",),
        bug="context-lines",
    ),
    _wrong(
        "context-role",
        "Time and notes in a message of the system's.",
        (PROMPT, '"role": "context"', '"role": "system"'),
        loses=("volatile-last",),
    ),
    _wrong(
        "context-in-last-message",
        "Time and notes at the end of the newest message.",
        (
            PROMPT,
            CONTEXT,
            '        last = parts[-1]["content"] + "\\n" + "\\n".join(changing)\n'
            '        parts[-1] = {**parts[-1], "content": last}',
        ),
        loses=("volatile-last",),
    ),
    _wrong(
        "context-split",
        "A message for the time and one for each note.",
        (PROMPT, CONTEXT, '        parts += [{"role": "context", "content": text} for text in changing]'),
        loses=("volatile-last",),
    ),
    _wrong(
        "parts-not-rendered",
        "The parts on lines, without roles.",
        (
            PROMPT,
            "    return render_chat(parts, add_generation_prompt=True)",
            '    return "\\n".join(part["content"] for part in parts) + GENERATION_PROMPT',
        ),
        loses=("volatile-last",),
    ),
    _wrong(
        "system-role",
        "The system text and the tools as a message of the role tool.",
        (PROMPT, '{"role": "system"', '{"role": "tool"'),
        loses=("volatile-last",),
    ),
    _wrong(
        "messages-rewritten",
        "All messages as the user's.",
        (PROMPT, "*messages]", '*({**message, "role": "user"} for message in messages)]'),
        loses=("volatile-last",),
    ),
    _wrong(
        "message-stripped",
        "Strips the messages on their way.",
        (PROMPT, "*messages]", '*({**m, "content": m["content"].strip()} for m in messages)]'),
        loses=("volatile-last",),
    ),
    _wrong(
        "messages-window",
        "The six newest messages.",
        (PROMPT, "*messages]", "*messages[-6:]]"),
        loses=("volatile-last",),
    ),
    _wrong(
        "tools-behind-messages",
        "The tools in a message of their own, behind the conversation.",
        (
            PROMPT,
            f"{SYSTEM}, *messages]",
            '{"role": "system", "content": system}, *messages, {"role": "system", "content": tools_json}]',
        ),
        loses=("volatile-last",),
    ),
    _wrong(
        "tools-before-system",
        "The tools before the system text.",
        (PROMPT, 'f"{system}\\n{tools_json}"', 'f"{tools_json}\\n{system}"'),
        loses=("volatile-last",),
    ),
    _wrong(
        "tools-not-json",
        "Python's text for the tools, with sorted keys.",
        (PROMPT, "json.dumps(tools, sort_keys=True)", "str(json.loads(json.dumps(tools, sort_keys=True)))"),
        loses=("canonical-tools",),
    ),
    _wrong(
        "tools-changed",
        "Takes the blanks out of the JSON, and those of the tools' texts with them.",
        (PROMPT, "sort_keys=True)", 'sort_keys=True).replace(" ", "")'),
        loses=("canonical-tools",),
    ),
    _wrong(
        "no-tools-no-list",
        "The system text alone where there are no tools.",
        (PROMPT, 'f"{system}\\n{tools_json}"', 'f"{system}\\n{tools_json}" if tools else system'),
        loses=("canonical-tools",),
    ),
    _wrong(
        "tools-sorted",
        "The tools by their names.",
        (PROMPT, "json.dumps(tools,", 'json.dumps(sorted(tools, key=lambda tool: tool["name"]),'),
        loses=("canonical-tools",),
    ),
    _wrong(
        "tools-left-out",
        "The names of the tools only.",
        (PROMPT, "json.dumps(tools, sort_keys=True)", 'json.dumps([tool["name"] for tool in tools])'),
        loses=("volatile-last", "canonical-tools"),
    ),
    _wrong(
        "list-sorted",
        "Sorts whatever stands in a list, as text, to be sure.",
        (
            PROMPT,
            "    tools_json = json.dumps(tools, sort_keys=True)",
            """    def ordered(value):
        if isinstance(value, dict):
            return {key: ordered(value[key]) for key in sorted(value)}
        return sorted(map(ordered, value), key=str) if isinstance(value, list) else value

    tools_json = json.dumps(ordered(tools))""",
        ),
        loses=("canonical-tools",),
    ),
    _wrong("keys-as-they-come", "json.dumps as it is.", (PROMPT, ", sort_keys=True", ""), loses=("canonical-tools",)),
    _wrong(
        "keys-sorted-on-top",
        "Sorts the keys of each tool, not those inside.",
        (PROMPT, "json.dumps(tools, sort_keys=True)", "json.dumps([dict(sorted(tool.items())) for tool in tools])"),
        loses=("canonical-tools",),
    ),
    # cache_key
    _wrong("key-ignores-tenant", "No tenant.", (KEY, "positions, tenant]", "positions]"), loses=("key-separates",)),
    _wrong("key-ignores-model", "No model.", (KEY, "(token_ids), model,", "(token_ids),"), loses=("key-separates",)),
    _wrong("key-ignores-tokenizer", "No tokenizer.", (KEY, FIELDS, without("tokenizer")), loses=("key-separates",)),
    _wrong("key-ignores-dtype", "No dtype.", (KEY, FIELDS, without("dtype")), loses=("key-separates",)),
    _wrong("key-ignores-layout", "No layout.", (KEY, FIELDS, without("layout")), loses=("key-separates",)),
    _wrong("key-ignores-positions", "No positions.", (KEY, FIELDS, without("positions")), loses=("key-separates",)),
    _wrong("key-ignores-ids", "No ids.", (KEY, "list(token_ids), ", ""), loses=("key-separates",)),
    _wrong("key-same-for-all", "A constant.", (KEY, DIGEST, '"prefix-cache"'), loses=("key-separates",)),
    _wrong("key-ids-alone", "The ids alone.", (KEY, FIELDS, "list(token_ids)"), loses=("key-separates",)),
    _wrong(
        "key-salted",
        "hash() of the fields.",
        (KEY, DIGEST, "hash((*token_ids, *fields[1:]))"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-runs-together",
        "The fields joined with nothing between.",
        (KEY, "json.dumps(fields)", '"".join(map(str, fields))'),
        loses=("key-separates",),
    ),
    _wrong(
        "key-separator-in-field",
        "The fields joined with a bar.",
        (KEY, "json.dumps(fields)", '"|".join(map(str, fields))'),
        loses=("key-separates",),
    ),
    _wrong(
        "key-by-identity",
        "A digest of what pickle writes, which is a reference where two texts are one object.",
        (KEY, "json.dumps(fields).encode()", "__import__('pickle').dumps(fields)"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-not-a-text",
        "A checksum of 32 bits, as a number.",
        (KEY, DIGEST, "__import__('zlib').crc32(json.dumps(fields).encode())"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-field-cut",
        "The first 16 letters of the model's fingerprint.",
        (KEY, "(token_ids), model,", "(token_ids), model[:16],"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-letters-lost",
        "Encodes as ASCII, with a question mark for what is not.",
        (KEY, DIGEST, "hashlib.sha256(repr(fields).encode('ascii', 'replace')).hexdigest()"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-ids-run-together",
        "The ids joined with nothing between.",
        (KEY, "list(token_ids)", '"".join(map(str, token_ids))'),
        loses=("key-separates",),
    ),
    _wrong(
        "key-ids-wrap",
        "The ids as bytes, which hold up to 255.",
        (KEY, "list(token_ids)", "[i % 256 for i in token_ids]"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-too-short",
        "The first two digits of the digest.",
        (KEY, ".hexdigest()", ".hexdigest()[:2]"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-some-ids", "The first 32 ids.", (KEY, "list(token_ids)", "list(token_ids)[:32]"), loses=("key-separates",)
    ),
    _wrong(
        "key-ignores-id-order",
        "The sum of the ids.",
        (KEY, "list(token_ids)", "sum(token_ids)"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-fields-exchanged",
        "The fields sorted by their values.",
        (KEY, FIELDS, "[list(token_ids), *sorted([model, tokenizer, dtype, layout, positions, tenant])]"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-never-found",
        "Something new in every key.",
        (KEY, "    fields = [", "    import uuid\n\n    fields = [uuid.uuid4().hex, "),
        loses=("key-separates",),
    ),
    _wrong(
        "key-normalized",
        "The tenant in lower case.",
        (KEY, "positions, tenant]", "positions, tenant.lower()]"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-nul-lost",
        "The tenant as the key of hmac, which fills up with zeros.",
        (
            KEY,
            DIGEST,
            "__import__('hmac').new(tenant.encode(), json.dumps(fields[:-1]).encode(), 'sha256').hexdigest()",
        ),
        loses=("key-separates",),
    ),
    _wrong(
        "key-empty-lost",
        "Leaves out what is empty.",
        (KEY, "json.dumps(fields)", "json.dumps([field for field in fields if field])"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-separator-replaced",
        "Takes the separator out of the fields, so that they cannot hold it.",
        (KEY, "json.dumps(fields)", "'|'.join(str(field).replace('|', '_') for field in fields)"),
        loses=("key-separates",),
    ),
    _wrong(
        "key-long-text",
        "The length of each field in one byte.",
        (
            KEY,
            "json.dumps(fields).encode()",
            "str(fields[0]).encode() + b''.join(bytes([len(x)]) + x for x in (f.encode() for f in fields[1:]))",
        ),
        loses=("key-separates",),
    ),
    _wrong(
        "key-added-up",
        "A hash by hand, as in many a textbook.",
        (
            KEY,
            f"return {DIGEST}",
            """number = 0
    for letter in json.dumps(fields):
        number = (31 * number + ord(letter)) % 2**64
    return f"{number:016x}\"""",
        ),
        loses=("key-separates",),
    ),
    _wrong(
        "key-by-argument-order",
        "The fields by their names, as they come.",
        (KEY, "token_ids, model, tokenizer, dtype, layout, positions, tenant):", "token_ids, **named):"),
        (KEY, FIELDS, "[list(token_ids), named]"),
        loses=("key-separates",),
    ),
]
