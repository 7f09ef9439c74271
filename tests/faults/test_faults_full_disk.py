"""Writes to a full disk: they are rolled back, and the same write succeeds after space is freed."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from faults_content import Content, episode
from faults_operations import OPERATIONS, WORKLOADS, Handle
from faults_rounds import attack_rounds

from seasoned import Memory
from seasoned.errors import StoreError, StoreFullError


def fill_and_write(disk, seed, n_refusals):
    """Fill the disk to a random rest, write until it is full, free space, repeat the write; return the refused ones."""
    draw, path = random.Random(seed), disk.folder / "agent.db"
    handle = Handle(lambda: Memory.open(path, gamma=0.5))
    content, refused = Content(), Counter()
    disk.fill(draw.randrange(300_000))
    for _ in range(25 * n_refusals + 1000):
        name = draw.choice(WORKLOADS["everything"])
        chosen = OPERATIONS[name].choose(draw, handle, content)
        if chosen is None:
            continue
        try:
            result = OPERATIONS[name].do(handle, chosen)
        except StoreError as error:
            assert isinstance(error, StoreFullError), (name, error)
            refused[name] += 1
            handle.memory.verify()
            stored = Content.of(handle.memory)
            if name == "erase" and content.differences(stored):  # it went, but the file could not be written anew
                OPERATIONS[name].follow(content, chosen, None)
                assert not content.differences(stored)
                disk.free()
                handle.memory.compact()
            else:
                assert not content.differences(stored), (name, content.differences(stored)[:3])
                disk.free()
                OPERATIONS[name].follow(content, chosen, OPERATIONS[name].do(handle, chosen))
            handle.memory.verify()
            assert not content.differences(Content.of(handle.memory)), name
            if refused.total() == n_refusals:
                break
            if len(content.episodes) > 150:
                content, number = Content(), refused.total()
                handle.memory.close()
                path.unlink()
                handle = Handle(lambda number=number: Memory.open(disk.folder / f"agent-{number}.db", gamma=0.5))
                path = disk.folder / f"agent-{number}.db"
            disk.fill(draw.randrange(300_000))
        else:
            OPERATIONS[name].follow(content, chosen, result)
    handle.memory.close()
    disk.free()
    with Memory.open(path) as memory:
        memory.verify()
        assert not content.differences(Content.of(memory))
    return refused


def line(refused):
    kinds = ", ".join(f"{n} {name}" for name, n in sorted(refused.items()))
    return f"full disk: {refused.total()} writes refused ({kinds}), each undone, verify clean, each done later"


def test_write_to_a_full_disk_is_rolled_back(disk, report_line):
    refused = fill_and_write(disk, 1, 12)
    report_line(line(refused), rounds=12)
    assert refused.total() == 12


@pytest.mark.slow
def test_many_writes_to_a_full_disk_are_rolled_back(disk, report_line):
    n_rounds = attack_rounds("disks")
    refused = fill_and_write(disk, 2, n_rounds)
    report_line(line(refused), rounds=n_rounds)
    assert refused.total() == n_rounds
    assert len(refused) >= min(6, n_rounds // 10)


def test_write_beyond_the_file_size_limit_is_rolled_back(tmp_path, zygote, report_line):
    """The same without a separate disk: the kernel limits the size of the child's files."""
    counts = zygote.start("faults_children:work_within_limits", str(tmp_path / "agent.db"), 3, 15).answer()
    report_line(
        f"file size limit: {counts['refused']} writes refused, {counts['done']} done, each refused one done later",
        rounds=counts["refused"],
    )
    assert counts["refused"] == 15
    with Memory.open(tmp_path / "agent.db") as memory:
        memory.verify()


def test_recorded_episode_is_committed_after_space_is_freed(disk):
    with Memory.open(disk.folder / "agent.db") as memory:
        memory.add(episode("before"))
        recorder = memory.episode("shopping", id="recorded")
        disk.fill(0)
        with pytest.raises(StoreFullError), recorder:
            for step in episode("recorded").steps:
                recorder.record(step.state + " long" * 20_000, step.action, step.reward)
        assert list(Content.of(memory).episodes) == ["before"]
        disk.free()
        assert recorder.commit() == "recorded"
        assert memory.get("recorded").ending == "terminated"
        assert len(memory.get("recorded").steps) == len(episode("recorded").steps)
        memory.verify()


@pytest.mark.parametrize("read_only", [True, False])
def test_opening_on_a_full_disk_succeeds_or_raises_store_full(disk, read_only):
    with Memory.open(disk.folder / "agent.db") as memory:
        memory.add(episode("before"))
    disk.fill(0)
    try:
        with Memory.open(disk.folder / "agent.db", read_only=read_only) as memory:
            assert memory.verify().episodes == 1
    except StoreError as error:
        # SQLite shares the log between processes through a small file beside it, which needs space too.
        assert isinstance(error, StoreFullError), error


def test_full_disk_allows_reads_and_creates_no_partial_store(disk):
    path, other = disk.folder / "agent.db", disk.folder / "other.db"
    with Memory.open(path) as memory:
        memory.add_many(episode(f"e{n}") for n in range(20))
        expected = memory.verify(), memory.search("page 1", k=5)
        disk.fill(0)
        assert (memory.verify(), memory.search("page 1", k=5)) == expected
        with pytest.raises(StoreFullError):
            Memory.open(other)
    disk.free()
    for name in (path, other):
        with Memory.open(name) as memory:
            memory.add(episode("after"))
            memory.verify()
