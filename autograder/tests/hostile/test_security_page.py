"""Every claim of SECURITY.md names a test that is there."""

import ast
import re

import pytest

from autograder.sandbox.shown import PACKAGE
from autograder.tests.hostile.attacks import ATTACKS

PAGE = (PACKAGE / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [row for row in re.findall(r"^\| .+ \|$", PAGE, re.MULTILINE) if "| against |" not in row]
TESTS = sorted(set(re.findall(r"`((?:tests/\S+?\.py)?(?:::)?(?:test_\w+(?:\[[\w-]+\])?)?)`", PAGE)))


def functions(path):
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", [name for name in TESTS if name])
def test_the_test_that_a_claim_names_exists(name):
    file, _, function = name.rpartition("::") if "::" in name else (name, "", "") if "/" in name else ("", "", name)
    path = PACKAGE / (file or "tests/hostile/test_hostile.py")
    assert path.is_file()
    function, _, case = function.partition("[")
    assert not function or function in functions(path)
    assert not case or case.rstrip("]") in {attack.name for attack in ATTACKS}


def test_every_row_of_a_table_of_claims_names_one():
    claims = [row for row in ROWS if not re.match(r"\| (claim|the |whoever)", row)]
    assert len(claims) > 15
    assert [row for row in claims if "test" not in row.split("|")[-2]] == []
