"""Which episodes to part with when a namespace must fit a budget: the least valuable first."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from seasoned.checks import check_number
from seasoned.errors import InputError, excerpt
from seasoned.memory.stores.base import Store
from seasoned.memory.stores.sqlite_schema import STEP_BITS
from seasoned.memory.writing.exclusions import answers_on

__all__ = ["Budget", "Pruning", "plan_pruning"]

STEP_BYTES = 250
"""What a step takes beside its texts: its row, its return, its share of evidence and of every index."""

_SHRINKAGE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a namespace may hold at most; None for no limit.

    Args:
        steps: stored steps.
        bytes: of content: each state once, with its feature set, notes, and 250 bytes a step.
        age_s: seconds since an episode was stored.

    Raises:
        InputError: no limit is given, or one is out of range.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add_many(Episode("shop", [Step("cart", "pay", 1.0)], f"e{n}") for n in range(3))
        ...     memory.prune(Budget(steps=2), dry_run=True).episodes
        ('e0',)
    """

    steps: int | None = None
    bytes: int | None = None
    age_s: float | None = None

    def __post_init__(self) -> None:
        if self.steps is None and self.bytes is None and self.age_s is None:
            raise InputError("no budget", "pruning needs a limit", "Give steps, bytes or an age.")
        for name in ("steps", "bytes"):
            limit = getattr(self, name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
                raise InputError(
                    f"{name} = {excerpt(limit)}", "a budget must be a whole number, at least 0", "Correct it."
                )
        if self.age_s is not None and check_number("age_s", self.age_s) < 0:
            raise InputError(f"age_s = {self.age_s}", "an age must be at least 0", "Give seconds.")


@dataclass(frozen=True, slots=True)
class Pruning:
    """What pruning takes away, or took.

    `reasons` counts the episodes: `age` (older than the budget allows), `aborted`, `quarantined`, `value` (least
    valuable). `bytes` are of content; the file shrinks when it is compacted.
    """

    episodes: tuple[str, ...]
    steps: int
    bytes: int
    reasons: dict[str, int]
    steps_before: int
    bytes_before: int
    done: bool
    ordinals: tuple[int, ...] = field(repr=False, default=())


@dataclass(slots=True)
class _Held:
    """An episode under consideration."""

    id: str
    created_at: float
    kind: str
    groups: list[tuple[int, int]] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    bytes: int = 0
    answers: list[int] = field(default_factory=list)
    """What feedback on it has made: it goes with it, since nobody could take it back."""


def plan_pruning(store: Store, namespace_id: int, budget: Budget, *, now: float) -> Pruning:
    """Return what must go, inside one snapshot or transaction of the caller.

    First what is too old; then, until the rest fits, aborted episodes, quarantined ones, and the episode whose steps
    are worth least on average. A step at a distinct state that was visited N times, where its action was taken n times,
    is worth `N / ((n - 1 + kappa) (n + kappa)) * 0.5^(2 age / E)`: how often such a state comes up, times how much the
    step reduces the variance of its action's shrunken mean (kappa = 1), halved each time half of the E episodes have
    come later. So states met once and actions known by many other steps go first, the old before the new. The worth of
    what is left rises as others go, so that the last step that knows a well-visited state's action is kept.

    With an episode go the answers that feedback on it has made: with their feedback gone nobody could take them back.
    """
    held = _load(store, namespace_id)
    sizes = dict(
        store.execute(
            "SELECT state.id, octet_length(text) + octet_length(tokens) FROM state JOIN feature_set "
            "ON feature_set.namespace_id = state.namespace_id AND feature_set.id = set_id "
            "WHERE state.namespace_id = ?",
            (namespace_id,),
        ).fetchall()
    )
    used = Counter(state for one in held.values() for state in one.states)
    steps = steps_before = sum(len(one.groups) for one in held.values())
    n_bytes = bytes_before = sum(sizes[state] for state in used) + sum(one.bytes for one in held.values())
    gone: dict[int, None] = {}
    reasons: Counter[str] = Counter()
    for first, reason in _order(held, budget, now):
        over = (budget.steps is not None and steps > budget.steps) or (
            budget.bytes is not None and n_bytes > budget.bytes
        )
        if not over and reason != "age":
            break
        together = [] if first in gone else [first]
        for ordinal in together:  # it grows
            one = held[ordinal]
            gone[ordinal] = None
            reasons[reason] += 1
            steps -= len(one.groups)
            n_bytes -= one.bytes
            for state in one.states:
                used[state] -= 1
                if not used[state]:
                    n_bytes -= sizes[state]
            together += (answer for answer in one.answers if answer not in gone and answer not in together)
    return Pruning(
        tuple(held[ordinal].id for ordinal in gone),
        steps_before - steps,
        bytes_before - n_bytes,
        dict(reasons),
        steps_before,
        bytes_before,
        done=False,
        ordinals=tuple(gone),
    )


def _load(store: Store, namespace_id: int) -> dict[int, _Held]:
    held = {
        ordinal: _Held(id_, created_at, "aborted" if ending == "aborted" else "value", states=[final] if final else [])
        for ordinal, id_, created_at, ending, final in store.execute(
            "SELECT ordinal, id, created_at, ending, final_state_id FROM episode WHERE namespace_id = ? "
            "AND ordinal >= 0 ORDER BY ordinal",
            (namespace_id,),
        ).fetchall()
    }
    for visit, state_id, set_id, key_id, live in store.execute(
        "SELECT visit, state_id, set_id, key_id, live FROM step "
        "JOIN action ON action.namespace_id = step.namespace_id AND action.id = action_id "
        "WHERE step.namespace_id = ? ORDER BY visit",
        (namespace_id,),
    ).fetchall():
        one = held[visit >> STEP_BITS]
        one.groups.append((set_id, key_id))
        one.bytes += STEP_BYTES
        one.states.append(state_id)
        if not live and one.kind == "value":
            one.kind = "quarantined"
    ordinal_of = {one.id: ordinal for ordinal, one in held.items()}
    for id_, n_bytes in store.execute(
        "SELECT episode_id, sum(octet_length(body)) FROM note WHERE namespace_id = ? GROUP BY episode_id",
        (namespace_id,),
    ).fetchall():
        if id_ in ordinal_of:
            held[ordinal_of[id_]].bytes += int(n_bytes)
    for id_, made in answers_on(store, namespace_id).items():
        if id_ in ordinal_of:
            held[ordinal_of[id_]].answers += (ordinal_of[answer] for answer in made if answer in ordinal_of)
    return held


def _order(held: dict[int, _Held], budget: Budget, now: float) -> Iterator[tuple[int, str]]:
    """Yield episodes in the order in which they should go, each with the reason."""
    left = dict(held)
    if budget.age_s is not None:
        for ordinal in [o for o, one in left.items() if now - one.created_at > budget.age_s]:
            del left[ordinal]
            yield ordinal, "age"
    for kind in ("aborted", "quarantined"):
        for ordinal in [o for o, one in left.items() if one.kind == kind]:
            del left[ordinal]
            yield ordinal, kind
    yield from _least_valuable(left)


def _least_valuable(held: dict[int, _Held]) -> Iterator[tuple[int, str]]:
    demand = Counter(set_id for one in held.values() for set_id, _ in one.groups)
    known = Counter(group for one in held.values() for group in one.groups)
    age = {ordinal: len(held) - 1 - rank for rank, ordinal in enumerate(sorted(held))}
    n_episodes = len(held)

    def worth(ordinal: int) -> float:
        groups = held[ordinal].groups
        value = sum(
            demand[group[0]] / ((known[group] - 1 + _SHRINKAGE) * (known[group] + _SHRINKAGE)) for group in groups
        )
        return float(value / max(len(groups), 1) * 0.5 ** (2 * age[ordinal] / n_episodes))

    queue = [(worth(ordinal), ordinal) for ordinal in held]
    heapq.heapify(queue)
    while queue:
        _, ordinal = heapq.heappop(queue)
        now_worth = worth(ordinal)
        # Worth only rises as others go: what was put in the queue is a lower bound.
        if queue and (now_worth, ordinal) > queue[0]:
            heapq.heappush(queue, (now_worth, ordinal))
            continue
        for group in held[ordinal].groups:
            known[group] -= 1
        yield ordinal, "value"
