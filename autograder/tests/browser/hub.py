"""A JupyterHub for a test, with nbgrader's exchange: every user is this account, with a separate home directory."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from autograder.tests.browser.jupyter import wait_until_up, write_settings

COURSE_ID = "prefix-cache"
PASSWORD = "of the hub"
TEACHER = "teacher"
_CONFIG = """
c = get_config()  # noqa: F821
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = {password!r}
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {homes!r} + "/{{username}}"
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
frames = {{"headers": {{"Content-Security-Policy": "frame-ancestors 'self'"}}}}
c.Spawner.args = ["--allow-root", f"--ServerApp.tornado_settings={{frames}}"]  # the formgrader is in a frame
c.Spawner.environment = {environment!r}
c.Spawner.start_timeout = c.Spawner.http_timeout = 180
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_api}"
c.ConfigurableHTTPProxy.pid_file = {folder!r} + "/proxy.pid"
c.JupyterHub.db_url = "sqlite:///" + {folder!r} + "/hub.sqlite"
c.JupyterHub.cookie_secret_file = {folder!r} + "/cookie_secret"
"""
_EXCHANGE = """
c.Exchange.root = {exchange!r}
c.ExchangeCollect.check_owner = False  # here all accounts are one
"""
_STUDENT = """
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = {course!r}
c.CourseDirectory.student_id = {name!r}
c.Exchange.root = {exchange!r}
"""


class Hub:
    """homes/NAME is what each sees; the teacher's is the course's folder."""

    def __init__(self, folder: Path):
        self.folder, self.homes, self.exchange = folder, folder / "homes", folder / "exchange"
        self.homes.mkdir()
        self.exchange.mkdir(mode=0o777)
        self.exchange.chmod(0o777)
        self.course = self.homes / TEACHER
        self.address = ""

    def add_student(self, name: str) -> None:
        config = self.homes / name / ".jupyter" / "nbgrader_config.py"
        config.parent.mkdir(parents=True)
        config.write_text(_STUDENT.format(course=COURSE_ID, name=name, exchange=str(self.exchange)), encoding="utf-8")

    def add_course(self, course: Path) -> None:
        shutil.copytree(course, self.course)
        with (self.course / "nbgrader_config.py").open("a", encoding="utf-8") as config:
            config.write(_EXCHANGE.format(exchange=str(self.exchange)))

    @contextlib.contextmanager
    def runs(self):
        settings = self.folder / "settings"
        write_settings(settings)
        public, hub, proxy_api = _free_ports(3)
        own = {"JUPYTERLAB_SETTINGS_DIR": str(settings), "MPLCONFIGDIR": str(self.folder / "matplotlib")}
        config = self.folder / "jupyterhub_config.py"
        config.write_text(
            _CONFIG.format(
                public=public, hub=hub, proxy_api=proxy_api, password=PASSWORD, homes=str(self.homes),
                python=sys.executable, environment=own, proxy=shutil.which("configurable-http-proxy"),
                folder=str(self.folder),
            ),
            encoding="utf-8",
        )  # fmt: skip
        log = self.folder / "hub.log"
        environment = {**os.environ, "HOME": str(self.folder)}
        with log.open("w") as out:
            server = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(config)],
                cwd=self.folder, stdout=out, stderr=subprocess.STDOUT, env=environment,
            )  # fmt: skip
        try:
            self.address = f"http://127.0.0.1:{public}"
            wait_until_up(f"{self.address}/hub/health", server, log)
            yield self
        finally:
            server.terminate()  # ends the accounts' servers and the proxy
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(60)
            server.kill()


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as open_ones:
        sockets = [open_ones.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def log_in(page, hub: Hub, name: str) -> None:
    """Log in, and wait until JupyterLab is there."""
    page.goto(f"{hub.address}/hub/login?next=/hub/spawn")
    page.fill("#username_input", name)
    page.fill("#password_input", PASSWORD)
    page.click("#login_submit")
    page.wait_for_selector(".lm-MenuBar-item:has-text('Nbgrader')", timeout=240_000)
