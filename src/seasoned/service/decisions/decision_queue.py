"""The queue of decisions that wait for memory: one is made at a time, and one that would wait too long is not made."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator

__all__ = ["Admission", "DecisionQueue"]

_RATE = 0.1  # of the moving mean


class Admission:
    """Admits a decision if those before it are expected to take no longer than a limit.

    The expectation is their number times the moving mean of the latest turns. Without a decision before it each is
    admitted, so that the mean follows what the decisions take now.

    Args:
        most_wait_s: the limit.
        turn_s: the mean before the first turn has ended.

    Example:
        >>> admission = Admission(0.1, turn_s=0.03)
        >>> admission.admits(3), admission.admits(4)
        (True, False)
    """

    def __init__(self, most_wait_s: float, *, turn_s: float = 0.01) -> None:
        self.most_wait_s = most_wait_s
        self.turn_s = turn_s

    def admits(self, n_before: int) -> bool:
        """Return whether a decision with so many before it, one of which may be running, is admitted."""
        return n_before * self.turn_s <= self.most_wait_s

    def ended(self, spent_s: float) -> None:
        """Count a turn that has ended."""
        self.turn_s += _RATE * (spent_s - self.turn_s)


class DecisionQueue:
    """Gives one decision at a time its turn, in the order in which they come.

    Decisions of one process share Python's lock: side by side each takes the time of all, and beyond the rate that the
    processor allows none would end in time. So one that is expected to wait too long is refused at once (`Admission`),
    and the admitted ones are as fast as without it.

    A turn ends with its decision, or after `most_turn_s`: the next decision then runs beside one that takes long, such
    as a choice among 10,000 options. A decision that has no turn after `most_wait_s` is refused too.

    Args:
        most_wait_s: seconds that a decision waits at most.
        most_turn_s: seconds of a turn.
        turn_s: seconds that a turn is expected to take before the first has ended.

    Example:
        >>> queue = DecisionQueue(most_wait_s=0.1, most_turn_s=0.1, turn_s=0.2)
        >>> with queue.turn() as first, queue.turn() as second:
        ...     first, second
        (True, False)
    """

    def __init__(self, *, most_wait_s: float, most_turn_s: float, turn_s: float = 0.01) -> None:
        self.admission = Admission(most_wait_s, turn_s=turn_s)
        self._most_turn_s = most_turn_s
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._running: threading.Event | None = None
        self._turn_ends = 0.0

    def __len__(self) -> int:
        """How many decisions wait."""
        return len(self._waiting)

    @contextlib.contextmanager
    def turn(self) -> Iterator[bool]:
        """Yield whether this decision has its turn; wait for it, unless that would take too long."""
        called = threading.Event()
        if not self._begins(called):
            yield False
            return
        began = time.monotonic()
        try:
            yield True
        finally:
            with self._lock:
                self.admission.ended(min(time.monotonic() - began, self._most_turn_s))
                if self._running is called:
                    self._running = None
                    self._call_first()

    def _begins(self, called: threading.Event) -> bool:
        with self._lock:
            is_free = self._running is None or time.monotonic() >= self._turn_ends
            if not self._waiting and is_free:
                self._begin(called)
                return True
            if not self.admission.admits(len(self._waiting) + (self._running is not None)):
                return False
            self._waiting.append(called)
        leaves = time.monotonic() + self.admission.most_wait_s
        while True:
            with self._lock:
                now = time.monotonic()
                is_first = self._waiting[0] is called
                has_turn = is_first and (self._running is None or now >= self._turn_ends)
                if has_turn or now >= leaves:
                    self._waiting.remove(called)
                    if has_turn:
                        self._begin(called)
                    self._call_first()  # who may have another time to wait for
                    return has_turn
                wakes = min(leaves, self._turn_ends) if is_first and self._running is not None else leaves
                called.clear()
            called.wait(wakes - now)

    def _begin(self, called: threading.Event) -> None:
        self._running, self._turn_ends = called, time.monotonic() + self._most_turn_s

    def _call_first(self) -> None:
        if self._waiting:
            self._waiting[0].set()
