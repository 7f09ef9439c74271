"""Reader of the options that have an outcome, and of what changed since the last read. Inside one snapshot."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from seasoned.actions import action_key
from seasoned.errors import InputError
from seasoned.memory.reading.judged_episodes import judged_after
from seasoned.memory.stores.base import Store, Version
from seasoned.memory.stores.sqlite_schema import MAX_STEPS, STEP_BITS
from seasoned.memory.values.corruption import damaged, decode, decoding
from seasoned.memory.values.derived_ids import feedback_of_event
from seasoned.types import Label
from seasoned.types.evidence import Floats
from seasoned.types.notes import RESPONSE, STEP_TASK
from seasoned.types.rated_options import RatedOption, RatedOptions

__all__ = ["read_rated_options"]

_EPISODES_AT_ONCE = 4096
_SCANNED_AFTER = 0.02
_FEW = 2000

# A step has an outcome of its own if it is the only one of its episode, or if feedback is on it.
_ROWS = (
    "SELECT step.visit, episode.id, episode.steps, task, model, reward, step.feedback, propensity, prior_id, "
    "action.text FROM step "
    "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
    f"JOIN episode ON episode.namespace_id = step.namespace_id AND ordinal = step.visit >> {STEP_BITS} "
    "WHERE step.namespace_id = ? AND step.live AND prior_id IS NOT NULL AND step.visit >= ? AND step.visit < ? "
    "AND (episode.steps = 1 OR EXISTS (SELECT 1 FROM feedback AS event INDEXED BY feedback_by_visit "
    "WHERE event.namespace_id = step.namespace_id AND event.visit = step.visit AND event.live)) ORDER BY step.visit"
)


class _Position(NamedTuple):
    """How far was read: the version, the last episode and event, and the state of the last scan for revocations."""

    version: Version
    epoch: int
    episodes: int
    events: int
    scanned_at: int
    revoked_at: float


class _Counters(NamedTuple):
    epoch: int
    episodes: int
    events: int


class _Row(NamedTuple):
    visit: int
    episode_id: str
    n_steps: int
    task: str
    model: str | None
    reward: float
    feedback: float
    propensity: float | None
    prior_id: int
    action: str


class _PriorRow(NamedTuple):
    id: int
    logprobs: str


class _LabelRow(NamedTuple):
    visit: int
    event_id: str
    weight: float


class _LabelNote(NamedTuple):
    id: str
    body: str


class _StepNote(NamedTuple):
    episode_id: str
    step: int | None
    body: str


class _Revoked(NamedTuple):
    visit: int
    revoked_at: float


class _Prior(NamedTuple):
    logprobs: Floats
    names: tuple[str, ...]

    def position(self, name: str) -> int | None:
        """Return the position of an option; another spelling of it counts too."""
        if name in self.names:
            return self.names.index(name)
        keys = [action_key(one) for one in self.names]
        key = action_key(name)
        return keys.index(key) if key in keys else None


def read_rated_options(store: Store, namespace_id: int, since: object) -> RatedOptions:
    """Return the rated options that are new or changed since a position; all of them where rows were removed.

    New episodes and those with new feedback are read. Revoked feedback has no number of its own: it is found by a scan
    of the events, at once in a small memory, and when episodes and events have grown by 2 percent in a larger one.
    """
    version = store.version(namespace_id)
    before = since if isinstance(since, _Position) else None
    if before is not None and before.version.mark == version.mark:
        return RatedOptions(False, position=before)
    rows = store.execute("SELECT epoch, episodes, events FROM namespace WHERE id = ?", (namespace_id,)).fetchall()
    found = decode(store.path, rows, _Counters)
    if not found:
        raise damaged(store.path, f"no namespace {namespace_id}")
    now = found[0]
    if before is not None and (before.version.generation, before.epoch) != (version.generation, now.epoch):
        before = None
    read_to = 0 if before is None else before.episodes
    touched = dict.fromkeys(range(read_to + 1, now.episodes + 1))
    scanned_at, revoked_at = (-1, -1.0) if before is None else (before.scanned_at, before.revoked_at)
    if before is not None and now.events > before.events:
        last_visit = (read_to + 1 << STEP_BITS) - 1
        touched |= dict.fromkeys(judged_after(store, namespace_id, before.events, last_visit))
    total = now.episodes + now.events
    if total - scanned_at > _SCANNED_AFTER * total or total < _FEW:
        sql = "SELECT visit, revoked_at FROM feedback WHERE namespace_id = ? AND revoked_at >= ?"
        revoked = decode(store.path, store.execute(sql, (namespace_id, revoked_at)).fetchall(), _Revoked)
        touched |= {row.visit >> STEP_BITS: None for row in revoked if row.visit >> STEP_BITS <= read_to}
        scanned_at, revoked_at = total, max((row.revoked_at for row in revoked), default=revoked_at)
    options = _of_episodes(store, namespace_id, sorted(touched))
    position = _Position(version, now.epoch, now.episodes, now.events, scanned_at, revoked_at)
    return RatedOptions(before is None, options, position)


def _of_episodes(store: Store, namespace_id: int, ordinals: Sequence[int]) -> dict[int, tuple[RatedOption, ...]]:
    """Return the rated options of each of these episodes."""
    found: dict[int, tuple[RatedOption, ...]] = {}
    for first, end in _spans(ordinals):
        rows = decode(
            store.path, store.execute(_ROWS, (namespace_id, first << STEP_BITS, end << STEP_BITS)).fetchall(), _Row
        )
        priors = _priors(store, namespace_id, sorted({row.prior_id for row in rows}))
        labels = _labels(store, namespace_id, first << STEP_BITS, end << STEP_BITS)
        tasks = _step_tasks(store, namespace_id, sorted({row.episode_id for row in rows if row.n_steps > 1}))
        found.update(dict.fromkeys(range(first, end), ()))
        for row in rows:
            prior = priors[row.prior_id]
            if len(prior.logprobs) < 2:
                continue
            label = labels.get(row.visit)
            right = None if label is None else prior.position(label)
            executed = prior.position(row.action) if right is None else right
            if executed is None:  # an action that memory alone proposed
                continue
            known = (row.reward + row.feedback, row.propensity) if right is None else (None, None)
            task = tasks.get((row.episode_id, row.visit & MAX_STEPS - 1), row.task)
            found[row.visit >> STEP_BITS] += (RatedOption(task, row.model, prior.logprobs, executed, *known),)
    return found


def _spans(ordinals: Iterable[int]) -> Iterable[tuple[int, int]]:
    """Yield consecutive numbers as (first, end)."""
    first = end = -1
    for ordinal in ordinals:
        if ordinal == end and end - first < _EPISODES_AT_ONCE:
            end += 1
            continue
        if end > first:
            yield first, end
        first, end = ordinal, ordinal + 1
    if end > first:
        yield first, end


def _priors(store: Store, namespace_id: int, ids: Sequence[int]) -> dict[int, _Prior]:
    sql = "SELECT id, logprobs FROM prior WHERE namespace_id = ? AND id IN {values}"
    priors = {}
    for row in decode(store.path, store.execute_in(sql, (namespace_id,), ids), _PriorRow):
        with decoding(store.path):
            logprobs = json.loads(row.logprobs)
            priors[row.id] = _Prior(np.array(list(logprobs.values()), dtype=np.float64), tuple(logprobs))
    if len(priors) < len(ids):
        raise damaged(store.path, f"{len(ids) - len(priors)} priors that are not stored")
    return priors


def _labels(store: Store, namespace_id: int, first: int, end: int) -> dict[int, str]:
    """Return the right option that the live labels on each of these steps name: the one of the most weight.

    Labels on one decision are no independent outcomes, so they count as one; of equal weights the latest one.
    """
    rows = store.execute(
        "SELECT visit, id, weight FROM feedback WHERE namespace_id = ? AND visit >= ? AND visit < ? AND kind = ? "
        "AND live AND weight <> 0 ORDER BY seq",
        (namespace_id, first, end, Label.kind),
    ).fetchall()
    labels = [(row.visit, feedback_of_event(row.event_id), row.weight) for row in decode(store.path, rows, _LabelRow)]
    sql = "SELECT id, body FROM note WHERE namespace_id = ? AND kind = ? AND id IN {values}"
    ids = sorted({id_ for _, id_, _ in labels})
    names: dict[str, str] = {}
    for note in decode(store.path, store.execute_in(sql, (namespace_id, Label.kind), ids), _LabelNote):
        with decoding(store.path):
            right = json.loads(note.body)["right"]
            if not isinstance(right, str):
                raise InputError(f"right = {right!r}", "a label is a text", "")
            names[note.id] = right
    named: defaultdict[int, list[tuple[str, float]]] = defaultdict(list)
    for visit, id_, weight in labels:
        if id_ in names:
            named[visit].append((names[id_], weight))
    return {visit: on_step[0][0] if len(on_step) == 1 else _heaviest(on_step) for visit, on_step in named.items()}


def _step_tasks(store: Store, namespace_id: int, episode_ids: Sequence[str]) -> dict[tuple[str, int], str]:
    """Return the tasks of steps whose task is another than their episode's, as notes on their responses say."""
    rows = store.execute_in(
        "SELECT episode_id, step, body FROM note INDEXED BY note_by_episode "
        "WHERE namespace_id = ? AND kind = ? AND revoked_at IS NULL AND body <> '{}' AND episode_id IN {values}",
        (namespace_id, RESPONSE),
        episode_ids,
    )
    tasks = {}
    for row in decode(store.path, rows, _StepNote):
        with decoding(store.path):
            task = json.loads(row.body).get(STEP_TASK)
        if isinstance(task, str) and row.step is not None:
            tasks[row.episode_id, row.step] = task
    return tasks


def _heaviest(labels: Iterable[tuple[str, float]]) -> str:
    """Return the text of the most weight, of several such the last one; another spelling is the same text."""
    weights: dict[str, tuple[float, str]] = {}
    for text, weight in labels:
        key = action_key(text)
        weights[key] = weights.pop(key, (0.0, ""))[0] + weight, text  # the last one is at the end
    return max(reversed(weights.values()), key=lambda one: one[0])[1]
