"""The limits that the worker sets on itself before any of the student's code runs; none can be lifted again.

setrlimit limits memory, processor time, file size, open files, threads and core dumps. On Linux there is also a system
call filter: no new processes or programs, no sockets, no signals to others, no access to other processes, and no memory
that setrlimit does not count. The filter also binds root, where setrlimit does not. Its program is built here, in about
forty lines: the Python bindings of libseccomp have had no release since 2021 and need a system library, and this has to
work with nothing installed.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

from autograder.toolkit.model.config import chosen_model

MEMORY_BYTES = 2 * 2**30  # address space; an honest worker needs a tenth of it
LARGE_MODEL_BYTES = 8 * 2**30  # if another model than the course's is used for grading
PROCESSOR_SECONDS = 1800  # ends a worker whose grader is gone; the grader's own deadlines are much shorter
FILE_BYTES = 64 * 2**20
OPEN_FILES = 256
THREADS = 4096  # of the account, on systems that count them by account

_ALLOW, _EPERM, _ENOSYS, _PRETEND = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38, 0x00050000
_CLONE_THREAD = 0x00010000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 1, 38, 22, 2
_SIGKILL = 9

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Numbers on x86_64 and aarch64, from the kernel's arch/x86/entry/syscalls/syscall_64.tbl and
# include/uapi/asm-generic/unistd.h; None if there is no such call. A test compares them with the system's headers.
DENIED: dict[str, tuple[int, int | None]] = {
    # processes and programs
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    # the network, and the sockets of other programs
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # other processes of this account: signals, memory, priority
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "setpriority": (141, 140),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    # the limits themselves
    "setrlimit": (160, 164),
    # name spaces and mounts
    "setns": (308, 268), "unshare": (272, 97), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsmount": (432, 432), "mount_setattr": (442, 442), "open_by_handle_at": (304, 265),
    # parts of the kernel that a notebook does not need
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    # watching who else opens a shared file; truncation, which Landlock covers from ABI 3 on
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262), "truncate": (76, 45),
    # memory that RLIMIT_AS does not count
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "memfd_secret": (447, 447),
    # and those of other programs, without a name space of their own
    "shmat": (30, 196), "shmctl": (31, 195), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "mq_unlink": (241, 181), "syslog": (103, 116),
}  # fmt: skip
UNKNOWN: dict[str, tuple[int, int]] = {  # answered as if the kernel had no such call, so that programs do without it
    "clone3": (435, 435), "memfd_create": (319, 279),
    "openat2": (437, 437),  # the filter cannot read its arguments
}  # fmt: skip
PRETENDED: dict[str, tuple[int, int | None]] = {  # answered with success, but not done
    # Where root grades, /dev/null is the student's as far as the kernel can see, and the folders that can be written
    # are used again, so their modes, attributes and times are kept. Copying a file calls these too.
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "file_setattr": (469, 469),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "sched_setaffinity": (203, 122),  # of any process of this account
    "flock": (73, 32),  # a readable file can be locked, and all processes share the libraries and model
}  # fmt: skip
CONDITIONAL: dict[str, tuple[int, int | None]] = {
    "clone": (56, 220), "kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261), "prctl": (157, 167),
    "sendto": (44, 206), "fcntl": (72, 25), "ioctl": (16, 29), "open": (2, None), "openat": (257, 56),
}  # fmt: skip


def apply(memory_bytes: int = MEMORY_BYTES) -> list[str]:
    """Set every limit that this platform has; returns the names of those in force."""
    return [*_resource_limits(memory_bytes), *_system_call_filter()]


def memory_bytes() -> int:
    """The memory that a worker may use, given the model used for grading."""
    return MEMORY_BYTES if chosen_model() == "tiny" else LARGE_MODEL_BYTES


def has_system_call_filter() -> bool:
    """Whether `apply` can filter the system calls of this machine."""
    return sys.platform.startswith("linux") and os.uname().machine in AUDIT and sys.maxsize > 2**32


def end_with_the_parent() -> None:
    """End this process when its parent ends, if the system supports that."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def _resource_limits(memory_bytes: int) -> list[str]:
    try:
        import resource
    except ImportError:  # Windows
        return []
    done = []
    for name, value in (
        ("RLIMIT_AS", memory_bytes),
        ("RLIMIT_CPU", PROCESSOR_SECONDS),
        ("RLIMIT_FSIZE", FILE_BYTES),
        ("RLIMIT_NOFILE", OPEN_FILES),
        ("RLIMIT_NPROC", THREADS),
        ("RLIMIT_CORE", 0),
    ):
        limit = getattr(resource, name, None)
        if limit is None:
            continue
        try:
            _, hard = resource.getrlimit(limit)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (value, value))
            done.append(name)
        except (ValueError, OSError):  # macOS refuses some of them
            continue
    return done


def _system_call_filter() -> list[str]:
    if not has_system_call_filter():
        return []
    program = filter_program(os.uname().machine, os.getpid())
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    head = ctypes.create_string_buffer(header, len(header))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
    end_with_the_parent()  # the filter prevents undoing this
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return []
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(head), 0, 0) != 0:
        return []
    return ["seccomp"]


# Commands of fcntl that a notebook may use: duplicates, flags, sizes of pipes, seals. Among the others are leases,
# which make everybody else wait for a file, and signals to another process when a file is ready.
_OF_FCNTL = (*range(5), *range(1030, 1035))
_LOCKS_OF_FCNTL = (6, 7, 37, 38)  # answered like flock; 5 and 36 query a lock, and are refused
# To cut a file that is opened for reading, and to open for neither reading nor writing: what Landlock does not see
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
# FIOSETOWN and SIOCSPGRP, the same signals for sockets; FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR, which stay with a folder
_NOT_OF_IOCTL = (0x8901, 0x8902, 0x40086602, 0x401C5820)


def filter_program(machine: str, own_pid: int) -> bytes:
    """Classic BPF over struct seccomp_data: the call's number at 0, the architecture at 4, 64-bit arguments from 16."""
    load, equal, at_least, any_bit, keep_bits, give = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
    column = list(AUDIT).index(machine)

    def op(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, k)

    def only_own(argument: int) -> list[bytes]:
        return [op(load, 16 + 8 * argument), op(equal, own_pid, 1, 0), op(give, _EPERM), op(give, _ALLOW)]

    def only_null(argument: int) -> list[bytes]:
        low, high = op(load, 16 + 8 * argument), op(load, 20 + 8 * argument)
        return [low, op(equal, 0, 0, 2), high, op(equal, 0, 1, 0), op(give, _EPERM), op(give, _ALLOW)]

    def among(argument: int, values: Iterable[int], then: int) -> list[bytes]:
        found = [part for value in values for part in (op(equal, value, 0, 1), op(give, then))]
        return [op(load, 16 + 8 * argument), *found]

    def no_odd_opening(argument: int) -> list[bytes]:
        flags, odd = op(load, 16 + 8 * argument), op(equal, _O_ACCMODE, 0, 1)
        cut = [op(keep_bits, _O_ACCMODE | _O_TRUNC), op(equal, _O_TRUNC, 2, 0)]
        return [flags, *cut, op(keep_bits, _O_ACCMODE), odd, op(give, _EPERM), op(give, _ALLOW)]

    conditions = {
        "clone": [op(load, 16), op(any_bit, _CLONE_THREAD, 1, 0), op(give, _EPERM), op(give, _ALLOW)],
        "kill": only_own(0),
        "tgkill": only_own(0),
        "prlimit64": only_null(2),  # limits may be read
        "prctl": [*among(0, [_PR_SET_PDEATHSIG], _EPERM), op(give, _ALLOW)],
        "sendto": only_null(4),  # a connected socket may be used, as of a socketpair
        "fcntl": [*among(1, _OF_FCNTL, _ALLOW), *among(1, _LOCKS_OF_FCNTL, _PRETEND), op(give, _EPERM)],
        "ioctl": [*among(1, _NOT_OF_IOCTL, _EPERM), op(give, _ALLOW)],
        "open": no_odd_opening(1),
        "openat": no_odd_opening(2),
    }
    program = [op(load, 4), op(equal, AUDIT[machine], 1, 0), op(give, _EPERM), op(load, 0)]
    if machine == "x86_64":
        program += [op(at_least, 0x40000000, 0, 1), op(give, _EPERM)]  # the x32 numbers of the same calls
    for table, answer in ((DENIED, _EPERM), (UNKNOWN, _ENOSYS), (PRETENDED, _PRETEND)):
        for numbers in table.values():
            if numbers[column] is not None:
                program += [op(equal, numbers[column], 0, 1), op(give, answer)]
    for name, condition in conditions.items():
        if (number := CONDITIONAL[name][column]) is not None:
            program += [op(equal, number, 0, len(condition)), *condition]
    return b"".join([*program, op(give, _ALLOW)])
