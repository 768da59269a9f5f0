"""Attacks that change what is outside. Outside is the canary, whose files the test compares afterwards."""

# ruff: noqa: E501 - the attacks are short programs in strings

from autograder.tests.hostile.attacks.attack import ZEROS, Attack, probe

# What the first submission that is graded tries; the others are graded when it has failed
TRIES_THE_SANDBOX = Attack(
    "tries-the-sandbox",
    "Writes into the canary.",
    probe("with contextlib.suppress(OSError): open(f'{CANARY}/home/written', 'w'); found.append('the canary')"),
)

CHANGING = [
    Attack(
        "gradebook",
        "UPDATEs a gradebook that it has the path of.",
        probe("""
            import sqlite3
            with contextlib.suppress(sqlite3.Error):
                base = sqlite3.connect(f'{CANARY}/course/gradebook.db')
                base.execute('UPDATE grade SET auto_score = 99, manual_score = 99'); base.commit()
                found.append('the gradebook')
        """),
    ),
    Attack(
        "writes",
        "Writes, renames, links, truncates and changes modes, times and attributes of files of every kind.",
        probe("""
            import given
            for name in ('home/.ssh/id', 'course/.autograder-seed', 'course/submitted/other/work.ipynb', 'site-packages/numpy/__init__.py'):
                path = f'{CANARY}/{name}'
                for told, change in {
                    'append': lambda: open(path, 'a').write('hostile'), 'truncate': lambda: os.truncate(path, 0),
                    'new': lambda: open(f'{path}-new', 'w'), 'folder': lambda: os.mkdir(f'{path}-folder'),
                    'pipe': lambda: os.mkfifo(f'{path}-pipe'), 'symlink': lambda: os.symlink(path, f'{path}-symlink'),
                    'link': lambda: os.link(path, f'{path}-link'), 'out': lambda: os.rename(path, f'{path}-renamed'),
                    'in': lambda: os.link(path, 'taken'),
                }.items():
                    with contextlib.suppress(OSError): change(); found.append(f'{told} {name}')
                for change in (  # which the system call filter only says it did
                    lambda: os.chmod(path, 0), lambda: os.chown(path, 1, 1), lambda: os.utime(path, (1, 1)),
                    lambda: os.setxattr(path, 'user.hostile', b'x'),
                ):
                    with contextlib.suppress(OSError): change()
            with contextlib.suppress(OSError): open(given.__file__, 'a'); found.append('given.py')
        """),
    ),
    Attack(
        "removes-everything",
        "Removes what it can and its own folder, goes elsewhere, and closes the standard streams.",
        ZEROS,
        """
import contextlib, os, shutil, sys
shutil.rmtree(CANARY, ignore_errors=True)
with contextlib.suppress(OSError): os.rmdir(os.getcwd())
with contextlib.suppress(OSError): os.chdir(CANARY)
os.umask(0o777); os.environ.clear()
for stream in (sys.stdin, sys.stdout, sys.stderr): stream.close()
""",
    ),
    Attack(
        "swaps-its-folder",
        "Leaves a link to another folder in the place of its own, for whoever cleans up.",
        ZEROS,
        """
import contextlib, os
here = os.getcwd()
with contextlib.suppress(OSError): os.rmdir(here); os.symlink(CANARY, here)
""",
    ),
]
