"""Reads a student's program that is part of a test, without running it: what could it change, were it not sandboxed?

A program may change what lies in CANARY, a name that a test gives a value, in the folder that it begins in, or in one
that it made by `tempfile`. It may start nothing but programs that do nothing, and signal nobody but itself. What cannot
be told from the source counts as a change outside.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

CANARY = "CANARY"  # a program in which no test has defined it ends with a NameError
OWN_MEMORY = "/proc/self/mem"
GIVEN_PATHS = {("write_prefix_cache", "path"), ("write", "path")}  # filled by the grader, with names in the own folder
MAGICS = "pip|conda|sx|sc|system|bash|sh|script|cd|writefile|rm|mv|cp|mkdir|rmdir|run|save|logstart"
HARMLESS_PROGRAMS = re.compile(r"(/bin/)?(true|ls|sleep( \d{1,2}(\.\d+)?)?|echo [\w ]+|touch [\w-]+|pip --version)")

# Which arguments name what a function changes, by the function's last name
_ONE = """unlink remove rmdir removedirs rmtree chmod lchmod chown lchown utime setxattr removexattr truncate mkdir
makedirs mkfifo mknod chflags chdir chroot save savez savez_compressed savetxt"""
_BOTH = "rename renames move link symlink copy copy2 copyfile copytree copymode copystat replace"
CHANGED = dict.fromkeys(_ONE.split(), (0,)) | dict.fromkeys(_BOTH.split(), (0, 1)) | {"save_file": (1,)}
DELETING = {"unlink", "remove", "removedirs", "rmtree", "rename", "renames", "move", "replace", "truncate"}
MODULES = {"os", "shutil", "np", "numpy", "posix", "safetensors"}
# What changes files and no program here needs: it is refused wherever the file lies
NEVER_MODULES = {"bz2", "codecs", "dbm", "gzip", "lzma", "shelve", "zipfile"}
_NEVER = """memmap open_memmap tofile basicConfig unpack_archive make_archive TarFile extract extractall write_text
write_bytes touch symlink_to hardlink_to"""
NEVER = {*_NEVER.split()}
OF_A_PATH = {"unlink", "rmdir", "mkdir", "rename", "replace", "chmod", "lchmod", "open"}
STARTING = re.compile(r"(os|posix)\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*|startfile)|subprocess\.\w+|pty\.\w+")
FORKING = ("fork", "forkpty", "vfork")
SIGNALING = ("kill", "killpg", "pidfd_send_signal", "tgkill", "pthread_kill")
OF_LIBC = ("fork", "unshare", "process_vm_readv", "prctl", "capget", "inotify_init")  # what ctypes may call
SAME_AGAIN = {"prlimit": "prlimit", "setpriority": "getpriority"}
READING_FLAGS = {"O_RDONLY", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW"}
TEMPORARY = ("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile")


def changes_outside(source: str) -> list[str]:
    """Each piece of a program that could change, end or start something outside. Raises SyntaxError."""
    if shell := [*_shell_lines(source)]:
        return shell
    lines = []
    for line in source.splitlines():
        magic = re.match(r"(\s*)(\w+\s*=\s*)?[!%]", line)
        lines.append(f"{magic[1]}pass" if magic else line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes that are none, in texts that are no programs
        tree = ast.parse("\n".join(lines))
    return [*_Program(tree).outside()]


def _shell_lines(source: str) -> Iterator[str]:
    for line in re.findall(rf"(?m)^\s*(?:\w+\s*=\s*)?(!\s*[\w./].*|%+(?:{MAGICS})\b.*)", source):
        if not HARMLESS_PROGRAMS.fullmatch(line.lstrip("!%").strip()):
            yield line


class _Program:
    def __init__(self, tree: ast.Module):
        self.tree = tree
        self.names: dict[str, list[ast.expr | None]] = {}  # what each name may stand for; None: something unknown
        self.modules: dict[str, str] = {}  # names by which modules and their functions were imported
        self.asked: set[str] = set()
        self.has_open = any(isinstance(n, ast.FunctionDef) and n.name == "open" for n in ast.walk(tree))  # of its own
        self.called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            self._bind(node)
        self._bind_parameters()

    def outside(self) -> Iterator[str]:
        for node in ast.walk(self.tree):
            if self._harms(node):
                yield ast.unparse(node)

    # Names

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                self.modules[alias.asname or alias.name] = origin + alias.name
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._is(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
            self._is(node.target, None if isinstance(node, ast.AugAssign) else node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            self._is_each(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._is(node.optional_vars, node.context_expr)

    def _is(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.names.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            for part, one in zip(target.elts, value.elts if same else [value] * len(target.elts), strict=True):
                whole = isinstance(value, ast.Call) and self._inside(value)  # as of mkstemp
                self._is(part, one if same or whole else None)

    def _is_each(self, target: ast.expr, values: ast.expr) -> None:
        if isinstance(values, ast.Tuple | ast.List | ast.Set):
            for value in values.elts:
                self._is(target, value)
        elif isinstance(values, ast.Call) and self._name(values.func) == "range":
            self._is(target, ast.Constant(0))
        else:
            self._is(target, None)

    def _bind_parameters(self) -> None:
        defined = {n.name: n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)}
        for function in defined.values():
            positional = [a.arg for a in function.args.args]
            for name, default in zip(positional[::-1], function.args.defaults[::-1], strict=False):
                self.names.setdefault(name, []).append(default)
            for name in positional:
                if (function.name, name) in GIVEN_PATHS:
                    self.names.setdefault(name, []).append(ast.Constant("file"))
            for call in ast.walk(self.tree):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == function.name:
                    for name, value in [
                        *zip(positional, call.args, strict=False),
                        *((k.arg, k.value) for k in call.keywords),
                    ]:
                        self.names.setdefault(name, []).append(value)

    def _name(self, node: ast.expr) -> str:
        """The dotted name of a function, resolved through imports; empty if it has none."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self._name(node.value)}.{node.attr}"
        return ""

    # Places

    def _inside(self, node: ast.expr | None, whole: bool = True) -> bool:
        """Whether a path lies inside, whatever the values of the names in it; not `whole`: as the rest of a path."""
        if isinstance(node, ast.Constant):
            return _text_inside(node.value, whole)
        if isinstance(node, ast.JoinedStr):
            return bool(node.values) and all(self._inside(v, whole and v is node.values[0]) for v in node.values)
        if isinstance(node, ast.FormattedValue):
            return self._inside(node.value, whole) or self._is_number(node.value)
        if isinstance(node, ast.Attribute):
            return ast.unparse(node) == "given.__file__" or (node.attr == "name" and self._inside(node.value, whole))
        if isinstance(node, ast.Name):
            return self._name_inside(node.id, whole)
        if isinstance(node, ast.Call):
            name = self._name(node.func).rpartition(".")[2]
            if name in TEMPORARY or "sys.argv" in ast.unparse(node):  # folders of the test that starts the program
                return True
            if name in ("Path", "join", "fspath", "str"):
                return bool(node.args) and all(map(self._inside, node.args))
            return name in ("getcwd", "open", "BytesIO")  # an open file was looked at where it was opened
        return False

    def _name_inside(self, name: str, whole: bool) -> bool:
        if name == CANARY:
            return CANARY not in self.names
        if name in self.asked:
            return True  # it stands for itself, and for what else is looked at
        self.asked.add(name)
        try:
            values = self.names.get(name, [])
            return bool(values) and all(value is not None and self._inside(value, whole) for value in values)
        finally:
            self.asked.discard(name)

    def _is_number(self, node: ast.expr) -> bool:
        values = self.names.get(node.id, []) if isinstance(node, ast.Name) else [node]
        return bool(values) and all(isinstance(v, ast.Constant) and isinstance(v.value, int) for v in values)

    # Harm

    def _harms(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return self._call_harms(node)
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in self.called:
            name = self._name(node)
            module, _, last = name.rpartition(".")
            return module in MODULES - {"np", "numpy"} and last in {*CHANGED, *NEVER, *FORKING, *SIGNALING, "open"}
        if isinstance(node, ast.ImportFrom):
            return node.module in MODULES and any(alias.name == "*" for alias in node.names) and node.module != "numpy"
        return False

    def _call_harms(self, node: ast.Call) -> bool:
        name = self._name(node.func)
        module, _, last = name.rpartition(".")
        if name in ("exec", "eval", "compile", "__import__"):
            text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            return not isinstance(text, str) or bool(changes_outside(text)) or text in MODULES
        if name in ("getattr", "setattr", "vars") and node.args:
            return self._name(node.args[0]) in MODULES - {"np", "numpy"}
        if isinstance(node.func, ast.Attribute) and self._is_libc(node.func.value):
            return last not in OF_LIBC or (last == "fork" and not self._child_ends(node))
        if last in FORKING:
            return not self._child_ends(node)
        if last in SIGNALING:
            to_itself = node.args and ast.unparse(node.args[0]) == "os.getpid()"
            return not to_itself and ast.unparse(node.args[-1]) != "0"
        if last in SAME_AGAIN:
            return self._makes_a_difference(node, last)
        if STARTING.fullmatch(name):
            return not last.isupper() and not _is_harmless_command(node)
        if last == "chmod" and ast.unparse(node.args[1]) == f"os.stat({ast.unparse(node.args[0])}).st_mode":
            return False
        if name == "sqlite3.connect":
            return "mode=ro" not in ast.unparse(node.args[0]) and not self._inside(node.args[0])
        if name.partition(".")[0] in NEVER_MODULES or last in NEVER or last.endswith("FileHandler"):
            return True
        if isinstance(node.func, ast.Attribute) and module not in {*MODULES, "tarfile"} and last in OF_A_PATH:
            in_a_string = last == "replace" and len(node.args) != 1
            return not in_a_string and not (last == "open" and self.has_open)
        return not all(self._may_change(place, last) for place in self._changed(node, module, last))

    def _changed(self, node: ast.Call, module: str, last: str) -> Iterator[ast.expr]:
        """The expressions that name what a call changes."""
        arguments = [*node.args]
        if last == "open" and module in ("os", "posix"):
            if not self._only_opens(node):
                yield node.args[0]
        elif last == "open":
            modes = arguments[1:2] + [k.value for k in node.keywords if k.arg == "mode"]
            writes = any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes)
            if writes and not _is_nothing(arguments[0]):
                yield arguments[0]
        elif last == "ioctl":
            yield from (c.args[0] for c in ast.walk(node.args[0]) if isinstance(c, ast.Call) and c.args)
        elif last in CHANGED and (module in MODULES or isinstance(node.func, ast.Name)):
            yield from (arguments[i] for i in CHANGED[last] if i < len(arguments))
            yield from (k.value for k in node.keywords if k.arg in ("dst", "path", "filename", "name"))

    def _only_opens(self, node: ast.Call) -> bool:
        """Whether an os.open only reads, opens a file without a name, or creates nothing and is closed at once."""
        given = node.args[1]
        values = self.names.get(given.id, []) if isinstance(given, ast.Name) else [given]
        flags = [set() if value is None else _flags(value) for value in values]
        closed = any(isinstance(c, ast.Call) and self._name(c.func) == "os.close" and node in c.args
                     for c in ast.walk(self.tree))  # fmt: skip
        harmless = READING_FLAGS | ({"O_WRONLY", "O_RDWR"} if closed or _is_nothing(node.args[0]) else set())
        return bool(flags) and all("O_TMPFILE" in f or f <= harmless for f in flags)

    def _may_change(self, place: ast.expr, last: str) -> bool:
        names = {self._name(n.func) for n in ast.walk(place) if isinstance(n, ast.Call)}
        if last in DELETING and (names & {"os.getcwd", "os.listdir"} or ast.unparse(place) in ("'.'", "''")):
            return False  # the folder that it begins in, which is somebody's where it was begun by mistake
        return self._inside(place)

    def _is_libc(self, node: ast.expr) -> bool:
        values = self.names.get(node.id, []) if isinstance(node, ast.Name) else [node]
        return any(isinstance(v, ast.Call) and self._name(v.func).endswith(("DLL", "LoadLibrary")) for v in values)

    def _child_ends(self, fork: ast.Call) -> bool:
        """Whether it is in `fork() or os._exit(0)`."""
        return any(
            isinstance(n, ast.BoolOp) and isinstance(n.op, ast.Or) and fork in ast.walk(n.values[0])
            and ast.unparse(n.values[1]) == "os._exit(0)"
            for n in ast.walk(self.tree)
        )  # fmt: skip

    def _makes_a_difference(self, node: ast.Call, last: str) -> bool:
        """Whether a process setting is changed to something other than the value read from it."""
        reads = last == "prlimit" and len(node.args) == 2
        if reads or ast.unparse(node.args[0]) in ("0", "os.getpid()"):
            return False
        *whose, value = node.args
        same = isinstance(value, ast.Call) and self._name(value.func).endswith(SAME_AGAIN[last])
        return not (same and [*map(ast.unparse, value.args)] == [*map(ast.unparse, whose)])


def _text_inside(value: object, whole: bool) -> bool:
    if isinstance(value, int):
        return not whole  # a number in a name; as a path it is an open file
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    if not isinstance(text, str) or ".." in text or "~" in text or "\\" in text:
        return False
    return not whole or text == OWN_MEMORY or (text != "" and not text.startswith("/"))


def _is_nothing(node: ast.expr) -> bool:
    return ast.unparse(node) in ("'/dev/null'", "os.devnull")


def _flags(node: ast.expr) -> set[str]:
    """The flags joined by |; anything else by its source."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _flags(node.left) | _flags(node.right)
    return {node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)}


def _is_harmless_command(node: ast.Call) -> bool:
    if not node.args:
        return True
    first = node.args[0]
    parts = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
    if not all(isinstance(p, ast.Constant) and isinstance(p.value, str) for p in parts):
        return False
    program = " ".join(part.value for part in parts)  # os.exec and os.spawn have its arguments elsewhere
    return HARMLESS_PROGRAMS.fullmatch(program) is not None
