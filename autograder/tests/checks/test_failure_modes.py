"""What the tables of submissions do not cover: the figures of the lessons, the filler, cheats, many seeds."""

import functools

import jupytext
import pytest

from autograder.bench.solved import solved
from autograder.judge.framework import checks_of, find_check, run_check
from autograder.judge.student import AsTuple, Entry, StudentError, local_student
from autograder.model import load_tokenizer
from autograder.notebooks.marks import read_stage
from autograder.prompts import filler
from autograder.stages import find_stage
from autograder.tests.submissions import SOLUTIONS, solved_cells

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


def test_a_near_miss_is_told_as_in_the_lesson(course):
    shared = [i % 1000 for i in range(5919)]
    line = course.explain_miss([*shared, 58, 7, 8, 9], [*shared, 352, *range(1460)])
    assert line == "common=5919 of 5923; stored next: 58; live next: 352"


def test_a_side_that_has_ended_says_so(course):
    assert course.explain_miss([1, 2], [1, 2]) == "common=2 of 2; stored next: end; live next: end"
    assert course.explain_miss([], [4]) == "common=0 of 0; stored next: end; live next: 4"


def test_the_system_prompt_is_found_behind_the_whole_prompt(course):
    prompt = [i % 1000 for i in range(2432)]
    system, whole = Entry(prompt[:2328]), Entry(prompt)
    assert course.lookup([system, whole], prompt) is system
    assert [row["gate"] for row in course.candidate_log([system, whole], prompt)] == [True, False]
    assert all(row["key"] for row in course.candidate_log([system, whole], prompt))


def test_a_dict_with_its_keys_in_another_order_is_the_same_prompt(course):
    tools = [{"name": "a", "inner": {"x": 1, "y": [{"p": 1, "q": 2}]}}]
    other = [{"inner": {"y": [{"q": 2, "p": 1}], "x": 1}, "name": "a"}]
    assert course.build_prompt("s", tools, []) == course.build_prompt("s", other, [])


@pytest.fixture(scope="module")
def lessons():
    """The namespace after those cells of the notebook that build the prompts of lessons c, d and e."""
    names = namespace()
    notebook = jupytext.read(SOLUTIONS / "failure_modes.py")
    charts = [c.source for c in notebook.cells if c.metadata.get("tags") == ["chart"]]
    build = ("def first_messages(", "notes = {")
    for source in charts:
        if source.startswith(build):
            exec(source, names)
        elif source.startswith("def encode_chat("):
            exec(source.split("other_system =")[0], names)
    return names


def test_the_prompts_have_the_lengths_of_the_lessons(lessons):
    common = lessons["longest_common_prefix"]
    assert len(lessons["system_ids"](lessons["system"])) == 2328
    assert len(lessons["prompt_ids"]) == 2328 + 104
    assert lessons["prompt_ids"][:2328] == lessons["system_ids"](lessons["system"])
    assert (len(lessons["stored_ids"]), len(lessons["live_ids"])) == (5923, 7380)
    assert common(lessons["stored_ids"], lessons["live_ids"]) == 5919
    assert len(lessons["by_newest"][-1]) == 4748
    assert {shared for shared, _ in lessons["shares"](lessons["by_newest"])} == {314}
    assert all(n - shared < 60 for shared, n in lessons["shares"](lessons["by_first"]))


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
    from autograder.judge.checks import failure_modes as checks

    for name in ("START", "NO_THOUGHT", "GENERATION_PROMPT"):
        assert getattr(checks, name) == getattr(course, name)


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


@pytest.mark.parametrize("seed", range(8))
def test_the_solution_passes_for_any_seed(seed):
    mine = student()
    results = {c.id: run_check(c, mine, seed) for c in checks_of(STAGE)}
    assert {name: r.message for name, r in results.items() if not r.passed} == {}


RESULTS = ["0", "1", "None", "''", "[]", "True", "float('nan')", "'common=3 of 5; stored next: 1; live next: 2'"]


@pytest.mark.parametrize("result", RESULTS)
def test_a_constant_earns_nothing(result):
    names = (*find_stage(STAGE).functions, "candidate_log")
    mine = student(cell="\n".join(f"def {name}(*args, **kwargs):\n    return {result}" for name in names))
    assert [c.id for c in checks_of(STAGE) if run_check(c, mine, 0).passed] == []


def test_what_only_raises_earns_nothing():
    names = (*find_stage(STAGE).functions, "candidate_log")
    mine = student(cell="\n".join(f"def {name}(*args, **kwargs):\n    raise ValueError" for name in names))
    assert [c.id for c in checks_of(STAGE) if run_check(c, mine, 0).passed] == []


CHEATS = {
    "the ids as a set": ("lookup", "set(e.token_ids) <= set(prompt_ids)"),
    "the first and the last id": (
        "lookup",
        "e.token_ids[0] == prompt_ids[0] and e.token_ids[-1] == prompt_ids[len(e.token_ids) - 1]",
    ),
    "the ids as text": ("lookup", "str(prompt_ids)[1:].startswith(str(e.token_ids)[1:-1])"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_lookup_that_does_not_compare_all_ids_fails(cheat):
    name, condition = CHEATS[cheat]
    cell = (
        f"def {name}(entries, prompt_ids):\n"
        f"    fits = [e for e in entries if len(e.token_ids) < len(prompt_ids) and {condition}]\n"
        "    return max(fits, key=lambda e: len(e.token_ids), default=None)\n"
    )
    assert not run_check(find_check("lookup-longest-entry"), student(cell=cell), 0).passed


def test_ids_compared_with_is_fail_in_the_notebook_too():
    cell = solved_cells(STAGE)["longest-common-prefix"].replace("x != y", "x is not y")
    result = run_check(find_check("common-prefix"), student(cell=cell), 0)
    assert result.bug.key == "compares-with-is"


def test_a_tuple_is_a_good_key():
    cell = "def cache_key(token_ids, **fields):\n    return tuple(token_ids), *sorted(fields.items())\n"
    assert run_check(find_check("key-separates"), student(cell=cell), 0).passed


def test_every_check_has_its_cell():
    cells = read_stage(find_stage(STAGE), SOLUTIONS)
    assert [c.name for c in cells if c.kind == "check"] == [c.id for c in checks_of(STAGE)]


# Entries, tuples and another process, as the checks ask for them


def test_the_entry_that_came_back_is_told_by_identity():
    mine = student(cell="def lookup(entries, prompt_ids):\n    return entries[-1] if entries else None\n")
    same = [Entry([1, 2]), Entry([1, 2])]
    assert mine.entry("lookup", same, [1, 2, 3]) == 1
    assert mine.entry("lookup", AsTuple(same), [1, 2, 3]) == 1
    assert mine.entry("lookup", [], [1]) is None


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
