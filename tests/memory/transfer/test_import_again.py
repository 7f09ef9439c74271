"""A run that an earlier version of an importer stored with other texts of its states is not stored again."""

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import EpisodeConflictError


def run(state, action="find", id_="openai:1"):
    return Episode("task", [Step(state, action, 1.0)], id_, state), None


def test_run_with_other_state_texts_is_left_as_stored():
    with Memory.open(":memory:") as memory:
        assert memory.import_episodes([run("shipped")]) == 1
        assert memory.import_episodes([run("tool find:\nshipped"), run("x", id_="openai:2")]) == 1
        assert [episode.steps[0].state for episode in memory.episodes()] == ["shipped", "x"]


def test_other_run_with_a_stored_id_is_refused():
    with Memory.open(":memory:") as memory:
        memory.import_episodes([run("shipped")])
        with pytest.raises(EpisodeConflictError):
            memory.import_episodes([run("shipped", action="cancel"), run("y", id_="openai:2")])
        assert len(memory) == 1
