"""`check_memory` passes `Memory`, and names the first violation of a faulty one."""

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
    """Return a function that opens memories of this kind in one file, by namespace."""
    return lambda namespace: kind.open(folder / "agent.db", namespace=namespace, gamma=0.5, **options)


class Unfiltered(Memory):
    """A memory that ignores the namespace."""

    @classmethod
    def open(cls, path, *, namespace, **options):
        return super().open(path, namespace="everyone", **options)


class Volatile(Memory):
    """A memory that stores nothing on disk."""

    @classmethod
    def open(cls, path, *, namespace, **options):
        return super().open(":memory:", namespace=namespace, **options)


class Renaming(Memory):
    def add(self, episode):
        return super().add(dataclasses.replace(episode, id=f"{episode.id}-{next(COUNT)}"))


class Forgiving(Memory):
    """A memory that ignores an id conflict."""

    def add(self, episode):
        try:
            return super().add(episode)
        except EpisodeConflictError:
            return episode.id


class Endingless(Memory):
    """A memory that stores aborted episodes as terminated."""

    def add(self, episode):
        fields = {"ending": "terminated"} if episode.ending == "aborted" and episode.steps else {}
        return super().add(dataclasses.replace(episode, **fields))


class Approximate(Memory):
    """A memory that misses the best neighbour."""

    def search(self, state, k=10, threshold=0.0, **options):
        return super().search(state, k + 1, threshold, **options)[1:]


class Undiscounted(Memory):
    def search(self, state, k=10, threshold=0.0, **options):
        return super().search(state, k, threshold, **{**options, "gamma": 1.0})


class Guardless(Memory):
    """A memory that ignores the leave-one-task-out guard."""

    def search(self, state, k=10, threshold=0.0, *, exclude_task=None, **options):
        return super().search(state, k, threshold, **options)


class Doubling(Memory):
    """A memory that counts every step twice."""

    def evidence(self, query):
        evidence = super().evidence(query)
        return dataclasses.replace(evidence, counts=2 * evidence.counts)


class Lenient(Memory):
    def search(self, state, k=10, threshold=0.0, **options):
        return super().search(state, max(k, 1), threshold, **options)


class Piecewise(Memory):
    """A memory that adds a batch one by one."""

    def add_many(self, episodes):
        return [super(Piecewise, self).add_many([episode])[0] for episode in episodes]


class First(Memory):
    """A memory that puts a late reward on the first step."""

    def feedback(self, episode_id, reward, step=None, source="human", **options):
        return super().feedback(episode_id, reward, step or 0, source, **options)


class Crowded(Memory):
    """A memory in which no feedback supersedes."""

    def feedback(self, episode_id, reward, step=None, source="human", **options):
        return super().feedback(episode_id, reward, step, f"{source}-{next(COUNT)}", **options)


class Stubborn(Memory):
    def revoke(self, event_id):
        if len(event_id) != 32:
            super().revoke(event_id)


class Blind(Memory):
    """A memory with a constant hash."""

    def verify(self):
        return dataclasses.replace(super().verify(), hash="0")


class Partial(Memory):
    """A memory that exports without the last line."""

    def export(self):
        return list(super().export())[:-1]


@pytest.mark.parametrize("options", [{}, {"encoder": TokenEncoder(masks=[NUMBERS])}], ids=["plain", "masked"])
def test_memory_passes_repeated_checks(tmp_path, options):
    for _ in range(2):
        assert check_memory(opener(Memory, tmp_path, **options)) is None


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (Unfiltered, "a new namespace is empty"),
        (Volatile, "all handles have the same content"),
        (Renaming, "add returns the given id"),
        (Forgiving, "one id names one content"),
        (Endingless, "returned as given"),
        (Approximate, "most similar first"),
        (Undiscounted, "most similar first"),
        (Guardless, "most similar first"),
        (Doubling, "sums the results of search"),
        (Lenient, "it is refused: search with k = 0"),
        (First, "is on the last step"),
        (Crowded, "supersedes"),
        (Stubborn, "revoked feedback does not count"),
        (Blind, "equal content has equal hashes"),
        (Partial, "the header announces"),
    ],
)
def test_faulty_memory_is_refused(tmp_path, kind, rule):
    with pytest.raises(InputError, match=rule) as caught:
        check_memory(opener(kind, tmp_path))
    assert caught.value.seen and caught.value.rule and caught.value.next_step


def test_memory_that_adds_half_of_a_batch_is_refused(tmp_path):
    with pytest.raises(InputError, match="nothing is written"):
        check_memory(opener(Piecewise, tmp_path))


def test_checked_store_is_left_usable(tmp_path):
    with Memory.open(tmp_path / "agent.db", namespace="shop") as memory:
        memory.add(Episode("t", [Step("page", "click", 1.0)], id="mine"))
        before = memory.verify().hash
        check_memory(opener(Memory, tmp_path))
        assert memory.verify().hash == before
