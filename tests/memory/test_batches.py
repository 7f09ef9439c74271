"""A batch stores what its episodes would have stored one by one, however it is cut into parts."""

from __future__ import annotations

import random

import pytest
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import EpisodeConflictError
from seasoned.types import EvidenceQuery


def made(n: int) -> list[tuple[Episode, float]]:
    """Episodes that share states, words, actions and final states, near each other and far apart."""
    rng = random.Random(7)

    def state() -> str:
        return " ".join(f"word{rng.randrange(200)}" for _ in range(rng.randint(1, 6)))

    seen = [state() for _ in range(50)]
    episodes = []
    for number in range(n):
        steps = [
            Step(rng.choice(seen) if rng.random() < 0.5 else state(), f"do {rng.randrange(4)}", rng.choice([0.0, 1.0]))
            for _ in range(rng.randint(1, 3))
        ]
        final = rng.choice([None, state(), rng.choice(seen)])
        ending = "aborted" if number % 50 == 49 else "terminated"
        episodes.append((Episode("t", steps, id=f"e{number}", final_state=final, ending=ending), float(number)))
    return episodes


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_large_batch_equals_its_episodes_one_by_one(kind, request):
    episodes = made(1_300)
    url = ":memory:" if kind == "sqlite" else request.getfixturevalue("fresh_url")
    with Memory.open(":memory:") as single, Memory.open(url) as batch:
        for one in episodes:
            assert single.import_episodes([one]) == 1
        assert batch.import_episodes(episodes[:100]) == 100
        # Some are stored already, some are given twice: they count once.
        assert batch.import_episodes([*episodes, *episodes[200:300]]) == 1_200
        assert batch.verify().hash == single.verify().hash
        for state in ("word1 word2 word3", episodes[0][0].steps[0].state):
            ours, theirs = (
                one.evidence(EvidenceQuery(state, k=10, unit="states", threshold=0.0)) for one in (batch, single)
            )
            assert (ours.actions, ours.n_states, ours.spread) == (theirs.actions, theirs.n_states, theirs.spread)
            for name in ("counts", "weights", "totals", "squares"):
                assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_conflict_late_in_a_batch_rolls_all_of_it_back(kind, request):
    episodes = made(1_200)
    url = ":memory:" if kind == "sqlite" else request.getfixturevalue("fresh_url")
    with Memory.open(url) as memory:
        memory.add(Episode("t", [Step("kept", "another", 1.0)], id="e1150"))
        before = memory.verify().hash
        with pytest.raises(EpisodeConflictError):
            memory.import_episodes(episodes)
        assert memory.verify().hash == before
        assert memory.import_episodes(episodes[:1_150]) == 1_150  # what was numbered in vain is numbered anew
        memory.verify()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_texts_erased_by_another_connection_leave_the_cache(kind, tmp_path, request):
    url = tmp_path / "m.db" if kind == "sqlite" else request.getfixturevalue("fresh_url")
    with Memory.open(url) as memory, Memory.open(url) as other:
        episode = Episode("t", [Step("alpha beta", "go", 1.0)], id="e1", subject="ann")
        memory.add(episode)
        other.erase("ann")
        memory.add(Episode("t", [Step("alpha gamma", "go", 1.0), Step("alpha beta", "go", 0.0)], id="e2"))
        assert [step.state for step in memory.get("e2").steps] == ["alpha gamma", "alpha beta"]
        assert len(memory.search("alpha beta", k=5, threshold=0.9)) == 1
        assert memory.verify().hash == other.verify().hash
