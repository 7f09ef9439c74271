"""Lists of documents in one text: a bad item is refused, and the others are read."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.integrations import Refusal, read_episodes
from seasoned.integrations.json_input import Document, documents
from seasoned.integrations.json_stream import Brackets
from seasoned.integrations.list_lines import document_lines


def chat(id_, **fields):
    return {"id": id_, "messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}], **fields}


def read(data):
    found = list(read_episodes("auto", [data]))
    return [one.episode.id for one in found if not isinstance(one, Refusal)], [
        str(o) for o in found if isinstance(o, Refusal)
    ]


GOOD = [json.dumps(chat(f"r{n}")).encode() for n in range(4)]
BAD = {
    "NaN": b'{"id": "b", "cost": NaN, "text": "], [, \\""}',
    "minus infinity": b'{"id": "b", "cost": -Infinity}',
    "a key twice": b'{"a": 1, "a": [2, {"b": 3}]}',
    "no UTF-8": b'{"a": "\xff"}',
    "no JSON": b"{'a': 1}",
    "nothing": b"",
    "deep": b"[" * 100_000 + b"]" * 100_000,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_bad_item_of_a_list_on_one_line_does_not_affect_the_others(bad):
    ids, refused = read(b"[" + b", ".join([*GOOD[:2], bad, *GOOD[2:]]) + b"]")
    assert ids == ["r0", "r1", "r2", "r3"]
    assert len(refused) == 1
    assert "was not read" not in refused[0]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("filler", [b"", b" " * 9000], ids=["a document a line", "one long line"])
def test_bad_item_of_a_list_in_a_file_does_not_affect_the_others(bad, filler):
    text = b"[" + (b",\n" if not filler else b"," + filler).join([*GOOD[:2], bad, *GOOD[2:]]) + b"]\n" + GOOD[0]
    found = list(read_episodes("auto", document_lines(io.BytesIO(text))))
    refused = [one for one in found if isinstance(one, Refusal)]
    read_lines = [one.line for one in found if not isinstance(one, Refusal)]
    assert len(refused) == (1 if bad else 0)
    assert read_lines == ([1, 1, 1, 1, 2] if filler else [1, 2, 4, 5, 6])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), min_size=1, max_size=4), st.booleans())
def test_list_in_a_file_has_the_documents_of_its_lines(values, ascii_only):
    values = json.loads(json.dumps(values).replace("\\u0000", "x"))
    written = [json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace") for value in values]
    text = b"[" + b",\n".join(written) + b"\n]"
    found = list(documents(document_lines(io.BytesIO(text))))
    assert [(one.line, one.value) for one in found if isinstance(one, Document)] == list(
        enumerate(map(json.loads, written), 1)
    )


def test_list_on_one_line_is_not_held():
    item = json.dumps(chat("r", text="x" * 10_000)).encode()
    file = io.BytesIO(b"[" + b",".join([item] * 1200) + b"]")
    tracemalloc.start()
    n_read = sum(1 for _ in documents(document_lines(file)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (n_read, peak < 5_000_000) == (1200, True)


def test_item_of_more_values_than_a_text_may_have_is_not_parsed():
    item = b'{"a": [' + b"[]," * 2_200_000 + b'"\\"]"]}'
    file = io.BytesIO(b"[" + item + b",\n" + GOOD[0] + b"]")
    tracemalloc.start()
    found = list(documents(document_lines(file)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "it has 4400002 values" in str(found[0])
    assert found[1].value == json.loads(GOOD[0])
    assert peak < 12 * len(item)  # its values would take 60 bytes for each of `[],`


@given(st.lists(VALUES, min_size=1, max_size=3), st.booleans())
def test_the_end_of_an_item_is_found_in_a_text_that_is_read_in_parts(values, ascii_only):
    item, rest = json.dumps(values, ensure_ascii=ascii_only), ', "]"'
    brackets = Brackets()
    ends = [brackets.end((item + rest)[:n], 0) for n in range(1, len(item) + 1)]
    assert ends == [None] * (len(item) - 1) + [len(item)]


def test_rest_of_a_list_without_a_readable_end_is_refused_once():
    rest = b'{"a": 1], ' + GOOD[1] + b"]"
    found = list(read_episodes("auto", document_lines(io.BytesIO(b"[" + GOOD[0] + b",\n" + rest))))
    assert [one.line for one in found] == [1, 2]
    assert f"({len(rest)} bytes)" in str(found[1])
    long = list(document_lines(io.BytesIO(b"[" + b",\n".join(GOOD) + b"]"), max_line_bytes=20))
    assert "longer than 20 bytes" in str(long[1])


def test_items_of_a_list_that_is_cut_off_are_read():
    for left in (5, 30):
        ids, refused = read((b"[" + b", ".join(GOOD) + b"]")[:-left])
        assert ids == ["r0", "r1", "r2"]
        assert len(refused) == 1
        assert f"the rest of this list was not read ({len(GOOD[3]) + 1 - left} bytes)" in refused[0]
    ids, refused = read(b"[" + b", ".join(GOOD))
    assert (ids, len(refused)) == (["r0", "r1", "r2", "r3"], 1)
    assert "cut off" in refused[0]


def test_brackets_that_do_not_match_end_the_list_with_the_bytes_that_were_not_read():
    rest = b'{"a": 1], ' + GOOD[1] + b"]"
    ids, refused = read(b"[" + GOOD[0] + b", " + rest)
    assert ids == ["r0"]
    assert f"({len(rest)} bytes)" in refused[0]


@pytest.mark.parametrize(
    ("escaped", "expected", "n"),
    [
        (r"a\u0000b", "a\ufffdb", 1),
        (r"\ud83d x \uDE00", "\ufffd x \ufffd", 2),
        (r"\ud83d\ude00", "\U0001f600", 0),
        (r"\\u0000 \\ud83d", r"\u0000 \ud83d", 0),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600", 1),
    ],
)
def test_characters_that_a_memory_cannot_store_are_replaced_and_counted(escaped, expected, n):
    item = b'{"t": "' + escaped.encode() + b'"}'
    for data in (item, b"[" + item + b", {}]"):
        found = next(documents([data]))
        assert (found.value, found.replaced) == ({"t": expected}, n)


def test_record_of_a_session_with_a_nul_is_kept():
    events = [
        {"type": "user", "message": {"role": "user", "content": "go"}},
        {
            "type": "assistant",
            "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "sh", "input": {}}]},
        },
        {
            "type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "bin \0"}]},
        },
        {"type": "assistant", "message": {"role": "assistant", "content": "done"}},
    ]
    lines = [json.dumps({**event, "sessionId": "S", "uuid": str(n)}).encode() for n, event in enumerate(events)]
    [found] = read_episodes("auto", lines)
    assert "bin \ufffd" in found.episode.steps[-1].state
    assert sum(found.skipped.values()) == 1


@pytest.mark.parametrize("rules", [{}, {"messages": "messages"}])
def test_list_of_documents_under_a_key_is_read(rules):
    wrapped = {"model": "m", "data": {"results": [chat("a", reward=1), {"messages": "none"}, 7, chat("b")]}}
    found = list(read_episodes("auto", [json.dumps(wrapped).encode()], **rules))
    episodes = [one for one in found if not isinstance(one, Refusal)]
    assert [(one.episode.id, one.rewarded) for one in episodes] == [("a", True), ("b", False)]
    assert len(found) == 4
    [refusal] = read_episodes("auto", [json.dumps({"x": [chat("a")], "y": [chat("b")]}).encode()], **rules)
    assert "lists of documents at ['x', 'y']" in str(refusal)
