"""Landlock: restricts this process to the files that it is given. Linux 5.13 and later.

It takes three system calls through ctypes. The bindings on PyPI are pre-releases or only months old, every student's
machine would have to install them, and using them would take more code. The numbers are from
include/uapi/linux/landlock.h; Documentation/userspace-api/landlock.rst says what each version of the kernel's interface
(its ABI) can refuse.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_ASK_VERSION, _PATH_BENEATH = 1, 1
_NEWEST = 7  # the newest ABI known here; it adds rights for files, TCP or signals

_WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
_REFER = 1 << 13  # to link or to rename from one folder into another; where it is not known, nobody may
_REMOVE = 1 << 4 | 1 << 5
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12  # folders, files, sockets, pipes, links; never devices
_OF_A_FILE = _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _READ_FILE | _READ_DIR
_READ_AND_WRITE = _READ | _WRITE_FILE | _TRUNCATE | _REFER | _REMOVE | _MAKE
_BIND_AND_CONNECT_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


def abi() -> int:
    """The version of Landlock that this kernel offers, at most the newest known here; 0 without Landlock."""
    if not sys.platform.startswith("linux"):
        return 0
    version = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(0, min(version, _NEWEST))


def restrict(abi: int, *, read: Iterable[str], list_names: Iterable[str], write: str) -> None:
    """Restrict this thread, and all that it starts and forks, to these files; raises OSError if the kernel does not.

    abi: the result of abi(); every right that it can refuse is refused.
    read: files and folders to read. list_names: folders that can also be listed, with their subfolders.
    write: the folder to read and write in, with everything in it.
    Landlock never refuses stat, readlink and access, which look at a file without opening it.
    """
    handled = (1 << (13 if abi < 2 else 14 if abi < 3 else 15 if abi < 5 else 16)) - 1
    tcp = _BIND_AND_CONNECT_TCP if abi >= 4 else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0
    ruleset = _call(_CREATE_RULESET, struct.pack("QQQ", handled, tcp, scoped), ctypes.c_size_t(24), 0)
    try:
        for paths, rights in (
            (read, _READ),
            (list_names, _READ_DIR),
            (("/dev/null",), _OF_A_FILE),
            (("/dev/urandom",), _READ_FILE),
            ((write,), _READ_AND_WRITE),
        ):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights = rights if os.path.isdir(path) else rights & _OF_A_FILE
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, file), 0)
    finally:
        os.close(file)


def _call(number: int, *arguments: object) -> int:
    result = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result
