"""What a student's process may see in a sandbox of either kind.

It may see Python, the libraries, the student's side of this package, the trained model and a given.py. It may never see
the judge, the solutions, the course directory, other students or the home directory, even if they are inside a system
folder such as /usr/local/lib.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from autograder.toolkit.model.config import chosen_model

PACKAGE = Path(__file__).resolve().parents[1]
SHOWN_PARTS = ("__init__.py", "toolkit", "worker")  # of the package
_PYTHON_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")  # of an installation or a virtual environment
SYSTEM = (  # never all of /usr: containers often have their projects in /usr/src
    *(f"{top}/{part}" for top in ("/usr", "/usr/local") for part in ("bin", "lib", "lib32", "lib64", "libexec")),
    *(f"/usr/share/{part}" for part in ("zoneinfo", "fonts", "locale")),
    *("/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime"),
)


def own_paths() -> list[str]:
    """The student's side of this package, and the installed libraries."""
    return [*python_folders(), *(str(PACKAGE / part) for part in SHOWN_PARTS)]


def all_paths() -> list[str]:
    """The same with the system's programs and libraries. Some paths may not exist."""
    return [*SYSTEM, *own_paths()]


def folders_to_hide(hidden: Iterable[Path]) -> set[str]:
    """The named folders, such as the course, with the home directory and the checkout that this package is in."""
    folders = {*(folder.resolve() for folder in hidden), Path.home().resolve(), PACKAGE}
    if (PACKAGE.parent / "pyproject.toml").is_file():
        folders.add(PACKAGE.parent)
    return {str(folder) for folder in folders}


def paths_to_read(hidden: Iterable[Path]) -> tuple[str, ...]:
    """Files and folders that contain everything that may be read and nothing that must be hidden."""
    covered = folders_to_hide(hidden)
    bound = {os.path.realpath(path) for path in all_paths()}
    around = {part for path in bound for part in _around(path, covered)}
    return tuple(sorted({*around, *map(os.path.realpath, model_folders())}))


def folders_to_list(hidden: Iterable[Path]) -> tuple[str, ...]:
    """Folders that Python must list to find modules, although not everything in them may be read."""
    covered = folders_to_hide(hidden)
    libraries = [os.path.realpath(path) for path in python_folders()]
    own = {path for path in libraries if [name for name in covered if inside(name, path)] == [str(PACKAGE)]}
    return (str(PACKAGE), *sorted(own))


def _around(path: str, hidden: set[str]) -> list[str]:
    """The path, or the parts of it around anything hidden in it."""
    if path in hidden:
        return []
    if not any(inside(folder, path) for folder in hidden):
        return [path]
    with os.scandir(path) as entries:
        parts = [entry.path for entry in entries if not entry.is_symlink()]  # a link may lead to what is hidden
    return [found for part in parts for found in _around(part, hidden)]


def inside(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip(os.sep) + os.sep)


@functools.cache
def python_folders() -> list[str]:
    """The programs and libraries of the interpreter and the environment, never the whole folder around them.

    An environment may be inside the project's folder, a course, or the home directory.
    """
    prefixes = {Path(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    prefixes.add(Path(sys.executable).resolve().parents[1])
    folders = {str(prefix / part) for prefix in prefixes for part in _PYTHON_PARTS if (prefix / part).exists()}
    spec = importlib.util.find_spec("numpy")
    return sorted(folders | ({str(Path(spec.origin).parents[1])} if spec and spec.origin else set()))


def model_folders() -> list[str]:
    folders = [str(root / "data" / "tiny-gpt2") for root in (PACKAGE, PACKAGE.parent)]  # installed; in a checkout
    if chosen_model() != "tiny":
        from autograder.toolkit.model.load import absolute_name

        chosen = Path(absolute_name(None))
        if chosen.is_absolute():  # "tiny" is in the list already, and random weights have no folder
            linked = (path.resolve() for path in chosen.iterdir() if path.is_symlink())  # as in Hugging Face's cache
            folders += [str(chosen), *(str(path) for path in linked if path.is_file())]
    return [folder for folder in folders if os.path.exists(folder)]
