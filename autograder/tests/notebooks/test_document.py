"""Reading a notebook, whatever its metadata says. Other tools, versions and damage: tests/broken/cases.py."""

import json

import pytest

from autograder.notebooks.document import parse_document, read_document
from autograder.notebooks.errors import NotebookError


def parse(notebook):
    return parse_document(json.dumps(notebook).encode(), "work.ipynb")


def code(source, **more):
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], **more}


def test_a_cell_keeps_its_metadata():
    marks = {"grade": False, "grade_id": "prefill", "solution": True}
    cell = code("x = 1", id="prefill", metadata={"nbgrader": marks, "tags": ["chart"]})
    (read,) = parse({"cells": [cell], "metadata": {}, "nbformat": 4}).cells
    assert (read.type, read.source, read.grade_id, read.cell_id) == ("code", "x = 1", "prefill", "prefill")
    assert (read.is_solution, read.is_grade, read.tags) == (True, False, ("chart",))


def test_line_ends_of_any_system_become_unix_ones():
    data = json.dumps({"cells": [code("a = 1\r\nb = 2\rc = 3")]}, indent=1).replace("\n", "\r\n").encode()
    assert parse_document(data, "work.ipynb").cells[0].source == "a = 1\nb = 2\nc = 3"


def test_metadata_of_the_wrong_type_is_ignored():
    cell = code("x", id=7, metadata={"nbgrader": {"grade_id": ["prefill"], "grade": "yes"}, "tags": "chart"})
    (read,) = parse({"cells": [cell]}).cells
    assert (read.grade_id, read.cell_id, read.is_grade, read.tags) == (None, None, False, ())


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({}, "python"),
        ({"kernelspec": {"name": "anything", "language": "python"}}, "python"),
        ({"language_info": {"name": "ipython"}}, "python"),
        ({"kernelspec": {"name": "ir", "language": "R"}}, "R"),
    ],
)
def test_the_kernel_is_recognized_by_its_language(metadata, language):
    assert parse({"cells": [], "metadata": metadata}).language == language


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"cells": [\n{', "not valid JSON (line 2)"),
        (b'{"metadata": {}}', "no list of cells"),
        (b'{"cells": [' + b"{}," * 20_000 + b"{}]}", "has 20001 cells, more than 20000"),
    ],
)
def test_a_file_that_is_not_a_notebook_is_refused_in_one_sentence(data, reason):
    with pytest.raises(NotebookError) as refused:
        parse_document(data, "work.ipynb")
    message = str(refused.value)
    assert reason in message and "work.ipynb" in message and "\n" not in message and message.endswith(".")


@pytest.mark.parametrize("value", [b"{}", b"[]", b'""'])
def test_many_small_values_are_refused_before_they_are_read(value, monkeypatch):
    monkeypatch.setattr(json, "loads", None)
    data = b'{"cells": [' + b",".join([value] * 6_000_000) + b"]}"
    with pytest.raises(NotebookError, match="holds too many values; clear the outputs of all cells and save it again"):
        parse_document(data, "work.ipynb")


def test_a_notebook_with_large_outputs_is_read():
    printed = {"output_type": "stream", "name": "stdout", "text": "[1, 2, 3]\n" * 500_000}
    assert len(parse({"cells": [code("x", outputs=[printed])]}).cells) == 1


@pytest.mark.parametrize("name", ["\x1b[31mred.ipynb", "x\n  zoe  NOT GRADED  forged.ipynb", "caf\udce9.ipynb"])
def test_the_reason_is_one_line_that_can_be_printed_whatever_the_file_is_called(name):
    with pytest.raises(NotebookError) as refused:
        parse_document(b"{", name)
    assert str(refused.value).isprintable() and "is not valid JSON" in str(refused.value)


def test_a_missing_file_is_named_in_the_error(tmp_path):
    with pytest.raises(NotebookError, match=r"work\.ipynb is not there"):
        read_document(tmp_path / "work.ipynb")


def test_an_enormous_file_is_not_even_opened(tmp_path):
    path = tmp_path / "work.ipynb"
    with path.open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(NotebookError, match="65 MB, more than 64 MB; clear the outputs"):
        read_document(path)
