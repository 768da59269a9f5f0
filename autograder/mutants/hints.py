"""Finds the function that a change is in, and whether a failed check's hint leads to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from autograder.worker.naming import defined_names

_LINE = re.compile(r"Look at line (\d+) of the cell with (\w+)")
_METHODS = re.compile(r"(\w+) \((\w+(?:, \w+)*)\)")


def reaches(look: str, function: str, cells: Mapping[str, str]) -> bool:
    """Whether a hint names the function, or a class or function that it is in or holds, or one that calls it.

    function: such as LayerCache.append; empty for a change outside of any, which every hint reaches. cells: the source
    of each after the change, by its mark.
    """
    defined: dict[str, ast.AST] = {}
    for source in cells.values():
        defined |= _definitions(ast.parse(source))
    line, said = _LINE.match(look), _LINE.sub("", re.sub(r'the check "[^"]*"', "", look))
    methods = [f"{of_class}.{name}" for of_class, names in _METHODS.findall(said) for name in names.split(", ")]
    named = {name for name in [*re.findall(r"\w+(?:\.\w+)*", _METHODS.sub("", said)), *methods] if name in defined}
    if re.search("they call|it calls|Begin with", said):  # a check says to look at what is called, too
        named = _with_used(named, defined)
    if line:
        source = next((source for source in cells.values() if line[2] in defined_names(source)), "")
        named |= {_at(ast.parse(source), int(line[1]))}
    return not function or any(f"{a}.".startswith(f"{b}.") for n in named for a, b in ((n, function), (function, n)))


def function_at(source: str, text: str) -> str:
    """The innermost function, class or method in which a text of a source begins; empty outside of any."""
    begin = source.index(text) + len(text) - len(text.lstrip())
    return _at(ast.parse(source), source[:begin].count("\n") + 1)


def _at(tree: ast.AST, line: int) -> str:
    found = _definitions(tree).items()
    return max((name for name, node in found if node.lineno <= line <= node.end_lineno), key=len, default="")


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
