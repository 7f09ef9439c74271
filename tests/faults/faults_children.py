"""Functions that run in a child process during a fault."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import signal
from pathlib import Path
from typing import Any

from faults_content import Content
from faults_operations import OPERATIONS, WORKLOADS, Handle

from seasoned import Memory
from seasoned.errors import StoreError, StoreFullError

__all__ = ["Log", "die_at_byte", "open_only", "warm_up", "work", "work_within_limits"]


class Log:
    """A log of JSON lines that survives the death of its process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def write(self, *entry: Any) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")


def die_at_byte(limit_bytes: int) -> None:
    """Make the kernel end this process in the middle of a write beyond this file size."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it


def warm_up() -> None:
    """Run each operation once, so that all modules are loaded."""
    draw, content = random.Random(0), Content()
    handle = Handle(lambda: Memory.open(":memory:"))
    for name in ("add", "add_many", "record", "import", "feedback", "quarantine", "prune", "compact"):
        chosen = OPERATIONS[name].choose(draw, handle, content)
        assert chosen is not None
        OPERATIONS[name].follow(content, chosen, OPERATIONS[name].do(handle, chosen))
    handle.memory.search("page")
    handle.memory.verify()
    list(handle.memory.export())
    handle.memory.close()


def work(path: str, log: str, workload: str, seed: int, limit_bytes: int | None) -> None:
    """Run random operations of the workload until the end of the process; log each before and after it."""
    draw, journal = random.Random(seed), Log(log)
    if limit_bytes is not None:
        die_at_byte(limit_bytes)
    handle = Handle(lambda: Memory.open(path, gamma=0.5))
    journal.write("open")
    content = Content.of(handle.memory)
    while True:
        name = draw.choice(WORKLOADS[workload])
        chosen = OPERATIONS[name].choose(draw, handle, content)
        if chosen is not None:
            journal.write("do", name, chosen)
            result = OPERATIONS[name].do(handle, chosen)
            journal.write("did", result)
            OPERATIONS[name].follow(content, chosen, result)


def open_only(path: str, log: str, limit_bytes: int | None) -> None:
    """Open a memory, and close it."""
    journal = Log(log)
    if limit_bytes is not None:
        die_at_byte(limit_bytes)
    journal.write("open")
    Memory.open(path).close()
    journal.write("opened")


def work_within_limits(path: str, seed: int, n_refusals: int) -> dict[str, int]:
    """Write under a limit of the file size; lift the limit after a refused write, and repeat that write."""
    draw = random.Random(seed)
    handle = Handle(lambda: Memory.open(path, gamma=0.5))
    content = Content.of(handle.memory)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    counts = {"refused": 0, "as full": 0, "done": 0}
    for n in itertools.count():
        if counts["refused"] == n_refusals:
            break
        assert n < 5000, "no write was refused"
        if resource.getrlimit(resource.RLIMIT_FSIZE)[0] == hard:
            log = Path(f"{path}-wal")
            log_bytes = log.stat().st_size if log.exists() else 0
            limit_bytes = log_bytes + draw.randrange(60_000)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
        name = draw.choice(WORKLOADS["everything"])
        chosen = OPERATIONS[name].choose(draw, handle, content)
        if chosen is None:
            continue
        try:
            result = OPERATIONS[name].do(handle, chosen)
        except StoreError as error:
            counts["refused"] += 1
            counts["as full"] += isinstance(error, StoreFullError)
            assert error.next_step
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            content = _after_a_refusal(handle, content, name, chosen)
            continue
        counts["done"] += 1
        OPERATIONS[name].follow(content, chosen, result)
    handle.memory.verify()
    assert not content.differences(Content.of(handle.memory))
    handle.memory.close()
    return counts


def _after_a_refusal(handle: Handle, content: Content, name: str, chosen: dict[str, Any]) -> Content:
    """Check that the refused operation left no change, and that it succeeds when repeated."""
    handle.memory.verify()
    stored = Content.of(handle.memory)
    differences = content.differences(stored)
    assert not differences, (name, chosen, differences[:3])
    result = OPERATIONS[name].do(handle, chosen)
    OPERATIONS[name].follow(content, chosen, result)
    return content
