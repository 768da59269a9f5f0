"""The kernel of a display run: `python -I -B -m autograder.worker.kernel MEMORY [given.py]`.

ipykernel with the worker's limits. Its connection comes as JSON on standard input, with the numbers of the files that
are its sockets, already listening.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

_OPTIONS = ("--HistoryManager.hist_file=:memory:", "--InteractiveShell.xmode=Plain")


def main() -> None:
    told = json.load(sys.stdin)
    files = {int(port): file for port, file in told["files"].items()}
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    import zmq
    from ipykernel.kernelapp import IPKernelApp
    from jupyter_client.session import Session
    from traitlets import default

    import autograder
    from autograder.display.outputs import MAX_CELL
    from autograder.toolkit import chart_style
    from autograder.worker import limits
    from autograder.worker.runtime import import_given

    class ShortMessages(Session):
        """A courtesy, not a wall: who reads this kernel gives up on a message of many megabytes and all behind it."""

        def send(self, stream, msg_or_type, content=None, *args, **kwargs):
            text = content.get("text") if isinstance(content, dict) else None
            if isinstance(text, str) and len(text) > 2 * MAX_CELL:
                content = {**content, "text": text[: 2 * MAX_CELL + 1]}
            return super().send(stream, msg_or_type, content, *args, **kwargs)

    class Kernel(IPKernelApp):
        @default("session")
        def _short_messages(self):
            return ShortMessages(parent=self)

        def _try_bind_socket(self, s, port):
            s.setsockopt(zmq.USE_FD, files[port])
            return super()._try_bind_socket(s, port)

        def init_heartbeat(self):
            """None: it would be one more socket, and the grader looks at the process."""

    autograder._in_worker = True
    chart_style.DPI = 96  # as it is shown; at twice the size, one of a notebook's charts has nearly 100 kB
    os.environ.pop("MPLBACKEND", None)  # figures are shown, which ipykernel sees to
    sys.path.append(os.getcwd())  # last, so that a file written here as numpy.py is not NumPy
    Path("connection.json").write_text(json.dumps(told["connection"]), encoding="utf-8")
    limits.apply(int(sys.argv[1]), in_a_kernel=True)
    with contextlib.suppress(Exception):  # the notebook's own import will fail as well
        import_given(sys.argv[2] if len(sys.argv) > 2 else None)
    Kernel.launch_instance(["-f", "connection.json", *_OPTIONS])


if __name__ == "__main__":
    main()
