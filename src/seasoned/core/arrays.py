"""What callers pass, as arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seasoned.errors import InputError, excerpt

__all__ = ["as_floats"]


def as_floats(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return `values` as an array of floats.

    Raises:
        InputError: they are not numbers.

    Example:
        >>> as_floats("rewards", [0, 1]).tolist()
        [0.0, 1.0]
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} = {excerpt(values)}", f"{name} are numbers", "Convert them first.") from error
