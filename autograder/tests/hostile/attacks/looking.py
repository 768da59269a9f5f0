"""Attacks that look for what must not be seen. They read, and may read wherever they get to."""

# ruff: noqa: E501 - the attacks are short programs in strings

from autograder.tests.hostile.attacks.attack import Attack, probe

LOOKING = [
    Attack(
        "reads-files",
        "Looks for solutions, checks, the judge, gradebooks, secrets, other students and other accounts' files.",
        probe("""
            import autograder
            names = ('gradebook.db', '.autograder-seed', 'submitted', '.git', 'shadow', '.ssh', 'nbgrader_config.py', 'passwd')
            marks = ('prefill(prefix_ids, weights, sa' + 'ved)', 'def position_conti' + 'nues', 'class Refer' + 'ence', 'of the can' + 'ary')
            for path in ('home/.ssh/id', 'course/.autograder-seed', 'course/submitted/other/work.ipynb', 'site-packages/numpy/__init__.py'):
                with contextlib.suppress(OSError): open(f'{CANARY}/{path}'); found.append(path)
            package, libraries = os.path.dirname(autograder.__file__), os.path.dirname(os.path.dirname(np.__file__))
            for root in (CANARY, package, os.path.dirname(package), '../../../source', os.path.expanduser('~'), '/'):
                for folder, folders, files in os.walk(root):
                    if folder.startswith(('/usr', '/bin', '/lib', '/proc', '/sys', sys.prefix, sys.base_prefix, libraries)): folders.clear(); continue
                    found += [os.path.join(folder, name) for name in (*files, *folders) if name in names]
                    for name in files:
                        with contextlib.suppress(OSError):
                            if name.endswith(('.py', '.ipynb')):
                                text = open(os.path.join(folder, name), errors='replace').read()
                                found += [f'{mark} in {name}' for mark in marks if mark in text]
        """),
    ),
    Attack(
        "reads-processes",
        "Looks at the grader's memory, environment, command line and open files.",
        probe("""
            import ctypes
            listed = []
            with contextlib.suppress(OSError): listed += [int(name) for name in os.listdir('/proc') if name.isdigit()]
            if len(listed) > 5: found.append('processes of the host')
            for pid in {*listed, os.getppid(), 1} - {os.getpid()}:
                for what in ('cmdline', 'environ'):
                    with contextlib.suppress(OSError):
                        if b'nbgrader' in open(f'/proc/{pid}/{what}', 'rb').read(): found.append(what)
                with contextlib.suppress(OSError):
                    if pid != 1: open(f'/proc/{pid}/mem', 'rb'); found.append('memory')
            libc = ctypes.CDLL(None, use_errno=True)
            here = ctypes.create_string_buffer(1)
            one_byte = (ctypes.c_size_t * 2)(ctypes.addressof(here), 1)
            for pid in (1, os.getppid()):
                done = libc.process_vm_readv(pid, one_byte, ctypes.c_ulong(1), one_byte, ctypes.c_ulong(1), ctypes.c_ulong(0))
                if done == 1 or ctypes.get_errno() == 14: found.append('memory by a system call')  # 14: another address would do
        """),
    ),
    Attack(
        "reads-secrets-in-memory",
        "Walks frames and the garbage collector's objects for expected values, seeds and checks.",
        probe("""
            import gc
            at = sys._getframe()
            while at is not None:
                for name in at.f_locals:
                    if name in ('expected', 'seed', 'secret', 'reference', 'check', 'cases'): found.append(name)
                at = at.f_back
            for thing in gc.get_objects():
                if type(thing).__name__ in ('Reference', 'JudgeModel', 'Cases', 'Result', 'Gradebook'):
                    found.append(type(thing).__name__)
            found += [k for k in os.environ if 'SECRET' in k or 'TOKEN' in k or 'SEED' in k]
            found += [m for m in sys.modules if m.startswith(('autograder.judge', 'autograder.grading', 'nbgrader'))]
        """),
    ),
    Attack(
        "network",
        "Asks the network, local ports and local sockets for help.",
        probe("""
            import socket
            for kind in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
                with contextlib.suppress(OSError): socket.socket(kind); found.append(f'a socket of {kind}')
            a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            with contextlib.suppress(OSError): a.sendto(b'x', f'{CANARY}/log'); found.append('a datagram')
            with contextlib.suppress(OSError): a.sendmsg([b'x'], [], 0, f'{CANARY}/log'); found.append('a message')
            import urllib.request
            with contextlib.suppress(OSError): urllib.request.urlopen('http://127.0.0.1:8888', timeout=1); found.append('a page')
        """),
    ),
]
