"""The rules of each version of Landlock: a process that has them can do only what they allow."""

import json
import subprocess
import sys

import pytest

from autograder.tests.modes import ISOLATIONS, works
from autograder.worker import landlock

pytestmark = works("landlock")
NEWEST = ISOLATIONS["landlock"].landlock if "landlock" in ISOLATIONS else 0

TRIES = """
import json, os, socket, sys
from autograder.worker import landlock
abi, read, names, own, elsewhere = json.loads(sys.argv[1])
os.chdir(own)
landlock.restrict(abi, read=[read], list_names=[names], write=own)

def works(action):
    try:
        made = action()
    except OSError:
        return False
    if isinstance(made, int):
        os.close(made)
    return True

def connects():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))

tries = {
    "read": lambda: os.open(f"{read}/file", os.O_RDONLY),
    "list": lambda: os.listdir(read),
    "list names": lambda: os.listdir(names),
    "write what is read": lambda: os.open(f"{read}/file", os.O_WRONLY),
    "make where is read": lambda: os.mkdir(f"{read}/made"),
    "read what is listed": lambda: os.open(f"{names}/file", os.O_RDONLY),
    "read elsewhere": lambda: os.open(f"{elsewhere}/file", os.O_RDONLY),
    "list elsewhere": lambda: os.listdir(elsewhere),
    "make elsewhere": lambda: os.mkdir(f"{elsewhere}/made"),
    "move elsewhere": lambda: os.rename("kept", f"{elsewhere}/moved"),
    "link from elsewhere": lambda: os.link(f"{elsewhere}/file", "linked"),
    "read through a link": lambda: os.symlink(f"{elsewhere}/file", "link") or os.open("link", os.O_RDONLY),
    "write": lambda: os.open("new", os.O_RDWR | os.O_CREAT),
    "make, rename and remove": lambda: os.mkdir("a") or os.rename("a", "b") or os.rmdir("b"),
    "move within": lambda: os.mkdir("c") or os.rename("new", "c/new"),
    "cut what is read": lambda: os.close(os.open(f"{read}/cut", os.O_RDONLY | os.O_TRUNC)),
    "make a device": lambda: os.mknod("device", 0o20600, os.makedev(1, 3)),
    "write to null": lambda: os.open(os.devnull, os.O_RDWR),
    "bind a port": connects,
}
print(json.dumps([name for name, action in tries.items() if works(action)]))
"""
ALWAYS = {"read", "list", "list names", "write", "make, rename and remove", "write to null"}


@pytest.mark.parametrize("abi", range(1, NEWEST + 1))
def test_what_each_version_allows(abi, tmp_path):
    folders = {name: tmp_path / name for name in ("read", "names", "own", "elsewhere")}
    for folder in folders.values():
        folder.mkdir()
        for name in ("file", "cut", "kept"):
            (folder / name).write_text("x")
    told = json.dumps([abi, *map(str, folders.values())])
    done = subprocess.run([sys.executable, "-c", TRIES, told], capture_output=True, text=True, check=True)
    expected = ALWAYS | ({"move within"} if abi >= 2 else set())
    expected |= {"cut what is read"} if abi < 3 else set()  # which the system call filter refuses
    expected |= {"bind a port"} if abi < 4 else set()  # and this
    assert set(json.loads(done.stdout)) == expected


def test_only_the_known_rights_of_a_newer_version_are_used(monkeypatch):
    class Kernel:
        syscall = staticmethod(lambda *arguments: 12)

    monkeypatch.setattr(landlock.ctypes, "CDLL", lambda *arguments, **options: Kernel)
    assert landlock.abi() == 7
