"""What counts as a one-step change, and its id."""

import ast

import pytest

from autograder.mutants.mutate import changes_of
from autograder.stages import GRADED_STAGES
from autograder.stages.samples import solved_cells


def ids(body, signature="f(a, b, n=4)"):
    source = f"def {signature}:\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return [change.id.removeprefix("f: ") for change in changes_of(source)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a + b", ["return a [+ -> -] b", "return a [+ -> *] b", "return [a + b -> None]"]),
        ("return a // b", ["return a [// -> /] b", "return a [// -> %] b"]),
        ("return a @ b", ["return a [@ -> *] b"]),
        ("return a <= b", ["return a [<= -> <] b", "return a [<= -> ==] b"]),
        ("return a in b", ["return a [ -> not ]in b"]),
        ("return a and b", ["return a [and -> or] b", "return a[ and b -> ]", "return [a and  -> ]b"]),
        ("return 1 <= a < b", ["return [1 <=  -> ]a < b", "return 1 <= a[ < b -> ]"]),
        ("return not a", ["return [not  -> ]a"]),
        ("return -a", ["return [- -> ]a"]),
        ("return a[3]", ["return a[[3 -> 4]]", "return a[[3 -> 2]]", "return a[[3 -> 0]]", "return a[[3] -> ]"]),
        ("return a * 0.5", ["return a * [0.5 -> 1.0]", "return a * [0.5 -> 0.505]", "return a * [0.5 -> 0.0]"]),
        ("return a.get('k', True)", ["return a.get('[k -> kx]', True)", "return a.get('k', [True -> False])"]),
        ("return '; '.join(a)", ["return '; [ -> x]'.join(a)", "return '[; -> ] '.join(a)"]),
        ("return a.dot(b, n)", ["return a.dot([b, n -> n, b])", "return a.dot(b[, n -> ])"]),
        ("return a.dot(b, n)", ["return [a.dot(b, n) -> a]", "return [a.dot(b, n) -> b]"]),
        ("return a, b", ["return ([a, b -> b, a])"]),
        ("return a.sum(axis=1, keepdims=True)", ["return a.sum(axis=1[, keepdims=True -> ])"]),
        ("return a.copy()", ["return [a.copy() -> a]"]),
        ("return len(a)", ["return [len(a) -> a]"]),
        ("a.append(b)", ["[a.append(b) -> pass]"]),
        ("a += b", ["[a += b -> pass]", "a [+= -> -=] b"]),
        ("a = a + b", ["a [= a + -> +=] b"]),
        ("return a[:n]", ["return a[:[n -> ]]", "return a[:n[ ->  + 1]]", "return a[:n[ ->  - 1]]"]),
        ("return a if b else n", ["return a if [b -> True] else n", "return a if [ -> not ]b else n"]),
        ("return a if b else n", ["return [a if b else n -> n if b else a]"]),
        ("if a:\n    return b", ["if [a -> True]:", "if [a -> False]:", "if [ -> not ]a:", "[if a: -> pass]"]),
        ("for i in a:\n    break", ["for i in [a -> reversed(list(a))]:", "for i in [a -> list(a)[:-1]]:"]),
        ("for i in a:\n    break", ["[break -> continue]"]),
        ("return [i for i in a if i]", ["return [i for i in a if [ -> not ]i]"]),
        ("return a.keys @ a.c_attn.weight", ["return [a.keys -> a.values] @ a.c_attn.weight"]),
        ("raise ValueError('a')", ["raise [ValueError -> RuntimeError]('a')", "[raise ValueError('a') -> pass]"]),
        ("try:\n    a()\nexcept (OSError, TypeError):\n    b()", ["except (OSError,[ TypeError -> ]):"]),
        ("return f'{a}-{b}'", ["return f'{a}-[ -> x]{b}'", "return f'[{a} -> ]-{b}'"]),
        ("return {'a': a, 'b': b}", ["return {'a': a[, 'b': b -> ]}"]),
        ("return n", ["def f(a, b, n=[4 -> 5]):"]),
    ],
)  # fmt: skip
def test_each_kind_of_change_is_made(body, expected):
    assert set(expected) - set(ids(body)) == set()


def test_mutants_differ_from_the_source_and_from_each_other():
    source = "def f(a):\n    return 0 * a if a else 0"
    sources = [change.source for change in changes_of(source)]
    assert ast.unparse(ast.parse(source)) not in sources
    assert len(sources) == len(set(sources))


def test_texts_that_decide_nothing_are_not_changed():
    """Docstrings and error messages; removing a message is one mutant."""
    source = 'def f(a):\n    """Raises."""\n    raise ValueError(f"{a} is bad" + "x")'
    assert [change.id for change in changes_of(source)] == [
        "f: [raise ValueError(f'{a} is bad' + 'x') -> pass]",
        "f: raise [ValueError -> RuntimeError](f'{a} is bad' + 'x')",
        "f: raise ValueError([f'{a} is bad' + 'x' -> ])",
    ]


def test_an_id_names_methods_with_their_class_and_is_unique():
    source = "class A:\n    def f(self, x):\n        x = x + 1\n        x = x + 1\n        return x"
    found = [change.id for change in changes_of(source)]
    assert "A.f: x = x + [1 -> 0]" in found
    assert "A.f: x = x + [1 -> 0] (2)" in found
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("stage", GRADED_STAGES, ids=lambda stage: stage.name)
def test_every_mutant_of_a_solution_is_python(stage):
    changes = [change for source in solved_cells(stage.name).values() for change in changes_of(source)]
    assert len(changes) > 100
    for change in changes:
        compile(change.source, change.id, "exec")
