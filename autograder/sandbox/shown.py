"""What a student's process may see in a sandbox, of any kind: the same answer for each.

Python, the libraries, the student's side of this package and the trained model. Never the judge, the solutions, the
course directory, other students or the home directory, also where these lie in a folder of the system, such as
/usr/local/lib.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path

from autograder.toolkit.model.config import chosen_model

PACKAGE = Path(__file__).resolve().parents[1]
SHOWN_PARTS = ("__init__.py", "toolkit", "worker")  # of the package
_PYTHON_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")  # of an installation or a virtual environment
SYSTEM = (  # never all of /usr: /usr/src and the like are where containers have their projects
    *(f"{top}/{part}" for top in ("/usr", "/usr/local") for part in ("bin", "lib", "lib32", "lib64", "libexec")),
    *(f"/usr/share/{part}" for part in ("zoneinfo", "fonts", "locale")),
    *("/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime"),
)
_hidden: set[Path] = set()


def hide(folder: Path) -> None:
    """Never show this folder, such as a course's, wherever it lies."""
    _hidden.add(folder.resolve())


def shown_paths() -> list[str]:
    """Programs and libraries, and the parts of this package. Some may not exist."""
    return [*SYSTEM, *python_folders(), *(str(PACKAGE / part) for part in SHOWN_PARTS)]


def folders_to_hide() -> set[str]:
    """The course, the home directory, and the checkout that this package is in."""
    folders = {*_hidden, Path.home().resolve(), PACKAGE}
    if (PACKAGE.parent / "pyproject.toml").is_file():
        folders.add(PACKAGE.parent)
    return {str(folder) for folder in folders}


@functools.cache
def python_folders() -> list[str]:
    """Programs and libraries of the interpreter and the environment, never all of the folder that they are in.

    An environment may have been made in the project's folder, in a course's, or at home.
    """
    prefixes = {Path(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    prefixes.add(Path(sys.executable).resolve().parents[1])
    folders = {str(prefix / part) for prefix in prefixes for part in _PYTHON_PARTS if (prefix / part).exists()}
    spec = importlib.util.find_spec("numpy")
    return sorted(folders | ({str(Path(spec.origin).parents[1])} if spec and spec.origin else set()))


def model_folders() -> list[str]:
    folders = [str(PACKAGE.parent / "data" / "tiny-gpt2")]
    if chosen_model() != "tiny":
        from autograder.toolkit.model.load import absolute_name

        chosen = Path(absolute_name(None))
        if chosen.is_absolute():  # "tiny" is there already, and a model of random weights lies in no folder
            linked = (path.resolve() for path in chosen.iterdir() if path.is_symlink())  # as in Hugging Face's cache
            folders += [str(chosen), *(str(path) for path in linked if path.is_file())]
    return folders
