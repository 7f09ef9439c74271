"""Damaged copies of a store's file and log: the damages of disks, copies and power cuts."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from faults_children import Log
from faults_content import Content, episode
from faults_operations import OPERATIONS, Handle

from seasoned import Memory
from seasoned.errors import SeasonedError
from seasoned.types import EvidenceQuery

__all__ = ["DAMAGES", "Damage", "answers", "inspect", "make_image"]

PAGE_BYTES = 4096
HISTORY = ("add_many", "feedback", "feedback", "add", "revoke", "quarantine", "record", "import", "add", "prune")


class Damage(NamedTuple):
    """Files to look at. `state` is the commit that must be found, if only one can be; errors are allowed without it."""

    name: str
    main: bytes
    log: bytes | None = None
    shared: bytes | None = None
    state: int | None = None


def answers(memory: Memory) -> str:
    """A hash of the query results of a memory, independent of `verify`."""
    neighbors = memory.search("page 1 step 0 w1", k=20)
    evidence = memory.evidence(EvidenceQuery("page 2 step 1 w7", k=3, unit="states", threshold=0.0))
    totals = sorted(zip(evidence.actions, evidence.totals.tolist(), strict=True))
    results = [list(memory.export()), [repr(x) for x in neighbors], repr(totals), len(memory)]
    return hashlib.sha256(json.dumps(results).encode()).hexdigest()


def make_image(folder: Path) -> None:
    """Make a store of many commits: its file, its log, and the hash and answers after each commit."""
    draw, path, content = random.Random(4), folder / "source.db", Content()
    handle = Handle(lambda: Memory.open(path, gamma=0.5))
    states: list[tuple[str, str, int]] = []

    def commit(names: tuple[str, ...]) -> None:
        for name in names:
            chosen = OPERATIONS[name].choose(draw, handle, content)
            assert chosen is not None
            OPERATIONS[name].follow(content, chosen, OPERATIONS[name].do(handle, chosen))
            log = Path(f"{path}-wal")
            states.append((handle.memory.verify().hash, answers(handle.memory), log.stat().st_size))

    commit(HISTORY)
    handle.reopen()
    (folder / "old.db").write_bytes(path.read_bytes())
    in_file = len(states) - 1
    states[in_file] = (*states[in_file][:2], 0)
    commit(HISTORY)
    assert path.read_bytes() == (folder / "old.db").read_bytes(), "the log was written back too early"
    (folder / "log").write_bytes(Path(f"{path}-wal").read_bytes())
    (folder / "known.json").write_text(json.dumps({"states": states, "in_file": in_file}))
    handle.memory.close()
    (folder / "new.db").write_bytes(path.read_bytes())


class Image:
    """The files and the commits that `make_image` wrote."""

    def __init__(self, folder: Path) -> None:
        known = json.loads((folder / "known.json").read_text())
        self.old, self.new, self.log = ((folder / name).read_bytes() for name in ("old.db", "new.db", "log"))
        self.in_file: int = known["in_file"]
        self.log_ends = [end for _, _, end in known["states"]]
        self.hashes = [hash_ for hash_, _, _ in known["states"]]
        self.answers = {hash_: answer for hash_, answer, _ in known["states"]}

    def reached(self, log_bytes: int) -> int:
        """The last commit that is whole in the first bytes of the log: what SQLite must recover."""
        return max(n for n in range(self.in_file, len(self.log_ends)) if self.log_ends[n] <= log_bytes)


def put(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def pages(image: Image, draw: random.Random, n: int) -> Iterator[Damage]:
    count = len(image.new) // PAGE_BYTES
    for _ in range(n):
        page, other = draw.randrange(count), draw.randrange(count)
        at, to = page * PAGE_BYTES, other * PAGE_BYTES
        yield Damage(f"page {page} of zeros", put(image.new, at, bytes(PAGE_BYTES)))
        yield Damage(f"page {page} of noise", put(image.new, at, draw.randbytes(PAGE_BYTES)))
        yield Damage(f"page {page} written over {other}", put(image.new, to, image.new[at : at + PAGE_BYTES]))
        half = image.new[at : at + PAGE_BYTES // 2]
        if at < len(image.old):
            yield Damage(f"page {page} never written", put(image.new, at, image.old[at : at + PAGE_BYTES]))
            yield Damage(
                f"page {page} half written", put(put(image.new, at, image.old[at : at + PAGE_BYTES]), at, half)
            )
        under = draw.randrange(len(image.old) // PAGE_BYTES) * PAGE_BYTES
        yield Damage(f"noise at {under} under a log", put(image.old, under, draw.randbytes(PAGE_BYTES)), image.log)


def regions(image: Image, draw: random.Random, n: int) -> Iterator[Damage]:
    used = [at for at, byte in enumerate(image.new) if byte]  # pages are mostly free space
    for _ in range(n):
        at, length = draw.choice(used), draw.choice([1, 1, 4, 100, 10_000])
        yield Damage(
            f"{length} bytes of noise at {at}", put(image.new, at, draw.randbytes(min(length, len(image.new) - at)))
        )
        yield Damage(f"a bit at {at}", put(image.new, at, bytes([image.new[at] ^ 1 << draw.randrange(8)])))
    for at in range(0, 100, 5 if n < 50 else 1):
        yield Damage(f"header byte {at}", put(image.new, at, bytes([image.new[at] ^ 1 << draw.randrange(8)])))


def cuts(image: Image, draw: random.Random, n: int) -> Iterator[Damage]:
    size = len(image.new)
    lengths = [0, 1, 16, 99, 100, 511, 512, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, size - PAGE_BYTES, size - 1]
    for length in lengths + [draw.randrange(size) for _ in range(n)]:
        yield Damage(f"cut to {length} bytes", image.new[:length])
        old = image.old[: length * len(image.old) // size]
        yield Damage(f"cut to {len(old)} bytes, with a log", old, image.log)
    for extra in (1, 100, PAGE_BYTES, 10 * PAGE_BYTES):
        yield Damage(f"{extra} bytes of noise behind", image.new + draw.randbytes(extra))
        yield Damage(f"{extra} zeros behind", image.new + bytes(extra))


def log(image: Image, draw: random.Random, n: int) -> Iterator[Damage]:
    size, last = len(image.log), len(image.hashes) - 1
    yield Damage("whole", image.old, image.log, state=last)
    yield Damage("no log", image.old, None, state=image.in_file)
    lengths = {0, 1, 31, 32, 33, size - 1, *(draw.randrange(size) for _ in range(n))}
    for end in image.log_ends[image.in_file :]:
        lengths |= {max(0, end - 1), end, min(size, end + 1)}
    for length in sorted(lengths):
        yield Damage(f"log cut to {length} bytes", image.old, image.log[:length], state=image.reached(length))
    for _ in range(n):
        at = draw.randrange(32, size)
        flipped = bytes([image.log[at] ^ 1 << draw.randrange(8)])
        yield Damage(f"log: a bit at {at}", image.old, put(image.log, at, flipped), state=image.reached(at))
        noise = draw.randbytes(min(draw.choice([24, 512, PAGE_BYTES, 20_000]), size - at))
        yield Damage(f"log: noise at {at}", image.old, put(image.log, at, noise), state=image.reached(at))
        yield Damage(f"log: torn at {at}", image.old, image.log[:at] + bytes(size - at), state=None)
    for at in range(0, 32, 5 if n < 50 else 1):
        yield Damage(
            f"log header byte {at}", image.old, put(image.log, at, bytes([image.log[at] ^ 1 << draw.randrange(8)]))
        )
    for extra in (1, 24, PAGE_BYTES + 24, 100_000):
        yield Damage(f"log: {extra} bytes of noise behind", image.old, image.log + draw.randbytes(extra), state=last)
    yield Damage("a log that was written back already", image.new, image.log, state=last)
    yield Damage("a log of noise", image.old, draw.randbytes(size), state=image.in_file)
    for n_bytes in (0, 100, 32768, 65536):
        noise = draw.randbytes(n_bytes)
        yield Damage(
            f"{n_bytes} bytes of noise in the shared index of the log", image.old, image.log, noise, state=last
        )


DAMAGES = {"pages": pages, "regions": regions, "cuts": cuts, "log": log}


def inspect(folder: str, kind: str, seed: int, n: int, log_path: str) -> dict[str, object]:
    """Open, read, verify and write each damaged store; count the outcomes, and list the failures."""
    image, draw, journal = Image(Path(folder)), random.Random(seed), Log(log_path)
    counts = {"inspected": 0, "detected": 0, "unharmed": 0, "earlier": 0}
    wrong: list[str] = []  # verify was clean, and should not have been; or a commit was lost
    stray: list[str] = []  # reading ended in an error that is not of our tree
    for number, damage in enumerate(DAMAGES[kind](image, draw, n)):
        journal.write(damage.name)  # if this process dies now, it was here
        path = Path(folder) / f"damaged-{kind}-{seed}-{number}.db"
        files = {path: damage.main, Path(f"{path}-wal"): damage.log, Path(f"{path}-shm"): damage.shared}
        for file, content in files.items():
            if content is not None:
                file.write_bytes(content)
        counts["inspected"] += 1
        try:
            result = _read_and_verify(path, read_only=bool(number % 2))
        except SeasonedError as error:
            counts["detected"] += 1
            if damage.state is not None:
                wrong.append(f"{damage.name}: refused, though the rest is whole: {error}")
        except Exception as error:
            stray.append(f"{damage.name}: {type(error).__name__}: {error}")
        else:
            stray += [f"{damage.name}: {problem}" for problem in result["stray"]]
            if result["hash"] is None:
                counts["detected"] += 1
            elif result["hash"] not in image.hashes:
                wrong.append(f"{damage.name}: verify is clean, but nobody ever committed this")
            elif result["answers"] != image.answers[result["hash"]]:
                wrong.append(f"{damage.name}: verify is clean, but the answers are wrong")
            elif damage.state is not None and result["hash"] != image.hashes[damage.state]:
                at = image.hashes.index(result["hash"])
                wrong.append(f"{damage.name}: found commit {at}, not {damage.state}")
            else:
                counts["unharmed" if result["hash"] == image.hashes[-1] else "earlier"] += 1
        for file in files:
            file.unlink(missing_ok=True)
    return {"counts": counts, "wrong": wrong, "stray": stray}


def _read_and_verify(path: Path, read_only: bool) -> dict[str, object]:
    """Read before `verify`, as an agent does: each read of a damaged file returns or raises a `SeasonedError`."""
    stray = []
    with Memory.open(path, create=False, read_only=read_only) as memory:
        reads = {
            "episodes": memory.episodes,
            "events": memory.events,
            "answers": lambda: answers(memory),
            "quarantines": memory.quarantines,
            "stats": memory.stats,
            "get": lambda: memory.get("e0"),
        }
        for name, read in reads.items():
            try:
                read()
            except SeasonedError:
                pass
            except Exception as error:
                stray.append(f"{name}: {type(error).__name__}: {error}")
        try:
            verified = memory.verify()
            result = {"hash": verified.hash, "answers": answers(memory)}
        except SeasonedError:
            if stray:
                return {"hash": None, "answers": None, "stray": stray}
            raise
        if not read_only:
            memory.add(episode("written to a damaged store"))
            memory.feedback("written to a damaged store", 1.0)
            memory.verify()
    return {**result, "stray": stray}
