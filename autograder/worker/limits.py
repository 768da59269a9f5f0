"""The limits the worker puts on itself before any of the student's code runs; none of them can be lifted again.

Memory, file size, open files and core dumps through setrlimit; processes, programs, sockets, signals to others and
looking into other processes through a seccomp filter on Linux (RLIMIT_NPROC does not bind root, a filter does).
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

MEMORY_BYTES = 4 * 2**30
FILE_BYTES = 64 * 2**20
OPEN_FILES = 256

_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38
_CLONE_THREAD = 0x00010000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

# Numbers from the kernel's tables: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
_MACHINES = {
    "x86_64": {
        "audit": 0xC000003E,
        "clone": 56,
        "clone3": 435,
        # fork vfork execve execveat socket connect kill tkill ptrace process_vm_readv/writev setns unshare mount
        # bpf userfaultfd pidfd_open pidfd_getfd pidfd_send_signal io_uring_setup keyctl
        "denied": (57, 58, 59, 322, 41, 42, 62, 200, 101, 310, 311, 308, 272, 165, 321, 323, 434, 438, 424, 425, 250),
    },
    "aarch64": {
        "audit": 0xC00000B7,
        "clone": 220,
        "clone3": 435,
        "denied": (221, 281, 198, 203, 129, 130, 117, 270, 271, 268, 97, 40, 280, 282, 434, 438, 424, 425, 219),
    },
}


def apply(memory_bytes: int = MEMORY_BYTES) -> list[str]:
    """Set every limit this platform has; gives the names of those that are in force."""
    return [*_resource_limits(memory_bytes), *_system_call_filter()]


def _resource_limits(memory_bytes: int) -> list[str]:
    try:
        import resource
    except ImportError:  # Windows
        return []
    done = []
    for name, value in (
        ("RLIMIT_AS", memory_bytes),
        ("RLIMIT_FSIZE", FILE_BYTES),
        ("RLIMIT_NOFILE", OPEN_FILES),
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
    machine = _MACHINES.get(platform.machine())
    if machine is None or not sys.platform.startswith("linux"):
        return []
    program = _filter_program(machine)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    head = ctypes.create_string_buffer(header, len(header))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return []
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(head), 0, 0) != 0:
        return []
    return ["seccomp"]


def _filter_program(machine: dict) -> bytes:
    """Classic BPF over struct seccomp_data: the call's number at 0, the architecture at 4, its first argument at 16."""
    load, equal, greater, anyset, give = 0x20, 0x15, 0x35, 0x45, 0x06

    def op(code, k, jt=0, jf=0):
        return struct.pack("HBBI", code, jt, jf, k)

    program = [op(load, 4), op(equal, machine["audit"], 1, 0), op(give, _EPERM), op(load, 0)]
    if platform.machine() == "x86_64":
        program += [op(greater, 0x40000000, 0, 1), op(give, _EPERM)]  # the x32 numbers of the same calls
    for number in machine["denied"]:
        program += [op(equal, number, 0, 1), op(give, _EPERM)]
    program += [op(equal, machine["clone3"], 0, 1), op(give, _ENOSYS)]  # its flags cannot be seen; clone is tried next
    program += [op(equal, machine["clone"], 0, 3), op(load, 16), op(anyset, _CLONE_THREAD, 1, 0), op(give, _EPERM)]
    return b"".join([*program, op(give, _ALLOW)])
