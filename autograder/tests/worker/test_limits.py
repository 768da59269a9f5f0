"""The limits that a worker puts on itself, and its system call filter, instruction by instruction."""

import re
import struct
from pathlib import Path

import pytest

from autograder.worker import limits

ALLOWED, REFUSED, UNKNOWN, PRETENDED = 0x7FFF0000, 0x50001, 0x50026, 0x50000
MACHINES = list(limits.AUDIT)
OWN = 4242
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def decide(machine, number, *arguments, audit=None):
    """The filter's answer to a call: runs its program as the kernel does."""
    program = list(struct.iter_unpack("HBBI", limits.filter_program(machine, OWN)))
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, audit or limits.AUDIT[machine], 0, *(v % 2**64 for v in values))
    at = accumulator = 0
    while True:
        code, if_true, if_false, k = program[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, k)
        elif code == 0x06:
            return k
        else:
            test = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[code]
            at += if_true if test else if_false


def number(machine, name):
    for table in (limits.DENIED, limits.UNKNOWN, limits.PRETENDED, limits.CONDITIONAL):
        if name in table:
            return table[name][MACHINES.index(machine)]
    raise KeyError(name)


@pytest.mark.parametrize("machine", MACHINES)
def test_each_call_of_the_tables_gets_its_answer(machine):
    column = MACHINES.index(machine)
    for table, answer in ((limits.DENIED, REFUSED), (limits.UNKNOWN, UNKNOWN), (limits.PRETENDED, PRETENDED)):
        for name, numbers in table.items():
            if numbers[column] is not None:
                assert decide(machine, numbers[column], 1, 2, 3) == answer, name


@pytest.mark.parametrize("machine", MACHINES)
def test_all_other_calls_are_allowed(machine):
    column = MACHINES.index(machine)
    tables = (limits.DENIED, limits.UNKNOWN, limits.PRETENDED, limits.CONDITIONAL)
    listed = {numbers[column] for table in tables for numbers in table.values()}
    assert {decide(machine, n) for n in range(500) if n not in listed} == {ALLOWED}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("clone", (0x3D0F00,), ALLOWED),  # what pthread_create asks for
        ("clone", (17,), REFUSED),  # SIGCHLD: a process
        ("clone", (0x10000011,), REFUSED),  # a user name space
        ("kill", (OWN, 9), ALLOWED),
        ("kill", (1, 9), REFUSED),
        ("kill", (-1, 9), REFUSED),
        ("kill", (0, 9), REFUSED),
        ("tgkill", (OWN, OWN, 6), ALLOWED),
        ("tgkill", (1, 1, 9), REFUSED),
        ("prlimit64", (0, 7, 0, 0x1000), ALLOWED),  # reads
        ("prlimit64", (0, 7, 0x1000, 0), REFUSED),
        ("prlimit64", (99, 0, 0x7F00_0000_0000, 0), REFUSED),  # a pointer whose lower half is zero
        ("prctl", (15, 0x1000), ALLOWED),  # a thread's name
        ("prctl", (1, 0), REFUSED),  # to outlive the grader
        ("sendto", (5, 0x1000, 1, 0, 0, 0), ALLOWED),  # through a socketpair
        ("fcntl", (5, 4, 0x800), ALLOWED),
        ("fcntl", (5, 6), PRETENDED),  # a lock, which whoever sees the file could ask for
        ("fcntl", (5, 38), PRETENDED),
        ("fcntl", (5, 5), REFUSED),  # whose lock there is
        ("fcntl", (5, 8, 1), REFUSED),  # a signal to another process when the file is ready
        ("fcntl", (5, 10, 9), REFUSED),  # which one
        ("fcntl", (5, 15, 0x1000), REFUSED),
        ("fcntl", (5, 1024, 1), REFUSED),  # a lease: whoever opens the file waits
        ("fcntl", (5, 1026, 1), REFUSED),
        ("fcntl", (5, 1030, 0), ALLOWED),  # a duplicate
        ("ioctl", (5, 0x541B, 0x1000), ALLOWED),
        ("ioctl", (5, 0x8901, 0x1000), REFUSED),
        ("ioctl", (5, 0x8902, 0x1000), REFUSED),
        ("ioctl", (5, 0x40086602, 0x1000), REFUSED),  # flags that stay with a folder
        ("ioctl", (5, 0x401C5820, 0x1000), REFUSED),
        ("sendto", (5, 0x1000, 1, 0, 0x1000, 20), REFUSED),  # to an address
        ("sendto", (5, 0x1000, 1, 0, 0x7F00_0000_0000, 20), REFUSED),
    ],
)
def test_some_calls_depend_on_their_arguments(machine, name, arguments, answer):
    assert decide(machine, number(machine, name), *arguments) == answer


def test_calls_by_another_convention_are_refused():
    assert decide("x86_64", 11, audit=0x40000003) == REFUSED  # execve of 32-bit programs
    assert decide("x86_64", 0x40000000 + 59) == REFUSED  # x32
    assert decide("aarch64", 221, audit=limits.AUDIT["x86_64"]) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_systems_headers(machine):
    if not HEADERS[machine].is_file():
        pytest.skip(f"{HEADERS[machine]} is not there")
    known = {
        name: int(n) for name, n in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text())
    }
    column = MACHINES.index(machine)
    for table in (limits.DENIED, limits.UNKNOWN, limits.PRETENDED, limits.CONDITIONAL):
        for name, numbers in table.items():
            assert known.get(name, numbers[column]) == numbers[column], name
