"""The conformance check of memories, for any store."""

from __future__ import annotations

import contextlib
import math
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from seasoned.core import discounted_returns, jaccard
from seasoned.errors import EpisodeConflictError, InputError, NotFoundError, SeasonedError
from seasoned.testing.requirement import name_of, require
from seasoned.types import Choice, Episode, EvidenceQuery, Neighbor, Step, Thumbs, normalize_action

__all__ = ["check_memory"]

_GAMMA = 0.5
_TOLERANCE = 1e-9
_EPISODES = (
    Episode("buy", [Step("page cart", "pay", 0.25), Step("page pay", "ok", 1.0, {"ok": -0.1}, 0.9)], "e0", "page done"),
    Episode("buy", [Step("page cart", "Go  Back", -0.5), Step("page shop", "pay", 0.125)], "e1", ending="truncated"),
    Episode("find", [Step("page shop items", "go back"), Step("Käufer 買い物", "pay", 2.0)], "e2", arm="a", model="m"),
    Episode("buy", [Step("page cart", "pay", 100.0)], "e3", "page error", "aborted", subject="p"),
)
_FOUND = [e for e in _EPISODES if e.ending != "aborted"]
_QUERIES = ("page cart", "page", "shop items", "買い物", "nothing alike")


class _Stop(Exception):  # noqa: N818 - not an error: it aborts an episode of this check
    pass


def check_memory(make_memory: Callable[[str], Any]) -> None:
    """Store, search, correct and reopen a few episodes, and compare the results with the definitions.

    Checked: a namespace starts empty, and is isolated from others; episodes are returned as given; `add` with an id is
    idempotent, and refuses other content; returns, similarities, order, threshold and `k` of `search`; `evidence` sums
    the results of `search`, and counts the steps outside the prompt; running and aborted episodes are not found, and an
    exception aborts an episode; feedback changes returns, supersedes older feedback, and can be revoked; notes are
    committed with their episode; a choice rewards all of its options, and is revoked as a whole; refused calls change
    nothing; a second handle sees the commits of the first, and a reopened one all of them; equal content, times
    included, has equal hashes.

    Args:
        make_memory: opens the store under test, as `Memory.open` does, in the namespace given, with gamma 0.5. Called
            again it opens the same store, so it cannot be `":memory:"`. The check uses new namespaces.

    Raises:
        InputError: the first violation.
    """
    subject = f"memory {name_of(make_memory)}"
    name = f"check-{uuid.uuid4().hex}"
    with make_memory(name) as memory, make_memory(f"{name}-other") as other:
        _check_empty(subject, memory)
        _check_stored(subject, memory)
        _check_search(subject, memory)
        _check_evidence(subject, memory)
        _check_running(subject, memory)
        _check_refused(subject, memory)
        _check_feedback(subject, memory)
        _check_notes(subject, memory)
        _check_typed_feedback(subject, memory)
        _check_unshown(subject, memory)
        _check_empty(f"{subject}, another namespace", other)
        before = memory.verify().hash
        with make_memory(name) as second:
            _check_same(f"{subject}, a second handle", second, memory)
            second.add(Episode("buy", [Step("page late", "wait")], "late"))
            require(
                memory.search("page late", 1, 1.0) != [],
                subject,
                "the next query sees a commit",
                "Read the store again.",
            )
        other.import_lines(list(memory.export()))
        require(
            other.verify().hash == memory.verify().hash != before,
            subject,
            "equal content has equal hashes",
            "Hash the content.",
        )
        expected = memory.verify().hash, len(memory), memory.search("page cart", 50)
    with make_memory(name) as memory:
        seen = memory.verify().hash, len(memory), memory.search("page cart", 50)
        require(seen == expected, subject, "a reopened memory has all commits", "Commit before returning.")


def _check_empty(subject: str, memory: Any) -> None:
    empty = (len(memory), memory.search("page cart"), memory.episodes()) == (0, [], [])
    require(empty, f"{subject} has {len(memory)} steps", "a new namespace is empty", "Filter every query by namespace.")


def _check_stored(subject: str, memory: Any) -> None:
    for _ in range(2):  # the second time is a no-op
        for episode in _EPISODES:
            returned_id = memory.add(episode)
            require(
                returned_id == episode.id,
                f"{subject} named {episode.id} {returned_id!r}",
                "add returns the given id",
                "Return it.",
            )
    require(
        memory.episodes() == list(_EPISODES),
        subject,
        "episodes are returned as given, in order, once",
        "Store all fields.",
    )
    steps = sum(len(episode.steps) for episode in _EPISODES)
    require(
        len(memory) == steps,
        f"{subject}: len {len(memory)}",
        f"len is the number of stored steps ({steps})",
        "Count them.",
    )
    _refuses(
        subject,
        memory,
        EpisodeConflictError,
        lambda: memory.add(Episode("buy", [Step("page cart", "wait")], "e0")),
        "one id names one content",
    )
    _refuses(subject, memory, NotFoundError, lambda: memory.get("no such episode"), "an unknown id is not found")


def _expected(memory: Any, state: str, exclude_task: str | None = None) -> list[tuple[float, float, str, int]]:
    """Return similarity, return, episode and step of all searchable steps: most similar first, then the latest."""
    query = memory.encoder.features(state)
    found = []
    for order, episode in enumerate(_FOUND):
        returns = discounted_returns([step.reward for step in episode.steps], _GAMMA)
        for index, step in enumerate(episode.steps):
            similarity = jaccard(query, memory.encoder.features(step.state))
            if episode.task != exclude_task:
                found.append((similarity, order, index, float(returns[index]), str(episode.id)))
    ranked = sorted(found, key=lambda row: (-row[0], -row[1], -row[2]))
    return [(similarity, return_, id_, index) for similarity, _, index, return_, id_ in ranked]


def _check_search(subject: str, memory: Any) -> None:
    for state in _QUERIES:
        for task in (None, "buy"):
            every = _expected(memory, state, task)
            for k, threshold in ((50, 0.0), (2, 0.0), (50, 0.5), (50, 1.0)):
                seen = [_row(neighbor) for neighbor in memory.search(state, k, threshold, exclude_task=task)]
                expected = [row for row in every if row[0] >= threshold][:k]
                require(
                    _equal_rows(seen, expected),
                    f"{subject}, search({state!r}, {k}, {threshold}, exclude_task={task!r}) = {seen}",
                    f"the most similar first, then the latest; aborted episodes never: {expected}",
                    "Search exactly.",
                )


def _row(neighbor: Neighbor) -> tuple[float, float, str, int]:
    seen = neighbor.experience
    return neighbor.similarity, seen.return_, seen.episode_id, seen.step


def _equal_rows(seen: list[tuple[float, float, str, int]], expected: list[tuple[float, float, str, int]]) -> bool:
    return [(row[0], *row[2:]) for row in seen] == [(row[0], *row[2:]) for row in expected] and all(
        math.isclose(a[1], b[1], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for a, b in zip(seen, expected, strict=True)
    )


def _check_evidence(subject: str, memory: Any) -> None:
    for state in _QUERIES:
        queries = (
            EvidenceQuery(state, k=3, unit="steps", threshold=0.3),
            EvidenceQuery(state, k=50, unit="steps", threshold=0.3),
            EvidenceQuery(state, k=50, unit="states", threshold=0.3),
        )
        for query in queries:
            unit, k = query.unit, query.k
            evidence = memory.evidence(query)
            counts: Counter[str] = Counter()
            totals: Counter[str] = Counter()
            for neighbor in memory.search(state, k, 0.3):
                counts[normalize_action(neighbor.experience.action)] += 1
                totals[normalize_action(neighbor.experience.action)] += neighbor.experience.return_
            keys = [normalize_action(action) for action in evidence.actions]
            seen = dict(zip(keys, evidence.counts.tolist(), strict=True))
            sums = dict(zip(keys, evidence.totals.tolist(), strict=True))
            close = all(abs(sums[key] - totals[key]) <= _TOLERANCE for key in totals if key in sums)
            require(
                seen == dict(counts) and len(keys) == len(set(keys)) and close,
                f"{subject}, evidence({state!r}, k={k}, unit={unit!r}): {seen}, {sums}",
                f"it sums the results of search: {dict(counts)}, {dict(totals)}",
                "Count each stored step once, under its normalised action.",
            )


def _check_running(subject: str, memory: Any) -> None:
    steps = len(memory)
    with contextlib.suppress(_Stop), memory.episode(task="buy", id="broken") as episode:
        episode.record("page running", "wait", 1.0)
        require(
            memory.search("page running", 1, 1.0) == [] and len(memory) == steps,
            subject,
            "a running episode is not found",
            "Commit it at its end.",
        )
        raise _Stop
    stored = memory.get("broken")
    require(
        stored.ending == "aborted" and len(stored.steps) == 1 and memory.search("page running", 1, 1.0) == [],
        f"{subject}: {stored}",
        "an exception aborts: the episode is stored, and not found",
        "Mark it aborted, and leave it out of the index.",
    )


def _check_refused(subject: str, memory: Any) -> None:
    for case, call in (
        ("search in a blank state", lambda: memory.search(" ")),
        ("search with k = 0", lambda: memory.search("page", 0)),
        ("search above similarity 1", lambda: memory.search("page", 1, 1.5)),
        ("add a dict", lambda: memory.add({"task": "buy"})),
        ("feedback NaN", lambda: memory.feedback("e0", math.nan)),
        ("add one good and one bad", lambda: memory.add_many([Episode("t", [Step("s", "a")], "good"), None])),
    ):
        _refuses(subject, memory, InputError, call, f"it is refused: {case}")
    for case, call in (
        ("feedback on no episode", lambda: memory.feedback("no such episode", 1.0)),
        ("feedback on no step", lambda: memory.feedback("e0", 1.0, 2)),
        ("revoke nothing", lambda: memory.revoke("no such event")),
    ):
        _refuses(subject, memory, NotFoundError, call, f"it is not found: {case}")


def _refuses(subject: str, memory: Any, error: type[SeasonedError], call: Callable[[], object], rule: str) -> None:
    before = memory.verify().hash
    refused = False
    try:
        call()
    except error:
        refused = True
    require(refused, subject, f"{rule} ({error.__name__})", "Check before any change.")
    require(memory.verify().hash == before, subject, f"{rule}, and nothing is written", "Roll back.")


def _check_feedback(subject: str, memory: Any) -> None:
    def returns() -> list[float]:
        neighbors = memory.search("page", 50)
        return [n.experience.return_ for i in range(2) for n in neighbors if _row(n)[2:] == ("e0", i)]

    first = memory.feedback("e0", 4.0)  # on the last step, of two: rewards 0.25, 1.0
    steps = [(returns(), [0.25 + 0.5 * 5.0, 5.0], "feedback without a step is on the last step, and changes returns")]
    second = memory.feedback("e0", 2.0, 1)
    steps.append((returns(), [0.25 + 0.5 * 3.0, 3.0], "feedback with the same source and step supersedes"))
    memory.feedback("e0", -1.0, 0, "tests", weight=2.0)
    steps.append((returns(), [0.25 - 2.0 + 0.5 * 3.0, 3.0], "feedback of several sources is summed by weight"))
    memory.revoke(second)
    steps.append((returns(), [0.25 - 2.0 + 0.5 * 1.0, 1.0], "revoked feedback does not count"))
    for seen, expected, rule in steps:
        right = len(seen) == 2 and all(abs(a - b) <= _TOLERANCE for a, b in zip(seen, expected, strict=True))
        require(right, f"{subject}: returns {seen}", f"{rule}: {expected}", "Derive returns from rewards and feedback.")
    events = [event.id for event in memory.events()]
    require(
        len(events) == 3 and events[:2] == [first, second],
        f"{subject}: {events}",
        "events are append-only",
        "Keep all events.",
    )
    memory.verify()


def _check_notes(subject: str, memory: Any) -> None:
    with memory.episode(task="note", id="noted") as episode:
        episode.note("plan", {"text": "wait"})
        episode.record("page noted", "wait", 1.0)
        episode.note("reasoning", {"text": "it is late", "n": [1, None]}, step=0)
        require(
            memory.notes() == [], subject, "notes of a running episode are not found", "Commit them with the episode."
        )
    own = memory.note("noted", "remark", {"text": "so it was"}, step=0, source="human", author="ann")
    for notes, expected in (
        (memory.notes(episode_id="noted"), [("plan", None), ("reasoning", 0), ("remark", 0)]),
        (memory.notes(kind="reasoning"), [("reasoning", 0)]),
    ):
        seen = [(note.kind, note.step) for note in notes]
        require(
            seen == expected,
            f"{subject}: notes {seen}",
            f"notes are returned in order: {expected}",
            "Store their times.",
        )
    memory.revoke(own)
    seen = [note.body for note in memory.notes(episode_id="noted")]
    expected_bodies = [{"text": "wait"}, {"text": "it is late", "n": [1, None]}]
    require(
        seen == expected_bodies,
        f"{subject}: notes {seen}",
        "a revoked note is not returned, the others are",
        "Mark it as revoked.",
    )
    for case, call in (
        ("a note on no episode", lambda: memory.note("no such episode", "plan", {})),
        ("a note on no step", lambda: memory.note("noted", "plan", {}, step=1)),
    ):
        _refuses(subject, memory, NotFoundError, call, f"it is not found: {case}")
    _refuses(subject, memory, InputError, lambda: memory.note("noted", "plan", {"x": math.nan}), "NaN is refused")


def _check_typed_feedback(subject: str, memory: Any) -> None:
    def rewards() -> dict[str, float]:
        return {n.experience.action: n.experience.reward for n in memory.search("page noted", 50, 1.0)}

    choice = Choice(("wait", "go", "stay"), 1)
    for _ in range(2):  # the second call is a no-op
        memory.feedback("noted", choice, step=0, author="ann", weight=2.0, id="choice")
    require(
        rewards() == {"wait": 1.0 - 1.0, "go": 2.0, "stay": -1.0},
        f"{subject}: rewards {rewards()}",
        "the chosen answer has +1, each other -1 / (N - 1), times the weight; answers that were not executed are "
        "stored",
        "Store each as an episode of one step.",
    )
    records = memory.feedback_records("noted")
    require(
        len(records) == 1 and records == memory.feedback_records(id="choice"),
        f"{subject}: {records}",
        "feedback with the same id and content is stored once",
        "Look up the id first.",
    )
    memory.feedback("noted", Thumbs(up=False), step=0, author="ann")
    memory.feedback("noted", Choice(("wait", "go"), 0), step=0, author="ann")
    require(
        rewards() == {"wait": 1.0 - 1.0 + 1.0, "go": -1.0},
        f"{subject}: rewards {rewards()}",
        "the same author and kind supersedes the older feedback with its episodes; other kinds count too",
        "Revoke the events, and exclude the episodes.",
    )
    for record in memory.feedback_records("noted"):
        memory.revoke(record.id)
    require(
        rewards() == {"wait": 1.0},
        f"{subject}: rewards {rewards()}",
        "revoking removes its rewards and episodes",
        "Revoke all events.",
    )
    _refuses(
        subject,
        memory,
        NotFoundError,
        lambda: memory.feedback("no such episode", Thumbs(up=True)),
        "feedback on no episode is not found",
    )


def _check_unshown(subject: str, memory: Any) -> None:
    for state in _QUERIES:
        every = memory.search(state, 50, 0.3)
        shown = {_row(neighbor)[2:] for neighbor in every[::2]} | {("nobody's", 0)}
        left = Counter(normalize_action(n.experience.action) for n in every if _row(n)[2:] not in shown)
        for unit in ("steps", "states"):
            evidence = memory.evidence(EvidenceQuery(state, k=50, unit=unit, threshold=0.3, shown_steps=shown))
            keys = [normalize_action(action) for action in evidence.actions]
            seen = dict(zip(keys, evidence.unshown.tolist(), strict=True))
            require(
                seen == {key: left[key] for key in keys},
                f"{subject}, evidence({state!r}, unit={unit!r}, shown_steps=...).unshown: {seen}",
                f"it counts the other steps: {dict(left)}",
                "Count the neighbours outside shown_steps.",
            )


def _check_same(subject: str, memory: Any, other: Any) -> None:
    same = memory.verify().hash == other.verify().hash and memory.episodes() == other.episodes()
    require(
        same and memory.search("page") == other.search("page"),
        subject,
        "all handles have the same content",
        "Read the store again.",
    )
