"""A PostgreSQL server on this machine, for measurements and tests: it listens only on a socket in its own folder."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


def why_none() -> str:
    """Why no server can be started here, with the remedy; empty if one can."""
    if os.name != "posix":
        return "PostgreSQL is started on Linux and macOS only"
    if _programs() is None:
        return "PostgreSQL's server is not installed (apt install postgresql)"
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed (pip install 'psycopg[binary]')"
    if os.geteuid() == 0 and _user() is None:
        return "there is no unprivileged user for the server, which refuses to run as root"
    return ""


def _programs() -> Path | None:
    """The folder of PostgreSQL's programs, which Debian keeps out of PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += map(Path, sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))
    return next((folder for folder in folders if (folder / "initdb").is_file()), None)


def _user() -> str | None:
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((user for user in ("postgres", "nobody") if user in known), None)


@contextlib.contextmanager
def local_postgresql(safe: bool = False) -> Iterator[str]:
    """The URL of an empty database, until the block ends.

    safe: each commit waits for the disk, as on a production server.
    """
    # In /tmp, because the path of a socket has at most about a hundred characters
    with tempfile.TemporaryDirectory(prefix="postgresql-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        command = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder, "timeout": 120}
        if os.geteuid() == 0:
            command["user"] = _user()
            shutil.chown(folder, command["user"])
        programs, data = _programs(), f"{folder}/data"
        control = [str(programs / "pg_ctl"), "-D", data, "-w"]
        options = f"-c listen_addresses='' -c unix_socket_directories={folder}" + ("" if safe else " -F")
        subprocess.run([str(programs / "initdb"), "-D", data, "-U", "course", "-A", "trust", "--no-sync"], **command)
        try:
            subprocess.run([*control, "-l", f"{folder}/log", "-o", options, "start"], **command)
            yield f"postgresql+psycopg://course@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **{**command, "check": False})
