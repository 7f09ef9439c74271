"""Episodes that fit into a number of bytes, on both stores."""

from postgres_server import postgres  # noqa: F401

from seasoned import Episode, Memory, Step


def test_latest_episodes_within_some_bytes(place):
    with Memory.open(place, namespace="sizes") as memory:
        for number in range(8):
            prior = {"pay": -0.5, "back": -1.0} if number % 2 else None
            memory.add(Episode("desk", [Step(f"{number} " + "x" * 900, "pay", 0.0, prior)], f"d{number}"))
        memory.add(Episode("desk", [Step("y" * 600, "pay"), Step("z" * 600, "pay")], "long"))
        found = [one.id for one in memory.episodes(last=9, max_bytes=8 * 1000)]
        assert found == [f"d{number}" for number in range(1, 8)]  # the long one counts as 1,000
        assert found == [one.id for one in memory.episodes(task="desk", max_bytes=8 * 1000)]
        assert [one.id for one in memory.episodes(last=2, max_bytes=8 * 1000)] == ["d7"]
        assert memory.episodes(last=9, max_bytes=1) == memory.episodes(task="shop", max_bytes=8000) == []
        assert memory.episodes(last=2, max_bytes=8 * 1300)[1] == memory.get("long")
