"""The version of a stage's checks, by which scores are found to be out of date."""

import functools

import pytest

from autograder.stages import GRADED_STAGES, versions

SOURCE = '''"""A module."""

def near(a, b):
    """Whether they agree."""
    return abs(a - b) < 1e-3  # the usual envelope
'''


@pytest.fixture(autouse=True, scope="module")
def remembered():
    """Caches each file's digest, because a change affects only one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "digest", functools.cache(versions.digest))
        yield


def test_the_code_that_decides_scores_is_that_of_the_version_numbers():
    assert versions.present() == versions.recorded(), "run: make versions"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("the usual envelope", "of float32", True),
        ("Whether they agree.", "Whether a is b, nearly.", True),
        ("    return abs(a - b)", "\n    return (abs(a - b))", True),
        ("1e-3", "1e-2", False),
        ("a - b", "b - a", False),
        ("def near(a, b)", "def near(a, b=0)", False),
    ],
)
def test_a_comment_does_not_make_scores_stale_but_a_tolerance_does(old, new, same):
    assert old in SOURCE
    assert (versions.digest(SOURCE) == versions.digest(SOURCE.replace(old, new))) == same


@pytest.mark.parametrize(
    ("file", "stages"),
    [
        ("judge/reference.py", len(GRADED_STAGES)),
        ("judge/compare.py", len(GRADED_STAGES)),
        ("worker/counting.py", len(GRADED_STAGES)),
        ("toolkit/model/random_weights.py", len(GRADED_STAGES)),
        ("stages/kv_cache/attend.py", 1),
        ("stages/kv_cache/bugs.py", 0),
        ("stages/kv_cache/samples.py", 0),
        ("stages/kv_cache/test_checks.py", 0),
        ("grading/batch.py", 0),
    ],
)
def test_a_changed_file_concerns_its_stages(file, stages, monkeypatch):
    before = versions.present()
    read = versions.Path.read_text
    more = "\nCHANGED = True\n"
    monkeypatch.setattr(
        versions.Path, "read_text", lambda path, *a: read(path, *a) + more * str(path).endswith(f"autograder/{file}")
    )
    after = versions.present()
    assert sum(before[name] != after[name] for name in before) == stages
