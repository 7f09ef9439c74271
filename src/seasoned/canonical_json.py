"""Canonical JSON: one text per value, for hashes and keys."""

from __future__ import annotations

import json

__all__ = ["canonical_json"]


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys, no blanks, and floats in their shortest exact form: equal values have equal texts.

    Raises:
        ValueError: it contains NaN or an infinity.

    Example:
        >>> canonical_json({"b": 1, "a": (2,)})
        '{"a":[2],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
