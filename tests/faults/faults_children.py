"""What runs in a child while a fault strikes it."""

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
    """Lines that outlive the process that wrote them."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def say(self, *what: Any) -> None:
        os.write(self._file, json.dumps(what).encode() + b"\n")


def die_at_byte(limit_bytes: int) -> None:
    """Let the kernel end this process in the middle of the write that would make a file longer than this."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it


def warm_up() -> None:
    """Use everything once, so that it is loaded."""
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
    """Do what the workload says, for ever, and log each operation before it and after it."""
    draw, told = random.Random(seed), Log(log)
    if limit_bytes is not None:
        die_at_byte(limit_bytes)
    handle = Handle(lambda: Memory.open(path, gamma=0.5))
    told.say("open")
    content = Content.of(handle.memory)
    while True:
        name = draw.choice(WORKLOADS[workload])
        chosen = OPERATIONS[name].choose(draw, handle, content)
        if chosen is not None:
            told.say("do", name, chosen)
            said = OPERATIONS[name].do(handle, chosen)
            told.say("did", said)
            OPERATIONS[name].follow(content, chosen, said)


def open_only(path: str, log: str, limit_bytes: int | None) -> None:
    """Open a memory, and close it."""
    told = Log(log)
    if limit_bytes is not None:
        die_at_byte(limit_bytes)
    told.say("open")
    Memory.open(path).close()
    told.say("opened")


def work_within_limits(path: str, seed: int, n_refusals: int) -> dict[str, int]:
    """Work on files that may not grow beyond a limit, lift it when a write is refused, and do that write again."""
    draw = random.Random(seed)
    handle = Handle(lambda: Memory.open(path, gamma=0.5))
    content = Content.of(handle.memory)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    found = {"refused": 0, "as full": 0, "done": 0}
    for n in itertools.count():
        if found["refused"] == n_refusals:
            break
        assert n < 5000, "nothing was ever refused"
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
            said = OPERATIONS[name].do(handle, chosen)
        except StoreError as error:
            found["refused"] += 1
            found["as full"] += isinstance(error, StoreFullError)
            assert error.next_step
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            content = _after_a_refusal(handle, content, name, chosen)
            continue
        found["done"] += 1
        OPERATIONS[name].follow(content, chosen, said)
    handle.memory.verify()
    assert not content.differences(Content.of(handle.memory))
    handle.memory.close()
    return found


def _after_a_refusal(handle: Handle, content: Content, name: str, chosen: dict[str, Any]) -> Content:
    """Nothing of it was kept, or (where it is more than one transaction) all; then it goes through."""
    handle.memory.verify()
    stored = Content.of(handle.memory)
    differences = content.differences(stored)
    assert not differences, (name, chosen, differences[:3])
    said = OPERATIONS[name].do(handle, chosen)
    OPERATIONS[name].follow(content, chosen, said)
    return content
