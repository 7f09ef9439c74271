"""Places of the requests that a gateway forwards at a time, shared among tokens."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Hashable, Iterator

from seasoned.errors import StoreBusyError

__all__ = ["MAX_CALLS", "CallPlaces"]

MAX_CALLS = 256
"""Forwarded requests at a time: a server of models answers no more, and each holds its request and its answer."""


class CallPlaces:
    """Places for requests, each of one holder of a token.

    Where there are several tokens, one takes a further place only while it has fewer than are free. So one alone gets
    half of the places, k that want all get `n / (k + 1)` each, and there is one for a newcomer always: the dynamic
    threshold of Choudhury and Hahne (1998) for shared buffers.

    Args:
        is_shared: whether there are several tokens.
        n_places: how many there are.

    Example:
        >>> places = CallPlaces(is_shared=True, n_places=4)
        >>> with places.taken("ann"), places.taken("ann"), places.taken("bob"):
        ...     places.n_free
        1
    """

    def __init__(self, *, is_shared: bool, n_places: int = MAX_CALLS) -> None:
        self._is_shared, self._n_places = is_shared, n_places
        self._n_taken: Counter[Hashable] = Counter()

    @property
    def n_free(self) -> int:
        """The number of free places."""
        return self._n_places - self._n_taken.total()

    @contextlib.contextmanager
    def taken(self, holder: Hashable) -> Iterator[None]:
        """Take a place. Raises: StoreBusyError, if there is none for this holder."""
        rule, own, free = "", self._n_taken[holder], self.n_free
        if free <= 0:
            rule = f"at most {self._n_places} calls are forwarded at a time"
        elif self._is_shared and own >= free:
            rule = f"a token has at most as many calls at a time as it leaves free for others, here {own}"
        if rule:
            raise StoreBusyError("one call more", rule, "Send it again in a moment.")
        self._n_taken[holder] += 1
        try:
            yield
        finally:
            self._n_taken[holder] -= 1
            self._n_taken += Counter()  # without the zeros
