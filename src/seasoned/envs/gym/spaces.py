"""The text of values of small Gymnasium spaces.

Each number is one word, `name=value`, with its index in its name: so the sets of words that similarity compares differ
if two numbers change places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from seasoned.errors import InputError, excerpt
from seasoned.registry import load_extra

__all__ = ["MAX_VALUES", "space_text"]

MAX_VALUES = 32
"""A space with more numbers than this has no default text."""


def space_text(space: Any, name: str) -> Callable[[Any], str]:
    """Return a function from a value of `space` to its text: `obs=3`, or `obs.pos[0]=0.25 obs.pos[1]=-1`.

    Discrete, MultiDiscrete, MultiBinary, Box, Text, and Tuple and Dict of these; numbers to 4 significant digits.

    Raises:
        InputError: the space is an image, has more than `MAX_VALUES` numbers, or is of another kind.
        MissingExtraError: Gymnasium is not installed.
    """
    spaces = load_extra("gymnasium.spaces", "gymnasium")
    size = _count(spaces, space, name)
    if size > MAX_VALUES:
        raise _refusal(space, f"{name} has {size} numbers, and a default text has at most {MAX_VALUES}")
    return lambda value: " ".join(_value_words(spaces, space, name, value))


def _count(spaces: Any, space: Any, name: str) -> int:
    """Return the count of numbers in a value."""
    if isinstance(space, spaces.Discrete | spaces.Text):
        return 1
    if isinstance(space, spaces.Box) and len(space.shape) > 1 and space.dtype.kind == "u":
        raise _refusal(space, f"{name} is an image, and a state is text")
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return math.prod(space.shape)
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return sum(_count(spaces, part, label) for label, part in _parts(spaces, space, name))
    raise _refusal(space, f"{name} is a space that has no default text")


def _refusal(space: Any, rule: str) -> InputError:
    return InputError(
        f"space {excerpt(space)}", rule, "Pass a function that returns the text of a value (describe=...)."
    )


def _parts(spaces: Any, space: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(space, spaces.Tuple):
        yield from ((f"{name}[{index}]", part) for index, part in enumerate(space.spaces))
    else:
        yield from ((f"{name}.{key}", part) for key, part in space.spaces.items())


def _value_words(spaces: Any, space: Any, name: str, value: Any) -> Iterator[str]:
    if isinstance(space, spaces.Discrete):
        yield f"{name}={int(value)}"
    elif isinstance(space, spaces.Text):
        yield f"{name}={value}"
    elif isinstance(space, spaces.Tuple | spaces.Dict):
        values = value if isinstance(space, spaces.Tuple) else [value[key] for key in space.spaces]
        for (label, part), inner in zip(_parts(spaces, space, name), values, strict=True):
            yield from _value_words(spaces, part, label, inner)
    else:
        array = np.asarray(value)
        for index in np.ndindex(space.shape):
            place = "".join(f"[{i}]" for i in index)
            yield f"{name}{place}={float(array[index]) + 0.0:.4g}"  # + 0.0: no minus zero
