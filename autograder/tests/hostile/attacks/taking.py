"""Attacks that take what the machine has: processes, memory, disk. What they ask for a bare machine survives."""

# ruff: noqa: E501 - the attacks are short programs in strings

from autograder.tests.hostile.attacks.attack import EVERYTHING, SOLVED, Attack, probe

SECONDS = "9.8765"  # how long a program that was started sleeps, by which it can be found

TAKING = [
    Attack(
        "processes",
        "Forks, starts programs, signals others, also by the C library.",
        probe(f"""
            import ctypes, multiprocessing, subprocess
            libc = ctypes.CDLL(None, use_errno=True)
            for name, call in {{
                'fork': lambda: os.fork() or os._exit(0), 'forkpty': lambda: os.forkpty()[0] or os._exit(0),
                'program': lambda: subprocess.Popen(['sleep', '{SECONDS}'], start_new_session=True),
                'shell': lambda: os.system('true') and 1 / 0, 'spawn': lambda: os.posix_spawn('/bin/sleep', ['sleep', '{SECONDS}'], {{}}),
                'multiprocessing': lambda: multiprocessing.get_context('fork').Process(target=print).start(),
                'kill': lambda: os.kill(os.getppid(), 0), 'kill all': lambda: os.kill(-1, 0), 'killpg': lambda: os.killpg(0, 0),
                'libc fork': lambda: 1 / ((libc.fork() or os._exit(0)) + 1), 'unshare': lambda: 1 / (libc.unshare(0x10000000) + 1),
                'exec': lambda: os.execv('/bin/true', ['true']),
            }}.items():
                with contextlib.suppress(OSError, ZeroDivisionError): call(); found.append(name)
        """),
    ),
    Attack(
        "lifts-limits",
        "Asks for more memory, longer files and more processor time, and takes memory that it does not touch.",
        probe("""
            import resource
            for name in ('RLIMIT_AS', 'RLIMIT_FSIZE', 'RLIMIT_CPU', 'RLIMIT_NOFILE', 'RLIMIT_CORE'):
                with contextlib.suppress(OSError, ValueError):
                    resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY,) * 2); found.append(name)
            with contextlib.suppress(OSError):
                resource.prlimit(os.getppid(), resource.RLIMIT_CPU, resource.prlimit(os.getppid(), resource.RLIMIT_CPU)); found.append('parent')
            kept = []
            with contextlib.suppress(MemoryError):
                for _ in range(64): kept.append(np.zeros(2**25))
                found.append('memory')
        """),
    ),
    Attack(
        "fills-disk",
        "Writes a file that is too long, and one elsewhere.",
        probe("""
            for path, size in (('filled', 80), (f'{CANARY}/home/filled', 1)):
                with contextlib.suppress(OSError), open(path, 'wb') as file:
                    for _ in range(size): file.write(bytes(2**20))
            if os.path.getsize('filled') > 2**26: found.append('room')
        """),
    ),
    Attack(
        "output-flood",
        "More output than a notebook can have, beside work that is right.",
        SOLVED,
        "for _ in range(60):\n    print('x' * 2**20)\n",
        earns=EVERYTHING,
    ),
]
