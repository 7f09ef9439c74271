"""Bad input is refused before anything happens: the error says the value, the rule and the next step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError, NotFoundError, SeasonedError, StoreError
from seasoned.types import EvidenceQuery

TEN_MB = "word " * 2_000_000


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        opened.add(Episode("t", [Step("x y", "a", 1.0)], id="e1"))
        yield opened


def refuses(memory, call, kind=InputError):
    before = memory.verify()
    with pytest.raises(kind) as caught:
        call()
    for sentence in (caught.value.seen, caught.value.rule, caught.value.next_step):
        assert sentence.strip()
        assert len(sentence) < 1000
    assert memory.verify() == before


BAD_TEXTS = ["", "  \n\t", "\ud800", "ok \udfff", None, 3, True, b"bytes", ["x"], 1.5]
BAD_NUMBERS = [math.nan, math.inf, -math.inf, True, "0.5", None, [0.5], 0.5j]


@pytest.mark.parametrize("state", [*BAD_TEXTS, TEN_MB], ids=lambda s: ascii(s)[:12])
def test_invalid_states_are_refused(memory, state):
    refuses(memory, lambda: memory.search(state))
    refuses(memory, lambda: memory.evidence(EvidenceQuery(state, k=1, unit="states", threshold=0.0)))
    refuses(memory, lambda: memory.add(Episode("t", [Step("ok", "a"), Step(state, "a")])))
    refuses(memory, lambda: memory.add(Episode("t", [Step("ok", state)])))
    if state is not None:
        refuses(memory, lambda: memory.add(Episode("t", [Step("ok", "a")], final_state=state)))


def test_the_size_limit_counts_bytes_and_can_be_raised():
    with Memory.open(":memory:", max_text_bytes=10) as memory:
        memory.add(Episode("t", [Step("0123456789", "a")]))
        refuses(memory, lambda: memory.add(Episode("t", [Step("0123456789a", "a")])))
        refuses(memory, lambda: memory.search("éééééé"))
        assert memory.search("ééééé", threshold=1.0) == []
    with Memory.open(":memory:", max_text_bytes=20_000_000) as memory:
        memory.add(Episode("t", [Step(TEN_MB[:5_000_000], "a")]))
        assert memory.search(TEN_MB[:3_000_000], k=1)[0].similarity == 1.0


def test_arguments_of_another_type_are_refused(memory, tmp_path):
    for max_chars in (0, -1, "z", 1.5, True):
        refuses(memory, lambda max_chars=max_chars: memory.search("x", max_chars=max_chars))
    for lines in (1, None):
        refuses(memory, lambda lines=lines: memory.import_lines(lines))
    refuses(memory, lambda: Memory.open(tmp_path / "new.db", redact=1))
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("reward", [*BAD_NUMBERS, 1e101, -1e101, 10**400, np.True_, np.float64("nan")], ids=ascii)
def test_invalid_rewards_are_refused(memory, reward):
    refuses(memory, lambda: memory.add(Episode("t", [Step("s", "a", reward)])))
    refuses(memory, lambda: memory.feedback("e1", reward))


@pytest.mark.parametrize("k", [0, -1, True, False, 1.0, math.nan, "3", None, [1]], ids=ascii)
def test_invalid_k_is_refused(memory, k):
    refuses(memory, lambda: memory.search("x", k=k))
    for unit in ("states", "steps"):
        refuses(memory, lambda unit=unit: memory.evidence(EvidenceQuery("x", k=k, unit=unit, threshold=0.0)))
        refuses(
            memory,
            lambda unit=unit: memory.evidence(EvidenceQuery("x", k=k, unit=unit, threshold=0.0, exclude_task="t")),
        )


@pytest.mark.parametrize("k", [10**6, 2**63, 2**70, np.int64(3)], ids=ascii)
def test_a_large_or_numpy_k_is_accepted(memory, k):
    assert len(memory.search("x", k=k)) == 1
    assert memory.search("x", k=k, exclude_task="t") == []
    for unit in ("states", "steps"):
        assert memory.evidence(EvidenceQuery("x", k=k, unit=unit, threshold=0.0)).n_steps == 1


@pytest.mark.parametrize("threshold", [*BAD_NUMBERS, -0.01, 1.01, -1, 2], ids=ascii)
def test_invalid_threshold_is_refused(memory, threshold):
    refuses(memory, lambda: memory.search("x", threshold=threshold))
    refuses(memory, lambda: memory.evidence(EvidenceQuery("x", k=1, unit="states", threshold=threshold)))


@pytest.mark.parametrize("gamma", [math.nan, math.inf, True, "0.5", [0.5], -0.01, 1.01, -1, 2], ids=ascii)
def test_invalid_gamma_is_refused(memory, gamma, tmp_path):
    refuses(memory, lambda: memory.search("x", gamma=gamma))
    refuses(memory, lambda: memory.evidence(EvidenceQuery("x", k=1, unit="states", threshold=0.0, gamma=gamma)))
    with pytest.raises(InputError):
        Memory.open(tmp_path / "m.db", gamma=gamma)
    assert not (tmp_path / "m.db").exists()


@pytest.mark.parametrize("power", [*BAD_NUMBERS, -0.1], ids=ascii)
def test_invalid_similarity_power_is_refused(memory, power):
    refuses(
        memory, lambda: memory.evidence(EvidenceQuery("x", k=1, unit="states", threshold=0.0, similarity_power=power))
    )


@pytest.mark.parametrize("decay", [*BAD_NUMBERS, 0.0, -0.5, 1.5], ids=ascii)
def test_invalid_decay_is_refused(memory, decay):
    refuses(memory, lambda: memory.evidence(EvidenceQuery("x", k=1, unit="states", threshold=0.0, decay=decay)))


@pytest.mark.parametrize("unit", ["state", "", None, 1])
def test_invalid_unit_is_refused(memory, unit):
    refuses(memory, lambda: memory.evidence(EvidenceQuery("x", k=1, unit=unit, threshold=0.0)))


@pytest.mark.parametrize("task", ["\ud800", 3, True, ["t"], "", b"t"], ids=ascii)
def test_invalid_tasks_are_refused(memory, task):
    refuses(memory, lambda: memory.episode(task=task))
    refuses(memory, lambda: memory.add(Episode(task, [Step("s", "a")])))
    refuses(memory, lambda: memory.search("x", exclude_task=task))
    refuses(memory, lambda: memory.evidence(EvidenceQuery("x", k=1, unit="states", threshold=0.0, exclude_task=task)))
    refuses(memory, lambda: memory.episodes(task=task))


@pytest.mark.parametrize("episode_id", ["nobody", "", "\ud800", None, 3, ["e1"], b"e1"], ids=ascii)
def test_invalid_episode_ids_are_refused(memory, episode_id):
    refuses(memory, lambda: memory.get(episode_id), (NotFoundError, InputError))


@pytest.mark.parametrize("last", [-1, True, 1.5, "2", 2**70])
def test_invalid_last_is_refused(memory, last):
    if last == 2**70:
        assert len(memory.episodes(last=last)) == 1
    else:
        refuses(memory, lambda: memory.episodes(last=last))


@pytest.mark.parametrize("item", [None, "episode", {"task": "t", "steps": []}, Step("s", "a"), 3], ids=ascii)
def test_values_other_than_episodes_are_refused(memory, item):
    refuses(memory, lambda: memory.add(item))


@pytest.mark.parametrize("decision", [None, 3, b"x", "", "\ud800", ["a"]], ids=ascii)
def test_values_other_than_decisions_are_refused(memory, decision):
    recorder = memory.episode(task="t")
    refuses(memory, lambda: recorder.record("s", decision))
    assert len(recorder) == 0


@pytest.mark.parametrize("namespace", BAD_TEXTS, ids=ascii)
def test_invalid_namespaces_are_refused(namespace, tmp_path):
    with pytest.raises(InputError):
        Memory.open(tmp_path / "m.db", namespace=namespace)
    assert not (tmp_path / "m.db").exists()


def test_unusable_paths_are_refused(tmp_path):
    for path, kind in (
        (tmp_path / "no" / "folder" / "m.db", SeasonedError),
        ("postgresql://host.invalid/db", StoreError),
        ("", SeasonedError),
        ("a\0b", InputError),
        (None, InputError),
        (3, InputError),
    ):
        with pytest.raises(kind) as caught:
            Memory.open(path)
        assert caught.value.next_step
    with pytest.raises(NotFoundError):
        Memory.open(tmp_path / "absent.db", create=False)
    with pytest.raises(NotFoundError):
        Memory.open(tmp_path / "absent.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_memory_refuses_every_call():
    memory = Memory.open(":memory:")
    memory.add(Episode("t", [Step("x", "a")], id="e1"))
    memory.search("x")
    memory.close()
    memory.close()
    calls = (
        lambda: memory.search("x"),
        lambda: memory.add(Episode("t", [Step("x", "a")])),
        memory.stats,
        memory.verify,
        lambda: len(memory),
        lambda: memory.get("e1"),
        memory.episodes,
        memory.events,
        lambda: list(memory.export()),
        lambda: memory.feedback("e1", 1.0),
        lambda: memory.import_lines([]),
        lambda: memory.add_many([]),
        lambda: memory.evidence(EvidenceQuery("x", k=1, unit="states", threshold=0.0)),
        lambda: memory.revoke("x"),
        lambda: memory.episode("t"),
    )
    for call in calls:
        with pytest.raises(StoreError) as caught:
            call()
        assert "closed" in caught.value.seen
        assert caught.value.next_step == "Open it again."


@pytest.mark.parametrize("size", [0, -1, True, 1.0, "x", None, math.nan], ids=ascii)
def test_bad_size_limits_are_refused(tmp_path, size):
    with pytest.raises(InputError, match="max_text_bytes") as caught:
        Memory.open(tmp_path / "m.db", max_text_bytes=size)
    assert caught.value.rule
    assert caught.value.next_step
    assert not (tmp_path / "m.db").exists()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_a_numpy_threshold_is_accepted(memory, kind):
    assert len(memory.search("x y", threshold=kind(1))) == 1
    assert memory.search("x", threshold=kind(1)) == []
    for unit in ("states", "steps"):
        assert memory.evidence(EvidenceQuery("x", k=1, unit=unit, threshold=kind(0))).n_steps == 1
    for bad in (np.float32("nan"), kind(2), kind(-1)):
        refuses(memory, lambda bad=bad: memory.search("x", threshold=bad))


def test_feedback_on_an_episode_without_steps_is_refused(memory):
    memory.add(Episode("t", [], id="none", ending="aborted"))
    for step in (None, 0):
        refuses(memory, lambda step=step: memory.feedback("none", 1.0, step), NotFoundError)
        with pytest.raises(NotFoundError, match="'none' has no steps"):
            memory.feedback("none", 1.0, step)
