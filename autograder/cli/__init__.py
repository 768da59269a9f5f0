"""The command line: `autograder`."""

from __future__ import annotations


def main() -> None:
    """Run the command line; the entry point that pip installs."""
    from autograder.cli.app import run

    run()
