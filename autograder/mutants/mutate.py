"""Every one-step change of a piece of source: one operator, constant, argument, condition, loop, name or statement."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_OPERATORS: dict[type, tuple[type, ...]] = {
    **{kind: tuple(other for other in _ARITHMETIC if other is not kind) for kind in _ARITHMETIC},
    ast.FloorDiv: (ast.Div, ast.Mult, ast.Mod),
    ast.Mod: (ast.FloorDiv, ast.Mult),
    ast.Pow: (ast.Mult, ast.Div),
    ast.MatMult: (ast.Mult, ast.Add),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Break: (ast.Continue, ast.Pass),
    ast.Continue: (ast.Break, ast.Pass),
}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_OPERATORS |= {kind: tuple(other for other in _ORDER if other is not kind) for kind in _ORDER}

_SIBLINGS = (  # names that are easily taken for each other
    *(("ln_1", "ln_2"), ("c_attn", "c_proj", "c_fc"), ("attn", "mlp"), ("weight", "bias"), ("wte", "wpe")),
    *(("keys", "values"), ("_keys", "_values"), ("q", "k", "v"), ("max", "min"), ("argmax", "argmin")),
    *(("n_layer", "n_head", "n_embd", "n_ctx", "n_vocab"), ("n_head", "n_seq", "head_dim", "n_embd"), ("x", "y")),
    *(("n_query", "n_seq"), ("n", "n_query"), ("a", "b"), ("layer", "new_layer"), ("entries", "hits")),
    *(("stored_ids", "live_ids"), ("token_ids", "prompt_ids"), ("gate", "key"), ("system", "user", "assistant")),
)
_MODULES = ("np", "json", "hashlib", "autograder")  # a call of theirs is no method of a value
_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Raise, ast.With, ast.Try)


@dataclass(frozen=True)
class Change:
    """One mutant of a piece of source.

    id: the function and the statement with what is changed, as in "gelu: y *= [0.5 -> 1.5]". Unique in the source, and
    the same as long as the statement is.
    """

    id: str
    source: str


def changes_of(source: str) -> list[Change]:
    """All mutants of the source, in its order; of several with the same resulting source, the first."""
    tree = ast.parse(source)
    words = set(re.findall(r"\w+", ast.unparse(tree)))
    seen, ids, changes = {ast.unparse(tree)}, set(), []
    for place in _places(tree, (), None):
        for new in [*_instead_of(place.node, words), *place.instead()]:
            before = _line(place.statement)
            place.put(new)
            mutated = ast.unparse(tree)
            after = _line(new if place.node is place.statement else place.statement)
            place.put(place.node)
            if mutated not in seen:
                seen.add(mutated)
                changes.append(
                    Change(_unique(f"{'.'.join(place.function)}: {_difference(before, after)}", ids), mutated)
                )
    return changes


def _unique(id: str, ids: set[str]) -> str:
    number = next(i for i in range(1, len(ids) + 2) if (f"{id} ({i})" if i > 1 else id) not in ids)
    id = f"{id} ({number})" if number > 1 else id
    ids.add(id)
    return id


@dataclass(frozen=True)
class _Place:
    """A node and where it is held."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    statement: ast.AST  # the innermost that the node is in, or is
    function: tuple[str, ...]

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node

    def instead(self) -> Iterator[ast.AST]:
        """What can stand here because of where it is."""
        if (isinstance(self.parent, (ast.If, ast.While, ast.IfExp)) and self.field == "test") or self.field == "ifs":
            yield ast.Constant(True)
            yield ast.Constant(False)
            if not isinstance(self.node, ast.UnaryOp):
                yield ast.UnaryOp(ast.Not(), self.node)
        if isinstance(self.parent, (ast.For, ast.comprehension)) and self.field == "iter":
            listed = _call("list", self.node)
            yield _call("reversed", listed)
            yield ast.Subscript(listed, ast.Slice(upper=ast.UnaryOp(ast.USub(), ast.Constant(1))), ast.Load())
            yield ast.Subscript(listed, ast.Slice(lower=ast.Constant(1)), ast.Load())
        if isinstance(self.parent, ast.Slice) and not isinstance(self.node, (ast.Constant, ast.UnaryOp)):
            yield ast.BinOp(self.node, ast.Add(), ast.Constant(1))
            yield ast.BinOp(self.node, ast.Sub(), ast.Constant(1))


def _places(node: ast.AST, function: tuple[str, ...], statement: ast.AST | None) -> Iterator[_Place]:
    for field, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_docstring(child) or isinstance(child, ast.expr_context):
                continue
            inside = child if isinstance(child, (ast.stmt, ast.ExceptHandler)) else statement
            named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            within = (*function, child.name) if named else function
            yield _Place(child, node, field, index, inside, within)
            if not isinstance(child, ast.Raise):  # what a message says is free, as a rule
                yield from _places(child, within, inside)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _line(statement: ast.AST) -> str:
    """The statement on one line; of one with a body, the line that it begins with."""
    bodies = {field: [] for field, value in ast.iter_fields(statement) if field in _BODIES and isinstance(value, list)}
    return ast.unparse(_with(statement, **bodies)).strip().replace("\n", "; ")


_BODIES = ("body", "orelse", "finalbody", "handlers")


_TOKEN = re.compile(r"\\.|\d[\w.]*e-\d+|[\w.]+|\s+|//=?|\*\*=?|[<>=!+*/@-]=|.")


def _difference(before: str, after: str) -> str:
    """The original text, with [old -> new] in place of what is changed."""
    old, new = (_TOKEN.findall(text) for text in (before, after))
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    kept = old[len(old) - end :]
    changed = (tokens[start : len(tokens) - end] for tokens in (old, new))
    return "".join(old[:start]) + "[{} -> {}]".format(*map("".join, changed)) + "".join(kept)


# What can stand instead of a node, whatever is around it


def _instead_of(node: ast.AST, words: set[str]) -> Iterator[ast.AST]:
    for kind in _OPERATORS.get(type(node), ()):
        yield kind()
    if isinstance(node, _STATEMENTS):
        yield ast.Pass()
    found = _BY_KIND.get(type(node))
    if found is not None:
        yield from found(node)
    yield from _siblings(node, words)


def _siblings(node: ast.AST, words: set[str]) -> Iterator[ast.AST]:
    field = {ast.Name: "id", ast.Attribute: "attr", ast.Constant: "value"}.get(type(node))
    name = getattr(node, field) if field else None
    others = [other for group in _SIBLINGS if name in group for other in group if other != name]
    for other in dict.fromkeys(others):
        if other in words or isinstance(node, ast.Attribute):
            yield _with(node, **{field: other})


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        new: list[Any] = [not value]
    elif isinstance(value, int):
        new = [value + 1, value - 1, 0]
    elif isinstance(value, float):
        new = [value * 2, value * 1.01, 0.0]
    elif isinstance(value, str):
        new = [value + "x"] if value.isidentifier() else [value + "x", value[:-1], " "]
    else:
        new = []
    for other in new:
        if other != value:
            yield ast.Constant(other)


def _call_changes(node: ast.Call) -> Iterator[ast.AST]:
    for args in [*_exchanged(node.args), *_dropped(node.args)]:
        yield _with(node, args=args)
    for keywords in _dropped(node.keywords):
        yield _with(node, keywords=keywords)
    if isinstance(node.func, ast.Attribute) and not (
        isinstance(node.func.value, ast.Name) and node.func.value.id in _MODULES
    ):
        yield node.func.value
    if node.args and not isinstance(node.args[0], ast.Starred):
        yield node.args[0]


def _sequence(node: Any) -> Iterator[ast.AST]:
    dropped = _dropped(node.elts) if isinstance(node.ctx, ast.Load) else []
    for elements in [*_exchanged(node.elts), *dropped]:
        yield _with(node, elts=elements)


def _dict(node: ast.Dict) -> Iterator[ast.AST]:
    for keys, values in zip(_dropped(node.keys), _dropped(node.values), strict=True):
        yield _with(node, keys=keys, values=values)


def _comparison(node: ast.Compare) -> Iterator[ast.AST]:
    if len(node.ops) > 1:
        yield ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
        yield ast.Compare(node.left, node.ops[:-1], node.comparators[:-1])


def _both(node: ast.BoolOp) -> Iterator[ast.AST]:
    for values in _dropped(node.values):
        yield ast.BoolOp(node.op, values) if len(values) > 1 else values[0]


def _operand(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _slice(node: ast.Slice) -> Iterator[ast.AST]:
    for bound in ("lower", "upper"):
        if getattr(node, bound) is not None:
            yield _with(node, **{bound: None})


def _subscript(node: ast.Subscript) -> Iterator[ast.AST]:
    if isinstance(node.ctx, ast.Load):
        yield node.value


def _one_branch(node: ast.IfExp) -> Iterator[ast.AST]:
    yield _with(node, body=node.orelse, orelse=node.body)


def _return(node: ast.Return) -> Iterator[ast.AST]:
    yield ast.Return(ast.Constant(None))


def _in_place(node: ast.Assign) -> Iterator[ast.AST]:
    """x = x + y is made x += y, which changes the array that x was."""
    value, target = node.value, node.targets[0]
    if (
        isinstance(value, ast.BinOp)
        and isinstance(target, ast.Name)
        and isinstance(value.left, ast.Name)
        and value.left.id == target.id
    ):
        yield ast.AugAssign(target, value.op, value.right)


def _not_in_place(node: ast.AugAssign) -> Iterator[ast.AST]:
    yield ast.Assign([node.target], node.value, lineno=0)


def _raise(node: ast.Raise) -> Iterator[ast.AST]:
    """Another exception; the same without its message."""
    if isinstance(node.exc, ast.Call):
        yield _with(node, exc=_with(node.exc, func=ast.Name("RuntimeError", ast.Load())))
        yield _with(node, exc=_with(node.exc, args=[]))


def _decorated(node: ast.FunctionDef) -> Iterator[ast.AST]:
    for decorators in _dropped(node.decorator_list):
        yield _with(node, decorator_list=decorators)


def _formatted(node: ast.JoinedStr) -> Iterator[ast.AST]:
    for values in _dropped(node.values):
        yield _with(node, values=values)


_BY_KIND: dict[type, Any] = {
    ast.Constant: _constant,
    ast.Call: _call_changes,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Dict: _dict,
    ast.Compare: _comparison,
    ast.BoolOp: _both,
    ast.UnaryOp: _operand,
    ast.Slice: _slice,
    ast.Subscript: _subscript,
    ast.IfExp: _one_branch,
    ast.Return: _return,
    ast.Assign: _in_place,
    ast.AugAssign: _not_in_place,
    ast.Raise: _raise,
    ast.FunctionDef: _decorated,
    ast.JoinedStr: _formatted,
}


def _exchanged(items: list) -> list[list]:
    """The list with two neighbors exchanged, for each pair."""
    return [[*items[:i], items[i + 1], items[i], *items[i + 2 :]] for i in range(len(items) - 1)]


def _dropped(items: list) -> list[list]:
    """The list without one item, for each."""
    return [[*items[:i], *items[i + 1 :]] for i in range(len(items))]


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _with(node: Any, **fields: Any) -> Any:
    """A copy of the node with other fields."""
    new = copy.copy(node)
    for field, value in fields.items():
        setattr(new, field, value)
    return new
