"""What the checks of the KV cache do beyond the tables in samples.py."""

import jupytext
import numpy as np
import pytest

from autograder.judge.bugs import NOT_WRITTEN
from autograder.judge.framework import checks_of, run_check
from autograder.judge.student import Student
from autograder.notebooks.regions import released
from autograder.places import SOLUTIONS
from autograder.stages.samples import solved_cells
from autograder.worker.runtime import Runtime

HIDDEN_SEED = 4
ATTENDS = {"attend-one-query", "attend-several-queries", "attend-large-scores", "attend-only-reads"}


def solved(**cells):
    """The namespace of the solution, with some cells' sources replaced (mark with _ for -)."""
    namespace = {"np": np}
    exec(solved_cells("forward-pass")["softmax"], namespace)  # which given.py brings
    replaced = {mark.replace("_", "-"): source for mark, source in cells.items()}
    assert replaced.keys() <= solved_cells("kv-cache").keys()
    for source in {**solved_cells("kv-cache"), **replaced}.values():
        exec(source, namespace)
    return namespace


def changed(mark, old, new):
    source = solved_cells("kv-cache")[mark]
    assert source.count(old) == 1
    return solved(**{mark.replace("-", "_"): source.replace(old, new)})


def results(namespace, seed=HIDDEN_SEED, only=None, count=None):
    runtime = Runtime(namespace)

    def perform(request):
        if count is not None:
            count.append(request["op"])
        return runtime.perform(request)

    with np.errstate(all="ignore"):
        student = Student(perform)
        return {c.id: run_check(c, student, seed) for c in checks_of("kv-cache") if only in (None, c.id)}


def lost(namespace, **options):
    return {check for check, result in results(namespace, **options).items() if not result.passed}


@pytest.mark.parametrize("seed", range(12))
def test_the_solution_passes_whatever_the_seed(seed):
    assert {c: r.message for c, r in results(solved(), seed=seed).items() if not r.passed} == {}


def test_the_released_cells_are_not_written_yet():
    notebook = jupytext.read(SOLUTIONS / "kv_cache.py")
    namespace = {"np": np}
    for cell in notebook.cells:
        if "solution" in cell.metadata:
            exec(released(cell.source), namespace)  # a class whose methods are stubs can still be defined
    for result in results(namespace).values():
        assert result.bug is NOT_WRITTEN
        assert result.score == 0


def test_a_stage_has_ten_to_fourteen_points():
    assert 10 <= sum(c.points for c in checks_of("kv-cache")) <= 14


def test_the_checks_ask_for_no_more_than_they_need():
    """Each request costs about 0.1 ms on either side of the pipe."""
    asked = []
    results(solved(), count=asked)
    assert len(asked) < 2000


@pytest.mark.parametrize(
    "source",
    [
        "def attend(q, layer_cache): return np.zeros_like(q)",
        "def attend(q, layer_cache): return np.full_like(q, np.nan)",
        "def attend(q, layer_cache): return layer_cache.values[:, -q.shape[1]:]",
        "def attend(q, layer_cache): return None",
        "def attend(q, layer_cache): raise ValueError('not today')",
        "def attend(q, layer_cache): raise SystemExit",
    ],
)
def test_an_attend_that_does_nothing_gets_nothing(source):
    assert lost(solved(attend=source)) == ATTENDS


def test_a_cache_that_keeps_nothing_gets_nothing():
    source = """
class LayerCache:
    keys = values = np.zeros((3, 0, 7), np.float32)
    def append(self, k, v): pass
    def __len__(self): return 0
"""
    assert lost(solved(layer_cache=source)) == {c.id for c in checks_of("kv-cache")} - {"memory-bytes"}


@pytest.mark.parametrize("value", ["0", "73728 * n_seq", "None", "float('nan')", "True", "'big'"])
def test_a_bill_that_is_made_up_gets_nothing(value):
    source = f"def kv_cache_bytes(config, n_seq, n_bytes=4): return {value}"
    assert lost(solved(kv_cache_bytes=source)) == {"memory-bytes"}


@pytest.mark.parametrize("block", [8, 10, 16, 32, 64])
def test_a_mistake_at_exactly_full_blocks_is_found_and_listed(block):
    """Right at every length but the multiples of a block."""
    old = "return None if self._values is None else self._values[:, : self._length]"
    new = f"return self._values[:, : self._length] * (self._length % {block} != 0)"
    message = results(changed("layer-cache", old, new), only="layer-cache-rows")["layer-cache-rows"].message
    multiples = [n for n in range(1, 71) if n % block == 0]
    listed = ", ".join(map(str, multiples))
    assert f"Failing lengths: {listed} (of 1 to 70)." in message


def test_a_ring_buffer_of_64_rows_is_found():
    old = "return None if self._keys is None else self._keys[:, : self._length]"
    new = "return self._keys[:, max(0, self._length - 64) : self._length]"
    assert "layer-cache-rows" in lost(changed("layer-cache", old, new))


def test_what_append_returns_is_ignored():
    old = "        self._length = end\n"
    assert lost(changed("layer-cache", old, old + "        return 'anything', self\n")) == set()


def test_keys_may_be_anything_before_the_first_append():
    old = "return None if self._keys is None else self._keys[:, : self._length]"
    new = "return 1 / 0 if self._keys is None else self._keys[:, : self._length]"
    assert lost(changed("layer-cache", old, new)) == set()


def test_a_caches_arrays_may_be_read_only():
    old = "return None if self._values is None else self._values[:, : self._length]"
    new = "view = self._values[:, : self._length]; view.flags.writeable = False; return view"
    assert lost(changed("layer-cache", old, new)) == set()


def test_layers_may_be_any_sequence():
    source = solved_cells("kv-cache")["model-cache"]
    source = source.replace(
        "self.layers = [LayerCache() for _ in range(n_layer)]", "self._all = [LayerCache() for _ in range(n_layer)]"
    )
    source += "\n    @property\n    def layers(self):\n        return tuple(self._all)\n"
    assert lost(solved(model_cache=source)) == set()


def test_attend_is_not_blamed_for_a_cache_that_loses_rows():
    namespace = changed(
        "layer-cache", "self._values[:, self._length : end] = v", "self._values[:, self._length : end] = k"
    )
    result = results(namespace, only="attend-one-query")["attend-one-query"]
    assert "The LayerCache does not hold" in result.message
    assert result.bug is None


def test_a_message_has_the_property_the_place_and_the_bug():
    namespace = changed("attend", "k=n_seq - n_query, ", "")
    prop, detail, _, bug = results(namespace)["attend-several-queries"].told().split("\n")
    assert (
        prop == "n_query queries are the last n_query cached positions, and each sees the keys up to its own position."
    )
    assert "(5 cached positions, n_query = 2, 3 heads of 7)" in detail
    assert "Failing lengths:" in detail
    assert bug.startswith("The causal mask looks as if it started at cached position 0")


@pytest.mark.parametrize(
    ("mark", "old", "new", "check"),
    [
        ("attend", "    return softmax(", "    visible[64:] = False; visible[64:, 0] = True\n    return softmax(",
         "attend-several-queries"),
        ("attend", "keys.transpose(0, 2, 1)", "(keys if keys.shape[1] == head_dim else keys.swapaxes(1, 2))",
         "attend-several-queries"),
        ("attend", "    scores = ", "    keys[:] += n_query > 3\n    scores = ", "attend-only-reads"),
        ("model-cache", "        return copy", "        copy.layers[10:] = self.layers[10:]\n        return copy",
         "clone-independent"),
        ("model-cache", "layer.keys, layer.values", "layer.keys[:, :64], layer.values[:, :64]", "clone-equal"),
        ("model-cache", "return len(self.layers[0])", "return min(10, len(self.layers[0]))", "model-cache-layers"),
        ("layer-cache", "return self._length", "return min(20, self._length)", "layer-cache-length"),
    ],
)  # fmt: skip
def test_a_mistake_that_shows_at_length_or_in_a_late_layer_is_found(mark, old, new, check):
    assert check in lost(changed(mark, old, new))


@pytest.mark.parametrize("hidden", ["-5000", "-1e4", "-65504", "-3e5", "-1e6", "scores - 1e6", "scores - 1e4"])
def test_a_finite_mask_is_found(hidden):
    result = results(changed("attend", "-np.inf", hidden), only="attend-large-scores")["attend-large-scores"]
    assert result.bug.key == "attend-mask-too-small"


@pytest.mark.parametrize("hidden", ["-1e9", "np.finfo(np.float32).min", "scores - 1e9"])
def test_a_mask_below_any_score_passes(hidden):
    assert lost(changed("attend", "-np.inf", hidden)) == set()


KEEPS_OLD = "larger[:, : self._length] = buffer[:, : self._length]"
GROWS = "self._larger(self._keys, k, end), self._larger(self._values, v, end)"


@pytest.mark.parametrize(
    ("mark", "old", "new", "check"),
    [
        ("layer-cache", "self._keys[:, self._length : end] = k\n", "self._keys[:, :end] = k\n", "layer-cache-rows"),
        ("layer-cache", KEEPS_OLD, KEEPS_OLD + ".astype(np.float16)", "layer-cache-rows"),
        ("layer-cache", KEEPS_OLD, "larger[:, : self._length] = buffer", "layer-cache-rows"),
        ("layer-cache", GROWS, "self._larger(self._values, k, end), self._larger(self._keys, v, end)",
         "layer-cache-rows"),
        ("model-cache", "new_layer.append(layer", "layer.append(layer", "clone-equal"),
        ("model-cache", "in zip(self.layers, copy.layers, strict=True)", "in [*zip(self.layers, copy.layers)][1:]",
         "clone-equal"),
        ("model-cache", "range(n_layer)", "range(n_layer - 1)", "model-cache-layers"),
        ("attend", "q.shape[2]", "q.shape[1]", "attend-one-query"),
        ("attend", "(visible, scores", "(~visible, scores", "attend-large-scores"),
    ],
)  # fmt: skip
def test_a_mistake_that_only_looks_like_a_known_one_gets_no_name(mark, old, new, check):
    result = results(changed(mark, old, new), only=check)[check]
    assert not result.passed
    assert result.bug is None


LISTS = """
class LayerCache:
    def __init__(self): self.parts = []
    def append(self, k, v): self.parts.append((k.copy(), v.copy()))
    def __len__(self): return sum(k.shape[1] for k, _ in self.parts)
    keys = property(lambda self: np.concatenate([k for k, _ in self.parts], axis={axis}))
    values = property(lambda self: np.concatenate([v for _, v in self.parts], axis={axis}))
"""


@pytest.mark.parametrize("axis", [0, 2])
def test_lists_that_are_joined_along_the_wrong_axis_are_named(axis):
    result = results(solved(layer_cache=LISTS.format(axis=axis)), only="layer-cache-rows")["layer-cache-rows"]
    assert result.bug.key == "joined-along-wrong-axis"
