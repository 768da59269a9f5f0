"""Whether where to look, as a failed check says it, reaches the function that was changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

_LINE = re.compile(r"Look at line (\d+) of ([\w-]+).*")
_METHODS = re.compile(r"(\w+) \((\w+(?:, \w+)*)\)")


def reaches(look: str, function: str, cells: Mapping[str, str]) -> bool:
    """Whether a hint names the function, or a class or function that it is in or holds, or one that calls it.

    function: such as LayerCache.append; empty for a change outside of any, which every hint reaches. cells: the source
    of each after the change, by its mark.
    """
    defined: dict[str, ast.AST] = {}
    for source in cells.values():
        defined |= _definitions(ast.parse(source))
    line, said = _LINE.match(look), re.sub(r'the check "[^"]*"', "", _LINE.sub("", look))
    methods = [f"{of_class}.{name}" for of_class, names in _METHODS.findall(said) for name in names.split(", ")]
    named = {name for name in [*re.findall(r"\w+(?:\.\w+)*", _METHODS.sub("", said)), *methods] if name in defined}
    if re.search("they call|it calls|Begin with", said):  # a check says to look at what is called, too
        named = _with_used(named, defined)
    if line:
        inside = (n for n, node in defined.items() if n in _definitions(ast.parse(cells.get(line[2], "")))
                  and node.lineno <= int(line[1]) <= node.end_lineno)  # fmt: skip
        named |= {max(inside, key=len, default="")}
    return not function or any(f"{a}.".startswith(f"{b}.") for n in named for a, b in ((n, function), (function, n)))


def _definitions(node: ast.AST, prefix: str = "") -> dict[str, ast.AST]:
    """The functions, classes and methods in a node, by name."""
    found: dict[str, ast.AST] = {}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            found |= {prefix + child.name: child, **_definitions(child, f"{prefix}{child.name}.")}
    return found


def _with_used(names: Iterable[str], defined: Mapping[str, ast.AST]) -> set[str]:
    """The functions, what they use, and what that uses; a method by its name alone."""
    reached, left = set(names), list(names)
    while left:
        words = set(re.findall(r"\w+", ast.unparse(defined[left.pop()])))
        words |= {"__len__"} if "len" in words else set()
        used = {n for n in defined if n.rpartition(".")[2].removesuffix("__init__") in words}
        used |= {f"{n}.__init__" for n in used if f"{n}.__init__" in defined}
        left += used - reached
        reached |= used
    return reached
