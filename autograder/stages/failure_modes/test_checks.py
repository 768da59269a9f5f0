"""What the tables of submissions do not cover: the figures of the lessons, the filler, cheats, many seeds."""

import functools
import tempfile
from pathlib import Path

import jupytext
import pytest

from autograder.bench.solved import solved
from autograder.grading.grade import grade_submission
from autograder.judge.framework import checks_and_steps_of, checks_of, find_check, run_check
from autograder.judge.student import AsTuple, Entry, StudentError, local_student
from autograder.notebooks.given import given_source
from autograder.notebooks.marks import read_stage
from autograder.places import SOLUTIONS
from autograder.sandbox.client import Cell
from autograder.stages import find_stage
from autograder.stages.samples import solved_cells
from autograder.toolkit.model import load_tokenizer
from autograder.toolkit.prompts import filler
from autograder.worker.arguments import AsString

STAGE = "failure-modes"


@pytest.fixture(scope="module")
def course():
    return _solved()


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("tiny")


@functools.cache
def _solved():
    return solved(STAGE)


def namespace(**replaced):
    """A notebook's namespace: the solution, with some cells replaced."""
    names = dict(vars(_solved()))
    for source in (*solved_cells(STAGE).values(), *replaced.values()):
        exec(source, names)
    return names


def student(**replaced):
    return local_student(namespace(**replaced))


# The solution, on the figures of the lessons


@pytest.fixture(scope="module")
def lessons():
    """The namespace after those cells of the notebook that build the prompts of lessons c, d and e."""
    names = namespace()
    notebook = jupytext.read(SOLUTIONS / "failure_modes.py")
    charts = [c.source for c in notebook.cells if c.metadata.get("tags") == ["chart"]]
    build = ("def encode_chat(", "def first_messages(", "rules = ", "notes = {", "talk = ", "def agent_prompt(")
    for source in charts:
        if source.startswith(build):
            exec(source, names)
        elif source.startswith("def shared_by_step("):
            exec(source.split("for name, prompts")[0], names)
    return names


def test_the_prompts_have_the_lengths_of_the_lessons(lessons):
    common = lessons["longest_common_prefix"]
    assert len(lessons["system_ids"](lessons["system"])) == 2328
    assert len(lessons["prompt_ids"]) == 2328 + 104
    assert lessons["prompt_ids"][:2328] == lessons["system_ids"](lessons["system"])
    assert (len(lessons["stored_ids"]), len(lessons["live_ids"])) == (5923, 7380)
    assert common(lessons["stored_ids"], lessons["live_ids"]) == 5919
    assert len(lessons["by_newest"][-1]) == 4748
    assert {shared for shared, _ in lessons["shared_by_step"](lessons["by_newest"])} == {314}
    assert all(n - shared < 60 for shared, n in lessons["shared_by_step"](lessons["by_first"]))


def test_repairing_the_site_that_stores_changes_nothing_in_the_diagnosis(lessons):
    def diagnosis(store, request):
        turns = lessons["turn_1"], lessons["turn_2"]
        ids = [lessons["tokenizer"].encode(f(t, True)) for f, t in zip((store, request), turns, strict=True)]
        return lessons["explain_miss"](*ids)

    drifting, repaired = lessons["drifting_render_chat"], lessons["render_chat"]
    assert diagnosis(drifting, drifting) == diagnosis(repaired, drifting)
    assert diagnosis(drifting, drifting).startswith("common=5919 of 5923;")
    assert diagnosis(repaired, repaired).startswith("common=5923 of 5923;")


def test_the_template_of_the_checks_is_that_of_the_notebook(course):
    from autograder.stages.failure_modes import shared

    for name in ("START", "NO_THOUGHT", "GENERATION_PROMPT"):
        assert getattr(shared, name) == getattr(course, name)


def test_an_entry_of_the_checks_has_what_an_entry_of_the_notebook_has(course):
    from autograder.worker.values import Entry as Given

    assert vars(Given([1, 2])) == vars(course.Entry([1, 2]))


def test_a_prefix_that_ends_before_a_message_is_a_prefix_in_ids_too(course, tokenizer):
    for content in ("", " ", "\n\n", "Henry ", "] 's", "漢🙂"):
        talk = [{"role": "user", "content": content}, {"role": "assistant", "content": content}]
        asking = tokenizer.encode(course.render_chat(talk[:1], add_generation_prompt=True))
        told = tokenizer.encode(course.render_chat([*talk, talk[0]], add_generation_prompt=True))
        assert told[: len(asking)] == asking


# The filler


@pytest.mark.parametrize("n_tokens", [1, 2, 3, 104, 314, 2328, 5923])
def test_filler_has_exactly_the_tokens_asked_for(tokenizer, n_tokens):
    def count(text):
        return len(tokenizer.encode(text))

    assert count(filler(n_tokens, count)) == n_tokens
    assert filler(n_tokens, count) == filler(n_tokens, count)


def test_filler_counts_what_it_is_put_into(tokenizer):
    def count(text):
        return len(tokenizer.encode(f"KING:\n{text}!\n\n"))

    assert count(filler(50, count, seed=3)) == 50
    assert filler(50, count, seed=3) != filler(50, count, seed=4)


def test_filler_says_when_there_is_no_such_text():
    with pytest.raises(ValueError, match="too few"):
        filler(3, lambda text: 10 + len(text.split()))
    with pytest.raises(ValueError, match="does not grow"):
        filler(3, lambda text: 1)
    with pytest.raises(ValueError, match="exactly"):
        filler(3, lambda text: 2 * len(text.split()))


# The checks


RESULTS = ["0", "1", "None", "''", "[]", "True", "float('nan')", "'common=3 of 5; stored next: 1; live next: 2'"]


@pytest.mark.parametrize("body", [*(f"return {result}" for result in RESULTS), "raise ValueError"])
def test_a_constant_and_what_only_raises_earn_nothing(body):
    names = (*find_stage(STAGE).functions, "candidate_log")
    mine = student(cell="\n".join(f"def {name}(*args, **kwargs):\n    {body}" for name in names))
    assert [c.id for c in checks_of(STAGE) if run_check(c, mine, 0).passed] == []


def test_ids_compared_with_is_fail_in_the_notebook_too():
    cell = solved_cells(STAGE)["longest-common-prefix"].replace("x != y", "x is not y")
    assert not run_check(find_check("common-prefix"), student(cell=cell), 0).passed


LOG, LOOKUP, MISS = "candidate-log", "lookup", "explain-miss"
CHAT, PROMPT, KEY = "render-chat", "build-prompt", "cache-key"


def hashed(data):
    return f"hashlib.sha256({data}).hexdigest()"


DIGEST = hashed("json.dumps(fields).encode()")
PIECES = (
    "[f'{name}={value}' for name, value in zip('ids model tokenizer dtype layout positions tenant'.split(), fields)]"
)
SYSTEM = 'f"{system}\\n{tools_json}"'
NEXT_ID = 'ids[common] if common < len(ids) else "end"'
HITS = 'if row["hit"]'

# Mistakes of a kind that no sample has: the check, the cell, the old and the new text
# fmt: off
FORMS = {
    "one id too far": ("miss-explained", MISS, NEXT_ID, '(ids[common + 1 :] or ["end"])[0]'),
    "id 0 as an end": ("miss-explained", MISS, NEXT_ID, 'next(iter(ids[common:]), None) or "end"'),
    "different stored ids": ("miss-explained", MISS, "len(stored_ids)", "len(set(stored_ids))"),
    "different ids in the log": ("log-of-candidates", LOG, '"n": n', '"n": len(set(entry.token_ids))'),
    "ids as a set": ("lookup-longest-entry", LOOKUP, HITS,
                     "if set(entry.token_ids) <= set(prompt_ids) and len(entry.token_ids) < len(prompt_ids)"),
    "ids as a string": ("lookup-longest-entry", LOOKUP, HITS,
                        'if str(prompt_ids)[1:].startswith(str(entry.token_ids)[1:-1]) and row["gate"]'),
    "the first and the last id": ("lookup-longest-entry", LOOKUP, HITS,
        'if row["gate"] and row["common"] and entry.token_ids[-1] == prompt_ids[row["n"] - 1]'),
    "messages of the system's first": ("turn-is-a-prefix", CHAT, "in messages:",
                                       'in sorted(messages, key=lambda m: m["role"] != "system"):'),
    "messages of the context last": ("turn-is-a-prefix", CHAT, "in messages:",
                                     'in sorted(messages, key=lambda m: m["role"] == "context"):'),
    "placeholders filled in": ("turn-is-a-prefix", CHAT, "{message['content']}",
                               "{__import__('string').Template(message['content']).safe_substitute()}"),
    "think block for all": ("turn-is-a-prefix", CHAT, 'NO_THOUGHT if message["role"] == "assistant" else ""',
                            "NO_THOUGHT"),
    "nothing for no messages": ("turn-is-a-prefix", CHAT, "if add_generation_prompt",
                                "if add_generation_prompt and messages"),
    "notes sorted": ("volatile-last", PROMPT, "list(notes)", "sorted(notes)"),
    "no note twice": ("volatile-last", PROMPT, "list(notes)", "list(dict.fromkeys(notes))"),
    "notes before the time": ("volatile-last", PROMPT, "([] if now is None else [now]) + list(notes)",
                              "list(notes) + ([] if now is None else [now])"),
    "a letter after each line": ("volatile-last", PROMPT, '"\\n".join', '"x\\n".join'),
    "words after the tools": ("volatile-last", PROMPT, SYSTEM, 'f"{system}\\n{tools_json}\\nUse them."'),
    "no last blank of the system text": ("volatile-last", PROMPT, SYSTEM, 'f"{system.strip()}\\n{tools_json}"'),
    "no line for the tools": ("volatile-last", PROMPT, SYSTEM, 'f"{system} {tools_json}"'),
    "forty messages at most": ("volatile-last", PROMPT, "*messages]", "*messages[-40:]]"),
    "no message twice": ("volatile-last", PROMPT, "*messages]",
                         "*(m for i, m in enumerate(messages) if m not in messages[:i])]"),
    "no empty message": ("volatile-last", PROMPT, "*messages]", '*(m for m in messages if m["content"])]'),
    "no message of the system's": ("volatile-last", PROMPT, "*messages]",
                                   '*(m for m in messages if m["role"] != "system")]'),
    "two messages of the system's": ("volatile-last", PROMPT, SYSTEM + "}",
                                     'system}, {"role": "system", "content": tools_json}'),
    "tools in ASCII, and nothing else": ("canonical-tools", PROMPT, "sort_keys=True)",
                                         'sort_keys=True, ensure_ascii=False).encode("ascii", "ignore").decode()'),
    "no key without a value in the tools": ("canonical-tools", PROMPT, "json.dumps(tools,",
        "json.dumps([{k: v for k, v in tool.items() if v is not None} for tool in tools],"),
    "words before the tools": ("canonical-tools", PROMPT, SYSTEM, 'f"{system}\\nTools: {tools_json}"'),
    "tools in reverse": ("canonical-tools", PROMPT, "dumps(tools", "dumps(tools[::-1]"),
}
# fmt: on

# Expressions for a key, in place of the digest, for which no sample stands
# fmt: off
KEYS = {
    "fifteen digits": f"{DIGEST}[:15]",
    "a tuple": "(tuple(token_ids), *fields[1:])",
    "the name of a character's number": hashed("str(fields).encode('ascii', 'xmlcharrefreplace')"),
    "an array of texts": hashed("json.dumps(token_ids).encode() + np.array(fields[1:]).tobytes()"),
    "single blanks": "json.dumps([token_ids, *(' '.join(text.split()) for text in fields[1:])])",
    "a path in its normal form": "json.dumps([token_ids, __import__('posixpath').normpath(model), *fields[2:]])",
    "a backslash before a bar": r"""'|'.join(str(field).replace('|', '\\|') for field in fields)""",
    "a bar doubled, digested": hashed("'|'.join(str(field).replace('|', '||') for field in fields).encode()"),
    "quotes around the fields": hashed("','.join(f'\"{field}\"' for field in fields).encode()"),
    "lengths in two bytes": "str([(len(x).to_bytes(2, 'big'), x) for x in map(str, fields)])",
    "a sum of ids": "str([sum(i * pow(257, n, 2**128) for n, i in enumerate(token_ids)) % 2**128, *fields[1:]])",
    "a large factor": "str([sum(i * pow(1_000_003, n, 2**64) for n, i in enumerate(token_ids)) % 2**64, *fields[1:]])",
    "sums of the ids": "str([len(token_ids), sum(token_ids), np.arange(len(token_ids)) @ token_ids, *fields[1:]])",
    "a checksum as a text": "str(__import__('zlib').adler32(json.dumps(fields).encode()))",
    "named fields, digested": hashed(f"'|'.join({PIECES}).encode()"),
    "letters for names, sorted":
        hashed("f'd={dtype},l={layout},m={model},p={positions},t={tenant},{tokenizer},{fields[0]}'.encode()"),
    "a border of one's own": "'<my own border>'.join(map(str, fields))",
    "an odd border, digested": hashed("'<sep>'.join(map(str, fields)).encode()"),
    "the hash by its own name": "str((tuple(token_ids), *fields[1:]).__hash__())",
    "the text of a set": hashed("str((token_ids, frozenset(enumerate(fields[1:])))).encode()"),
    "a name without its folder": hashed("json.dumps([fields[0], model.split('/')[-1], *fields[2:]]).encode()"),
    "a folder without the name": hashed("json.dumps([*fields[:2], tokenizer.split('/')[0], *fields[3:]]).encode()"),
    "the ends of a text": hashed("json.dumps([*fields[:6], tenant[:20] + tenant[-20:]]).encode()"),
    "marshal": hashed("__import__('marshal').dumps(fields)"),
    "Latin 1": "repr(fields).encode('latin-1', 'replace').decode('latin-1')",
    "ids in fifteen bits": "json.dumps([[i % 32768 for i in token_ids], *fields[1:]])",
    "the first 4,096 ids": "json.dumps([token_ids[:4096], *fields[1:]])",
}
# fmt: on
FORMS |= {name: ("key-separates", KEY, DIGEST, form) for name, form in KEYS.items()}


def changed(mark, old, new):
    cell = solved_cells(STAGE)[mark]
    assert cell.count(old) == 1, old
    return student(cell=cell.replace(old, new))


@pytest.mark.parametrize("form", FORMS)
def test_another_form_of_a_mistake_costs_its_check(form):
    check_id, *change = FORMS[form]
    assert not any(run_check(find_check(check_id), changed(*change), seed).passed for seed in range(2))


# Templates that write another text, by what is changed in the cell
# fmt: off
TEMPLATES = {
    "lines between the messages": ("        text += f", "        text += '\\n' * bool(text)\n        text += f"),
    "START behind each content too": ("{message['content']}", "{message['content']}{START}"),
    "no newline behind the role": ("{message['role']}\\n", "{message['role']}"),
    "a colon behind the role": ("{message['role']}\\n", "{message['role']}: "),
    "capitals": ("{message['role']}", "{message['role'].upper()}"),
    "the generation prompt twice": ("text + GENERATION_PROMPT", "text + GENERATION_PROMPT * 2"),
    "no generation prompt": ("text + GENERATION_PROMPT", "text"),
    "the last message first": ("in messages:", "in messages[::-1]:"),
}
# fmt: on


@pytest.mark.parametrize("form", TEMPLATES)
def test_a_template_that_writes_another_text_is_not_taken_for_a_bug_of_build_prompt(form):
    mine = changed(CHAT, *TEMPLATES[form])
    assert not run_check(find_check("turn-is-a-prefix"), mine, 0).passed
    result = run_check(find_check("volatile-last"), mine, 0)
    assert result.bug is None, result.message
    assert result.passed or "render_chat itself" in result.message or "not in its order" in result.message


# fmt: off
GOOD_KEYS = {
    "a tuple's text": "str((tuple(token_ids), *fields[1:]))",
    "eight bytes": "hashlib.blake2b(json.dumps(fields).encode(), digest_size=8).hexdigest()",
    "bytes as letters": "hashlib.sha256(json.dumps(fields).encode()).digest().decode('latin-1')",
    "sixteen digits": f"{DIGEST}[:16]",
    "64 bits as digits": "str(int.from_bytes(hashlib.sha256(json.dumps(fields).encode()).digest()[:8], 'big'))",
    "a UUID": "str(__import__('uuid').uuid5(__import__('uuid').NAMESPACE_DNS, json.dumps(fields)))",
    "a sorted set": "json.dumps([token_ids, sorted(set(enumerate(fields[1:])))])",
    "base 64": "__import__('base64').b64encode(hashlib.md5(json.dumps(fields).encode()).digest()).decode()",
    "fields by name": "json.dumps(dict(zip('imtdlpn', fields)), sort_keys=True, ensure_ascii=False)",
    "a bar in front of which others are doubled": "'|'.join(str(field).replace('|', '||') + ' ' for field in fields)",
}
# fmt: on


GOOD_PROMPTS = {
    "indented tools": ("sort_keys=True", "sort_keys=True, indent=2"),
    "a line end behind the tools": (SYSTEM, 'f"{system}\\n{tools_json}\\n"'),
    "words before time and notes": ("list(notes)", "[f'Note: {note}' for note in notes]"),
    "a heading above them": ('"\\n".join(changing)', '"Now:\\n\\n" + "\\n\\n".join(changing) + "\\n"'),
}


@pytest.mark.parametrize("form", GOOD_PROMPTS)
def test_a_prompt_of_any_form_that_the_text_leaves_open_is_good(form):
    mine = changed(PROMPT, *GOOD_PROMPTS[form])
    for seed in range(2):
        for check_id in ("volatile-last", "canonical-tools"):
            result = run_check(find_check(check_id), mine, seed)
            assert result.passed, result.message


@pytest.mark.parametrize("form", GOOD_KEYS)
def test_a_key_of_any_form_is_good(form):
    mine = changed(KEY, DIGEST, GOOD_KEYS[form])
    for seed in range(2):
        result = run_check(find_check("key-separates"), mine, seed)
        assert result.passed, result.message


def test_every_check_has_its_cell():
    named = [c.name for c in read_stage(find_stage(STAGE), SOLUTIONS) if c.kind == "check"]
    steps = {c.id for c in checks_and_steps_of(STAGE)} - {c.id for c in checks_of(STAGE)}
    assert [name for name in named if name not in steps] == [c.id for c in checks_of(STAGE)]
    assert steps < set(named)


# Entries, tuples and another process, as the checks ask for them


def test_the_entry_that_came_back_is_told_by_identity():
    mine = student(cell="def lookup(entries, prompt_ids):\n    return entries[-1] if entries else None\n")
    same = [Entry([1, 2]), Entry([1, 2])]
    assert mine.entry("lookup", same, [1, 2, 3]) == 1
    assert mine.entry("lookup", AsTuple(same), [1, 2, 3]) == 1
    assert mine.entry("lookup", [], [1]) is None


def test_an_entry_that_is_kept_is_one_object_in_all_calls():
    cell = "seen = []\n\n\ndef lookup(entries, prompt_ids):\n    seen.extend(entries)\n    return seen[0]\n"
    mine = student(cell=cell)
    one, other = mine.keep(Entry([1])), mine.keep(Entry([1]))
    assert mine.entry("lookup", [one], [1, 2]) == 0
    assert mine.entry("lookup", [other, Entry([1]), one], [1, 2]) == 2


def test_what_is_no_entry_is_refused():
    mine = student(cell="def lookup(entries, prompt_ids):\n    return entries[0].token_ids\n")
    with pytest.raises(StudentError, match="neither one of the entries nor None"):
        mine.entry("lookup", [Entry([1])], [1, 2])


def test_an_entry_that_was_changed_is_noticed():
    cell = "def lookup(entries, prompt_ids):\n    entries[0].token_ids.append(5)\n    return entries[0]\n"
    result = run_check(find_check("lookup-longest-entry"), student(cell=cell), 0)
    assert result.bug.key == "input-changed"


def test_hash_of_text_is_another_number_elsewhere():
    names = namespace(cell="def cache_key(value):\n    return hash(value)\n")
    mine = local_student(names)

    def both(value):
        here = mine.plain("cache_key", value)
        with mine.elsewhere():
            return here, mine.plain("cache_key", value)

    here, there = both("king")
    assert here == hash("king") != there
    here, there = both(AsTuple([1, AsTuple(["king"])]))
    assert here != there
    here, there = both(AsTuple([1, 2]))
    assert here == there
    assert "hash" not in names


def test_texts_may_be_one_object_or_two_and_have_other_hashes():
    names = namespace(cell="def cache_key(a, b):\n    return [a is b, a == b, type(a) is str]\n")
    mine = local_student(names)

    def both(form):
        return mine.plain("cache_key", AsString("king", form), AsString("king", form))

    assert both("own") == [False, True, True]
    assert both("one") == [True, True, True]
    assert both(1) == [False, True, False]
    mine = local_student(namespace(cell="def cache_key(a):\n    return hash((1, a))\n"))
    hashes = {mine.plain("cache_key", AsString("king", salt)) for salt in (1, 2, 3)}
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("body", "hashes"),
    [
        ("return 'of'.join([a])", False),
        ("return {a: 1}", False),
        ("return {a}", True),
        ("return {x for x in a}", True),
        ("return [hash(x) for x in a]", True),
        ("return a.__hash__()", True),
    ],
)
def test_a_function_that_hashes_is_noticed(body, hashes):
    assert local_student(namespace(cell=f"def cache_key(a):\n    {body}\n")).hashes() is hashes


ABOUT = {"ids": "token_ids", "model": "model", "tenant": "tenant"}
PIECES_IN_A_SET = ", ".join(f'f"{name}={{{value}!r}}"' for name, value in ABOUT.items())

# What a key holds besides its fields: what the cell begins with, the expression
OF_ONE_PROCESS = {
    "the order of a set": ("", f"{{{PIECES_IN_A_SET}}}"),
    "the number of the process": ("import os\n", "os.getpid()"),
    "a hash by another way": ("import builtins\n", "getattr(builtins, 'ha' 'sh')(str(model))"),
    "the hour": ("from datetime import datetime\n", "datetime.now().isoformat()[:13]"),
    "the year": ("import time\n", "time.strftime('%Y')"),
    "the folder": ("import os\n", "os.getcwd()"),
    "a running number": ("SEEN = {}\n", "SEEN.setdefault(str(fields), len(SEEN))"),
}


@pytest.mark.parametrize("form", OF_ONE_PROCESS)
def test_a_key_that_holds_something_of_its_process_is_found_out_in_a_new_one(form):
    """Such as the order of a set: strings made of the arguments hash as they do in this process."""
    begin, held = OF_ONE_PROCESS[form]
    cell = begin + solved_cells(STAGE)[KEY].replace("json.dumps(fields)", f"str([fields, {held}])")
    assert run_check(find_check("key-separates"), student(cell=cell), 0).passed  # a notebook has no other process
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "given.py"
        given.write_text(given_source(find_stage(STAGE)), encoding="utf-8")
        cells = [Cell("imports", "import hashlib, json"), Cell(KEY, cell)]
        result = grade_submission(cells, find_stage(STAGE), 0, given)
    assert result.results[-1].bug.key == "key-salted"


def test_hashing_is_noticed_in_methods_and_behind_a_cache_and_odd_objects_do_no_harm():
    odd = "class Odd:\n    def __getattr__(self, name):\n        raise ValueError(name)\n\n\nodd = Odd()\n"
    cached = "import functools\n\n\n@functools.cache\ndef cache_key(a):\n    return hash(a)\n"
    method = "class Key:\n    @staticmethod\n    def of(a):\n        return {a}\n"
    assert local_student(namespace(cell=odd)).hashes() is False
    assert local_student(namespace(cell=cached)).hashes() is True
    names = {**namespace(), "__name__": "__main__"}
    exec(method, names)
    assert local_student(names).hashes() is True


def test_many_calls_give_their_results_in_order():
    mine = student(cell="def cache_key(ids, tenant):\n    return tenant * len(ids)\n")
    assert mine.each_plain("cache_key", [(([1, 2],), {"tenant": "a"}), (([],), {"tenant": "b"})]) == ["aa", ""]
    with pytest.raises(StudentError, match="unexpected keyword"):
        mine.each_plain("cache_key", [(([1],), {"tenant": "a"}), (([1],), {"model": "b"})])
