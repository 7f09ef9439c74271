"""JSON that strangers send, as objects of ours: nothing that is not understood is accepted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from seasoned.checks import suggest
from seasoned.errors import InputError, excerpt
from seasoned.types import Episode, Step

__all__ = ["build_from", "check_fields", "episode_document", "episode_from", "parse_json"]

MAX_DEPTH = 32
MAX_STEPS = 10_000
Built = TypeVar("Built")


def parse_json(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in `body`.

    Raises:
        InputError: it is no UTF-8, no JSON, no object; it holds a key twice, NaN, or more than 32 levels.

    Example:
        >>> parse_json(b'{"k": 1}')
        {'k': 1}
    """
    try:
        parsed = json.loads(body.decode(), object_pairs_hook=_once, parse_constant=_no_constant)
    except InputError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError as error:
        raise InputError(f"the body: {error}", "a body is JSON in UTF-8", "Encode it as UTF-8.") from None
    except ValueError as error:
        raise InputError(f"the body: {error}", "a body is one JSON document", "Check it where it breaks.") from None
    if not isinstance(parsed, dict):
        raise InputError(f"the body = {excerpt(parsed)}", "a body is a JSON object", "Put it in { }.")
    _check_depth(parsed)
    return parsed


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InputError(f"the key {excerpt(key)}, twice", "a key is given once", "Leave one of them out.")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise InputError(f"the number {name}", "JSON knows no NaN and no infinity", "Leave it out, or send a number.")


def _too_deep() -> InputError:
    return InputError("the body is too deep", f"a body has at most {MAX_DEPTH} levels", "Send what the API names.")


def _check_depth(parsed: Any) -> None:
    level: list[Any] = [parsed]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise _too_deep()


def check_fields(what: str, value: object, known: Iterable[str], required: Iterable[str] = ()) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object that has the required fields, and no other than the known ones.

    Raises:
        InputError: it is not; a misspelt field gets the closest one as advice.

    Example:
        >>> check_fields("search", {"stat": "cart"}, ["state"])
        Traceback (most recent call last):
        ...
        seasoned.errors.InputError: search: 'stat': no field of it has this name. Did you mean 'state'?
    """
    known = list(known)
    if not isinstance(value, Mapping):
        raise InputError(f"{what} = {excerpt(value)}", f"{what} is a JSON object", f"Its fields: {', '.join(known)}.")
    for name in value:
        if name not in known:
            raise InputError(f"{what}: {excerpt(name)}", "no field of it has this name", suggest(name, known))
    for name in required:
        if name not in value:
            raise InputError(f"{what} without {name!r}", f"{what} needs {', '.join(required)}", "Add it.")
    return value


def build_from(kind: type[Built], what: str, value: object) -> Built:
    """Return the object of a dataclass that a JSON object describes; the class itself checks the values.

    Raises:
        InputError: a field is missing or unknown, or breaks a rule of the class.

    Example:
        >>> build_from(Step, "step", {"state": "cart", "action": "pay"}).action
        'pay'
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    required = [
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return kind(**check_fields(what, value, fields, required))


def listed(what: str, value: object, at_most: int) -> Sequence[Any]:
    """Return `value` if it is a JSON array that is not too long.

    Raises:
        InputError: it is not.
    """
    if not isinstance(value, list):
        raise InputError(f"{what} = {excerpt(value)}", f"{what} is a JSON array", "Put it in [ ].")
    if len(value) > at_most:
        raise InputError(f"{what}: {len(value)} items", f"at most {at_most} are taken at once", "Send fewer.")
    return value


def episode_from(value: Mapping[str, Any]) -> Episode:
    """Return the episode that a JSON object describes.

    Raises:
        InputError: it breaks a rule.

    Example:
        >>> episode_from({"task": "shop", "steps": [{"state": "cart", "action": "pay"}]}).ending
        'terminated'
    """
    steps = listed("steps", value.get("steps", []), MAX_STEPS)
    built = [build_from(Step, f"steps[{index}]", step) for index, step in enumerate(steps)]
    return build_from(Episode, "episode", {**value, "steps": built})


def episode_document(episode: Episode) -> dict[str, Any]:
    """Return an episode as JSON; posting it again is a no-op.

    Example:
        >>> episode_document(Episode("shop", [Step("cart", "pay")], "e1"))["steps"][0]["action"]
        'pay'
    """
    steps = [
        {**dataclasses.asdict(dataclasses.replace(step, prior=None)), "prior": dict(step.prior) if step.prior else None}
        for step in episode.steps
    ]
    return {**{field.name: getattr(episode, field.name) for field in dataclasses.fields(episode)}, "steps": steps}
