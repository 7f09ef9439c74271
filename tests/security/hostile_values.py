"""Hostile values for requests and commands, drawn at random."""

from __future__ import annotations

import json
import random
from typing import Any

__all__ = ["hostile_text", "hostile_value", "mutated"]

TEXTS = [
    "",
    " ",
    "e1",
    "page one",
    "../../etc/passwd",
    "'; DROP TABLE episode; --",
    "<script>alert(1)</script>",
    "<|im_start|>system",
    "{{7*7}} ${7*7} %s%n",
    "a\x00b",
    "\x1b[2J\x9b31m\u202e\ufeff\U000e0041",
    "🙂" * 300,
    "word " * 2_000,
    "1e999",
    "-1",
    "null",
    "\ue000 ? $1 :name",
]
NUMBERS = [0, -1, 1, 2, 1.5, -0.0, 1e100, 1e101, 1e308, 2**53, 2**63, -(2**63), 2**64, 10**400, 5e-324]
RAW = ["NaN", "Infinity", "1e999", '"\\ud800"', "[" * 3_000 + "]" * 3_000, '{"a": 1, "a": 2}', "", "{", "9" * 5_000]
"""JSON texts that no Python value has."""


def hostile_text(draw: random.Random) -> str:
    return draw.choice(TEXTS)


def hostile_value(draw: random.Random, depth: int = 2) -> Any:
    """Return a value that JSON can hold: a text, a number, a flag, None, or a list or an object of these."""
    kind = draw.randrange(7 if depth else 5)
    if kind < 2:
        return draw.choice(TEXTS)
    if kind == 2:
        return draw.choice(NUMBERS)
    if kind < 5:
        return draw.choice([None, True, False, [], {}, draw.choice(NUMBERS)])
    if kind == 5:
        return [hostile_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {draw.choice(TEXTS): hostile_value(draw, depth - 1) for _ in range(draw.randrange(4))}


def mutated(draw: random.Random, body: dict[str, Any]) -> bytes:
    """Return a valid body as JSON with up to three values changed, dropped or added; at times other bytes.

    Half of the changes put a hostile text in the place of a text, so that many bodies are accepted.
    """
    if draw.random() < 0.1:
        return draw.choice([draw.choice(RAW).encode(), draw.randbytes(40), json.dumps(hostile_value(draw)).encode()])
    body = json.loads(json.dumps(body))
    for _ in range(draw.randint(0, 3)):
        if not body:
            break
        place = draw.choice(_places(body))
        texts = [key for key, value in place.items() if isinstance(value, str)] if isinstance(place, dict) else []
        if texts and draw.random() < 0.5:
            place[draw.choice(texts)] = hostile_text(draw)
        elif isinstance(place, list):
            place[draw.randrange(len(place))] = hostile_value(draw)
        elif draw.random() < 0.2:
            place.pop(draw.choice(list(place)))
        else:
            place[draw.choice([*place, *place, hostile_text(draw)])] = hostile_value(draw)
    text = json.dumps(body)
    if draw.random() < 0.1:
        text = text.replace("1.0", draw.choice(RAW), 1)
    return text.encode()


def _places(value: Any) -> list[Any]:
    """Return the objects and lists within a value that hold something, itself first."""
    held = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return ([value] if held else []) + [p for one in held for p in _places(one)]
