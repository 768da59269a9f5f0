"""Headless Chromium for the tests that look at pages: `make test-browser`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

_QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
_QUIET += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]


@pytest.fixture(scope="session")
def chromium():
    """A browser; the tests are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next((p for name in ("chromium", "google-chrome", "chrome") if (p := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=_QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory) -> Path:
    """Where pictures of the pages are kept: $AUTOGRADER_SCREENSHOTS, or a temporary folder."""
    folder = os.environ.get("AUTOGRADER_SCREENSHOTS")
    if folder is None:
        return tmp_path_factory.mktemp("screenshots")
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder)
