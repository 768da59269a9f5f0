"""What the checks of the KV cache do beyond the tables in samples.py."""

import functools

import pytest

from autograder.judge.framework import checks_of, run_check
from autograder.judge.student import Student
from autograder.stages import sample_tests
from autograder.worker.runtime import Runtime

STAGE = "kv-cache"
ATTENDS = {"attend-one-query", "attend-several-queries", "attend-large-scores", "attend-only-reads"}
changed = functools.partial(sample_tests.changed, STAGE)
results = functools.partial(sample_tests.results, STAGE)
lost = functools.partial(sample_tests.lost, STAGE)


def test_the_checks_ask_for_no_more_than_they_need():
    """Each request costs about 0.1 ms on either side of the pipe."""
    runtime, asked = Runtime(changed()), []

    def perform(request):
        asked.append(request["op"])
        return runtime.perform(request)

    assert all(run_check(check, Student(perform), 0).passed for check in checks_of(STAGE))
    assert len(asked) < 2010


@pytest.mark.parametrize(
    "result",
    [
        *("np.zeros_like(q)", "np.full_like(q, np.nan)", "layer_cache.values[:, -q.shape[1]:]", "None"),
        *("int('raises ValueError')", "__import__('sys').exit()"),
    ],
)
def test_an_attend_that_does_nothing_gets_nothing(result):
    assert lost(changed(sources=[f"def attend(q, layer_cache): return {result}"])) == ATTENDS


def test_a_cache_that_keeps_nothing_gets_nothing():
    source = """
class LayerCache:
    keys = values = np.zeros((3, 0, 7), np.float32)
    def append(self, k, v): pass
    def __len__(self): return 0
"""
    assert lost(changed(sources=[source])) == {c.id for c in checks_of(STAGE)} - {"memory-bytes"}


JOINED_WHEN_READ = """
class LayerCache:
    def __init__(self):
        self.parts, self.waiting = [], []

    def append(self, k, v):
        self.waiting.append((k, v))

    def joined(self, which):
        self.parts, self.waiting = self.parts + self.waiting, []
        return np.concatenate([pair[which] for pair in self.parts], axis=1)

    keys = property(lambda self: self.joined(0))
    values = property(lambda self: self.joined(1))

    def __len__(self):
        return sum(k.shape[1] for k, _ in self.parts + self.waiting)
"""


def test_a_clone_has_what_was_appended_since_the_last_look_too():
    clone = """
def clone(self):
    other = ModelCache(len(self.layers))
    for old, new in zip(self.layers, other.layers):
        new.parts = list(old.parts)
    return other
ModelCache.clone = clone
"""
    assert lost(changed(sources=[JOINED_WHEN_READ])) == set()
    assert lost(changed(sources=[JOINED_WHEN_READ, clone])) == {"clone-equal", "clone-independent"}


@pytest.mark.parametrize("value", ["0", "73728 * n_seq", "None", "float('nan')", "True", "'big'"])
def test_a_bill_that_is_made_up_gets_nothing(value):
    source = f"def kv_cache_bytes(config, n_seq, n_bytes=4): return {value}"
    assert lost(changed(sources=[source])) == {"memory-bytes"}


@pytest.mark.parametrize("block", [8, 10, 16, 32, 64])
def test_a_mistake_at_exactly_full_blocks_is_found_and_listed(block):
    """Right at every length but the multiples of a block."""
    old = "return None if self._values is None else self._values[:, : self._length]"
    new = f"return self._values[:, : self._length] * (self._length % {block} != 0)"
    message = results(changed(("layer-cache", old, new)), only="layer-cache-rows")["layer-cache-rows"].message
    multiples = [n for n in range(1, 70) if n % block == 0]
    listed = ", ".join(map(str, multiples))
    assert f"Failing lengths: {listed} (of 1 to 69)." in message


def test_attend_is_not_blamed_for_a_cache_that_loses_rows():
    change = "self._values[:, self._length : end] = v", "self._values[:, self._length : end] = k"
    namespace = changed(("layer-cache", *change))
    result = results(namespace, only="attend-one-query")["attend-one-query"]
    assert "The LayerCache does not hold" in result.message
    assert result.bug is None


def test_a_message_has_the_property_the_place_and_the_bug():
    namespace = changed(("attend", "k=n_seq - n_query, ", ""))
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
        ("layer-cache", "self._keys[:, : self._length]", "self._keys[:, max(0, self._length - 64) : self._length]",
         "layer-cache-rows"),
    ],
)  # fmt: skip
def test_a_mistake_that_shows_at_length_or_in_a_late_layer_is_found(mark, old, new, check):
    assert check in lost(changed((mark, old, new)))


@pytest.mark.parametrize("hidden", ["-5000", "-1e4", "-65504", "-3e5", "-1e6", "scores - 1e6", "scores - 1e4"])
def test_a_finite_mask_is_found(hidden):
    result = results(changed(("attend", "-np.inf", hidden)), only="attend-large-scores")["attend-large-scores"]
    assert result.bug.key == "mask-too-small"


KEYS = "return None if self._keys is None else self._keys[:, : self._length]"
LAYERS = "self.layers = [LayerCache() for _ in range(n_layer)]"


@pytest.mark.parametrize(
    ("mark", "old", "new"),
    [
        (
            "layer-cache",
            "        self._length = end\n",
            "        self._length = end\n        return 'anything', self\n",
        ),
        ("layer-cache", KEYS, KEYS.replace("None if", "1 / 0 if")),  # before the first append keys may be anything
        ("layer-cache", KEYS, "view = self._keys[:, : self._length]; view.flags.writeable = False; return view"),
        ("model-cache", LAYERS, "self.layers = tuple(LayerCache() for _ in range(n_layer))"),
        *(("attend", "-np.inf", score) for score in ("-1e9", "np.finfo(np.float32).min", "scores - 1e9")),
    ],
)
def test_odd_but_honest_ways_pass(mark, old, new):
    assert lost(changed((mark, old, new))) == set()


@pytest.mark.parametrize(
    ("mark", "old", "new", "check"),
    [
        ("layer-cache", "self._keys[:, self._length : end] = k\n", "self._keys[:, :end] = k\n", "layer-cache-rows"),
        ("model-cache", "range(n_layer)", "range(n_layer - 1)", "model-cache-layers"),
        ("attend", "q.shape[2]", "q.shape[1]", "attend-one-query"),
        ("attend", "(visible, scores", "(~visible, scores", "attend-large-scores"),
    ],
)  # fmt: skip
def test_a_mistake_that_only_looks_like_a_known_one_gets_no_name(mark, old, new, check):
    result = results(changed((mark, old, new)), only=check)[check]
    assert not result.passed
    assert result.bug is None
