"""Permanently drops capabilities and root's account before any of the student's code runs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys

NOBODY = 65534  # uid and gid
_PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 24, 28, 38
_ROOT_IS_NOBODY_SPECIAL = 0xEF  # uid 0, a change of uid and an execve bring no capability; locked, see capabilities(7)
_CAPABILITIES_VERSION = 0x20080522


def give_up(account: int | None) -> None:
    """Drop all capabilities, and become this uid and gid without groups; with None, keep the account.

    Raises OSError if a capability would be kept.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    number = 0
    while libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:  # EINVAL after the last; EPERM where there are none
        number += 1
    libc.prctl(_PR_SET_SECUREBITS, _ROOT_IS_NOBODY_SPECIAL, 0, 0, 0)
    if account is not None:
        # A container may refuse one of these, because it lacks the account or fixes the groups; the others still follow
        with contextlib.suppress(OSError):
            os.setgroups([])
        with contextlib.suppress(OSError):
            os.setresgid(account, account, account)
        with contextlib.suppress(OSError):
            os.setresuid(account, account, account)
    header = struct.pack("Ii", _CAPABILITIES_VERSION, 0)
    if libc.capset(header, struct.pack("6I", *[0] * 6)) or libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")
