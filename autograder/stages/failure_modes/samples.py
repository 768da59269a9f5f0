"""Sample submissions of stage 5, failure-modes."""

from autograder.judge.bugs import BUGS
from autograder.stages.failure_modes import bugs  # noqa: F401 - puts its bugs into BUGS
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
    "render-chat": """
def render_chat(messages, add_generation_prompt=False):
    if not messages:
        return GENERATION_PROMPT if add_generation_prompt else ""
    *before, last = messages
    text = render_chat(before) + f"{START}{last['role']}\\n"
    text += (NO_THOUGHT if last["role"] == "assistant" else "") + last["content"]
    return text + GENERATION_PROMPT * bool(add_generation_prompt)
""",
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
    what = np.array(token_ids, dtype="<u4").tobytes()
    for text in (model, tokenizer, dtype, layout, positions, tenant):
        data = text.encode()
        what += len(data).to_bytes(8, "little") + data
    return hashlib.blake2b(what, digest_size=8).hexdigest()
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

RIGHT = [
    Right("slices", "Slices, halves and comprehensions; the key is a readable text.", SLICES),
    Right("numpy", "np.int64 and np.bool_ come back; a recursive template; a key of 64 bits.", WITH_NUMPY),
    Right("long-hand", "Plain loops, a line printed, the token's text in the diagnosis, no use of the log.", LONG_HAND),
    Right("objects", "Classes and helpers of its own; the key takes its fields by name.", OBJECTS),
    Right(
        "chatty", "Names and caches of entries in the log, more in the diagnosis, words before time and notes.", CHATTY
    ),
]


LCP, LOG, LOOKUP, MISS = "longest-common-prefix", "candidate-log", "lookup", "explain-miss"
CHAT, PROMPT, KEY = "render-chat", "build-prompt", "cache-key"
LOOKUPS = ("lookup-longest-entry", "lookup-leaves-a-token")


def _wrong(name, about, *changes, loses, bug=None):
    """A sample with the name of a bug is told that bug."""
    return Wrong(name, about, changes, loses, bug or (name if name in BUGS else None))


def _in(cell, *usually):
    """What makes samples that are wrong in one cell: a name, what it is about, and the old and the new text in turn."""

    def sample(name, about, *texts, loses=usually, bug=None):
        changes = ((cell, old, new) for old, new in zip(texts[::2], texts[1::2], strict=True))
        return _wrong(name, about, *changes, loses=loses, bug=bug)

    return sample


_lcp = _in(LCP, "common-prefix", "log-of-candidates", *LOOKUPS, "miss-explained")
_log, _lookup, _miss = _in(LOG, "log-of-candidates"), _in(LOOKUP, *LOOKUPS), _in(MISS, "miss-explained")
_chat, _prompt, _key = _in(CHAT, "turn-is-a-prefix"), _in(PROMPT, "volatile-last"), _in(KEY, "key-separates")

LOOP = """    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n"""
LINES = "    changing = ([] if now is None else [now]) + list(notes)\n"
CONTEXT = """        parts.append({"role": "context", "content": "\\n".join(changing)})"""
SYSTEM = """{"role": "system", "content": f"{system}\\n{tools_json}"}"""
DIGEST = "hashlib.sha256(json.dumps(fields).encode()).hexdigest()"
FIELDS = "[list(token_ids), model, tokenizer, dtype, layout, positions, tenant]"
HITS = 'if row["hit"]'
LONGEST = "max(hits, key=lambda entry: len(entry.token_ids), default=None)"


def without(field):
    return FIELDS.replace(f" {field},", "")


# fmt: off
WRONG = [
    # longest_common_prefix, on which the log and the diagnosis stand
    _lcp("counts-equal-places", "Counts equal places after the first difference too.", LOOP,
         "    return sum(x == y for x, y in zip(a, b))",
         loses=("common-prefix", "log-of-candidates", "miss-explained")),
    _lcp("compares-bytes", "Compares the last byte of each id.", "x != y", "x % 256 != y % 256",
         loses=("common-prefix", "miss-explained")),
    _lcp("compares-16-bits", "Compares the last two bytes of each id.", "x != y", "(x - y) % 65536",
         loses=("common-prefix",)),
    _lcp("remembers-by-the-ends", "Remembers a count by the lengths and the first and last ids.", "def longest",
         "counts = {}\n\n\ndef longest", "    n = 0\n", "    key = len(a), len(b), *a[:9], *b[:9], *a[-3:], *b[-3:]\n"
         "    if key in counts:\n        return counts[key]\n    n = 0\n", "    return n",
         "    counts[key] = n\n    return n", loses=("common-prefix", "miss-explained")),
    _lcp("counts-last-index", "Returns the index of the last shared id.", "    return n", "    return n - 1"),
    _lcp("compares-with-is", "Compares ids with `is not`.", "x != y", "x is not y"),
    _lcp("runs-past-the-end", "Looks for the first difference without watching the ends.", LOOP,
         "    while a[n] == b[n]:\n        n += 1\n    return n"),
    _lcp("no-difference-found", "Returns from inside the loop at the first difference, and 0 where there is none.",
         LOOP, "    for n, (x, y) in enumerate(zip(a, b)):\n        if x != y:\n            return n\n    return 0"),
    _lcp("gives-the-ids", "Returns the shared ids.", "    return n", "    return a[:n]"),
    _lcp("common-ids-as-a-set", "Counts the ids that stand in both lists.", LOOP, "    return len(set(a) & set(b))",
         loses=("common-prefix", "lookup-longest-entry", "log-of-candidates", "miss-explained")),
    _lcp("zero-is-no-id", "Fills the shorter list with zeros.", LOOP, "    from itertools import zip_longest\n\n"
         + LOOP.replace("zip(a, b, strict=False)", "zip_longest(a, b, fillvalue=0)"),
         loses=("common-prefix", "lookup-longest-entry", "log-of-candidates", "miss-explained")),
    _lcp("difference-looked-up", "Looks up the id that differs, and finds an earlier place of it.", "            break",
         "            return a.index(x)", loses=("common-prefix", "log-of-candidates", "miss-explained")),
    # candidate_log and lookup
    _log("lookup-takes-whole-prompt", "The gate lets an entry pass that covers the whole prompt.",
         "n < len(prompt_ids)", "n <= len(prompt_ids)", loses=("lookup-leaves-a-token", "log-of-candidates")),
    _log("lookup-leaves-two", "The gate wants two tokens left.", "n < len(prompt_ids)", "n < len(prompt_ids) - 1",
         loses=("lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates")),
    _log("gate-by-shared-ids", "The gate looks at the shared ids and not at the entry's length.", "n < len(prompt_ids)",
         "common < len(prompt_ids)"),
    _wrong("log-hits-only", "Only entries that pass the gate are in the log.", (LOG, "        rows.append(",
           "        if not gate:\n            continue\n        rows.append("),
           (LOOKUP, HITS, 'if len(entry.token_ids) < len(prompt_ids) and row["key"]'),
           loses=("lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates")),
    _log("log-more-rows", "A row of sums above the others.", "    rows = []",
         '    rows = [{"n": 0, "common": 0, "gate": False, "key": False, "hit": False}]',
         loses=("lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates")),
    _log("log-sorted", "The log is sorted, the longest entry first.", "    return rows",
         "    return sorted(rows, key=lambda row: -row['n'])", bug="log-reordered",
         loses=("lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates")),
    _log("log-hits-first", "The hits stand above the others.", "    return rows",
         "    return sorted(rows, key=lambda row: not row['hit'])", bug="log-reordered",
         loses=("lookup-longest-entry", "lookup-leaves-a-token", "log-of-candidates")),
    _wrong("log-hit-without-gate", "The log's hit is the key condition alone.", (LOG, "gate and key}", "key}"),
           (LOOKUP, HITS, 'if row["gate"] and row["key"]'), loses=("log-of-candidates",)),
    _wrong("log-key-is-any", "The log's key says that something is shared.", (LOG, "common == n", "common > 0"),
           (LOOKUP, HITS, 'if row["gate"] and row["common"] == row["n"]'), loses=("log-of-candidates",)),
    _lookup("lookup-first-hit", "The first hit.", LONGEST, "hits[0] if hits else None", bug="lookup-not-longest"),
    _lookup("lookup-last-hit", "The last hit.", LONGEST, "hits[-1] if hits else None", loses=("lookup-longest-entry",),
            bug="lookup-not-longest"),
    _lookup("lookup-shortest", "min for max.", "max(", "min(", bug="lookup-not-longest"),
    _lookup("lookup-near-miss", "The entry that shares the most ids, whether all of its own match or not.", HITS,
            'if row["gate"] and row["common"]', "len(entry.token_ids)",
            "longest_common_prefix(entry.token_ids, prompt_ids)"),
    _lookup("lookup-ranks-first",
            "Takes the longest entry that passes the gate, and only then looks whether it matches.", HITS,
            'if row["gate"]', f"    return {LONGEST}", f"    best = {LONGEST}\n"
            "    return best if best and prompt_ids[: len(best.token_ids)] == best.token_ids else None"),
    _lookup("lookup-stops-at-a-miss", "Goes through the entries from the shortest on, up to the first that misses.",
            f"    return {LONGEST}", "    best = None\n"
            "    for entry in sorted(entries, key=lambda entry: len(entry.token_ids)):\n"
            "        if entry not in hits:\n            break\n        best = entry\n    return best",
            loses=("lookup-longest-entry",)),
    _lookup("lookup-some-ids", "Compares 32 ids.", HITS, 'if row["gate"] and row["common"] >= min(row["n"], 32)',
            loses=("lookup-longest-entry",)),
    _lookup("lookup-one-percent", "Lets one id of a hundred be another.", HITS,
            'if row["gate"] and row["common"] >= 0.99 * row["n"]', loses=("lookup-longest-entry",)),
    _lookup("lookup-first-ten", "Looks at ten entries.", "zip(entries, rows, strict=True)", "zip(entries[:10], rows)",
            loses=("lookup-longest-entry",)),
    _lookup("lookup-gives-up-on-whole", "Takes the longest match and gives up when it covers the prompt.", HITS,
            'if row["key"]', f"    return {LONGEST}",
            f"    best = {LONGEST}\n    return None if best and len(best.token_ids) == len(prompt_ids) else best",
            loses=("lookup-leaves-a-token",), bug="lookup-ranks-first"),
    _lookup("lookup-longer-than-prompt", "Compares entry and prompt pair by pair, so a longer entry matches.", HITS,
            'if row["common"] == min(row["n"], len(prompt_ids)) and row["n"] != len(prompt_ids)',
            loses=("lookup-longest-entry",)),
    _lookup("lookup-not-an-entry", "Returns the entry's ids.", f"return {LONGEST}",
            "return max((entry.token_ids for entry in hits), key=len, default=None)"),
    _lookup("lookup-fails-on-no-hit", "max without a default.", ", default=None", ""),
    _lookup("lookup-compares-entries", "max of pairs of a length and an entry.", LONGEST,
            "max(((len(e.token_ids), e) for e in hits), default=(0, None))[1]", loses=("lookup-longest-entry",)),
    _lookup("lookup-sorts-the-entries", "Sorts the caller's list of entries.", "    hits =",
            "    entries.sort(key=lambda entry: len(entry.token_ids))\n    hits =", loses=("lookup-longest-entry",),
            bug="input-changed"),
    _lookup("lookup-remembers", "The entry found for a prompt is returned again for as long as it is stored.",
            "def lookup(", "found = {}\n\n\ndef lookup(", "    hits =",
            "    key = tuple(prompt_ids)\n    if found.get(key) in entries:\n        return found[key]\n    hits =",
            f"return {LONGEST}", f"found[key] = {LONGEST}\n    return found[key]", loses=("lookup-longest-entry",)),
    _lookup("lookup-tires", "Finds nothing after 100 calls.", "    hits =",
            "    lookup.calls = getattr(lookup, 'calls', 0) + 1\n    if lookup.calls > 100:\n"
            "        return None\n    hits =", loses=("lookup-leaves-a-token",)),
    # serve_openly, a step
    _wrong("serve-hides-failures", "The line says miss where a reuse fails.",
           ("serve-openly", 'f"failed: {error}"', '"miss"'), loses=()),
    # explain_miss
    _miss("miss-of-live", "The number of live ids.", "of {len(stored_ids)}", "of {len(live_ids)}"),
    _miss("miss-sides-swapped", "The two sides exchanged.",
          "stored next: {next_id(stored_ids)}; live next: {next_id(live_ids)}",
          "stored next: {next_id(live_ids)}; live next: {next_id(stored_ids)}"),
    _miss("miss-both-ways", "Both orders of the two ids.", '{next_id(live_ids)}"', '{next_id(live_ids)} " + '
          'f"or stored next: {next_id(live_ids)}; live next: {next_id(stored_ids)}"'),
    _miss("miss-last-shared", "The last shared id on each side.", "return ids[common] if", "return ids[common - 1] if"),
    _miss("miss-no-end", "No thought of a side that has ended.", 'ids[common] if common < len(ids) else "end"',
          "ids[common]"),
    _miss("miss-ends-early", "Says end where one id is left.", "if common <", "if common + 1 <"),
    _miss("miss-empty-list", "A share in percent, which divides by the number of stored ids.", "of {len(stored_ids)};",
          "of {len(stored_ids)} ({100 * common // len(stored_ids)}%);"),
    _miss("miss-printed", "Prints the line.", "    return f", "    print(f", '(live_ids)}"', '(live_ids)}")'),
    # render_chat
    _chat("think-dropped", "The template as it was found.", 'NO_THOUGHT if message["role"] == "assistant" else ""',
          '""'),
    _chat("think-only-latest", "The think block stays with the newest message alone.",
          'if message["role"] == "assistant"', 'if message["role"] == "assistant" and message is messages[-1]'),
    _chat("think-for-others", "The think block in front of the context too.", 'if message["role"] == "assistant"',
          'if message["role"] not in ("user", "system")'),
    _chat("think-after-answer", "The think block after the answer.", "{thought}{message['content']}",
          "{message['content']}{thought}"),
    _chat("think-not-doubled", "No think block where the answer begins with one.", 'if message["role"] == "assistant"',
          'if message["role"] == "assistant" and not message["content"].startswith(NO_THOUGHT)'),
    _chat("think-not-asked", "Repaired by leaving the block out of the generation prompt.",
          'NO_THOUGHT if message["role"] == "assistant" else ""', '""', "text + GENERATION_PROMPT",
          "text + GENERATION_PROMPT.replace(NO_THOUGHT, '')", loses=("turn-is-a-prefix", "volatile-last")),
    _chat("content-stripped", "Strips contents.", "{message['content']}", "{message['content'].strip()}"),
    _chat("carriage-returns-removed", "Line ends made the same everywhere.", "{message['content']}",
          "{message['content'].replace(chr(13), '')}"),
    _chat("no-messages-refused", "An error for an empty list of messages.", '    text = ""\n',
          '    if not messages:\n        raise ValueError("no messages")\n    text = ""\n'),
    _chat("markers-removed", "Removes the think block from contents.", "{message['content']}",
          "{message['content'].replace(NO_THOUGHT, '')}"),
    _chat("empty-message-dropped", "Leaves out a message without content.", "        thought =",
          '        if not message["content"]:\n            continue\n        thought ='),
    _chat("messages-not-one-by-one", "Puts neighbors of one role together.", "    for message in messages:\n",
          "    role = None\n    for message in messages:\n        if message['role'] == role:\n"
          """            text += f"\\n{message['content']}"\n"""
          "            continue\n        role = message['role']\n"),
    _chat("content-normalized", "Brings letters and accents into one form.", "{message['content']}",
          "{__import__('unicodedata').normalize('NFC', message['content'])}"),
    _chat("generation-prompt-left-out", "No generation prompt after an answer.", "if add_generation_prompt",
          'if add_generation_prompt and [m["role"] for m in messages][-1:] != ["assistant"]'),
    _chat("generation-prompt-always", "Adds the generation prompt in any case.", " if add_generation_prompt else text",
          ""),
    _chat("history-adds-an-end", "Ends each message with a newline, which the model had not written.",
          "{message['content']}", "{message['content']}\\n"),
    # build_prompt
    _prompt("changes-first", "The time before the system text.", SYSTEM,
            """{"role": "system", "content": f"{now or ''}{system}\\n{tools_json}"}""", bug="changes-early"),
    _prompt("time-before-messages", "The time after the tools.", SYSTEM,
            """{"role": "system", "content": f"{system}\\n{tools_json}{now or ''}"}""", bug="changes-early"),
    _prompt("notes-before-messages", "The notes in the system message, the time last.", SYSTEM,
            """{"role": "system", "content": "\\n".join([system, tools_json, *notes])}""", LINES,
            "    changing = [] if now is None else [now]\n", bug="changes-early"),
    _prompt("changes-before-last-message", "The context before the newest message.", "parts.append(",
            "parts.insert(len(parts) - 1, ", bug="changes-early"),
    _prompt("time-left-out", "No time at all.", "([] if now is None else [now]) + list", "list"),
    _prompt("notes-left-out", "The newest note only.", "list(notes)", "list(notes)[-1:]"),
    _prompt("none-in-prompt", "Writes None for no time.", "([] if now is None else [now])", "[str(now)]"),
    _prompt("no-generation-prompt", "Does not ask the model to answer.", ", add_generation_prompt=True", ""),
    _prompt("generation-prompt-twice", "Asks render_chat for the generation prompt, and adds it.",
            "generation_prompt=True)", "generation_prompt=True) + GENERATION_PROMPT"),
    _prompt("prompt-reads-the-clock", "Adds the clock's time to the time that was given.",
            "([] if now is None else [now])", "[str(now), str(__import__('time').perf_counter_ns())]",
            loses=("volatile-last", "canonical-tools")),
    _prompt("empty-context", "A context message in any case.", "if changing:", "if True:"),
    _prompt("empty-line-for-no-time", "A line for the time, empty without one.", "([] if now is None else [now])",
            "[now or ''] * (now is not None or bool(notes))"),
    _prompt("context-lines", "Time and notes on one line.", '"\\n".join(changing)', '" ".join(changing)'),
    _prompt("context-lines-run-on", "A letter that runs into the next line's first word.", '"\\n".join(changing)',
            '"\\nx".join(changing)'),
    _prompt("context-role", "Time and notes in a message of the system's.", '"role": "context"', '"role": "system"'),
    _prompt("context-in-last-message", "Time and notes at the end of the newest message.", CONTEXT,
            '        last = parts[-1]["content"] + "\\n" + "\\n".join(changing)\n'
            '        parts[-1] = {**parts[-1], "content": last}'),
    _prompt("context-split", "A message for the time and one for each note.", CONTEXT,
            '        parts += [{"role": "context", "content": text} for text in changing]'),
    _prompt("parts-not-rendered", "The parts on lines, without roles.",
            "    return render_chat(parts, add_generation_prompt=True)",
            '    return "\\n".join(part["content"] for part in parts) + GENERATION_PROMPT'),
    _prompt("system-role", "The system text and the tools as a message of the role tool.", '{"role": "system"',
            '{"role": "tool"'),
    _prompt("messages-rewritten", "All messages as the user's.", "*messages]",
            '*({**message, "role": "user"} for message in messages)]'),
    _prompt("message-stripped", "Strips the messages on their way.", "*messages]",
            '*({**m, "content": m["content"].strip()} for m in messages)]'),
    _prompt("messages-window", "The six newest messages.", "*messages]", "*messages[-6:]]"),
    _prompt("tools-after-messages", "The tools in a message of their own, after the conversation.",
            f"{SYSTEM}, *messages]",
            '{"role": "system", "content": system}, *messages, {"role": "system", "content": tools_json}]'),
    _prompt("tools-before-system", "The tools before the system text.", 'f"{system}\\n{tools_json}"',
            'f"{tools_json}\\n{system}"'),
    _prompt("tools-not-json", "Python's text for the tools, with sorted keys.", "json.dumps(tools, sort_keys=True)",
            "str(json.loads(json.dumps(tools, sort_keys=True)))", loses=("canonical-tools",)),
    _prompt("tools-changed", "Takes the blanks out of the JSON, and those of the tools' texts with them.",
            "sort_keys=True)", 'sort_keys=True).replace(" ", "")', loses=("canonical-tools",)),
    _prompt("no-tools-no-list", "The system text alone where there are no tools.", 'f"{system}\\n{tools_json}"',
            'f"{system}\\n{tools_json}" if tools else system', loses=("canonical-tools",)),
    _prompt("tools-sorted", "The tools by their names.", "json.dumps(tools,",
            'json.dumps(sorted(tools, key=lambda tool: tool["name"]),', loses=("canonical-tools",)),
    _prompt("tools-left-out", "The names of the tools only.", "json.dumps(tools, sort_keys=True)",
            'json.dumps([tool["name"] for tool in tools])', loses=("volatile-last", "canonical-tools")),
    _prompt("list-sorted", "Sorts whatever stands in a list, as text, to be sure.",
            "    tools_json = json.dumps(tools, sort_keys=True)", """    def ordered(value):
        if isinstance(value, dict):
            return {key: ordered(value[key]) for key in sorted(value)}
        return sorted(map(ordered, value), key=str) if isinstance(value, list) else value

    tools_json = json.dumps(ordered(tools))""",
            loses=("canonical-tools",)),
    _prompt("tools-once", "A tool that stands twice in the list is written once.", "json.dumps(tools,",
            "json.dumps([tool for i, tool in enumerate(tools) if tool not in tools[:i]],", loses=("canonical-tools",)),
    _prompt("keys-as-they-come", "json.dumps as it is.", ", sort_keys=True", "", loses=("canonical-tools",)),
    _prompt("keys-sorted-on-top", "Sorts the keys of each tool, not those inside.", "json.dumps(tools, sort_keys=True)",
            "json.dumps([dict(sorted(tool.items())) for tool in tools])", loses=("canonical-tools",),
            bug="keys-as-they-come"),
    # cache_key
    _key("key-ignores-tenant", "No tenant.", "positions, tenant]", "positions]", bug="key-ignores-an-argument"),
    *(_key(f"key-ignores-{field}", f"No {field}.", FIELDS, without(field), bug="key-ignores-an-argument")
      for field in ("model", "tokenizer", "dtype", "layout", "positions")),
    _key("key-ignores-ids", "No ids.", "list(token_ids), ", "", bug="key-ignores-an-argument"),
    _key("key-ids-in-16-bits", "Ids cut to 16 bits.", "list(token_ids), ", "[i & 0xffff for i in token_ids], "),
    _key("key-same-for-all", "A constant.", DIGEST, '"prefix-cache"', bug="key-ignores-an-argument"),
    _key("key-ids-alone", "The ids alone.", FIELDS, "list(token_ids)", bug="key-ignores-an-argument"),
    _key("key-salted", "hash() of the fields.", DIGEST, "hash((*token_ids, *fields[1:]))"),
    _key("key-runs-together", "The fields joined with nothing between.", "json.dumps(fields)",
         '"".join(map(str, fields))'),
    _key("key-separator-in-field", "The fields joined with a bar.", "json.dumps(fields)", '"|".join(map(str, fields))',
         bug="key-runs-together"),
    _key("key-by-identity", "A digest of what pickle writes, which is a reference where two texts are one object.",
         "json.dumps(fields).encode()", "__import__('pickle').dumps(fields)"),
    _key("key-not-a-text", "A checksum of 32 bits, as a number.", DIGEST,
         "__import__('zlib').crc32(json.dumps(fields).encode())"),
    _key("key-field-cut", "The first 16 letters of the model's fingerprint.", "(token_ids), model,",
         "(token_ids), model[:16],"),
    _key("key-letters-lost", "Encodes as ASCII, with a question mark for what is not.", DIGEST,
         "hashlib.sha256(repr(fields).encode('ascii', 'replace')).hexdigest()"),
    _key("key-ids-run-together", "The ids joined with nothing between.", "list(token_ids)",
         '"".join(map(str, token_ids))'),
    _key("key-ids-wrap", "The ids as bytes, which hold up to 255.", "list(token_ids)", "[i % 256 for i in token_ids]"),
    _key("key-lengths-run-on", "Each field after its length, with nothing between the two.", "json.dumps(fields)",
         "''.join(f'{len(text)}{text}' for text in [str(fields[0]), *fields[1:]])",
         bug="key-runs-together"),
    _key("key-too-short", "The first two digits of the digest.", ".hexdigest()", ".hexdigest()[:2]"),
    _key("key-some-ids", "The first 32 ids.", "list(token_ids)", "list(token_ids)[:32]"),
    _key("key-ignores-id-order", "The sum of the ids.", "list(token_ids)", "sum(token_ids)"),
    _key("key-fields-exchanged", "The fields sorted by their values.", FIELDS,
         "[list(token_ids), *sorted([model, tokenizer, dtype, layout, positions, tenant])]"),
    _key("key-never-found", "Something new in every key.", "    fields = [",
         "    import uuid\n\n    fields = [uuid.uuid4().hex, "),
    _key("key-normalized", "The tenant in lower case.", "positions, tenant]", "positions, tenant.lower()]"),
    _key("key-nul-lost", "The tenant as the key of hmac, which fills up with zeros.", DIGEST,
         "__import__('hmac').new(tenant.encode(), json.dumps(fields[:-1]).encode(), 'sha256').hexdigest()"),
    _key("key-empty-lost", "Leaves out what is empty.", "json.dumps(fields)",
         "json.dumps([field for field in fields if field])"),
    _key("key-separator-replaced", "Takes the separator out of the fields, so that they cannot hold it.",
         "json.dumps(fields)", "'|'.join(str(field).replace('|', '_') for field in fields)"),
    _key("key-long-text", "The length of each field in one byte.", "json.dumps(fields).encode()",
         "str(fields[0]).encode() + b''.join(bytes([len(x)]) + x for x in (f.encode() for f in fields[1:]))"),
    _key("key-added-up", "A hash by hand, as in many a textbook.", f"return {DIGEST}", """number = 0
    for letter in json.dumps(fields):
        number = (31 * number + ord(letter)) % 2**64
    return f"{number:016x}\""""),
    _key("key-by-argument-order", "The fields by their names, as they come.",
         "token_ids, model, tokenizer, dtype, layout, positions, tenant):", "token_ids, **named):", FIELDS,
         "[list(token_ids), named]"),
]
# fmt: on
