"""The process between grader and kernel: `python -I -m autograder.display`, frames on standard input and output.

What a kernel of a student's sends is read here and not in the grader, so that a message that takes all memory, or
breaks a library, costs the charts of this submission and nothing else. It works in a private folder, with the kernel's
sockets in it, and ends with the grader.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionComplete, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook

from autograder.display.outputs import MAX_CELL, MAX_NOTEBOOK, Kept
from autograder.display.provisioner import manager
from autograder.worker import protocol
from autograder.worker.__main__ import take_pipe

MEMORY_BYTES = 2**30  # address space of this process


class Client(NotebookClient):
    """nbclient's, which keeps of the kernel's messages what may be shown and follows none of the others."""

    kept = Kept()  # of the cell that runs

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> None:
        kind, content = msg["msg_type"], msg["content"]
        if kind == "status" and content["execution_state"] == "idle":
            raise CellExecutionComplete
        if kind == "clear_output":
            self.kept.clear()
        else:
            self.kept.add(kind, content)


async def draw(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> str:
    """Run the cells and send the outputs of each; gives the reason when it ends before the last, else nothing."""

    def left(cell: Any = None) -> float:
        return max(0.1, request["until"] - time.monotonic())  # one clock for all processes, where there are sockets

    notebook = new_notebook(cells=[new_code_cell(source) for source in request["cells"]])
    client = Client(notebook, km=manager(request["given"], request["sandboxed"]), allow_errors=True, timeout_func=left)
    try:
        await client.async_start_new_kernel()
        await asyncio.wait_for(client.async_start_new_kernel_client(), left())
    except Exception as error:
        return f"the kernel did not start ({type(error).__name__})"
    room = MAX_NOTEBOOK
    for number, cell in enumerate(notebook.cells):
        kept = client.kept = Kept(min(MAX_CELL, room))
        try:
            await client.async_execute_cell(cell, number)
        except CellTimeoutError:
            return "the time is over"
        except DeadKernelError:
            return "the kernel ended"
        except Exception as error:
            return f"the kernel sent what is no message ({type(error).__name__})"
        finally:
            room -= kept.used
            send({"cell": number, "outputs": kept.outputs, "cut": kept.cut})
    return ""


def main() -> None:
    requests, replies = take_pipe()
    request = protocol.decode(protocol.read_frame(requests) or b"")
    threading.Thread(target=_end_with_the_grader, args=(requests,), daemon=True).start()
    _limit_memory()
    problem = asyncio.run(draw(request, lambda message: replies.write(protocol.encode(message))))
    replies.write(protocol.encode({"problem": problem}))


def _end_with_the_grader(requests: BinaryIO) -> None:
    requests.read()  # nothing comes, but the end of the pipe
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _limit_memory() -> None:
    """Set the soft limit alone: the kernel, which is started from here, sets its own."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


if __name__ == "__main__":
    main()
