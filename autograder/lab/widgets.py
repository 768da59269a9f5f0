"""The two labs: sliders, buttons and text boxes over the cost model, the drawings and the measured passes.

A lab is a set of widgets where widgets run. Everywhere else (a web page, an editor without widgets, a printed notebook)
the same output shows a static picture.
"""

from __future__ import annotations

from typing import Any

from autograder.lab.passes import Passes
from autograder.toolkit import cost_drawings as drawing
from autograder.toolkit.costs import Decoding, NextRequest
from autograder.toolkit.passage import PASSAGE
from autograder.toolkit.play.shown import Shown

_WIDE = {"description_width": "150px"}


class DecodeLab(Shown):
    """Lab 1: a prompt is prefilled once, then each step decodes one token."""

    def __init__(self, weights, tokenizer, n_prompt: int = 16) -> None:
        self._tokenizer = tokenizer
        self._passes = Passes(weights)
        self._passage = tokenizer.encode(PASSAGE)
        self._most = min(len(self._passage), self._passes.n_ctx - 16)
        self._last_run: tuple[str, str, str] | None = None  # what the run before the switch paid, as a row
        self._start(min(n_prompt, self._most), use_cache=True)
        self._make_widgets()

    # What has happened so far

    def _start(self, n_prompt: int, use_cache: bool) -> None:
        self.decoding = Decoding(n_prompt, use_cache)
        self.new_ids: list[int] = []
        self._kv = None
        self._seconds: dict[bool, list[float]] = {False: [], True: []}  # of each step, by "with the cache"

    @property
    def full(self) -> bool:
        return self.decoding.n_seq(self.decoding.n_steps + 1) > self._passes.n_ctx

    def step(self) -> None:
        """One pass of the model in the chosen way; the other way also runs, for comparison."""
        ids = self._passage[: self.decoding.n_prompt] + self.new_ids
        self.decoding = self.decoding.next()
        everything = self._passes.run(ids)
        prefill = self.decoding.n_steps == 1  # the same pass either way
        cached = everything if prefill else self._passes.run(ids[-1:], past=self._kv)
        self._kv = cached.kv
        self._seconds[False].append(everything.seconds)
        self._seconds[True].append(cached.seconds)
        self.new_ids.append((cached if self.decoding.use_cache else everything).next_id)

    # What is shown

    def results(self) -> str:
        """The numbers and the drawing, as HTML."""
        d = self.decoding
        prompt = self._tokenizer.decode(self._passage[: d.n_prompt])
        prompt = prompt if len(prompt) <= 200 else f"… {prompt[-200:]}"
        text = self._tokenizer.decode(self.new_ids)
        told = (
            f"<p class='text' role='region' aria-label='Prompt and generated text' tabindex='0'>"
            f"{drawing.escape(prompt)}<b><u>{drawing.escape(text)}</u></b></p>"
        )
        if d.n_steps:
            state = (
                f"Step {d.n_steps} ({'prefill' if d.n_steps == 1 else 'decode'}): {d.n_seq()} tokens have been through "
                f"the model, {len(self.new_ids)} generated."
            )
            rows = [
                ("this step", f"{d.units():,}", _ms(self._last(d.use_cache))),
                ("paid so far", f"{d.paid:,}", _ms(self._sum(d.use_cache))),
                ("paid if every step recomputed", f"{d.paid_without_cache:,}", _ms(self._sum(False))),
            ]
        else:
            state = f"A prompt of {d.n_prompt} tokens, and nothing computed yet: press Generate."
            rows = [("the first step, the prefill, will cost", f"{d.next().units():,}", _ms(None))]
        rows += [self._last_run] * (self._last_run is not None)
        way = "KV cache on" if d.use_cache else "KV cache off: every step recomputes"
        return drawing.lab_html(
            f"<p role='status'>{state}</p>",
            told,
            drawing.table(way, ("", "attention units", "measured"), rows),
            drawing.steps_svg(d, chosen=True),
        )

    def _last(self, use_cache: bool) -> float | None:
        return self._seconds[use_cache][-1] if self._seconds[use_cache] else None

    def _sum(self, use_cache: bool) -> float | None:
        return sum(self._seconds[use_cache]) if self._seconds[use_cache] else None

    def still(self):
        shown = self.decoding if self.decoding.n_steps else Decoding(self.decoding.n_prompt, True, 2)
        return {"image/svg+xml": drawing.steps_svg(shown), "text/plain": drawing.steps_words(shown)}, {}

    # Widgets

    def _make_widgets(self) -> None:
        import ipywidgets as w

        self.length = w.IntSlider(
            self.decoding.n_prompt, 1, self._most, description="Prompt length", continuous_update=False, readout=False,
            style=_WIDE, layout={"width": "450px"}, tooltip="How many tokens the prompt has",
        )  # fmt: skip
        self.number = w.BoundedIntText(
            self.decoding.n_prompt, 1, self._most, description="tokens:", style={"description_width": "60px"},
            layout={"width": "150px"}, tooltip="The prompt length, to be typed in",
        )  # fmt: skip
        w.link((self.length, "value"), (self.number, "value"))
        self.cache = w.Checkbox(
            True, description="KV cache on", style=_WIDE, tooltip="Keep keys and values between steps"
        )
        self.generate = w.Button(
            description="Generate",
            button_style="primary",
            tooltip="Run one step: the prefill first, then one token a step",
        )
        self.reset = w.Button(description="Reset", tooltip="Back to the prompt, with nothing computed")
        self.output = w.HTML()
        self.length.observe(self._change, "value")
        self.cache.observe(self._change, "value")
        self.generate.on_click(self._generate)
        self.reset.on_click(self._forget)
        self.box = w.VBox(
            [w.HBox([self.length, self.number]), self.cache, w.HBox([self.generate, self.reset]), self.output]
        )
        self._show()

    def _change(self, _=None) -> None:
        """Start again in the other way; the costs of the last run stay for comparison."""
        d = self.decoding
        if d.n_steps:
            name = f"last run, {d.n_steps} step{'s' * (d.n_steps > 1)} after {d.n_prompt} tokens, cache "
            self._last_run = name + ("on" if d.use_cache else "off"), f"{d.paid:,}", _ms(self._sum(d.use_cache))
        self._start(self.length.value, self.cache.value)
        self._show()

    def _forget(self, _=None) -> None:
        self._last_run = None
        self._start(self.length.value, self.cache.value)
        self._show()

    def _generate(self, _=None) -> None:
        self.step()
        self._show()

    def _show(self) -> None:
        self.output.value = self.results()
        self.generate.disabled = self.full


class RequestLab(Shown):
    """Lab 2: one prompt was run and its keys and values saved; how much of them can the next one use?"""

    # 100 tokens: enough that on any machine reuse saves more than the fixed cost of a pass
    SYSTEM = (
        "You are the prompter of this theatre, and answer the questions of all.\n"
        "If you do not know, say so, and name the one who may know it.\n"
        "The king comes on at the second bell, and his lords stand by the door.\n"
        "Do not speak of what was said to you by another man.\n"
        "Keep it short: two lines will do.\n"
    )
    SAVED = SYSTEM + "Who are you?"
    NEXT = SYSTEM + "Where is he?"

    def __init__(self, weights, tokenizer) -> None:
        self._tokenizer = tokenizer
        self._passes = Passes(weights)
        self._saved_pass: tuple[tuple[int, ...], Any] = ((), None)
        self._make_widgets()

    @property
    def request(self) -> NextRequest:
        return NextRequest.of(self._tokenizer.encode(self.saved.value), self._tokenizer.encode(self.next.value))

    def measure(self) -> tuple[float | None, float | None]:
        """Seconds of the next prompt, cold and with the shared prefix reused; None if it cannot run."""
        request = self.request
        if not request.live or max(len(request.live), len(request.saved)) > self._passes.n_ctx:
            return None, None
        cold = self._passes.run(request.live)
        if not request.reused:
            return cold.seconds, cold.seconds
        if self._saved_pass[0] != request.saved:
            self._saved_pass = request.saved, self._passes.run(request.saved).kv
        past = [(k[:, : request.reused], v[:, : request.reused]) for k, v in self._saved_pass[1]]
        return cold.seconds, self._passes.run(request.live[request.reused :], past=past).seconds

    # What is shown

    def results(self) -> str:
        """The numbers and the tokens, as HTML."""
        request = self.request
        saved, live = self._tokenizer.tokens(request.saved), self._tokenizer.tokens(request.live)
        if not live:
            return drawing.lab_html("<p role='status'>The next prompt is empty: there is nothing to compute.</p>")
        cold, warm = self.measure()
        n = len(live)
        too_long = max(n, len(saved)) > self._passes.n_ctx
        note = f" Longer than the model's {self._passes.n_ctx} positions, so nothing was measured." if too_long else ""
        rows = [
            ("cold, everything computed", f"{n}", f"{request.cold:,}", _ms(cold)),
            ("with the shared prefix reused", f"{n - request.reused}", f"{request.warm:,}", _ms(warm)),
        ]
        sentence = drawing.difference_words(request, saved, live)
        return drawing.lab_html(
            f"<p role='status'>{drawing.escape(sentence + note)}</p>",
            drawing.tokens_html(request, saved, live),
            drawing.table("The next prompt", ("", "tokens computed", "attention units", "measured"), rows),
        )

    def words(self) -> str:
        request = self.request
        saved, live = self._tokenizer.tokens(request.saved), self._tokenizer.tokens(request.live)
        costs = (
            f"{len(live)} tokens cost {request.cold:,} units cold and {request.warm:,} with the shared prefix reused."
        )
        return f"{drawing.difference_words(request, saved, live)} {costs}"

    def still(self):
        from autograder.toolkit import charts

        request = self.request
        rows = {"saved": self._tokenizer.tokens(request.saved), "next": self._tokenizer.tokens(request.live)}
        chart = charts.token_strip(
            rows, shared=request.shared, positions=True, title="The next request", note=self.words()
        )
        bundle, metadata = chart._repr_mimebundle_()
        return {**bundle, "text/plain": self.words()}, metadata

    # Widgets

    def _make_widgets(self) -> None:
        import ipywidgets as w

        look = {"style": _WIDE, "layout": {"width": "780px", "height": "120px"}}
        look["continuous_update"] = False  # each change is up to five passes, so not every letter is one
        self.saved = w.Textarea(self.SAVED, description="Saved prompt", **look)
        self.next = w.Textarea(self.NEXT, description="Next prompt", **look)
        self.change = w.Button(
            description="Change one letter", tooltip="Changes the first letter of the next prompt's system part",
        )  # fmt: skip
        self.reset = w.Button(description="Reset", tooltip="Back to the two prompts of the start")
        self.output = w.HTML()
        self.saved.observe(self._show, "value")
        self.next.observe(self._show, "value")
        self.change.on_click(self._change_a_letter)
        self.reset.on_click(self._restart)
        self.box = w.VBox([self.saved, self.next, w.HBox([self.change, self.reset]), self.output])
        self._show()

    def _change_a_letter(self, _=None) -> None:
        self.next.value = self.next.value[:1].swapcase() + self.next.value[1:]

    def _restart(self, _=None) -> None:
        self.saved.value, self.next.value = self.SAVED, self.NEXT

    def _show(self, _=None) -> None:
        self.output.value = self.results()


def decode_lab(weights, tokenizer, n_prompt: int = 16) -> DecodeLab:
    """Lab 1, prefill once, then decode: the last line of a notebook cell shows it."""
    return DecodeLab(weights, tokenizer, n_prompt)


def request_lab(weights, tokenizer) -> RequestLab:
    """Lab 2, the next request: the last line of a notebook cell shows it."""
    return RequestLab(weights, tokenizer)


def _ms(seconds: float | None) -> str:
    return "not measured" if seconds is None else f"{seconds * 1e3:.{1 if seconds < 0.1 else 0}f} ms"
