"""A clock that goes backwards, jumps or stands still: the order follows the commits, and all content counts."""

from __future__ import annotations

import json
import math

import pytest

from seasoned import Budget, Episode, Memory, Selection, Step
from seasoned.types import EvidenceQuery

CLOCKS = {
    "backwards": lambda n: 2e9 - 1000.0 * n,
    "before 1970": lambda n: -1e6 - n,
    "standing still": lambda n: 1.7e9,
    "to and fro": lambda n: 1.7e9 + (-1) ** n * 86400.0 * n,
    "far jumps": lambda n: [0.0, 1e12, -1e12, 5e-324][n % 4],
}


def one(n):
    return Episode("t", [Step("the same page", f"go {n}", float(n)), Step(f"page {n}", "stop", 1.0)], id=f"e{n}")


def check_feedback(memory, expected):
    """Check that the last unrevoked feedback of each source counts, whatever its time."""
    for (episode_id, step), reward in expected.items():
        [rewarded] = [
            x.experience.reward
            for x in memory.search("the same page", k=1000)
            if (x.experience.episode_id, x.experience.step) == (episode_id, step)
        ]
        assert rewarded == pytest.approx(reward, abs=1e-12)


def use_memory_under(path: str, clock: str) -> dict[str, object]:
    """In a child: every operation that reads the time, under a broken clock."""
    import time

    ticks = iter(range(10**6))
    time.time = lambda: float(CLOCKS[clock](next(ticks)))
    with Memory.open(path, gamma=0.5) as memory:
        for n in range(12):
            memory.add(one(n))
            memory.verify()
        assert [e.id for e in memory.episodes()] == [f"e{n}" for n in range(12)]
        neighbors = memory.search("the same page", k=5, threshold=1.0)
        assert [x.experience.episode_id for x in neighbors] == ["e11", "e10", "e9", "e8", "e7"], (
            "the later commit first"
        )
        first = memory.feedback("e3", 10.0, 0)
        memory.feedback("e3", 20.0, 0)  # supersedes it, though its time is earlier
        check_feedback(memory, {("e3", 0): 23.0})
        memory.revoke(first)  # superseded already: nothing changes
        check_feedback(memory, {("e3", 0): 23.0})
        last = memory.feedback("e3", 30.0, 0)
        check_feedback(memory, {("e3", 0): 33.0})
        memory.revoke(last)
        check_feedback(memory, {("e3", 0): 3.0})  # what was superseded does not come back
        memory.verify()
        aside = memory.quarantine(Selection(episode="e5"), "doubts")
        memory.release(aside)
        memory.release(aside)
        assert len(memory.search("the same page", k=100)) == 24
        evidence = memory.evidence(EvidenceQuery("the same page", k=1, unit="states", threshold=1.0, decay=0.5))
        weights = dict(zip(evidence.actions, evidence.weights.tolist(), strict=True))
        assert weights["go 11"] == 1.0
        assert weights["go 9"] == pytest.approx(0.25), "age is counted in episodes, not in seconds"
        memory.verify()
        pruned = memory.prune(Budget(steps=20))
        assert pruned.steps == 4
        memory.prune(Budget(age_s=1e15))
        verified = memory.verify()
        lines = list(memory.export())
    with Memory.open(":memory:") as copy:
        copy.import_lines(lines)
        assert copy.verify().hash == verified.hash
    return {"hash": verified.hash, "episodes": verified.episodes}


@pytest.mark.parametrize("clock", CLOCKS)
def test_memory_is_correct_under_a_broken_clock(tmp_path, zygote, clock):
    result = zygote.start("test_faults_clock:use_memory_under", str(tmp_path / "agent.db"), clock).answer()
    with Memory.open(tmp_path / "agent.db") as memory:  # whose clock is right again
        assert memory.verify().hash == result["hash"]
        memory.add(Episode("t", [Step("the same page", "now", 1.0)], id="now"))
        memory.feedback("now", 1.0)
        assert memory.search("the same page", k=1)[0].experience.episode_id == "now"
        assert memory.episodes()[-1].id == "now"
        assert memory.verify().episodes == result["episodes"] + 1


@pytest.mark.parametrize("clock", CLOCKS)
def test_imported_times_do_not_change_the_order(tmp_path, clock):
    def step(s):
        return {"state": s.state, "action": s.action, "reward": s.reward}

    lines = [
        {"id": e.id, "task": e.task, "steps": [step(s) for s in e.steps], "created_at": CLOCKS[clock](n)}
        for n, e in ((n, one(n)) for n in range(10))
    ]
    feedback_lines = [
        {
            "type": "feedback",
            "id": f"f{n}",
            "episode_id": "e4",
            "step": 0,
            "reward": float(n),
            "weight": 1.0,
            "source": "human",
            "author": "ann",
            "created_at": CLOCKS[clock](n),
        }
        for n in range(3)
    ]
    with Memory.open(tmp_path / "agent.db", gamma=0.5) as memory:
        memory.import_lines(json.dumps(line) for line in lines)
        assert memory.import_lines(json.dumps(line) for line in feedback_lines) == (0, 3)
        assert [e.id for e in memory.episodes()] == [f"e{n}" for n in range(10)]
        verified = memory.verify()
        assert memory.get("e4").steps[0].reward == 4.0
        check_feedback(memory, {("e4", 0): 6.0})  # the last line superseded the others
        events = {e.id: e for e in memory.events()}
        assert [events[f"f{n}"].revoked_at is None for n in range(3)] == [False, False, True]
        assert math.isfinite(events["f0"].revoked_at)
        memory.revoke("f2")
        check_feedback(memory, {("e4", 0): 4.0})
        assert memory.verify().episodes == verified.episodes
        again = list(memory.export())
    with Memory.open(":memory:") as copy:
        copy.import_lines(again)
        with Memory.open(tmp_path / "agent.db") as memory:
            assert copy.verify().hash == memory.verify().hash
