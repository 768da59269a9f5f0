"""The three failures of stage 5 in the real chat model: a server of saved prefixes, and what each request costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from autograder.toolkit import reuse_costs
from autograder.toolkit.play.live import live_table
from autograder.toolkit.prompts import filler

CHUNK = 1024  # tokens that go through the model at once
BLOCK = "[brief]\n"  # what the drifting template adds to the generation prompt: 4 tokens
Row = dict[str, Any]
Render = Callable[..., str]


@dataclass(frozen=True, eq=False)
class Entry:
    """A saved prefix, as stage 5's lookup ranks it."""

    token_ids: list[int]
    cache: Any


class Server:
    """Serves prompts with whole saved entries, and keeps a row about each request.

    advance, new_cache, lookup, explain_miss: the student's functions, and those of the earlier stages.
    """

    def __init__(self, weights, tokenizer, advance, new_cache, lookup, explain_miss) -> None:
        self._weights, self._encode = weights, tokenizer.encode
        self._advance, self._new_cache = advance, new_cache
        self._lookup, self._explain_miss = lookup, explain_miss
        self._entries: list[Entry] = []
        self._token_seconds = self._feed(list(range(3, 259)), self._cache()) / 256

    def _cache(self):
        return self._new_cache(self._weights.config.n_layer)

    def _feed(self, ids: list[int], cache) -> float:
        """Run the ids after what the cache holds; the seconds."""
        begin = time.perf_counter()
        for i in range(0, len(ids), CHUNK):
            self._advance(ids[i : i + CHUNK], len(cache), self._weights, cache)
        return time.perf_counter() - begin

    def _announce(self, *passes: tuple[int, int]) -> None:
        """Say how long passes from position a to position b will take here. Attention makes later tokens cost more."""
        seconds = sum(self._token_seconds * (b - a) * (1 + (a + b) / 2 / 1500) for a, b in passes)
        print(f"This will take about {max(1, round(seconds))} s here.")

    def save(self, ids: list[int]) -> Row:
        """Run a prefix and keep it."""
        cache = self._cache()
        seconds = self._feed(ids, cache)
        self._entries.append(Entry(ids, cache))
        return {"request": "save", "prompt": len(ids), "reused": 0, "computed": len(ids), "seconds": seconds, "log": ""}

    def request(self, what: str, ids: list[int], lookup=None) -> Row:
        """Answer one prompt: its first logits, with the entry that the lookup gives."""
        entry = (lookup or self._lookup)(self._entries, ids)
        n = len(entry.token_ids) if entry else 0
        if entry is None:
            nearest = max(self._entries, key=lambda e: _common(e.token_ids, ids), default=None)
            log = f"MISS {self._explain_miss(nearest.token_ids, ids)}" if nearest else "MISS no entries"
        elif n == len(ids):
            log, n = f"HIT {n:,}: ERROR, the suffix is empty; computed from scratch", 0
        else:
            log = f"HIT {n:,}"
        begin = time.perf_counter()
        self._feed(ids[n:], entry.cache.clone() if n else self._cache())
        seconds = time.perf_counter() - begin
        row = {"request": what, "prompt": len(ids), "reused": n, "computed": len(ids) - n, "seconds": seconds}
        return {**row, "log": log}

    # The failures

    def ranking(self, render: Render) -> list[Row]:
        """A lookup that admits an entry as long as the prompt, and the right one: 2,328 + 104 tokens."""
        question = {"role": "user", "content": filler(60, lambda text: len(self._encode(text)), seed=1)}

        def prompt(system: str, more: str = "") -> list[int]:
            user = {**question, "content": question["content"] + more}
            return self._encode(render([{"role": "system", "content": system}, user], True))

        def head(system: str) -> list[int]:
            return self._encode(render([{"role": "system", "content": system}]))

        system = filler(2328, lambda text: len(head(text)))
        more = filler(2432, lambda text: len(prompt(system, f" {text}")), seed=2)
        prefix, ids = head(system), prompt(system, f" {more}")
        self._entries = []
        self._announce((0, 2328), (0, 2432), (0, 2432), (2328, 2432))

        def rows() -> Iterator[Row]:
            yield {**self.save(prefix), "request": "save the system prompt"}
            yield {**self.save(ids), "request": "save the same prompt"}
            yield self.request("n <= len(prompt)", ids, _longest_that_fits)
            yield self.request("n < len(prompt)", ids)

        return live_table(rows())

    def drift(self, render: Render) -> list[Row]:
        """A generation prompt that history forgets: 5,919 of 5,923 tokens are shared, of a live prompt of 7,380."""
        drifting, repaired = _drifting(render), _repaired(render)
        first = [{"role": "user", "content": "Which of the parts is still to be given, and to whom?"}]
        rules = filler(5923, lambda text: len(self._encode(drifting(_with_system(text, first), True))))
        turn_1 = _with_system(rules, first)
        answer = {"role": "assistant", "content": "The part of the messenger. Give it to Peter."}

        def second(letter: str) -> list[dict[str, str]]:
            return [*turn_1, answer, {"role": "user", "content": f"Here is his letter. {letter}"}]

        letter = filler(7380, lambda text: len(self._encode(drifting(second(text), True))), seed=1)
        turn_2 = second(letter)
        stored, live = (self._encode(drifting(turn, True)) for turn in (turn_1, turn_2))
        good = self._encode(repaired(turn_2, True))
        self._announce((0, len(stored)), (0, len(live)), (0, len(live)), (len(stored), len(good)))

        def rows() -> Iterator[Row]:
            self._entries = []
            yield {**self.save(stored), "request": "save turn 1"}
            yield self.request("turn 2, template drifts", live)
            # Now the call site that saves is repaired: turn 1 has no answer in its history, so its ids are the same.
            yield self.request("turn 2, one call site repaired", live)
            yield self.request("turn 2, both repaired", good)

        return live_table(rows())

    def six_turns(self, render: Render) -> dict[str, list[Row]]:
        """Six turns with the drifting template and with the repaired one: the rows of each."""
        talk = []
        for i in range(6):
            talk.append({"role": "user", "content": filler(60, lambda text: len(self._encode(text)), seed=i)})
            talk.append({"role": "assistant", "content": filler(90, lambda text: len(self._encode(text)), seed=50 + i)})
        system = filler(300, lambda text: len(self._encode(text)), seed=99)
        templates = {"template drifts": _drifting(render), "repaired": _repaired(render)}
        taken: dict[str, list[Row]] = {name: [] for name in templates}
        self._announce(*((0, 450 + 150 * i) for i in range(6)), *((0, 450 + 150 * i) for i in range(6)))

        def rows() -> Iterator[Row]:
            for name, template in templates.items():
                self._entries = []
                for turn in range(6):
                    ids = self._encode(template(_with_system(system, talk[: 2 * turn + 1]), True))
                    row = self.request(f"{name}, turn {turn + 1}", ids)
                    taken[name].append(row)
                    yield row
                    if turn < 5:
                        self.save(ids)

        live_table(rows())
        return taken

    def mutating(self, render: Render) -> list[Row]:
        """A note in the system block that changes at each step: 314 of 4,748 tokens stay."""
        notes = ("Swords are kept in the chest by the wall.", "The crown lies in the queen's box.")
        asked = ("What do I do about the sword?", "And about the crown?")
        talk = [
            {"role": "user", "content": asked[0]},
            {"role": "assistant", "content": "Keep it in the chest."},
            {"role": "user", "content": asked[1]},
        ]

        def begin(head: str) -> str:
            return render([{"role": "system", "content": head}]).removesuffix("<|im_end|>\n") + "\n"

        head = filler(314, lambda text: len(self._encode(begin(text))))

        def in_system(note: str, messages, rest: str) -> list[int]:
            return self._encode(render(_with_system(f"{head}\n{note}\n{rest}", messages), True))

        rest = filler(4748, lambda text: len(in_system(notes[1], talk, text)), seed=1)

        def at_the_end(note: str, messages) -> list[int]:
            last = {**messages[-1], "content": f"{messages[-1]['content']}\n{note}"}
            return self._encode(render(_with_system(f"{head}\n{rest}", [*messages[:-1], last]), True))

        before, now = in_system(notes[0], talk[:1], rest), in_system(notes[1], talk, rest)
        good_before, good_now = at_the_end(notes[0], talk[:1]), at_the_end(notes[1], talk)
        shared, good_shared = _common(before, now), _common(good_before, good_now)
        self._announce((0, shared), (shared, len(now)), (0, good_shared), (good_shared, len(good_now)))

        def rows() -> Iterator[Row]:
            self._entries = []
            yield {**self.save(now[:shared]), "request": "save what two steps share"}
            yield self.request("note in the system block", now)
            self._entries = []
            yield {**self.save(good_now[:good_shared]), "request": "save what two steps share"}
            yield self.request("note at the end", good_now)

        return live_table(rows())


def _with_system(content: str, messages: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"role": "system", "content": content}, *messages]


def _drifting(render: Render) -> Render:
    """The block stands in the generation prompt, and not in history."""
    return lambda messages, prompt=False: render(messages, prompt) + (BLOCK if prompt else "")


def _repaired(render: Render) -> Render:
    """The block stands in both."""

    def run(messages, prompt=False):
        kept = [{**m, "content": BLOCK + m["content"]} if m["role"] == "assistant" else m for m in messages]
        return render(kept, prompt) + (BLOCK if prompt else "")

    return run


def _longest_that_fits(entries: list[Entry], prompt_ids: list[int]) -> Entry | None:
    """The wrong lookup: it admits an entry that leaves nothing to compute."""
    fitting = [e for e in entries if e.token_ids == prompt_ids[: len(e.token_ids)]]
    return max(fitting, key=lambda e: len(e.token_ids), default=None)


def _common(a: list[int], b: list[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def beside_the_source(ranking: list[Row], drift: list[Row], mutating: list[Row]) -> None:
    """A table of the source's figures and those of this machine. The rows are those of the Server's trials."""

    def seconds(rows: list[Row], request: str) -> float:
        return next(row["seconds"] for row in rows if row["request"] == request)

    wrong = next(row for row in mutating if row["request"] == "note in the system block")
    more = seconds(drift, "turn 2, template drifts") - seconds(drift, "turn 2, both repaired")
    reuse_costs.beside_the_source(
        ranking=f"{seconds(ranking, 'n <= len(prompt)'):.3g} s, then {seconds(ranking, 'n < len(prompt)'):.3g} s",
        drift=f"{more:.3g} s more at each step",
        note=f"{wrong['computed'] / wrong['prompt']:.0%} recomputed at each step",
    )
