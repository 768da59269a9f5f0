"""Rules of the repository as a whole."""

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from autograder.places import ROOT
from autograder.stages import STAGES

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pytest brings this one
    import tomli as tomllib

_BELOW = sorted(path for pattern in ("*/*.md", "data/*/*.md") for path in ROOT.glob(pattern))
PAGES = ["README.md", *(path.relative_to(ROOT).as_posix() for path in _BELOW)]
TOP_LEVEL = {".ci", ".gitignore", "LICENSE", "Makefile", "README.md", "autograder", "course", "data",
             ".gitattributes", "constraints.txt", "environment.yml", "pyproject.toml", "solutions"}  # fmt: skip
BINARY = {".png", ".safetensors", ".npz", ".npy"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


@pytest.fixture(scope="module")
def tracked():
    """The files that git knows, and their text (None for a binary file)."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is not a git checkout")
    names = [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]
    return {name: None if Path(name).suffix in BINARY else read(name) for name in names}


def test_the_top_level_is_as_the_readme_describes_it(tracked):
    assert {name.split("/")[0] for name in tracked} == TOP_LEVEL


CONDA_FORGES = {"jupyter-client": "jupyter_client", "huggingface-hub": "huggingface_hub", "msgpack": "msgpack-python",
                "matplotlib": "matplotlib-base"}  # fmt: skip  # where it has another name for a package than PyPI has


def wanted():
    """(name, bound) of all that the project and its tests need."""
    listed = [*project()["dependencies"], *project()["optional-dependencies"]["test"]]
    return [re.fullmatch(r"([\w-]+)(>=[\d.]+)", text).groups() for text in listed]


def test_the_conda_environment_has_conda_forges_packages_and_by_pip_the_project_alone():
    python, *packages, pip, by_pip = yaml.safe_load(read("environment.yml"))["dependencies"]
    assert python == f"python{project()['requires-python']}"
    assert packages == [CONDA_FORGES.get(name, name) + bound for name, bound in wanted()]
    assert (pip, by_pip) == ("pip", {"pip": ["--editable ."]})


def test_the_versions_that_are_known_to_work_are_within_the_bounds():
    known = {}
    for line in read("constraints.txt").splitlines():
        if pin := re.match(r"([\w.-]+)==([\w.]+)", line):
            known.setdefault(pin[1], []).append(Version(pin[2]))
    for name, bound in wanted():
        assert known[name] and all(version in SpecifierSet(bound) for version in known[name]), name


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_somewhere(page):
    links = [link for link in re.findall(r"\]\(([^)]+)\)", read(page)) if not link.startswith(("http:", "https:", "#"))]
    assert [link for link in links if not (ROOT / page).parent.joinpath(link.split("#")[0]).exists()] == []


def test_every_make_target_of_the_readme_exists():
    named = set(re.findall(r"\bmake ([a-z-]+)", read("README.md"))) - {"and"}
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    assert {"demo", "test", "lab"} <= named <= targets


def test_every_command_of_the_readme_exists():
    from autograder.cli.app import app

    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    pages = read("README.md") + read("course/README.md")
    named = set(re.findall(r"(?:^ +|`)autograder ([a-z]+)", pages, re.MULTILINE))
    assert {"test", "doctor", "build"} <= named <= commands


def test_the_syllabus_gives_each_stage_its_functions_and_its_points():
    from autograder.judge.framework import checks_of
    from autograder.notebooks.marks import read_stage

    rows = re.findall(r"^\| \[(\d)\. ([^]]+)\]\(release/([^)]+)/\) \|(.*)$", read("course/README.md"), re.MULTILINE)
    assert [(int(number), title, folder) for number, title, folder, _ in rows] == [
        (stage.number, stage.title, stage.assignment) for stage in STAGES
    ]
    for stage, row in zip(STAGES, rows, strict=True):
        written, _, points, _ = (part.strip() for part in row[3].split("|"))
        assert re.findall(r"`(\w+)`", written) == list(stage.functions)
        by_hand = sum(cell.points for cell in read_stage(stage, ROOT / "solutions") if cell.kind == "written")
        by_checks = sum(check.points for check in checks_of(stage.name))
        assert points == (f"{by_checks:g} + {by_hand:g}" if stage.graded else "")


def test_the_glossary_is_alphabetical_and_names_nothing_twice():
    terms = [term.lower() for term in re.findall(r"^\| \*\*(.+?)\*\* \|", read("course/README.md"), re.MULTILINE)]
    assert len(terms) >= 30
    assert terms == sorted(set(terms))


@pytest.mark.parametrize(
    ("rule", "pattern"),
    [
        ("a path of somebody's machine", r"(?<![\w.}])/(?:work|root|home|Users)/\w"),
        ("a ticket's number", r"(?i)\b(?:issue|ticket)s? #?\d|\(R\d+\)"),
        ("unfinished work", r"\b(?:TODO|FIX" r"ME|XXX)\b"),
        ("a merge conflict", r"(?m)^(?:<{7}|>{7}) "),
    ],
)
def test_no_file_holds(tracked, rule, pattern):
    """Except in the corpus and this file."""
    skipped = {"data/tinyshakespeare.txt", "autograder/tests/test_repository.py"}
    found = {
        f"{name}: {match.group()!r}"
        for name, text in tracked.items()
        if text is not None and name not in skipped and (match := re.search(pattern, text))
    }
    assert found == set(), rule


def test_no_page_or_notebook_holds_a_picture_character(tracked):
    texts = {name: text for name, text in tracked.items() if Path(name).suffix in {".md", ".ipynb"}}
    assert [name for name, text in texts.items() if re.search("[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]", text)] == []


def test_no_file_is_large(tracked):
    assert [name for name in tracked if (ROOT / name).stat().st_size > 12 * 2**20] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names in the wheel that `pip wheel` builds."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return {info.filename: info.file_size for info in archive.infolist()}


def test_the_wheel_carries_the_model(wheel):
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        committed = (ROOT / "data" / "tiny-gpt2" / file).stat().st_size
        assert wheel[f"autograder/data/tiny-gpt2/{file}"] == committed


def test_the_wheel_carries_the_glossary(wheel):
    assert wheel["autograder/data/syllabus.md"] == (ROOT / "course" / "README.md").stat().st_size


def test_the_wheel_carries_what_is_read_beside_the_code(wheel):
    of_the_package = {name for name in wheel if name.startswith("autograder/") and "/data/" not in name}
    beside = {name for name in of_the_package if not name.endswith(".py")}
    assert beside >= {
        f"autograder/{name}" for name in ("notebooks/charts.txt", "notebooks/given.txt", "judge/bugs.txt")
    }
    assert beside >= {f"autograder/{name}" for name in ("report/page.css", "report/page.html", "report/page.js")}


def test_the_wheel_carries_no_solution_no_test_and_nothing_that_needs_one(wheel):
    assert "autograder/stages/kv_cache/attend.py" in wheel
    kept_out = r"solutions|conftest|tests|samples|/test_|bench|mutants|equivalent|/release/"
    assert [name for name in wheel if re.search(kept_out, name)] == []


def test_every_package_that_is_imported_is_declared():
    """A package that another one happens to install may be missing after its next release."""
    modules = {"ipython": "IPython"}
    extras = project()["optional-dependencies"]
    wanted = [
        *project()["dependencies"],
        *extras["peers"],
        *extras["chat"],
        *extras["dask"],
    ]  # extras are tried, and gone without
    declared = {re.split(r"[<>=\[]", text)[0].lower() for text in wanted}
    declared = {modules.get(name, name.replace("-", "_")) for name in declared}
    imported = set()
    for path in (ROOT / "autograder").rglob("*.py"):
        of_tests = path.name in ("sample_tests.py", "conftest.py") or path.name.startswith("test_")
        if path.relative_to(ROOT / "autograder").parts[0] not in ("tests", "bench") and not of_tests:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
                imported |= {name.split(".")[0] for name in names}
    assert imported - declared - sys.stdlib_module_names - {"autograder"} == set()


def test_a_checkout_has_the_same_line_ends_on_every_system(tracked):
    """`autograder build --check` compares bytes."""
    shown = subprocess.run(
        ["git", "ls-files", "--eol", "-z", "--", "course/release", "solutions", "autograder", "data"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    wanted = {"attr/text=auto eol=lf", "attr/-text"}
    assert {entry.split("\t")[0].split(maxsplit=2)[2].strip() for entry in shown if entry} == wanted
