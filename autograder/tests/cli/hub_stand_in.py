"""A small HTTP server on loopback that answers like the Hugging Face hub, and can interrupt a download."""

from __future__ import annotations

import hashlib
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
LARGE = 10_000  # files at least this long have a SHA-256, as large files on the hub have


class Hub:
    """The files that the server serves, and the requests that it received."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.break_off_after: int | None = None  # bytes of a body; then the server answers nothing more
        self.broken = False
        self.damage: set[str] = set()  # files whose bytes differ from the hash that is announced
        self.requests: list[tuple[str, str, str | None]] = []  # method, file, Range
        self.url = ""


def etag_of(data: bytes) -> str:
    if len(data) >= LARGE:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


@contextmanager
def serve(repo: str, files: dict[str, bytes]):
    """Serve the files of one repository on a free port until the block ends."""
    hub = Hub(files)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            self._answer(body=False)

        def do_GET(self):
            self._answer(body=True)

        def _answer(self, body: bool) -> None:
            match = re.fullmatch(rf"/{re.escape(repo)}/resolve/[\w.]+/([\w.]+)", self.path)
            name = match.group(1) if match else ""
            wanted = self.headers.get("Range")
            hub.requests.append((self.command, name, wanted))
            if hub.broken:
                self.close_connection = True
                return
            if name not in hub.files:
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound" if match else "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            data = hub.files[name]
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted).group(1)) if wanted else 0
            self.send_response(206 if wanted else 200)
            self.send_header("ETag", f'"{etag_of(data)}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(data) - start))
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.end_headers()
            if not body:
                return
            if name in hub.damage:
                data = bytes([data[0] ^ 1]) + data[1:]
            limit = hub.break_off_after
            if limit is not None and len(data) - start <= limit:
                limit = None
            self.wfile.write(data[start:] if limit is None else data[start : start + limit])
            if limit is not None:
                hub.broken = self.close_connection = True

        def log_message(self, *args) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
