"""Hostile files: every value is read or refused by line and reason, in bounded memory."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import DOCUMENTS

from seasoned.errors import InputError
from seasoned.integrations import FileLine, ReadEpisode, Refusal, bounded_lines, read_episodes
from seasoned.integrations.json_input import documents, parse_strict_json

CHAT = {"id": "x", "messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]}
ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "x",
    "agent": {"name": "a", "version": "1"},
    "steps": [{"step_id": 1, "source": "user", "message": "U"}, {"step_id": 2, "source": "agent", "message": "A"}],
}
OTEL = {
    "trace_id": "x",
    "span_id": "1",
    "start_time": 1.0,
    "attributes": {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": [{"role": "user", "content": "U"}],
        "gen_ai.output.messages": [{"role": "assistant", "content": "A"}],
    },
}
GOOD = {"openai": CHAT, "atif": ATIF, "otel": OTEL}
PLACE = "@here@"
WITH_PLACE = {
    "openai": {**CHAT, "messages": [*CHAT["messages"], {"role": "user", "content": PLACE}]},
    "atif": {**ATIF, "steps": [*ATIF["steps"], {"step_id": 3, "source": "user", "message": PLACE}]},
    "otel": {**OTEL, "attributes": {**OTEL["attributes"], "gen_ai.system_instructions": PLACE}},
}


def line(record):
    return json.dumps(record).encode()


def with_raw(name, raw):
    """Return the valid document with raw bytes in place of a value."""
    return line(WITH_PLACE[name]).replace(json.dumps(PLACE).encode(), raw)


DEEP = 1_000_000
HOSTILE = [
    ("cut off", b'{"messages": [{"role": "us', "not JSON"),
    ("no JSON", b"Traceback (most recent call last):", "not JSON"),
    ("two values", b'{"a": 1} {"b": 2}', "not JSON: Extra data"),
    ("deep lists", b"[" * DEEP, "nested too deeply"),
    ("deep lists, closed", b"[" * DEEP + b"]" * DEEP, "nested too deeply"),
    ("deep objects", b'{"a":' * DEEP + b"1" + b"}" * DEEP, "nested too deeply"),
    ("a NUL byte", b'{"a": "\0"}', "not JSON: Invalid control character"),
    ("no UTF-8", b'{"a": "\xff"}', "not UTF-8: byte 0xff at 7"),
    ("UTF-16", "{}".encode("utf-16"), "not UTF-8"),
    ("an encoded surrogate", b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
    ("NaN", b'{"a": NaN}', "NaN is not JSON"),
    ("Infinity", b'{"a": [-Infinity]}', "Infinity is not JSON"),
    ("a huge integer", b'{"a": ' + b"9" * 5000 + b"}", "4300 digits"),
    ("a key twice", b'{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' occurs twice"),
    ("no object", b'"messages"', "must be a JSON object"),
    ("a number", b"7", "must be a JSON object"),
    ("nothing known in it", b"{}", "an object with []"),
]


@pytest.mark.parametrize("name", sorted(GOOD))
@pytest.mark.parametrize(("data", "reason"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_hostile_line_does_not_affect_other_lines(name, data, reason):
    other = json.loads(line(GOOD[name]).replace(b'"x"', b'"y"'))
    items = list(read_episodes(name, [line(GOOD[name]), b"", data, line(other)]))
    accepted = [read for read in items if isinstance(read, ReadEpisode)]
    [refusal] = [read for read in items if isinstance(read, Refusal)]
    assert [read.line for read in accepted] == [1, 4]
    assert refusal.line == 3
    if not (name == "atif" and data == b"{}"):
        assert reason in refusal.reason
    assert len(refusal.reason) < 400


@pytest.mark.parametrize("name", sorted(GOOD))
@pytest.mark.parametrize(
    "raw",
    [b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b"1e999", b"NaN", b"7", b'[{"type": []}]'],
    ids=["deep, open", "deep", "inf", "NaN", "number", "odd part"],
)
def test_a_hostile_value_is_refused(name, raw):
    [refusal] = read_episodes(name, [with_raw(name, raw)])
    assert isinstance(refusal, Refusal)


def test_hostile_arguments_in_a_text_stay_a_text():
    def chat(arguments):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return line({"messages": [CHAT["messages"][0], {"role": "assistant", "tool_calls": [call]}]})

    [deep] = read_episodes("openai", [chat("[" * DEEP)])
    assert deep.episode.steps[0].action == f"f({'[' * DEEP})"
    [huge] = read_episodes("openai", [chat('{"a": 1e999}')])
    assert huge.episode.steps[0].action == '{"arguments":{"a":1e999},"name":"f"}'
    [digits] = read_episodes("openai", [chat("9" * 5000)])
    assert digits.episode.steps[0].action == f"f({'9' * 5000})"


# ------------------------------------------------------------------------------- bounded lines


class Repeated(io.RawIOBase):
    """A file of `size` equal bytes between two short lines, generated while it is read."""

    def __init__(self, size):
        self._parts = [(b"first\n", 1), (b"x", size), (b"\nlast", 1)]

    def readable(self):
        return True

    def readinto(self, buffer):
        while self._parts:
            unit, count = self._parts[0]
            if not count:
                self._parts.pop(0)
                continue
            now = min(count, len(buffer)) if len(unit) == 1 else 1
            buffer[: now * len(unit)] = unit * now
            self._parts[0] = (unit, count - now)
            return now * len(unit)
        return 0


def test_line_of_a_gigabyte_is_never_in_memory():
    limit = 8_000_000
    tracemalloc.start()
    lines = list(bounded_lines(io.BufferedReader(Repeated(1_000_000_000)), limit))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lines == [
        FileLine(1, b"first"),
        Refusal(2, f"longer than {limit} bytes: split it into a document a line"),
        FileLine(3, b"last"),
    ]
    assert peak < 1.5 * limit


@given(
    st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b"")), max_size=6), st.integers(1, 9), st.booleans()
)
def test_bounded_lines_equal_the_files_lines(lines, limit, ends):
    data = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    bounded = list(bounded_lines(io.BytesIO(data), limit))
    assert [item.number if isinstance(item, FileLine) else item.line for item in bounded] == list(
        range(1, len(expected) + 1)
    )
    for item, whole in zip(bounded, expected, strict=True):
        assert item.data == whole if isinstance(item, FileLine) else len(whole) > limit


def test_refused_line_keeps_its_position():
    file = io.BytesIO(b"\n".join([line(CHAT), b'"' + b"x" * 500 + b'"', line(CHAT)]))
    items = list(read_episodes("openai", bounded_lines(file, 300)))
    assert [read.line for read in items] == [1, 2, 3]
    assert items[1] == Refusal(2, "longer than 300 bytes: split it into a document a line")


def test_document_over_several_lines_is_bounded():
    printed = json.dumps({"messages": ["x" * 10] * 1000}, indent=1).encode().splitlines()
    items = list(read_episodes("openai", [*printed, line(CHAT)], max_document_bytes=500))
    assert [read.line for read in items] == [1, len(printed) + 1]
    assert items[0].reason.startswith("longer than 500 bytes: ")
    [refusal] = read_episodes("openai", [line(CHAT)], max_document_bytes=10)
    assert refusal.reason.startswith("longer than 10 bytes: ")


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "1", None])
def test_limits_are_checked_before_reading(limit):
    with pytest.raises(InputError, match="must be a whole number, at least 1"):
        bounded_lines(io.BytesIO(b"x"), limit)
    with pytest.raises(InputError, match="must be a whole number, at least 1"):
        read_episodes("openai", [], max_document_bytes=limit)


def test_lines_must_be_bytes():
    with pytest.raises(InputError, match="Open the file with mode 'rb'"):
        list(read_episodes("openai", ["{}"]))


# ------------------------------------------------------------------------------- documents

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(
    st.text(max_size=5).filter(lambda key: "\0" not in key), values, min_size=1, max_size=3
).filter(lambda value: "\\u0000" not in json.dumps(value))


@given(st.lists(st.tuples(objects, st.sampled_from([None, 1, 4, "\t"]), st.integers(0, 2)), max_size=4), st.booleans())
def test_values_are_read_in_every_layout(printed, mark):
    lines, expected = [], []
    for value, indent, blanks in printed:
        lines += [b""] * blanks
        expected.append((len(lines) + 1, value))
        lines += json.dumps(value, indent=indent).encode().splitlines()
    if mark and lines:
        lines[0] = b"\xef\xbb\xbf" + lines[0]
    assert [(found.line, found.value) for found in documents(lines)] == expected


@given(st.lists(objects, max_size=4))
def test_top_level_list_is_split(items):
    whole = json.dumps(items).encode()
    one_each = [
        b"[",
        *(json.dumps(item).encode() + b"," for item in items[:-1]),
        *(json.dumps(item).encode() for item in items[-1:]),
        b"]",
    ]
    for lines in ([whole], json.dumps(items, indent=2).encode().splitlines(), one_each):
        assert [document.value for document in documents(lines)] == items


def test_item_of_a_list_that_is_no_json_is_refused_alone():
    lines = [
        b"[",
        b'  {"a": 1},',
        b"  {",
        b'    "b": nothing',
        b"  },",
        b'  {"c":',
        b'  {"d": 4},',
        b"  {",
        b"  }",
        b"]",
    ]
    found = list(documents([*lines, b"7"]))
    assert [one.value for one in found if not isinstance(one, Refusal)] == [{"a": 1}, {"d": 4}, {}, 7]
    assert [one.line for one in found if isinstance(one, Refusal)] == [3, 6]
    *items, cut_off = documents(lines[:-1])
    assert (len(items), cut_off) == (5, Refusal(1, "the list that begins here is cut off"))


@pytest.mark.parametrize("data", [b"[1 2]", b"[1,]", b"[1, nothing]", b'[1, {"a": NaN}]', b"[1] [2]"])
def test_items_before_a_fault_on_one_line_are_read(data):
    first, *_, refusal = documents([data])
    assert isinstance(refusal, Refusal)
    assert isinstance(first, Refusal) or first.value == 1


@given(st.text(max_size=30))
def test_strict_json_accepts_json_only(text):
    raw = json.dumps(text)
    try:
        assert parse_strict_json(raw) == text
    except ValueError:
        assert "\0" in text


# ------------------------------------------------------------------------------- anything at all


def paths_of(document):
    """Return the path of every value in a document."""
    paths = []

    def visit(value, path):
        paths.append(path)
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(inner, (*path, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                visit(inner, (*path, index))

    visit(document, ())
    return paths


def with_value(document, path, new):
    """Return the document with another value at a path."""
    if not path:
        return new
    copied = dict(document) if isinstance(document, dict) else list(document)
    copied[path[0]] = with_value(document[path[0]], path[1:], new)
    return copied


def mutated(document):
    """Return the document with an arbitrary value at an arbitrary position."""
    paths = st.sampled_from(paths_of(document))
    return st.builds(lambda path, new: with_value(document, path, new), paths, values)


EVERY = [(name, document) for name, documents in sorted(DOCUMENTS.items()) for document in documents]


def test_content_of_a_file_never_raises(share):
    """Samples of all formats, cut off, repeated, mixed and with other values in them: each is read, or refused."""

    @settings(max_examples=share(300))
    @given(
        st.lists(
            st.sampled_from(EVERY).flatmap(lambda each: st.tuples(st.just(each[0]), mutated(each[1]))), max_size=3
        ),
        st.booleans(),
        st.integers(0, 3000),
    )
    def check(documents, forced, cut):
        lines = [line(document) for _, document in documents]
        lines += [line(EVERY[cut % len(EVERY)][1])[:cut], line(ATIF)]
        name = documents[0][0] if forced and documents else "auto"
        items = list(read_episodes(name, lines))
        assert items == list(read_episodes(name, lines))
        assert all(isinstance(read, ReadEpisode) or (isinstance(read, Refusal) and read.reason) for read in items)
        assert all(1 <= read.line <= len(lines) for read in items)
        if name in ("auto", "atif"):
            assert any(isinstance(read, ReadEpisode) and read.line == len(lines) for read in items)

    check()


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_value_of_another_type_anywhere_is_read_or_refused(name):
    for document in DOCUMENTS[name]:
        for path in paths_of(document):
            for value in (None, [], 7, [[[]]], {"a": {"b": {}}}, [{}], "{'a':" * 200):
                for read in read_episodes(name, [line(with_value(document, path, value))]):
                    assert isinstance(read, ReadEpisode | Refusal)


@pytest.mark.parametrize("name", sorted(GOOD))
def test_arbitrary_bytes_never_raise(name):
    @given(st.lists(st.binary(max_size=12) | st.sampled_from([b"{", b"}", b"[", b"]", b" 1", b'{"a": ']), max_size=6))
    def check(lines):
        for read in read_episodes(name, lines):
            assert isinstance(read, Refusal)

    check()
