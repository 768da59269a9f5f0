"""Attacks that end, delay or spoil the process they run in."""

from autograder.tests.hostile.attacks.attack import EVERYTHING, SOLVED, ZEROS, Attack, every

LOOP = """
import signal, time
def write_prefix_cache(path, saved, prefix_ids, weights):
    for s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(s, signal.SIG_IGN)
    time.time = time.monotonic = time.perf_counter = time.process_time = lambda: 0.0
    time.sleep = lambda seconds: None
    while True:
        try:
            while True: pass
        except BaseException: pass
"""

ENDING = [
    Attack(
        "loops",
        "Never ends, whatever is raised in it, while the clocks stand still.",
        ZEROS | {"write-prefix-cache": LOOP},
    ),
    Attack("exits", "Prints a score and ends its process.", every("print(2.0); import os; os._exit(0)")),
    Attack("kills-itself", "Ends its process by a signal.", every("import os; os.kill(os.getpid(), 9)")),
    Attack(
        "overflows-stack",
        "Recursion without an end and without a limit.",
        every("import sys; sys.setrecursionlimit(10**9); return (lambda f: f(f))(lambda f: repr(f(f)))"),
    ),
    Attack(
        "endless-ids",
        "Iterators that never end, lengths that lie.",
        every(
            "return Endless()",
            """
        class Endless:
            layers = property(lambda self: iter(lambda: self, None))
            keys = values = property(lambda self: np.broadcast_to(np.float32(0), (2**20, 2**12, 2**12)))
            def __iter__(self): return iter(lambda: 0, 1)
            def __len__(self): return 2**62
            def __getitem__(self, i): return self
        """,
        ),
    ),
    Attack(
        "goes-on",
        "Threads that go on and change everything, and all that can be left for the end, beside work that is right.",
        SOLVED,
        """
import atexit, os, signal, threading, time, weakref
def change():
    while True:
        time.sleep(0.001)
        globals().update(math=None, x=0)
for _ in range(8): threading.Thread(target=change, daemon=True).start()
for _ in range(3): threading.Thread(target=time.sleep, args=(600,), daemon=False).start()
for f in (print, lambda: os.write(1, b'x' * 100), lambda: open(f'{CANARY}/home/left', 'w')): atexit.register(f)
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE): signal.signal(s, lambda *a: os._exit(0))
class Later:
    def __del__(self): raise SystemExit(3)
later = Later(); weakref.finalize(later, print)
""",
        earns=EVERYTHING,
    ),
    Attack(
        "own-memory",
        "Writes into its own process: small integers, True, the program's code.",
        every(
            """
        import ctypes
        for number in range(3, 250): ctypes.c_long.from_address(id(number) + 24).value = 1
        ctypes.c_long.from_address(id(True) + 16).value = 0
        return 1
        """
        ),
    ),
    Attack(
        "own-executable",
        "Fills its own program in memory with zeros, through /proc/self/mem.",
        every(
            """
        with open('/proc/self/maps') as maps: begin = int(maps.readline().split('-')[0], 16)
        memory = open('/proc/self/mem', 'r+b', buffering=0)
        memory.seek(begin); memory.write(bytes(2**20))
        """
        ),
    ),
]
