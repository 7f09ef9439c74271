"""Environments that go wrong on purpose; opened as `python:faulty_worlds:Faulty?...`."""

import os
from pathlib import Path

from seasoned.envs import Grid
from seasoned.errors import EnvError


class Faulty(Grid):
    """A grid that raises, or takes its process with it, at one step, as often as a file has not recorded it.

    Args:
        how: `raise`, `crash` (an error that is not ours) or `die` (the process).
        marks: a folder that counts how often it went wrong.
        times: how often.
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
            (self._marks / str(len(list(self._marks.iterdir())))).touch()
            if self._how == "die":
                os._exit(9)
            if self._how == "raise":
                raise EnvError("the world", "it ended", "Begin another.")
            raise ZeroDivisionError("<script>alert(1)</script>")
        return await super().step(action)
