"""`check_memory` passes the store that ships, and names the first promise that a broken one breaks."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import EpisodeConflictError, InputError
from seasoned.states import NUMBERS, TokenEncoder
from seasoned.testing import check_memory

COUNT = itertools.count()


def opener(kind, folder, **options):
    """Opens stores of this kind, in one file, by namespace."""
    return lambda namespace: kind.open(folder / "agent.db", namespace=namespace, gamma=0.5, **options)


class Unfiltered(Memory):
    """Every handle reads one namespace."""

    @classmethod
    def open(cls, path, *, namespace, **options):
        return super().open(path, namespace="everyone", **options)


class Volatile(Memory):
    """Keeps nothing when it is closed, and shares nothing."""

    @classmethod
    def open(cls, path, *, namespace, **options):
        return super().open(":memory:", namespace=namespace, **options)


class Renaming(Memory):
    def add(self, episode):
        return super().add(dataclasses.replace(episode, id=f"{episode.id}-{next(COUNT)}"))


class Forgiving(Memory):
    """Keeps quiet where an id is taken."""

    def add(self, episode):
        try:
            return super().add(episode)
        except EpisodeConflictError:
            return episode.id


class Endingless(Memory):
    """Believes that every episode came to its end."""

    def add(self, episode):
        fields = {"ending": "terminated"} if episode.ending == "aborted" and episode.steps else {}
        return super().add(dataclasses.replace(episode, **fields))


class Approximate(Memory):
    """Misses the best neighbour."""

    def search(self, state, k=10, threshold=0.0, **options):
        return super().search(state, k + 1, threshold, **options)[1:]


class Undiscounted(Memory):
    def search(self, state, k=10, threshold=0.0, **options):
        return super().search(state, k, threshold, **{**options, "gamma": 1.0})


class Guardless(Memory):
    """Ignores the leave-one-task-out guard."""

    def search(self, state, k=10, threshold=0.0, *, exclude_task=None, **options):
        return super().search(state, k, threshold, **options)


class Doubling(Memory):
    """Counts every step twice."""

    def evidence(self, query):
        found = super().evidence(query)
        return dataclasses.replace(found, counts=2 * found.counts)


class Lenient(Memory):
    def search(self, state, k=10, threshold=0.0, **options):
        return super().search(state, max(k, 1), threshold, **options)


class Piecewise(Memory):
    """Adds one by one what should be added as a whole."""

    def add_many(self, episodes):
        return [super(Piecewise, self).add_many([episode])[0] for episode in episodes]


class First(Memory):
    """Puts a late reward on the first step."""

    def feedback(self, episode_id, reward, step=None, source="human", **options):
        return super().feedback(episode_id, reward, step or 0, source, **options)


class Crowded(Memory):
    """Nobody supersedes anybody."""

    def feedback(self, episode_id, reward, step=None, source="human", **options):
        return super().feedback(episode_id, reward, step, f"{source}-{next(COUNT)}", **options)


class Stubborn(Memory):
    def revoke(self, event_id):
        if len(event_id) != 32:
            super().revoke(event_id)


class Blind(Memory):
    """Never hashes anything."""

    def verify(self):
        return dataclasses.replace(super().verify(), hash="0")


class Partial(Memory):
    """Exports without the last line."""

    def export(self):
        return list(super().export())[:-1]


@pytest.mark.parametrize("options", [{}, {"encoder": TokenEncoder(masks=[NUMBERS])}], ids=["plain", "masked"])
def test_the_store_that_ships_passes_and_may_be_checked_again(tmp_path, options):
    for _ in range(2):
        assert check_memory(opener(Memory, tmp_path, **options)) is None


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (Unfiltered, "a new namespace is empty"),
        (Volatile, "all handles see the same"),
        (Renaming, "a caller's id is kept"),
        (Forgiving, "one id names one content"),
        (Endingless, "come back as given"),
        (Approximate, "most similar first"),
        (Undiscounted, "most similar first"),
        (Guardless, "most similar first"),
        (Doubling, "adds up what search finds"),
        (Lenient, "it is refused: search with k = 0"),
        (First, "lands on the last"),
        (Crowded, "supersedes"),
        (Stubborn, "what is revoked counts no more"),
        (Blind, "equal content, equal hash"),
        (Partial, "the header announces"),
    ],
)
def test_a_broken_store_is_named(tmp_path, kind, rule):
    with pytest.raises(InputError, match=rule) as caught:
        check_memory(opener(kind, tmp_path))
    assert caught.value.seen and caught.value.rule and caught.value.next_step


def test_a_store_that_adds_half_of_a_batch_is_named(tmp_path):
    with pytest.raises(InputError, match="nothing is written"):
        check_memory(opener(Piecewise, tmp_path))


def test_the_store_is_left_usable(tmp_path):
    with Memory.open(tmp_path / "agent.db", namespace="shop") as memory:
        memory.add(Episode("t", [Step("page", "click", 1.0)], id="mine"))
        before = memory.verify().hash
        check_memory(opener(Memory, tmp_path))
        assert memory.verify().hash == before
