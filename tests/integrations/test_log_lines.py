"""Results of tau2 and logs of inspect_ai are read run by run, and give what the whole file gives."""

from __future__ import annotations

import copy
import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import INSPECT, TAU2

from seasoned.integrations import ReadEpisode, Refusal, read_episodes
from seasoned.integrations.json_input import Document, FileLine, documents
from seasoned.integrations.list_lines import document_lines
from seasoned.integrations.log_lines import begins_log

MIB = 1024 * 1024
RUNS = {"tau2": (TAU2, "simulations"), "inspect": (INSPECT, "samples")}


def log(name, n_runs, text=""):
    whole, key = RUNS[name]
    runs = []
    for number in range(n_runs):
        run = copy.deepcopy(whole[key][0])
        run["id"] = f"run {number}" if name == "tau2" else number
        run.pop("uuid", None)
        run["messages"][0]["content"] = f"{run['messages'][0]['content']} {text}"
        runs.append(run)
    return {**whole, key: runs, "more": {"a": ["]}", None]}}


def read(data):
    found = list(read_episodes("auto", document_lines(io.BytesIO(data))))
    return [one for one in found if isinstance(one, ReadEpisode)], [str(o) for o in found if isinstance(o, Refusal)]


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("name", RUNS)
def test_episodes_are_those_of_the_whole_log(name, indent):
    whole = log(name, 6, "x" * 250_000 if indent is None else "x")
    whole[RUNS[name][1]][2] = {"messages": 7}
    data = json.dumps(whole, indent=indent).encode()
    assert begins_log(data)
    assert len(list(document_lines(io.BytesIO(data)))) == 6
    episodes, refused = read(data + b"\n" + json.dumps(log(name, 2)).encode() + b"\n")
    expected = list(read_episodes("auto", [json.dumps(whole).encode()]))
    assert [one.episode for one in episodes[:5]] == [one.episode for one in expected if isinstance(one, ReadEpisode)]
    assert (len(episodes), len(refused)) == (7, 1)
    assert f"{RUNS[name][1][:-1]} 2: " in refused[0]


@pytest.mark.parametrize("indent", [None, 4])
def test_work_is_linear_where_the_header_names_all_samples(indent):
    sizes = []
    for n_runs in (100, 200):
        whole = log("inspect", n_runs, "x" * (MIB // 100))
        dataset = {"samples": n_runs, "sample_ids": [f"{number:0>200}" for number in range(n_runs)]}
        whole["eval"] = {**whole["eval"], "created": "2026-01-02T03:04:05+00:00", "solver": "é", "dataset": dataset}
        data = json.dumps(whole, indent=indent).encode()
        lines = list(document_lines(io.BytesIO(data)))
        assert len(lines) == n_runs
        episodes = [one.episode for one in read_episodes("auto", lines)]
        assert episodes == [one.episode for one in read_episodes("auto", [json.dumps(whole).encode()])]
        sizes.append(sum(len(line.data) for line in lines) / len(data))
    assert sizes[1] < 1.05 * sizes[0] < 1.5


@pytest.mark.parametrize("name", RUNS)
def test_a_log_on_one_line_is_not_held(name):
    data = json.dumps(log(name, 120, "x" * 100_000)).encode()
    file = io.BytesIO(data)
    tracemalloc.start()
    n_read = sum(isinstance(one, Document) for one in documents(document_lines(file)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (n_read, len(data) > 12_000_000, peak < 6_000_000) == (120, True, True)


@pytest.mark.parametrize("cut", [":[", ","])
@pytest.mark.parametrize("name", RUNS)
def test_a_log_is_not_held_though_its_first_line_is_long(name, cut):
    whole = log(name, 60, "x" * 100_000)
    whole[name := {"tau2": "info", "inspect": "eval"}[name]]["tasks"] = ["t" * 10_000]
    data = json.dumps(whole, separators=(",", ":")).encode()
    at = data.index(cut.encode(), 12_000) + len(cut)
    file = io.BytesIO(data[:at] + b"\n" + data[at:] + b"\n" + data[:12_000])
    tracemalloc.start()
    n_read = sum(isinstance(one, Document) for one in documents(document_lines(file)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (n_read, peak < 6_000_000) == (60, True)


@pytest.mark.parametrize("name", RUNS)
def test_a_first_line_that_is_cut_off_is_refused_alone(name):
    data = json.dumps(log(name, 3)).encode()
    episodes, refused = read(data[:-30] + b"\n" + data + b"\n")
    assert (len(episodes), len(refused)) == (3, 1)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(("fault", "reason"), [("long", "at most 65536 may be"), ("digits", "not")])
@pytest.mark.parametrize("name", RUNS)
def test_a_header_that_cannot_be_read_is_refused_once(name, fault, reason, indent):
    whole = log(name, 30, "x" * 50_000)
    header = whole[{"tau2": "info", "inspect": "eval"}[name]]
    key = {"tau2": "agent_info", "inspect": "solver"}[name]
    header[key] = "x" * 100_000 if fault == "long" else "7777"
    data = json.dumps(whole, indent=indent).encode()
    if fault == "digits":
        data = data.replace(b'"7777"', b"7" * 5000)  # more than Python reads as a number
    episodes, [refused] = read(data)
    assert not episodes
    assert reason in refused


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("order", ["list first", "no list"])
def test_a_log_in_another_form_is_read_as_a_whole(name, order):
    key = RUNS[name][1]
    whole = log(name, 3, "x" * 500_000)
    runs = whole.pop(key)
    data = json.dumps({key: runs, **whole} if order == "list first" else {**whole, "more": "x" * 2 * MIB}).encode()
    assert list(document_lines(io.BytesIO(data + b"\n{}"))) == [FileLine(1, data), FileLine(2, b"{}")]


def test_a_line_without_runs_beyond_the_limit_is_refused_alone():
    whole = {**log("tau2", 0), "more": "x" * 2 * MIB}
    del whole["simulations"]
    for end in (b"\n{}", b""):
        found = list(document_lines(io.BytesIO(json.dumps(whole).encode() + end), max_line_bytes=MIB + 100_000))
        assert isinstance(found[0], Refusal)
        assert found[1:] == ([FileLine(2, b"{}")] if end else [])


@given(st.binary(min_size=1, max_size=3), st.integers(0, 3000), st.integers(0, 40), st.sampled_from([None, 1]))
def test_any_damage_to_a_log_is_refused(noise, place, length, indent):
    data = json.dumps(log("tau2", 3), indent=indent).encode()
    at = place % len(data)
    damaged = data[:at] + noise + data[at + length :]
    lines = list(document_lines(io.BytesIO(damaged), max_line_bytes=MIB))
    assert all(isinstance(one, FileLine | Refusal) for one in lines)
    for one in read_episodes("auto", lines):
        assert isinstance(one, ReadEpisode | Refusal)
