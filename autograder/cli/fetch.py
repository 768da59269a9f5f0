"""`autograder fetch gpt2`: a published model from the Hugging Face hub into the user's cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from autograder.cli.errors import UserError
from autograder.toolkit.model import ModelError, load_model
from autograder.toolkit.model.config import MODEL_VARIABLE, PUBLISHED
from autograder.toolkit.model.load import fetched_folder

OWNER = "openai-community"
# config.json comes last: a folder without it counts as not fetched, so a broken download is never half a model
FILES = ("tokenizer.json", "model.safetensors", "config.json")


def run(name: str) -> int:
    """Download what is missing, verify it, and load it once."""
    if name not in PUBLISHED:
        raise UserError(f"{name!r} is not a published GPT-2; choose one of {', '.join(PUBLISHED)}.")
    folder = fetched_folder(name)
    for file in FILES:
        _fetch(f"{OWNER}/{name}", file, folder, name)
    try:
        weights = load_model(name)
    except ModelError as error:
        raise UserError(f"What was fetched is not GPT-2: {error}. Delete {folder} and fetch again.") from None
    if weights.config != PUBLISHED[name]:
        raise UserError(f"What was fetched has not the shape of {name}. Delete {folder} and fetch again.")
    print(f"{name} is in {folder}")
    print(f"Use it with `autograder test --model {name}`, {MODEL_VARIABLE}={name} or load_model({name!r}).")
    return 0


def _fetch(repo: str, file: str, folder: Path, name: str) -> None:
    """One file, continued where an earlier attempt broke off, and compared with the hub's hash.

    huggingface_hub's own hf_hub_download begins anew in a new process, so its parts are used here.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get

    whole, part = folder / file, folder / f"{file}.part"
    try:
        found = get_hf_file_metadata(hf_hub_url(repo, file))
        if whole.is_file() and _matches(whole, found.etag):
            print(f"{file} is there already")
            return
        folder.mkdir(parents=True, exist_ok=True)
        with open(part, "ab") as target:
            target.seek(0, os.SEEK_END)
            if found.size is not None and target.tell() > found.size:
                target.truncate(0)
            http_get(
                found.location, target, resume_size=target.tell(), expected_size=found.size, displayed_filename=file
            )
    except Exception as error:  # whatever the library, its HTTP client or the disk found wrong
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{file} of {repo} could not be fetched ({reason}).\n"
            f"Run `autograder fetch {name}` again, which goes on where it stopped. Without a network, copy "
            f"{', '.join(sorted(FILES))} of {repo} into {folder}"
        ) from None
    if not _matches(part, found.etag):
        part.unlink()
        raise UserError(f"{file} of {repo} arrived damaged and was deleted; run `autograder fetch {name}` again.")
    part.replace(whole)


def _matches(path: Path, etag: str | None) -> bool:
    """Whether the file has the hash that the hub gives: SHA-256 for large files, git's SHA-1 for small ones."""
    etag = etag or ""
    if len(etag) == 64:
        digest = hashlib.sha256()
    elif len(etag) == 40:
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    else:
        return True
    with open(path, "rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest() == etag
