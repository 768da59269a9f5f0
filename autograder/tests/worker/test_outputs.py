"""Which outputs of cells are kept."""

import base64
import struct
import zlib

import numpy as np
import pytest

from autograder.worker.outputs import CUT, MAX_CELL, Kept


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width=2, height=1, more=b"", data=b""):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = data or zlib.compress(b"\0" + bytes(width))
    return b"\x89PNG\r\n\x1a\n" + header + more + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def text_of(data):
    return base64.b64encode(data).decode()


def kept(*messages, room=MAX_CELL):
    outputs = Kept(room)
    for kind, content in messages:
        outputs.add(kind, content)
    return outputs.all()


def stream(text, name="stdout"):
    return ("stream", {"name": name, "text": text})


def shown(data, metadata=None):
    return ("display_data", {"data": data, "metadata": metadata or {}})


def test_text_is_kept_and_joined():
    assert kept(stream("a\n"), stream("b\n"), stream("c", "stderr")) == [
        {"output_type": "stream", "name": "stdout", "text": "a\nb\n"},
        {"output_type": "stream", "name": "stderr", "text": "c"},
    ]


def test_a_picture_is_kept_with_its_text_and_the_size_it_is_shown_in():
    size = {"image/png": {"width": 300, "height": 200}}
    data = {"image/png": text_of(png()), "text/plain": "a chart"}
    assert kept(shown(data, size)) == [{"output_type": "display_data", "data": data, "metadata": size}]


def test_base64_may_be_in_lines():
    ((output),) = kept(shown({"image/png": base64.encodebytes(png() * 1).decode()}))
    assert output["data"] == {"image/png": text_of(png())}


@pytest.mark.parametrize(
    "kind",
    ["text/html", "text/markdown", "text/latex", "image/svg+xml", "image/jpeg", "image/gif", "application/javascript",
     "application/vnd.jupyter.widget-view+json", "application/pdf", "video/mp4"],
)  # fmt: skip
def test_nothing_else_is_kept(kind):
    data = {kind: "<script>alert(1)</script>"}
    assert kept(shown(data)) == []
    assert kept(shown({**data, "text/plain": "text"}))[0]["data"] == {"text/plain": "text"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a" + bytes(40),
        b"\x89PNG\r\n\x1a\n" + b"<svg onload=alert(1)>" * 4,
        png() + b"<script>alert(1)</script>",
        png()[:-12],
        png()[:-1] + b"x",
        png(width=2**31 - 1, height=2**31 - 1, data=b"x"),
        png(width=0, data=b"x"),
        png().replace(b"IDAT", b"IDAX"),
        b"\x89PNG\r\n\x1a\n" + chunk(b"IDAT", b"") + chunk(b"IEND", b""),
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 2**32 - 1) + b"IHDR" + bytes(20),
    ],
)
def test_what_is_not_one_whole_png_is_not_kept(data):
    assert kept(shown({"image/png": text_of(data)})) == []


@pytest.mark.parametrize("text", ['"><script>alert(1)</script>', "AAAA\x00", "é", "A", text_of(png()) + '" onload="x'])
def test_what_is_not_base64_is_not_kept(text):
    assert kept(shown({"image/png": text})) == []


@pytest.mark.parametrize(
    "size",
    [{"width": '1" onload="alert(1)', "height": 1}, {"width": True, "height": 1}, {"width": 10**9, "height": 1},
     {"width": 3}, {"width": -1, "height": 1}, "x", None, [1, 2]],
)  # fmt: skip
def test_a_size_is_two_numbers_or_nothing(size):
    assert kept(shown({"image/png": text_of(png())}, {"image/png": size}))[0]["metadata"] == {}


def test_control_characters_are_removed():
    assert kept(stream("\x1b[31mred\x1b[0m \x07\x00\u202edlrow\ud800 \x9b31m é 中\t.\r\n"))[0]["text"] == (
        "red dlrow 31m é 中\t.\n"
    )


def test_a_progress_bar_is_its_last_state():
    (output,) = kept(*(stream(f"\r{n} %", "stderr") for n in range(0, 101, 10)), stream("\ndone\n", "stderr"))
    assert output["text"] == "100 %\ndone\n"
    assert kept(stream("10 %\r"), stream("20 %\r"))[0]["text"].strip() == "20 %"


def bytes_of(outputs):
    pictures = sum(len(base64.b64decode(o.get("data", {}).get("image/png", ""))) for o in outputs)
    return pictures + sum(len((o.get("text") or o["data"].get("text/plain", "")).encode()) for o in outputs)


@pytest.mark.parametrize(
    "messages",
    [
        [stream("é" * 80_000)],
        [stream("x" * 10_000_000)],
        [stream("x\n" * 1000, name) for _ in range(60) for name in ("stdout", "stderr")],
        [stream("12345\n")] * 30_000,
        [shown({"text/plain": "y" * 60_000})] * 3,
        [shown({"text/plain": "y" * 10_000_000})],
        [shown({"text/plain": ""})] * 5000,
        [shown({"image/png": text_of(png(more=chunk(b"tEXt", bytes(60_000))))})] * 2,
        [shown({"image/png": text_of(png(more=chunk(b"tEXt", bytes(600_000))))})],
    ],
)
def test_the_size_of_a_cells_outputs_is_limited(messages):
    outputs = kept(*messages)
    assert bytes_of(outputs) <= MAX_CELL + len(CUT)
    assert len(outputs) <= MAX_CELL / 100 + 1
    assert outputs[-1]["text"] == CUT


def test_a_picture_of_nearly_100_kb_fits():
    outputs = kept(shown({"image/png": text_of(png(more=chunk(b"tEXt", bytes(98_000)))), "text/plain": "z" * 1000}))
    assert [set(o["data"]) for o in outputs] == [{"image/png", "text/plain"}]


def test_kept_outputs_are_kept_whole_a_second_time():
    first = Kept()
    for message in ([stream("é\r" * 30_000)], [shown({"text/plain": "y" * 20_000})], [stream("x\n" * 50_000)]):
        first.add(*message[0])
    assert first.cut
    assert kept(*((o["output_type"], o) for o in first.outputs)) == first.outputs


@pytest.mark.parametrize("kind", ["stream", "display_data", "error", 7, None, ["x"], np.zeros(3)])
@pytest.mark.parametrize(
    "content",
    [None, 3, "text", [], {}, {"text": 4}, {"text": ["a"]}, {"data": "x", "metadata": 5}, {"data": {"text/plain": 1}},
     {"data": {"image/png": {"a": 1}}}, {"data": {"image/png": None}, "metadata": {"image/png": [1]}},
     {"name": {"a": 1}, "text": None}, {"name": np.zeros(3), "text": np.zeros(3)}],
)  # fmt: skip
def test_odd_outputs_never_raise(kind, content):
    assert all(o["output_type"] == "stream" for o in kept((kind, content)))
