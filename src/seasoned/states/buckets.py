"""Buckets: numbers as ranges, so that close numbers are one feature."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from seasoned.checks import check_instance, check_number, check_text
from seasoned.errors import InputError, excerpt

__all__ = ["Buckets", "as_run"]


def as_run(text: str) -> str:
    """Return `text` as one run without blanks, which become underscores.

    Example:
        >>> as_run(" living  room ")
        'living_room'
    """
    return "_".join(text.split())


@dataclass(frozen=True, slots=True)
class Buckets:
    """Ranges between rising edges: below the first edge, `[edge, next edge)`, and from the last edge up.

    Args:
        edges: one or more finite numbers, in strictly ascending order.

    Raises:
        InputError: there are none, or they are not in strictly ascending order.

    Example:
        >>> [Buckets((10, 20)).label(total, "total") for total in (3, 10, 19.9, 20)]
        ['total:<10', 'total:10-20', 'total:10-20', 'total:>=20']
    """

    edges: Iterable[float]

    def __post_init__(self) -> None:
        given = check_instance("edges", self.edges, Iterable, "edges must be a list of numbers", "Pass (10, 20).")
        edges = tuple(check_number("edge", edge) for edge in given)
        if not edges or any(low >= high for low, high in pairwise(edges)):
            rule = "edges must be one or more numbers in strictly ascending order"
            raise InputError(f"edges = {excerpt(edges)}", rule, "Sort them.")
        object.__setattr__(self, "edges", edges)

    def label(self, number: float, name: str | None = None) -> str:
        """Return the label of the bucket that contains `number`, after `name:` if a name is given.

        Raises:
            InputError: the number is not finite, or the name is blank.
        """
        edges = tuple(self.edges)
        at = bisect_right(edges, check_number("number", number))
        if at == 0:
            label = f"<{_plain(edges[0])}"
        elif at == len(edges):
            label = f">={_plain(edges[-1])}"
        else:
            label = f"{_plain(edges[at - 1])}-{_plain(edges[at])}"
        return label if name is None else f"{as_run(check_text('bucket name', name))}:{label}"


def _plain(edge: float) -> str:
    """Return the shortest text of this number."""
    return repr(edge).removesuffix(".0")
