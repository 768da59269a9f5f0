"""given.py: the earlier stages' functions as one module."""

import pytest

from autograder.notebooks.errors import BuildError
from autograder.notebooks.given import given_source
from autograder.stages import GRADED_STAGES, STAGES, earlier_stages, find_stage

SECOND = find_stage("kv-cache")


def namespace_of(source):
    namespace = {}
    exec(compile(source, "given.py", "exec"), namespace)
    return namespace


@pytest.fixture
def from_script(tmp_path):
    """given.py of the second stage, made from a script for the first."""

    def make(text):
        (tmp_path / "forward_pass.py").write_text(text, encoding="utf-8")
        return given_source(SECOND, tmp_path)

    return make


def solution(name, body):
    return f'# %% solution="{name}"\n### BEGIN SOLUTION\n{body}\n### END SOLUTION\n'


@pytest.mark.parametrize("stage", [s for s in GRADED_STAGES if earlier_stages(s)], ids=lambda s: s.name)
def test_it_defines_every_function_of_the_stages_before_and_none_of_its_own(stage):
    defined = namespace_of(given_source(stage))
    expected = [name for before in earlier_stages(stage) for name in before.functions]
    assert [name for name in expected if name not in defined] == []
    assert [name for name in stage.functions if name in defined] == []


@pytest.mark.parametrize("stage", [s for s in GRADED_STAGES if earlier_stages(s)], ids=lambda s: s.name)
def test_it_reads_like_a_module(stage):
    source = given_source(stage)
    assert source.startswith('"""The functions of the earlier stages (')
    assert "SOLUTION" not in source and "from given" not in source
    assert max(map(len, source.splitlines())) <= 120


def test_stages_that_need_no_earlier_one_have_none():
    assert given_source(STAGES[0]) is None
    assert given_source(GRADED_STAGES[0]) is None


def test_only_the_imports_that_are_used_come_along(from_script):
    source = from_script(
        '# %% setup="imports"\nimport os\nimport math\nimport numpy as np\nfrom collections import Counter, deque\n'
        + solution("a", "def gelu(x):\n    return np.exp(math.pi) + len(deque([x]))")
    )
    imports = [line for line in source.splitlines() if line.startswith(("import", "from"))]
    assert imports == ["import math", "from collections import deque", "import numpy as np"]
    assert namespace_of(source)["gelu"](1) == pytest.approx(24.14, abs=0.01)


def test_a_name_defined_twice_is_refused(from_script):
    with pytest.raises(BuildError, match=r"defines gelu in the cell 'b'"):
        from_script(solution("a", "def gelu(x):\n    return x") + solution("b", "def gelu(x):\n    return x"))


def test_a_name_from_nowhere_is_refused(from_script):
    with pytest.raises(BuildError, match=r"cell 'a' uses weights, which is neither"):
        from_script(
            '# %% setup="s"\nimport math\nweights = 1\n' + solution("a", "def gelu(x):\n    return x * weights")
        )
