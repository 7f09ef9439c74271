"""Environments with deliberate faults; opened as `python:faulty_worlds:Faulty?...`."""

import asyncio
import dataclasses
import os
import sys
import time
from pathlib import Path

from seasoned.envs import Grid
from seasoned.errors import EnvError


class Unspeakable(Exception):
    """An error whose `__str__` raises another one."""

    def __str__(self):
        raise RuntimeError("no comment")


RAISED = {
    "raise": lambda: EnvError("the world", "it ended", "Begin another."),
    "crash": lambda: ZeroDivisionError("<script>alert(1)</script>"),
    "cancel": asyncio.CancelledError,
    "generator": GeneratorExit,
    "long": lambda: ValueError("x" * 1_000_000),
    "surrogate": lambda: ValueError("no file \udcff\x1b[2J"),
    "unspeakable": Unspeakable,
    "timeout": lambda: TimeoutError("of its own"),
}


class Faulty(Grid):
    """A grid with a fault at one step, until a counter file has recorded enough faults.

    Args:
        how: a key of `RAISED`; `die` (the process), `exit` (`sys.exit`), `exit-beside` (the same, in another task),
            `hang` (for ever), `spin` (the same, without waiting), `move` (the working directory), `nan`, `infinite` or
            `text` (as a reward), `close` (it hangs in `aclose`); anything else has no effect.
        marks: a folder that counts the faults.
        times: number of faults.
        at: the step of the fault, counted over all episodes.
    """

    def __init__(self, how, marks, times="1", at="20"):
        super().__init__(["S..", ".#.", "..G"], max_steps=12, seed=3)
        self._how, self._marks, self._times, self._at, self._seen = how, Path(marks), int(times), int(at), 0

    @property
    def name(self):
        return f"python:faulty_worlds:Faulty?how={self._how}"

    async def step(self, action):
        self._seen += 1
        if self._seen == self._at and len(list(self._marks.iterdir())) < self._times:
            (self._marks / f"{os.getpid()}-{id(self)}").touch()
            return await self._fail(action)
        return await super().step(action)

    async def _fail(self, action):
        if self._how in RAISED:
            raise RAISED[self._how]()
        if self._how == "die":
            os._exit(9)
        if self._how == "exit":
            sys.exit(3)
        if self._how == "exit-beside":
            process = asyncio.ensure_future(exits())
            await asyncio.sleep(3600)
            await process
        if self._how == "hang":
            await asyncio.sleep(3600)
        while self._how == "spin":
            pass
        if self._how == "move":
            os.chdir("/")
        rewards = {"nan": float("nan"), "infinite": float("inf"), "text": "1"}
        return dataclasses.replace(
            await super().step(action), **{"reward": rewards[self._how]} if self._how in rewards else {}
        )

    async def aclose(self):
        if self._how == "close":
            await asyncio.sleep(3600)
        await super().aclose()


class Spoiled(Grid):
    """A grid whose episodes end with the score NaN."""

    def __init__(self):
        super().__init__(["S.G"], max_steps=4)

    async def step(self, action):
        seen = await super().step(action)
        return dataclasses.replace(seen, score=float("nan")) if seen.terminated or seen.truncated else seen


class Desk(Grid):
    """A grid whose states contain numbers that are unique to the episode."""

    def __init__(self, mood="calm"):
        super().__init__(["S.G"], max_steps=6)

    async def reset(self, *, seed=None):
        self._ticket = " ".join(str(seed + i) for i in range(20))
        return self._numbered(await super().reset(seed=seed))

    async def step(self, action):
        return self._numbered(await super().step(action))

    def _numbered(self, seen):
        return dataclasses.replace(seen, state=f"{seen.state} {self._ticket}")


async def exits():
    sys.exit(4)


def stubborn(mark):
    """Ignore interrupts and continue."""
    while True:
        try:
            Path(mark).touch()
            time.sleep(3600)
        except KeyboardInterrupt:
            continue
