"""Long requests of telemetry are read span by span."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.integrations import ReadEpisode, Refusal, read_episodes
from seasoned.integrations.json_input import Document, documents
from seasoned.integrations.list_lines import document_lines
from seasoned.integrations.request_lines import printed_request, request_on_line
from seasoned.integrations.spans.otlp import leaves

MIB = 1024 * 1024


def span(trace, number, text="x"):
    """Return a span of OTLP: a call of the model."""
    said = {"gen_ai.input.messages": [{"role": "user", "content": f"Wish {trace}"}]}
    said["gen_ai.output.messages"] = [{"role": "assistant", "content": text}]
    values = {"gen_ai.operation.name": "chat"} | {name: json.dumps(value) for name, value in said.items()}
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{100 * trace + number:016x}",
        "startTimeUnixNano": str(10**18 + number),
        "attributes": [{"key": name, "value": {"stringValue": value}} for name, value in values.items()],
    }


def request(spans, key="resourceSpans", scopes="scopeSpans"):
    """Return a request with the spans in two scopes of two resources."""
    half = len(spans) // 2
    return {
        key: [
            {"resource": {"attributes": []}, scopes: [{"scope": {"name": "a"}, "spans": spans[:half]}, {"spans": []}]},
            {scopes: [{"spans": spans[half:], "schemaUrl": "]}"}], "schemaUrl": None},
        ],
        "partial": -1,
    }


def jaeger(n_spans):
    tags = [{"key": "gen_ai.operation.name", "value": "chat"}, {"key": "gen_ai.output.messages", "value": "[]"}]
    one = {"traceID": "a", "operationName": "chat", "startTime": 1, "duration": 1, "tags": tags}
    spans = [{**one, "spanID": str(number)} for number in range(n_spans)]
    return {"data": [{"traceID": "a", "spans": spans, "processes": {"p": {}}}, {"traceID": "b"}], "total": 0}


SPANS = [span(trace, number) for trace in range(2) for number in range(2)]
REQUESTS = {
    "OTLP": request(SPANS),
    "earlier OTLP": request(SPANS, scopes="instrumentationLibrarySpans"),
    "Tempo": {"trace": request(SPANS, key="batches")},
    "logs": {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {}}, {"eventName": "gen_ai.choice"}]}]}]},
    "Jaeger": jaeger(3),
    "none": {"resourceSpans": [], "resourceLogs": []},
}


class InParts(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def read(self, n=-1):
        return super().read(min(n, 11))

    def readline(self, n=-1):
        return super().readline(min(n, 11))


@pytest.mark.parametrize("name", REQUESTS)
@given(begun=st.integers(40, 400), indent=st.sampled_from([None, 1]))
def test_spans_are_those_of_the_whole_request(name, begun, indent):
    data = json.dumps(REQUESTS[name], indent=indent).encode()
    file = InParts(data[begun:] + b"\n{}" if indent is None else data + b"\n{}")
    lines = request_on_line(1, data[:begun], file, MIB) if indent is None else printed_request(file, MIB)
    found = [leaf for line in lines for leaf in leaves(json.loads(line.data))]
    assert found == list(leaves(REQUESTS[name]))
    assert file.getvalue()[file.tell() :].strip() == b"{}"


def read(data):
    found = list(read_episodes("auto", document_lines(io.BytesIO(data))))
    return [one for one in found if isinstance(one, ReadEpisode)], [str(o) for o in found if isinstance(o, Refusal)]


def test_episodes_of_long_lines_are_those_of_their_requests():
    lines = [json.dumps(request([span(n, i, "y" * 200_000) for i in range(6)])).encode() for n in range(2)]
    data = b"\n".join([lines[0], json.dumps(request([span(8, 0), span(9, 0)])).encode(), lines[1]])
    episodes, refused = read(data)
    assert (len(episodes), refused) == (4, [])
    assert episodes == list(read_episodes("auto", data.split(b"\n")))


def test_request_on_one_line_is_not_held():
    data = json.dumps(request([span(0, number, "x" * 100_000) for number in range(120)])).encode()
    file = io.BytesIO(data)
    tracemalloc.start()
    n_read = sum(isinstance(one, Document) for one in documents(document_lines(file)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (n_read, len(data) > 12_000_000, peak < 6_000_000) == (120, True, True)


def test_rest_of_a_request_that_is_cut_off_is_refused_and_later_lines_are_read():
    data = json.dumps(request([span(n, 0, "y" * 300_000) for n in range(6)])).encode()
    episodes, [refused] = read(data[: len(data) - 100_000] + b"\n" + json.dumps(span(9, 0)).encode())
    assert [one.line for one in episodes] == [1, 1, 1, 1, 1, 2]
    assert refused.startswith("line 1: not JSON: Unterminated string")
    assert "the rest of this request was not read (2" in refused
    episodes, [refused] = read(data + b" 7\n")
    assert len(episodes) == 6
    assert "'7' is not expected here; the rest of this request was not read (1 bytes)" in refused


def test_rest_of_a_printed_request_with_a_fault_is_refused_and_later_documents_are_read():
    printed = json.dumps(request(SPANS), indent=1).encode()
    place = printed.index(b'"schemaUrl"')
    episodes, [refused] = read(printed[:place] + b"nothing\n  ]\n}\n" + json.dumps(span(9, 0)).encode())
    assert [one.episode.task for one in episodes] == ["Wish 0", "Wish 1", "Wish 9"]
    assert "'n' is not expected here; the rest of this request was not read" in refused
    assert episodes[-1].line == printed[:place].count(b"\n") + 4


def test_value_that_is_no_span_is_refused_alone():
    data = json.dumps(request([span(0, 0, "y" * MIB), 7, None, {"a": [float("nan")]}, span(1, 0)])).encode()
    episodes, refused = read(data)
    assert [one.episode.task for one in episodes] == ["Wish 0", "Wish 1"]
    assert ["a span = 7" in refused[0], "a span = None" in refused[1], "NaN is not JSON" in refused[2]] == [True] * 3


@given(st.binary(max_size=60), st.integers(0, 300), st.integers(0, 60), st.booleans())
def test_any_damage_to_a_request_is_refused(noise, place, length, printed):
    data = json.dumps(request(SPANS), indent=1 if printed else None).encode()
    data = data[:40] + data[40 : 40 + place] + noise + data[40 + place + length :]
    limit = 600
    lines = (
        printed_request(io.BytesIO(data), limit)
        if printed
        else request_on_line(1, data[:40], io.BytesIO(data[40:]), limit)
    )
    for found in read_episodes("otel", lines or ()):
        assert isinstance(found, Refusal | ReadEpisode)
