"""The stages of the course, in order. Everything that needs a stage's name, folder or functions asks here."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.toolkit.errors import UserError


@dataclass(frozen=True)
class Stage:
    """One assignment of the course."""

    name: str  # as typed on the command line: "save-and-reuse"
    number: int  # its place in the course
    title: str
    functions: tuple[str, ...] = ()  # what the student writes; none where nothing is graded
    version: int = 1  # of its checks; raised when scores can come out otherwise (versions.py)

    @property
    def assignment(self) -> str:
        """The nbgrader assignment, which is also its folder's name: "04-save-and-reuse"."""
        return f"{self.number:02d}-{self.name}"

    @property
    def module(self) -> str:
        """The script in solutions/ and the notebook, without suffix: "save_and_reuse"."""
        return self.name.replace("-", "_")

    def named_in(self, stem: str) -> bool:
        """Whether the name of a file, without its suffix, holds the stage's name, however it is written."""
        return self.module in stem.lower().replace("-", "_").replace(" ", "_")

    @property
    def graded(self) -> bool:
        return bool(self.functions)


STAGES = (
    Stage("start-here", 0, "Start here"),
    Stage(
        "forward-pass",
        1,
        "The forward pass",
        ("gelu", "layer_norm", "causal_self_attention", "transformer_block", "forward", "generate_recompute"),
        version=8,
    ),
    Stage("kv-cache", 2, "The KV cache", ("LayerCache", "ModelCache", "attend", "kv_cache_bytes"), version=5),
    Stage("prefill-decode", 3, "Prefill and decode", ("prefill", "decode_step", "generate"), version=10),
    Stage(
        "save-and-reuse",
        4,
        "Save and reuse a prefix cache",
        ("save_prefix_cache", "generate_with_prefix", "write_prefix_cache", "read_prefix_cache"),
        version=14,
    ),
    Stage(
        "failure-modes",
        5,
        "How prefix reuse fails",
        ("longest_common_prefix", "lookup", "explain_miss", "render_chat", "build_prompt", "cache_key"),
        version=7,
    ),
    Stage(
        "block-cache",
        6,
        "A store of blocks",
        ("block_keys", "BlockStore", "serve", "quantize", "dequantize"),
        version=12,
    ),
    Stage(
        "chat-model",
        7,
        "The same cache in a real chat model",
        ("rms_norm", "rotate", "grouped_attend", "swiglu", "advance_llama", "render_chatml", "Chat"),
        version=14,
    ),
)

GRADED_STAGES = tuple(stage for stage in STAGES if stage.graded)


class UnknownStage(UserError, ValueError):
    """No stage has that name."""


def find_stage(name: str) -> Stage:
    """The stage with this name, number, assignment or module name; raises UnknownStage naming the choices."""
    for stage in STAGES:
        if name in (stage.name, str(stage.number), stage.assignment, stage.module):
            return stage
    raise UnknownStage(f"There is no stage {name!r}; the stages are {', '.join(s.name for s in STAGES)}.")


def earlier_stages(stage: Stage) -> tuple[Stage, ...]:
    """The graded stages before this one, whose functions its given.py carries."""
    return tuple(s for s in GRADED_STAGES if s.number < stage.number)
