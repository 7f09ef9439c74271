"""The record of a run: resumption, repair after a kill, and refusal of foreign or damaged records."""

from __future__ import annotations

import dataclasses
import importlib.util
import json

import numpy
import pytest

import seasoned
from seasoned.agents import EpisodeResult, RunRecord, provenance, read_code
from seasoned.errors import ConfigError, InputError
from seasoned.protocols import Usage

SETTINGS = {"env": "grid:S.G?max_steps=100", "seed": 3, "memory": None, "calibrate": True}


def result(score, cost=0.5):
    usage = Usage(2, 1, 30, 4, 0.25, cost)
    return EpisodeResult(score, 4.0, 7, "terminated", 1, 0.125, 3, 0.01, 0.5, usage)


def filled(folder, scores=(1.0, 0.0, 3.0), **options):
    record = RunRecord(folder, SETTINGS)
    for number, score in enumerate(scores):
        record.add(number, result(score, **options))
    return record


def saved(folder):
    return json.loads((folder / "run.json").read_text())


def test_record_has_settings_versions_and_results(tmp_path):
    folder = tmp_path / "deep" / "run"
    record = filled(folder)
    begun = saved(folder)
    assert begun["settings"] == SETTINGS
    assert begun["versions"]["seasoned"] == seasoned.__version__
    assert begun["versions"]["numpy"] == numpy.__version__
    extras = {
        name for name in ("openai", "litellm", "gymnasium", "textworld", "numba") if importlib.util.find_spec(name)
    }
    assert {"seasoned", "numpy", "click", *extras} <= set(begun["versions"])
    assert "pytest" not in begun["versions"]
    assert begun["python"] and begun["machine"] and "revision" in begun
    assert begun["started_at"] > 0 and "scores" not in begun and "finished_at" not in begun
    record.finish()
    done = saved(folder)
    assert done["scores"] == record.scores == [1.0, 0.0, 3.0]
    assert done["usage"] == dataclasses.asdict(Usage(6, 3, 90, 12, 0.75, 1.5))
    assert done["finished_at"] >= done["started_at"]
    assert {key: done[key] for key in begun} == begun


def test_record_draws_an_id_once(tmp_path):
    records = [RunRecord(tmp_path / name, SETTINGS) for name in "ab"]
    assert records[0].run_id != records[1].run_id
    for record in records:
        assert saved(record.folder)["run_id"] == record.run_id == RunRecord(record.folder, SETTINGS).run_id
    assert RunRecord.is_in(tmp_path / "a") and not RunRecord.is_in(tmp_path)


def test_record_stores_code_hashes(tmp_path):
    record = RunRecord(tmp_path, SETTINGS, {"my_shop": "aa"})
    record.begin()
    assert read_code(tmp_path) == {("my_shop", "aa")}
    RunRecord(tmp_path, SETTINGS, {"my_shop": "bb"}).begin()  # nothing was played by the first
    assert saved(tmp_path)["code"] == {"my_shop": "bb"}
    assert read_code(tmp_path) == {("my_shop", "bb")}
    RunRecord(tmp_path, SETTINGS, {"my_shop": "bb"}).add(0, result(1.0))
    RunRecord(tmp_path, SETTINGS, {"my_shop": "cc"}).begin()
    assert read_code(tmp_path) == {("my_shop", "bb"), ("my_shop", "cc")}
    assert read_code(tmp_path / "nowhere") == frozenset()


def test_the_revision_is_a_commit_or_unknown():
    revision = provenance()["revision"]
    assert revision is None or (
        len(revision.rstrip("+")) == 40 and set(revision.rstrip("+")) <= set("0123456789abcdef")
    )


def test_an_unknown_price_makes_the_sum_unknown(tmp_path):
    record = filled(tmp_path, (1.0,))
    record.add(1, result(2.0, cost=None))
    record.add(2, result(2.0))
    record.finish()
    assert record.usage.cost_usd is None and record.usage.calls == 6
    assert saved(tmp_path)["usage"]["cost_usd"] is None
    assert RunRecord(tmp_path, SETTINGS).usage == record.usage


def test_reopened_record_has_its_results(tmp_path):
    record = filled(tmp_path)
    again = RunRecord(tmp_path, SETTINGS)
    assert again.results == record.results == {0: result(1.0), 1: result(0.0), 2: result(3.0)}
    assert saved(tmp_path)["started_at"] > 0
    again.add(3, result(4.0))
    assert RunRecord(tmp_path, SETTINGS).scores == [1.0, 0.0, 3.0, 4.0]


def test_scores_are_in_the_order_of_the_episodes(tmp_path):
    record = RunRecord(tmp_path, SETTINGS)
    for number in (2, 0, 1):
        record.add(number, result(float(number)))
    assert record.scores == RunRecord(tmp_path, SETTINGS).scores == [0.0, 1.0, 2.0]


def test_incomplete_last_line_is_dropped(tmp_path):
    filled(tmp_path)
    file = tmp_path / "episodes.jsonl"
    whole = file.read_bytes()
    begin = whole.index(b"\n", whole.index(b"\n") + 1) + 1
    assert whole.endswith(b"\n") and whole.count(b"\n") == 3
    for cut in range(begin, len(whole)):
        file.write_bytes(whole[:cut])
        record = RunRecord(tmp_path, SETTINGS)
        assert record.scores == [1.0, 0.0]
        assert file.read_bytes() == whole[:begin]
    record.add(2, result(3.0))
    assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "changed", [{"seed": 4}, {"memory": "a.db"}, {"calibrate": False}, {"more": 1}, {"env": "grid:SG"}]
)
def test_other_settings_are_refused_without_changes(tmp_path, changed):
    filled(tmp_path)
    (tmp_path / "episodes.jsonl").open("ab").write(b'{"torn')
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(ConfigError) as caught:
        RunRecord(tmp_path, {**SETTINGS, **changed})
    assert caught.value.seen and caught.value.rule and caught.value.next_step
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


DAMAGE = [
    ("run.json", b""),
    ("run.json", b'{"settings": {'),
    ("run.json", b"[]"),
    ("run.json", b"null"),
    ("run.json", b"{}"),
    ("run.json", json.dumps({"settings": SETTINGS}).encode()),
    ("run.json", json.dumps({"settings": SETTINGS, "run_id": ""}).encode()),
    ("run.json", json.dumps({"settings": SETTINGS, "run_id": 7}).encode()),
    ("run.json", b"\xff\xfe"),
    ("episodes.jsonl", b"not json\n"),
    ("episodes.jsonl", b"[1, 2]\n"),
    ("episodes.jsonl", b'"text"\n'),
    ("episodes.jsonl", b"{}\n"),
    ("episodes.jsonl", b'{"episode": 0, "score": 1.0}\n'),
    ("episodes.jsonl", b'{"episode": 0, "usage": 3}\n'),
    ("episodes.jsonl", b"\xff\n"),
]


@pytest.mark.parametrize(("name", "content"), DAMAGE)
def test_damaged_record_is_refused_without_changes(tmp_path, name, content):
    filled(tmp_path).finish()
    (tmp_path / name).write_bytes(content)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(InputError) as caught:
        RunRecord(tmp_path, SETTINGS)
    assert str(tmp_path) in caught.value.seen and caught.value.rule and caught.value.next_step
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match="folder") as caught:
        RunRecord(tmp_path / "taken", SETTINGS)
    assert caught.value.next_step
    assert (tmp_path / "taken").read_text() == "mine"
