"""The agent's own choices: the stored steps that memory did not shift."""

from __future__ import annotations

import bisect
import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from seasoned.protocols import ReadableMemory, StateEncoder
from seasoned.types import ALTERNATIVE, SHOWN, Episode, Note, Step
from seasoned.types.notes import RESPONSE

__all__ = ["OwnChoices", "PlayedMemory", "is_own_choice", "latest_own_choices", "own_choices"]

_SAME = 1e-6
_MAX_BYTES = 1 << 21


@runtime_checkable
class PlayedMemory(Protocol):
    """The methods of a memory that tell the latest own choices: those of a `seasoned.Memory`."""

    @property
    def encoder(self) -> StateEncoder:
        """The encoder of its states."""
        ...

    def __len__(self) -> int: ...

    def episodes(
        self, *, task: str | None = None, last: int | None = None, max_bytes: int | None = None
    ) -> list[Episode]:
        """Return stored episodes in commit order: all, those of a task, or the last few that fit into some bytes."""
        ...

    def notes(self, *, kind: str | None = None, episode_id: str | None = None) -> list[Note]:
        """Return unrevoked notes, in order."""
        ...

    def excluded_ids(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the ids of the excluded episodes and of the excluded feedback events."""
        ...


@dataclass(frozen=True, slots=True)
class OwnChoices:
    """An episode that the agent played, and which of its steps were its own choices.

    Args:
        episode: as stored.
        steps: the positions of these steps, in order.
    """

    episode: Episode
    steps: tuple[int, ...]


def is_own_choice(step: Step) -> bool:
    """Return whether memory did not shift the choice of a step among its candidates.

    It was not shifted if the step has no prior, no propensity, or that of its prior. A choice by argmax has the
    propensity 1: memory did not shift it if the prior has its highest value there (the first of equal ones), since the
    model alone would have taken it too. Counting what memory chose would count its evidence twice.

    Example:
        >>> prior = {"pay": math.log(0.6), "back": math.log(0.4)}
        >>> [is_own_choice(Step("cart", "pay", prior=prior, propensity=p)) for p in (0.6, 0.9, 1.0)]
        [True, False, True]
    """
    if step.prior is None or step.propensity is None:
        return True
    own = step.prior.get(step.action)
    if own is None:
        return False
    by_argmax = step.propensity == 1.0 and max(step.prior, key=step.prior.__getitem__) == step.action
    return by_argmax or abs(math.exp(own) - step.propensity) <= _SAME


def own_choices(memory: ReadableMemory) -> Iterator[OwnChoices]:
    """Yield what the agent did, in commit order, with the steps that were its own choices.

    Left out are aborted and quarantined episodes, and the answers of people (arm `ALTERNATIVE`), which were never
    executed. Episodes that await feedback count: a choice is one before it is judged. A step is no own choice if memory
    shifted it (`is_own_choice`), or if its prompt showed stored steps (`SHOWN`): all steps of that model's response,
    and all of an episode whose plan was made so.

    Example:
        >>> from seasoned import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     with memory.episode("shop") as episode:
        ...         episode.record("cart", "pay")
        ...         episode.note(SHOWN, {"examples": [["e1", 0]]}, 0)
        ...         episode.record("paid", "leave")
        ...     [choices.steps for choices in own_choices(memory)]
        [(1,)]
    """
    return _of_episodes(memory, memory.iter_episodes())


def latest_own_choices(memory: PlayedMemory, last: int, *, within_s: float) -> Iterator[OwnChoices]:
    """Yield the choices of the latest episodes, the latest first: of at most `last`, and of those that time allows.

    Episodes are read anew, twice as many each time, while the next read is likely to fit into the time; then they are
    yielded for as long again. No read takes more than 2 MB of texts: episodes of more than 256 KB are left out, unread.

    Args:
        memory: holds the episodes.
        last: at most so many.
        within_s: seconds for each of the two. The first read, of the latest episode, is made whatever it takes.
    """
    quarantined, _ = memory.excluded_ids()
    episodes = _latest_episodes(memory, last, within_s)
    until = time.monotonic() + within_s
    for episode in reversed(episodes):
        if time.monotonic() > until:
            return
        if _is_played(episode, quarantined):
            notes = memory.notes(episode_id=str(episode.id))
            shown = _shown_steps(
                [note for note in notes if note.kind == SHOWN], [note for note in notes if note.kind == RESPONSE]
            )
            yield _of_episode(episode, shown.get(str(episode.id), frozenset()))


def _latest_episodes(memory: PlayedMemory, last: int, within_s: float) -> list[Episode]:
    began = time.monotonic()
    n = 1
    while True:
        start = time.monotonic()
        episodes = memory.episodes(last=n, max_bytes=_MAX_BYTES)
        now = time.monotonic()
        if n == last or now - began + 2.0 * (now - start) > within_s:
            return episodes
        n = min(2 * n, last)


def _of_episodes(memory: ReadableMemory, episodes: Iterable[Episode]) -> Iterator[OwnChoices]:
    quarantined, _ = memory.excluded_ids()
    notes = memory.notes(kind=SHOWN)
    shown = _shown_steps(notes, memory.notes(kind=RESPONSE) if notes else ())
    nothing: frozenset[int] = frozenset()
    for episode in episodes:
        if _is_played(episode, quarantined):
            yield _of_episode(episode, shown.get(str(episode.id), nothing))


def _is_played(episode: Episode, quarantined: Collection[str]) -> bool:
    return episode.ending != "aborted" and episode.arm != ALTERNATIVE and episode.id not in quarantined


def _of_episode(episode: Episode, shown: Iterable[int] | None) -> OwnChoices:
    """Return the own choices of an episode; `shown` are the steps whose prompts showed stored steps, None all."""
    if shown is None:
        return OwnChoices(episode, ())
    return OwnChoices(
        episode, tuple(i for i, step in enumerate(episode.steps) if i not in shown and is_own_choice(step))
    )


def _shown_steps(shown: Iterable[Note], responses: Iterable[Note]) -> Mapping[str, set[int] | None]:
    """Return the steps chosen after a prompt with stored steps, by episode; None: all of them.

    The note is on the first step of a model's response; a response of several steps has a note on its last one.
    """
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for note in responses:
        if note.step is not None:
            bisect.insort(ends[note.episode_id], note.step)
    found: dict[str, set[int] | None] = {}
    for note in shown:
        steps = found.setdefault(note.episode_id, set())
        if note.step is None or note.body.get("purpose") == "plan":
            found[note.episode_id] = None
        elif steps is not None:
            own = ends[note.episode_id]
            at = bisect.bisect_left(own, note.step)
            steps.update(range(note.step, own[at] + 1) if at < len(own) else (note.step,))
    return found
