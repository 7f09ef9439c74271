"""What every memory promises, whatever it stores its episodes in."""

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


class _Stop(Exception):  # noqa: N818 - no error: what breaks an episode off here
    pass


def check_memory(make_memory: Callable[[str], Any]) -> None:
    """Store, search, correct and reopen a few episodes, and compare with what the definitions say.

    Checked: a namespace starts empty, and sees nothing of another; an episode comes back as it was given; `add` with an
    id is idempotent, and refuses other content; returns, similarities, order, threshold and `k` of `search`; `evidence`
    adds up what `search` finds, and counts the steps that were not shown; nothing of a running or an aborted episode is
    found, and an exception aborts; feedback moves returns, supersedes, and is revoked; notes are committed with their
    episode; a choice gives rewards to all that was shown, and is taken back whole; what is refused changes nothing; a
    second handle sees what the first committed, and a reopened one all of it; equal content, times included, has equal
    hashes.

    Args:
        make_memory: opens the store under test, as `Memory.open` does, in the namespace given, with gamma 0.5. Called
            again it opens the same store once more, so it cannot be `":memory:"`. Namespaces are new at every check.

    Raises:
        InputError: the first promise that is broken.
    """
    who = f"memory {name_of(make_memory)}"
    name = f"check-{uuid.uuid4().hex}"
    with make_memory(name) as memory, make_memory(f"{name}-other") as other:
        _check_empty(who, memory)
        _check_stored(who, memory)
        _check_search(who, memory)
        _check_evidence(who, memory)
        _check_running(who, memory)
        _check_refused(who, memory)
        _check_feedback(who, memory)
        _check_notes(who, memory)
        _check_typed_feedback(who, memory)
        _check_shown(who, memory)
        _check_empty(f"{who}, another namespace", other)
        before = memory.verify().hash
        with make_memory(name) as second:
            _check_same(f"{who}, a second handle", second, memory)
            second.add(Episode("buy", [Step("page late", "wait")], "late"))
            require(
                memory.search("page late", 1, 1.0) != [], who, "a commit is seen at the next query", "Read it again."
            )
        other.import_lines(list(memory.export()))
        require(
            other.verify().hash == memory.verify().hash != before, who, "equal content, equal hash", "Hash the content."
        )
        expected = memory.verify().hash, len(memory), memory.search("page cart", 50)
    with make_memory(name) as memory:
        seen = memory.verify().hash, len(memory), memory.search("page cart", 50)
        require(
            seen == expected, who, "what was committed is there when it is opened again", "Commit before returning."
        )


def _check_empty(who: str, memory: Any) -> None:
    empty = (len(memory), memory.search("page cart"), memory.episodes()) == (0, [], [])
    require(empty, f"{who} holds {len(memory)} steps", "a new namespace is empty", "Filter every query by namespace.")


def _check_stored(who: str, memory: Any) -> None:
    for _ in range(2):  # the second time is a no-op
        for episode in _EPISODES:
            given = memory.add(episode)
            require(given == episode.id, f"{who} called {episode.id} {given!r}", "a caller's id is kept", "Return it.")
    require(
        memory.episodes() == list(_EPISODES), who, "episodes come back as given, in order, once", "Store all of it."
    )
    steps = sum(len(episode.steps) for episode in _EPISODES)
    require(len(memory) == steps, f"{who}: len {len(memory)}", f"it counts stored steps ({steps})", "Count them.")
    _refuses(
        who,
        memory,
        EpisodeConflictError,
        lambda: memory.add(Episode("buy", [Step("page cart", "wait")], "e0")),
        "one id names one content",
    )
    _refuses(who, memory, NotFoundError, lambda: memory.get("no such episode"), "an unknown id is not found")


def _expected(memory: Any, state: str, exclude_task: str | None = None) -> list[tuple[float, float, str, int]]:
    """Similarity, return, episode and step of all that can be found: best first, then the later step first."""
    asked = memory.encoder.features(state)
    found = []
    for order, episode in enumerate(_FOUND):
        returns = discounted_returns([step.reward for step in episode.steps], _GAMMA)
        for index, step in enumerate(episode.steps):
            similarity = jaccard(asked, memory.encoder.features(step.state))
            if episode.task != exclude_task:
                found.append((similarity, order, index, float(returns[index]), str(episode.id)))
    ranked = sorted(found, key=lambda row: (-row[0], -row[1], -row[2]))
    return [(similarity, return_, id_, index) for similarity, _, index, return_, id_ in ranked]


def _check_search(who: str, memory: Any) -> None:
    for state in _QUERIES:
        for task in (None, "buy"):
            every = _expected(memory, state, task)
            for k, threshold in ((50, 0.0), (2, 0.0), (50, 0.5), (50, 1.0)):
                seen = [_row(neighbor) for neighbor in memory.search(state, k, threshold, exclude_task=task)]
                wanted = [row for row in every if row[0] >= threshold][:k]
                require(
                    _alike(seen, wanted),
                    f"{who}, search({state!r}, {k}, {threshold}, exclude_task={task!r}) = {seen}",
                    f"the most similar first, then the latest; aborted episodes never: {wanted}",
                    "Search exactly.",
                )


def _row(neighbor: Neighbor) -> tuple[float, float, str, int]:
    seen = neighbor.experience
    return neighbor.similarity, seen.return_, seen.episode_id, seen.step


def _alike(seen: list[tuple[float, float, str, int]], wanted: list[tuple[float, float, str, int]]) -> bool:
    return [(row[0], *row[2:]) for row in seen] == [(row[0], *row[2:]) for row in wanted] and all(
        math.isclose(a[1], b[1], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for a, b in zip(seen, wanted, strict=True)
    )


def _check_evidence(who: str, memory: Any) -> None:
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
                f"{who}, evidence({state!r}, k={k}, unit={unit!r}): {seen}, {sums}",
                f"it adds up what search finds: {dict(counts)}, {dict(totals)}",
                "Count each stored step once, under its normalised action.",
            )


def _check_running(who: str, memory: Any) -> None:
    steps = len(memory)
    with contextlib.suppress(_Stop), memory.episode(task="buy", id="broken") as episode:
        episode.record("page running", "wait", 1.0)
        require(
            memory.search("page running", 1, 1.0) == [] and len(memory) == steps,
            who,
            "nothing of a running episode is found",
            "Commit it when it ends.",
        )
        raise _Stop
    kept = memory.get("broken")
    require(
        kept.ending == "aborted" and len(kept.steps) == 1 and memory.search("page running", 1, 1.0) == [],
        f"{who}: {kept}",
        "an exception aborts: the episode is kept, and never found",
        "Mark it aborted, and leave it out of the index.",
    )


def _check_refused(who: str, memory: Any) -> None:
    for what, call in (
        ("search in a blank state", lambda: memory.search(" ")),
        ("search with k = 0", lambda: memory.search("page", 0)),
        ("search above similarity 1", lambda: memory.search("page", 1, 1.5)),
        ("add something else", lambda: memory.add({"task": "buy"})),
        ("feedback NaN", lambda: memory.feedback("e0", math.nan)),
        ("add one good and one bad", lambda: memory.add_many([Episode("t", [Step("s", "a")], "good"), None])),
    ):
        _refuses(who, memory, InputError, call, f"it is refused: {what}")
    for what, call in (
        ("feedback on no episode", lambda: memory.feedback("no such episode", 1.0)),
        ("feedback on no step", lambda: memory.feedback("e0", 1.0, 2)),
        ("revoke nothing", lambda: memory.revoke("no such event")),
    ):
        _refuses(who, memory, NotFoundError, call, f"it is not found: {what}")


def _refuses(who: str, memory: Any, error: type[SeasonedError], call: Callable[[], object], rule: str) -> None:
    before = memory.verify().hash
    refused = False
    try:
        call()
    except error:
        refused = True
    require(refused, who, f"{rule} ({error.__name__})", "Check before anything happens.")
    require(memory.verify().hash == before, who, f"{rule}, and nothing is written", "Roll back.")


def _check_feedback(who: str, memory: Any) -> None:
    def returns() -> list[float]:
        found = memory.search("page", 50)
        return [n.experience.return_ for i in range(2) for n in found if _row(n)[2:] == ("e0", i)]

    first = memory.feedback("e0", 4.0)  # on the last step, of two: rewards 0.25, 1.0
    steps = [(returns(), [0.25 + 0.5 * 5.0, 5.0], "without a step it lands on the last, and returns follow")]
    second = memory.feedback("e0", 2.0, 1)
    steps.append((returns(), [0.25 + 0.5 * 3.0, 3.0], "the same source and step supersedes"))
    memory.feedback("e0", -1.0, 0, "tests", weight=2.0)
    steps.append((returns(), [0.25 - 2.0 + 0.5 * 3.0, 3.0], "sources add up, by their weights"))
    memory.revoke(second)
    steps.append((returns(), [0.25 - 2.0 + 0.5 * 1.0, 1.0], "what is revoked counts no more"))
    for seen, wanted, rule in steps:
        right = len(seen) == 2 and all(abs(a - b) <= _TOLERANCE for a, b in zip(seen, wanted, strict=True))
        require(right, f"{who}: returns {seen}", f"{rule}: {wanted}", "Derive returns from rewards and feedback.")
    events = [event.id for event in memory.events()]
    require(len(events) == 3 and events[:2] == [first, second], f"{who}: {events}", "events are kept", "Only append.")
    memory.verify()


def _check_notes(who: str, memory: Any) -> None:
    with memory.episode(task="note", id="noted") as episode:
        episode.note("plan", {"text": "wait"})
        episode.record("page noted", "wait", 1.0)
        episode.note("reasoning", {"text": "it is late", "n": [1, None]}, step=0)
        require(memory.notes() == [], who, "nothing of a running episode is found", "Commit its notes with it.")
    own = memory.note("noted", "remark", {"text": "so it was"}, step=0, source="human", author="ann")
    for standing, wanted in (
        (memory.notes(episode_id="noted"), [("plan", None), ("reasoning", 0), ("remark", 0)]),
        (memory.notes(kind="reasoning"), [("reasoning", 0)]),
    ):
        seen = [(note.kind, note.step) for note in standing]
        require(seen == wanted, f"{who}: notes {seen}", f"notes come back in order: {wanted}", "Keep their times.")
    memory.revoke(own)
    seen = [note.body for note in memory.notes(episode_id="noted")]
    wanted_bodies = [{"text": "wait"}, {"text": "it is late", "n": [1, None]}]
    require(seen == wanted_bodies, f"{who}: notes {seen}", "what is revoked is gone, the rest stays", "Mark it.")
    for what, call in (
        ("a note on no episode", lambda: memory.note("no such episode", "plan", {})),
        ("a note on no step", lambda: memory.note("noted", "plan", {}, step=1)),
    ):
        _refuses(who, memory, NotFoundError, call, f"it is not found: {what}")
    _refuses(who, memory, InputError, lambda: memory.note("noted", "plan", {"x": math.nan}), "NaN is refused")


def _check_typed_feedback(who: str, memory: Any) -> None:
    def rewards() -> dict[str, float]:
        return {n.experience.action: n.experience.reward for n in memory.search("page noted", 50, 1.0)}

    choice = Choice(("wait", "go", "stay"), 1)
    for _ in range(2):  # the second call is a no-op
        memory.feedback("noted", choice, step=0, author="ann", weight=2.0, id="choice")
    require(
        rewards() == {"wait": 1.0 - 1.0, "go": 2.0, "stay": -1.0},
        f"{who}: rewards {rewards()}",
        "the chosen answer has +1, each other -1 / (N - 1), times the weight; what was not executed is stored",
        "Store each as an episode of one step.",
    )
    records = memory.feedback_records("noted")
    require(
        len(records) == 1 and records == memory.feedback_records(id="choice"),
        f"{who}: {records}",
        "feedback with the same id and content is stored once",
        "Look the id up first.",
    )
    memory.feedback("noted", Thumbs(up=False), step=0, author="ann")
    memory.feedback("noted", Choice(("wait", "go"), 0), step=0, author="ann")
    require(
        rewards() == {"wait": 1.0 - 1.0 + 1.0, "go": -1.0},
        f"{who}: rewards {rewards()}",
        "the same author and kind supersedes, with all that followed; another kind counts beside it",
        "Revoke the events, and set the episodes aside.",
    )
    for one in memory.feedback_records("noted"):
        memory.revoke(one.id)
    require(rewards() == {"wait": 1.0}, f"{who}: rewards {rewards()}", "revoking takes all of it back", "Revoke all.")
    _refuses(
        who,
        memory,
        NotFoundError,
        lambda: memory.feedback("no such episode", Thumbs(up=True)),
        "feedback on no episode is not found",
    )


def _check_shown(who: str, memory: Any) -> None:
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
                f"{who}, evidence({state!r}, unit={unit!r}, shown_steps=...).unshown: {seen}",
                f"it counts the steps that are none of those: {dict(left)}",
                "Count the neighbours that were not shown.",
            )


def _check_same(who: str, memory: Any, other: Any) -> None:
    same = memory.verify().hash == other.verify().hash and memory.episodes() == other.episodes()
    require(
        same and memory.search("page") == other.search("page"), who, "all handles see the same", "Read what is there."
    )
