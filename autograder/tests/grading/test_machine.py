"""How many submissions are graded at a time."""

import os

import pytest

from autograder.grading import machine
from autograder.grading.machine import default_jobs

GIB = 2**30


def test_the_number_of_jobs(monkeypatch):
    monkeypatch.setenv("AUTOGRADER_JOBS", "7")
    assert default_jobs() == 7
    for nonsense in ("many", "²", "0", "-1", ""):
        monkeypatch.setenv("AUTOGRADER_JOBS", nonsense)
        assert default_jobs() >= 1


@pytest.mark.parametrize(
    ("file", "text", "jobs"),
    [
        ("cpu.max", "150000 100000", 2),
        ("cpu.max", "max 100000", 6),
        ("cpu.max", "nonsense", 6),
        ("cpu/cpu.cfs_quota_us", "300000", 3),
        ("cpu/cpu.cfs_quota_us", "-1", 6),
        ("other", "", 6),
    ],
)
def test_a_container_has_the_processors_that_it_may_use(monkeypatch, tmp_path, file, text, jobs):
    monkeypatch.delenv("AUTOGRADER_JOBS", raising=False)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    (tmp_path / "cpu").mkdir()
    (tmp_path / file).write_text(text)
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert default_jobs() == jobs


@pytest.mark.parametrize(
    ("memory", "file", "text", "model", "jobs"),
    [
        (4 * GIB, "other", "", "", 2),
        (int(7.7 * GIB), "other", "", "", 4),
        (GIB, "other", "", "", 1),
        (None, "other", "", "", 6),
        (16 * GIB, "other", "", "gpt2", 2),
        (64 * GIB, "memory.max", str(2 * GIB), "", 1),  # a container
        (64 * GIB, "memory.max", "max", "", 6),
        (64 * GIB, "memory/memory.limit_in_bytes", str(6 * GIB), "", 3),
        (4 * GIB, "memory/memory.limit_in_bytes", "9223372036854771712", "", 2),  # as much as there is
    ],
)
def test_all_workers_together_may_not_use_more_memory_than_there_is(
    monkeypatch, tmp_path, memory, file, text, model, jobs
):
    def sysconf(name):
        if memory is None:
            raise ValueError("unrecognized configuration name")
        return {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": memory // 4096}[name]

    monkeypatch.delenv("AUTOGRADER_JOBS", raising=False)
    monkeypatch.setenv("AUTOGRADER_MODEL", model)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sysconf", sysconf, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    (tmp_path / "memory").mkdir()
    (tmp_path / file).write_text(text)
    assert default_jobs() == jobs
