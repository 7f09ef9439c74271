"""Read-only files, folders and disks: reads succeed, and writes are refused."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from faults_content import Content, episode

from seasoned import Memory
from seasoned.errors import StoreError

NOBODY = 65534
WRITES = {
    "add": lambda memory: memory.add(episode("new")),
    "add_many": lambda memory: memory.add_many([episode("new")]),
    "feedback": lambda memory: memory.feedback("e0", 1.0),
    "revoke": lambda memory: memory.revoke(memory.events()[0].id),
    "import_lines": lambda memory: memory.import_lines([]),
    "compact": lambda memory: memory.compact(),
    "record_copy": lambda memory: memory.record_copy("backup", "/elsewhere"),
    "erase": lambda memory: memory.erase(episode("e0").subject),
}


def make(folder: Path, closed: bool) -> dict[str, object]:
    """Make a store in a folder; unless `closed`, one whose last process died, with its log beside it."""
    folder.mkdir(exist_ok=True)
    path, source = folder / "agent.db", folder.parent / "source.db"
    memory = Memory.open(source, gamma=0.5)
    memory.add_many(episode(f"e{n}") for n in range(8))
    memory.feedback("e0", 0.5)
    memory.search("page 1")
    if closed:
        memory.close()
    for suffix in ("", "-wal", "-shm"):
        if Path(f"{source}{suffix}").exists():
            shutil.copy(f"{source}{suffix}", f"{path}{suffix}")
    memory.close()
    with Memory.open(source, read_only=True) as memory:
        return {"hash": memory.verify().hash, "found": [x.experience.episode_id for x in memory.search("page 1", k=5)]}


def read_and_write(path: str, user: int | None) -> dict[str, object]:
    """In a child: read the whole content, and try every write."""
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    result: dict[str, object] = {"read": None, "refused": None, "writes": {}}
    try:
        with Memory.open(path, read_only=True) as memory:
            result["read"] = {
                "hash": memory.verify().hash,
                "found": [x.experience.episode_id for x in memory.search("page 1", k=5)],
            }
            assert len(Content.of(memory).episodes) == 8
            assert len(list(memory.export())) == 10
    except StoreError as error:
        result["refused"] = [type(error).__name__, str(error)]
    for name, write in WRITES.items():
        try:
            with Memory.open(path) as memory:
                write(memory)
            result["writes"][name] = "written"
        except StoreError as error:
            result["writes"][name] = type(error).__name__
    return result


def check(zygote, path, expected, *, user=None, may_write=False):
    before = {p.name: p.read_bytes() for p in path.parent.iterdir()}
    result = zygote.start("test_faults_read_only:read_and_write", str(path), user).answer()
    outcomes = {"ReadOnlyStoreError", "written"} if may_write else {"ReadOnlyStoreError"}
    assert set(result["writes"].values()) <= outcomes, result["writes"]
    if not may_write:
        after = {p.name: p.read_bytes() for p in path.parent.iterdir()}
        assert after["agent.db"] == before["agent.db"]
        assert after.get("agent.db-wal", b"") == before.get("agent.db-wal", b"")
    assert result["refused"] is None, result["refused"]
    assert result["read"] == expected


@pytest.fixture
def folder():
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="seasoned-ro-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "store"


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "with its log"])
def test_read_only_disk_allows_reads_and_refuses_writes(disk, zygote, report_line, closed):
    expected = make(disk.folder / "store", closed)
    disk.remount("ro")
    try:
        check(zygote, disk.folder / "store" / "agent.db", expected)
    finally:
        disk.remount("rw")
    report_line(
        f"read-only disk, store {'closed' if closed else 'with its log'}: read, {len(WRITES)} kinds of write refused"
    )
    with Memory.open(disk.folder / "store" / "agent.db") as memory:
        memory.add(episode("new"))
        memory.verify()


@pytest.mark.parametrize(
    ("which", "closed"),
    [("folder", True), ("folder", False), ("file", True), ("file", False), ("both", True), ("both", False)],
)
def test_missing_permissions_allow_reads_and_refuse_writes(folder, zygote, report_line, which, closed):
    expected = make(folder, closed)
    user = None
    if os.geteuid() == 0:  # permissions do not bind root
        user = NOBODY
        for path in (folder, *folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
    if which in ("file", "both"):
        for path in folder.iterdir():
            path.chmod(0o444)
    if which in ("folder", "both"):
        folder.chmod(0o555)
    try:
        # Where the log is there already, a folder that takes no new file is no obstacle.
        check(zygote, folder / "agent.db", expected, user=user, may_write=which == "folder" and not closed)
    finally:
        folder.chmod(0o755)
    report_line(f"read-only {which}, store {'closed' if closed else 'with its log'}: read, writes refused or whole")
    with Memory.open(folder / "agent.db") as memory:
        memory.verify()


def follow(path: str, turns: list[int], answers: int) -> None:
    """In a child of another user: read the store whenever the parent has written."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    with Memory.open(path, read_only=True) as memory:
        for turn in iter(lambda: os.read(turns[0], 1), b""):
            del turn
            try:
                result = ",".join(str(one.id) for one in memory.episodes())
            except StoreError as error:
                result = type(error).__name__
            os.write(answers, f"{result}\n".encode())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read as somebody else")
def test_read_only_user_reads_later_commits(folder):
    folder.mkdir()
    with Memory.open(folder / "agent.db") as memory:
        memory.add(episode("e0"))
    folder.chmod(0o755)
    (folder / "agent.db").chmod(0o644)
    turns, answers = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(turns[1])
        try:
            follow(str(folder / "agent.db"), list(turns), answers[1])
        finally:
            os._exit(0)
    os.close(turns[0])

    def seen() -> list[str]:
        os.write(turns[1], b".")
        return os.read(answers[0], 4096).decode().strip().split(",")

    try:
        assert seen() == ["e0"]
        with Memory.open(folder / "agent.db") as memory:
            for suffix in ("-wal", "-shm"):
                (folder / f"agent.db{suffix}").chmod(0o644)
            memory.add(episode("e1"))
            assert seen() == ["e0", "e1"]
            memory.add_many([episode(f"more {n}") for n in range(50)])
            memory.compact()
            assert len(seen()) == 52
        assert len(seen()) == 52
        with Memory.open(folder / "agent.db") as memory:
            memory.add(episode("last"))
        assert seen()[-1] == "last"
    finally:
        os.close(turns[1])
        os.waitpid(child, 0)
