"""A JupyterLab for a test, and the actions of a user in it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from autograder.places import ROOT

TOKEN = "course"
START_SECONDS = 120
_SETTINGS = {
    # every cell is on the page, also those that are scrolled out of sight
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {"fetchNews": "false", "checkForUpdates": False},
}


def write_settings(folder: Path) -> None:
    """JupyterLab's settings for the tests, in a folder for JUPYTERLAB_SETTINGS_DIR."""
    for name, values in _SETTINGS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")


@contextlib.contextmanager
def jupyter_lab(folder: Path, private: Path):
    """The address of a JupyterLab on `folder`; everything it writes of its own goes to `private`."""
    settings = private / "settings"
    write_settings(settings)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        **os.environ,
        "HOME": str(private),
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_CONFIG_PATH": str(ROOT / "course" / "jupyter"),  # as `make lab` has it
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "IPYTHONDIR": str(private / "ipython"),
        "MPLCONFIGDIR": str(private / "matplotlib"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"]
    log = private / "jupyter.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=folder)
    try:
        wait_until_up(f"http://127.0.0.1:{port}/api?token={TOKEN}", server, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(20)
        server.kill()


def wait_until_up(url: str, server: subprocess.Popen, log: Path) -> None:
    """Wait until the server answers; AssertionError with the end of its log if it does not."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    raise AssertionError(f"The server did not start:\n{log.read_text()[-3000:]}")


def grade_by_hand(page, formgrader, question: str) -> None:
    """Points and a comment for a question, in the formgrader's page of a submission."""
    box, comment = formgrader.locator(f"input#{question}"), formgrader.locator(f"#{question}-comment")
    for field, text, kind in ((box, "1.5", "grade"), (comment, "Say what wpe does with it.", "comment")):
        stored = f"/formgrader/api/{kind}/"
        with page.expect_response(lambda r, url=stored: url in r.url and r.request.method == "PUT"):
            field.fill(text)
            field.press("Tab")


class NotebookPage:
    """One notebook, open in a browser page."""

    def __init__(self, page, address: str, path: str, token: str = f"token={TOKEN}&"):
        self.page = page
        page.goto(f"{address}/lab/tree/{path}?{token}reset")
        page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=90_000)
        self._wait_for_kernel(90)
        time.sleep(1)  # the question about the kernel comes late, if it comes
        self._wait_for_kernel(90)

    def _wait_for_kernel(self, seconds: float) -> None:
        """Wait until the kernel is idle; a JupyterLab that has just started may first ask which kernel to use."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if choose := self.page.query_selector(".jp-Dialog:has-text('Select Kernel') .jp-mod-accept"):
                choose.click()
            named = self.page.query_selector(".jp-Toolbar-kernelName:has-text('Python 3')")
            idle = self.page.query_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
            if named and idle and not self.page.query_selector(".jp-Dialog"):
                return
            time.sleep(0.3)
        raise AssertionError(f"no kernel was ready after {seconds} s")

    def cells(self):
        return self.page.query_selector_all(".jp-NotebookPanel .jp-CodeCell")

    def cell_with(self, text: str):
        """The first code cell that holds the text."""
        for cell in self.cells():
            if text in cell.query_selector(".jp-InputArea").inner_text():
                return cell
        raise AssertionError(f"no code cell holds {text!r}")

    def paste(self, cell, source: str) -> None:
        """Replace a cell's text as a user does: click into it, select all, paste."""
        cell.query_selector(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

    def run_all(self, seconds: float = 180) -> None:
        """Run > Run All Cells, and wait until the kernel has finished."""
        self.page.click(".lm-MenuBar-item:has-text('Run')")
        self.page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            prompts = [p.inner_text() for p in self.page.query_selector_all(".jp-CodeCell .jp-InputPrompt")]
            if prompts and not any("*" in p for p in prompts) and any(p.strip("[]: \xa0") for p in prompts):
                self._wait_for_kernel(30)
                return
            time.sleep(0.5)
        raise AssertionError(f"the notebook still ran after {seconds} s: {prompts}")

    def output_of(self, cell) -> str:
        return "\n".join(o.inner_text() for o in cell.query_selector_all(".jp-OutputArea-output"))

    def save(self) -> None:
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        self.page.wait_for_selector(".jp-mod-dirty", state="detached", timeout=20_000)
