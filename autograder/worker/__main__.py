"""The worker process: `python -I -m autograder.worker`.

It reads a Start from standard input, as a line of JSON, and then frames; it writes frames to standard output. With a
`control`, this process is the server from which workers are forked, each with pipes of its own.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import json
import os
import socket
import sys
import types

_IMPORTED_BY_NOTEBOOKS = (  # or by given.py: imported once for all forked processes
    *("hashlib", "json", "pathlib", "tempfile", "numpy.random", "safetensors.numpy"),
    *(f"autograder.toolkit.model.{part}" for part in ("load", "random_weights", "tokenizer")),
    *(f"autograder.toolkit.{part}" for part in ("chat_lab", "passage", "reuse_charts", "reuse_costs", "work")),
)


class _NoJudge:  # its base class is in importlib.abc, which is slow to import
    """Makes imports of the judge's modules fail. This is not a protection: the sandbox hides their files."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith(("autograder.judge", "autograder.stages", "autograder.grading", "autograder.tests")):
            raise ImportError(f"{name} is not available while a notebook is graded")
        return None


def nothing_on_standard_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def take_pipe():
    """The protocol's streams, which print() and input() in the student's code can then no longer reach."""
    requests = os.fdopen(os.dup(0), "rb", buffering=2**16)
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing_on_standard_streams()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open for the life of the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    return requests, replies


def main() -> None:
    gc.disable()  # imported modules stay, and scanning them repeatedly costs as much as some imports
    requests, replies = take_pipe()
    import autograder
    from autograder.worker import protocol
    from autograder.worker.cells import NoShell
    from autograder.worker.runtime import Runtime, import_given
    from autograder.worker.start import Start

    start = Start(**json.loads(requests.readline()))
    autograder._in_worker = True
    sys.meta_path.insert(0, _NoJudge())
    os.environ.setdefault("MPLBACKEND", "Agg")
    for name in _IMPORTED_BY_NOTEBOOKS if start.control is not None else ():
        importlib.import_module(name)
    start.confine()
    given_error = None
    try:  # before the fork: it is the course's own, and compiling it in each process takes long
        import_given(start.given or None)
    except Exception as error:  # reported in the first reply: the notebook's own import will fail as well
        given_error = f"given.py cannot be imported: {type(error).__name__}: {error}"
    gc.freeze()
    if start.control is not None:
        from autograder.worker.fork_server import serve

        serve(socket.socket(fileno=start.control), requests, replies)
        start.close_files()  # again, for its own folder alone, which puts the server out of reach
        nothing_on_standard_streams()  # those of the server are shared by all processes, with flags and locks

    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.get_ipython = lambda: NoShell(module.__dict__)
    builtins.display = lambda *args, **kwargs: None
    sys.breakpointhook = lambda *args, **kwargs: None
    runtime = Runtime(module.__dict__)
    sys.path.append(os.getcwd())  # last, so that a submitted numpy.py is not NumPy
    filtered = start.limit()
    gc.freeze()
    gc.enable()
    replies.write(protocol.encode({"filtered": filtered, "given_error": given_error}))
    while True:
        frame = protocol.read_frame(requests)
        if frame is None:
            return
        replies.write(runtime.answer(protocol.decode(frame)))


if __name__ == "__main__":
    main()
