"""The mode of a run: decided once, from what the machine offers and what is requested."""

import os
import pickle
import shutil
import signal
import sys
from dataclasses import replace
from unittest import mock

import pytest

from autograder.sandbox import isolation as module
from autograder.sandbox.isolation import Isolation, SandboxMissing, find_isolation
from autograder.tests.modes import ISOLATIONS, in_bubblewrap, works
from autograder.tests.sandbox.test_sandbox import runs
from autograder.tests.waiting import wait_until

LIMITS = Isolation("limits", why="there is neither")


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """Nothing is known about the machine, and no mode is requested."""
    monkeypatch.delenv("AUTOGRADER_SANDBOX", raising=False)
    find_isolation.cache_clear()
    yield
    find_isolation.cache_clear()


@pytest.fixture
def without_bubblewrap(monkeypatch):
    monkeypatch.setattr(module, "_find_bubblewrap", lambda: "bubblewrap (bwrap) is not installed")


@pytest.fixture
def without_landlock(monkeypatch):
    monkeypatch.setattr(module.landlock, "abi", lambda: 0)


@in_bubblewrap
def test_bubblewrap_is_the_first_choice_and_found_even_with_a_short_path(monkeypatch):
    expected = shutil.which("bwrap")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(module, "_USUAL_FOLDERS", ("/nowhere", os.path.dirname(expected)))
    assert find_isolation() == Isolation("bubblewrap", bwrap=expected)


@in_bubblewrap
def test_bubblewrap_in_a_folder_of_path_alone_is_named_by_its_whole_path(monkeypatch, tmp_path):
    (tmp_path / "bwrap").symlink_to(shutil.which("bwrap"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_isolation().bwrap == str(tmp_path / "bwrap")


@works("landlock")
def test_landlock_is_the_next(without_bubblewrap):
    found = find_isolation()
    assert found.mode == "landlock" and found.landlock == module.landlock.abi()
    assert found.sandboxed and found.missing == ""
    assert found.why == "bubblewrap (bwrap) is not installed"


def test_without_both_there_are_only_limits_which_is_reported_in_one_sentence(without_bubblewrap, without_landlock):
    found = find_isolation()
    assert found.mode == "limits" and not found.sandboxed
    assert found.missing.startswith("Not sandboxed: bubblewrap (bwrap) is not installed and ")
    assert "files of this account" in found.missing


def test_landlock_is_not_enough_without_the_system_call_filter(without_bubblewrap, monkeypatch):
    monkeypatch.setattr(module, "has_system_call_filter", lambda: False)
    assert find_isolation().mode == "limits"


@pytest.mark.parametrize("mode", ISOLATIONS)
def test_a_mode_that_works_may_be_asked_for(mode, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_SANDBOX", mode)
    assert find_isolation() == replace(ISOLATIONS[mode], why=f"AUTOGRADER_SANDBOX asks for {mode}")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("bubblewrap", "AUTOGRADER_SANDBOX asks for bubblewrap, but bubblewrap (bwrap) is not installed; "),
        ("landlock", "AUTOGRADER_SANDBOX asks for landlock, but "),
        ("chroot", "AUTOGRADER_SANDBOX=chroot is no sandbox; choose bubblewrap, landlock, limits, or unset it."),
    ],
)
def test_a_mode_that_does_not_work_is_refused(asked, sentence, monkeypatch, without_bubblewrap, without_landlock):
    monkeypatch.setenv("AUTOGRADER_SANDBOX", asked)
    with pytest.raises(SandboxMissing) as raised:
        find_isolation()
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize("isolation", [*ISOLATIONS.values(), LIMITS])
def test_the_answer_can_be_handed_on(isolation):
    assert pickle.loads(pickle.dumps(isolation)) == isolation


# Who may grade without


def expect(isolation, uid, **said):
    with mock.patch.object(os, "geteuid", lambda: uid):
        isolation.expect(**said)


@pytest.mark.skipif(os.name != "posix", reason="root is of Unix")
def test_root_grades_only_in_a_sandbox_unless_the_course_allows_it():
    with pytest.raises(SandboxMissing, match=r"Root grades only in a sandbox: there is neither; .*allow_unsandboxed"):
        expect(LIMITS, 0)
    expect(LIMITS, 0, unsandboxed=True)
    expect(LIMITS, 1000)


def test_nothing_is_graded_without_a_required_sandbox(monkeypatch):
    for uid in (0, 1000):
        with pytest.raises(SandboxMissing, match=r"^Not sandboxed: there is neither; .* requires the sandbox\.$"):
            expect(LIMITS, uid, sandbox=True, unsandboxed=True)
        expect(Isolation("landlock", landlock=1), uid, sandbox=True)
        expect(Isolation("bubblewrap", bwrap="/usr/bin/bwrap"), uid, sandbox=True)


# The probe


@in_bubblewrap
def test_a_machine_too_slow_to_try_bubblewrap_counts_as_one_without_it(monkeypatch):
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.0001)
    assert "bubblewrap is installed but did not start within 0.0001 s" in find_isolation().why


@in_bubblewrap
def test_what_ends_the_grader_while_it_tries_bubblewrap_leaves_no_process(monkeypatch, tmp_path):
    """bubblewrap's own child would wait for it forever."""
    slow = tmp_path / "bwrap"
    slow.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = signal.signal(signal.SIGALRM, lambda number, frame: sys.exit(1))  # as a grader takes SIGTERM
    signal.alarm(1)
    try:
        with pytest.raises(SystemExit):
            find_isolation()
    finally:
        signal.signal(signal.SIGALRM, before)
    child = int((tmp_path / "child").read_text())
    assert wait_until(lambda: not runs(child))
