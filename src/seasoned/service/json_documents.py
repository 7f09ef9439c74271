"""JSON documents of clients, parsed strictly: duplicate keys, unknown fields and NaN are refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from seasoned.actions.json_size import has_more_values
from seasoned.checks import suggest
from seasoned.errors import InputError, excerpt
from seasoned.integrations.json_parts import loads_in_parts
from seasoned.memory import Memory
from seasoned.types import SHOWN, Episode, ShownBody, Step

__all__ = [
    "MAX_POSTED_STEPS",
    "add_with_shown",
    "check_json_array",
    "check_json_fields",
    "dataclass_from_json",
    "episode_from_json",
    "episode_to_json",
    "parse_call_body",
    "parse_json_body",
    "shown_body",
    "shown_from_json",
]

MAX_DEPTH = 32
MAX_CALL_DEPTH = 100
"""Levels of a call of a model that is recorded: the schemas of its tools are its client's."""

MAX_BODY_VALUES = 200_000
"""Values of a body: an episode has at most 10,000 steps of a few values. Parsing 4 MiB of `[],` takes seconds."""

MAX_POSTED_STEPS = 10_000
MAX_SHOWN_EXAMPLES = 100
Built = TypeVar("Built")


def parse_json_body(body: bytes, name: str = "the body") -> Mapping[str, Any]:
    """Return the JSON object in `body`, which error messages call `name`.

    Raises:
        InputError: it is not UTF-8, not JSON or not an object; or it has a key twice, NaN, more than 32 levels, or more
            than 200,000 values.

    Example:
        >>> parse_json_body(b'{"k": 1}')
        {'k': 1}
    """
    _check_values(body, name)
    try:
        parsed = json.loads(body.decode(), object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except InputError:
        raise
    except RecursionError:
        raise _too_deep(name, MAX_DEPTH) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: {error}", f"{name} must be JSON in UTF-8", "Encode it as UTF-8.") from None
    except ValueError as error:
        raise InputError(f"{name}: {error}", f"{name} must be one JSON document", "Check it where it breaks.") from None
    if not isinstance(parsed, dict):
        raise InputError(f"{name} = {excerpt(parsed)}", f"{name} must be a JSON object", "Put it in { }.")
    _check_depth(parsed, name, MAX_DEPTH)
    return parsed


def parse_call_body(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a call of a model, whose fields are its API's: keys may be given twice.

    Raises:
        InputError: it is no JSON object in UTF-8, or has more than 100 levels or 200,000 values.

    Example:
        >>> parse_call_body(b'{"model": "m", "seed": NaN}')
        {'model': 'm', 'seed': nan}
    """
    _check_values(body, "a call")
    try:
        parsed = loads_in_parts(body.decode("utf-8-sig", "surrogatepass"))
    except RecursionError:
        raise _too_deep("a call", MAX_CALL_DEPTH) from None
    except ValueError as error:
        raise InputError(f"a call: {error}", "a call is JSON in UTF-8", "Check it where it breaks.") from None
    if not isinstance(parsed, dict):
        raise InputError(f"a body that is a {type(parsed).__name__}", "a call is a JSON object", "Send one.")
    _check_depth(parsed, "a call", MAX_CALL_DEPTH)
    return parsed


def _check_values(body: bytes, name: str) -> None:
    """Refuse a body with too many values before it is parsed; separators inside of texts do not count."""
    if has_more_values(body, MAX_BODY_VALUES):
        rule = f"{name} must have at most {MAX_BODY_VALUES} values"
        raise InputError(f"{name} of {len(body)} bytes has more values", rule, "Send less at once.")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise InputError(f"the key {excerpt(key)}, twice", "a key is given once", "Leave one of them out.")
        record[key] = value
    return record


def _no_constant(name: str) -> NoReturn:
    raise InputError(f"the number {name}", "JSON knows no NaN and no infinity", "Leave it out, or send a number.")


def _too_deep(name: str, most: int) -> InputError:
    return InputError(f"{name} is too deep", f"{name} must have at most {most} levels", "Send the named fields only.")


def _check_depth(parsed: Any, name: str, most: int) -> None:
    level: list[Any] = [parsed]
    for _ in range(most):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise _too_deep(name, most)


def check_json_fields(
    name: str, value: object, known: Iterable[str], required: Iterable[str] = ()
) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object with the required fields and without unknown ones.

    Raises:
        InputError: it is not; the message suggests the closest name for a misspelt field.

    Example:
        >>> check_json_fields("search", {"stat": "cart"}, ["state"])
        Traceback (most recent call last):
        ...
        seasoned.errors.InputError: search: 'stat': no field of it has this name. Did you mean 'state'?
    """
    known = list(known)
    if not isinstance(value, Mapping):
        raise InputError(f"{name} = {excerpt(value)}", f"{name} is a JSON object", f"Its fields: {', '.join(known)}.")
    for field in value:
        if field not in known:
            raise InputError(f"{name}: {excerpt(field)}", "no field of it has this name", suggest(field, known))
    for field in required:
        if field not in value:
            raise InputError(f"{name} without {field!r}", f"{name} needs {', '.join(required)}", "Add it.")
    return value


def dataclass_from_json(kind: type[Built], name: str, value: object) -> Built:
    """Return an instance of a dataclass from a JSON object; the class checks the values.

    Raises:
        InputError: a field is missing or unknown, or breaks a rule of the class.

    Example:
        >>> dataclass_from_json(Step, "step", {"state": "cart", "action": "pay"}).action
        'pay'
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    required = [
        field.name
        for field in fields.values()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return kind(**check_json_fields(name, value, fields, required))


def check_json_array(name: str, value: object, at_most: int) -> Sequence[Any]:
    """Return `value` if it is a JSON array of at most `at_most` items.

    Raises:
        InputError: it is not.
    """
    if not isinstance(value, list):
        raise InputError(f"{name} = {excerpt(value)}", f"{name} is a JSON array", "Put it in [ ].")
    if len(value) > at_most:
        raise InputError(f"{name}: {len(value)} items", f"at most {at_most} are allowed at once", "Send fewer.")
    return value


def shown_body(name: str, listed: object) -> ShownBody | None:
    """Return the examples that a prompt showed, of their JSON; None if there are none.

    Raises:
        InputError: an item is no pair of an episode's id and a step.
    """
    if not listed:
        return None
    pairs = check_json_array(name, listed, MAX_SHOWN_EXAMPLES)
    return ShownBody.from_record({"examples": pairs, "mode": "prompt", "purpose": "act"})


def add_with_shown(
    memory: Memory,
    episode: Episode,
    shown: Mapping[int, ShownBody],
    *,
    arm: str | None = None,
    awaits_feedback: bool | None = None,
) -> str:
    """Store an episode with the examples that its prompts showed, by step, in one transaction; return its id."""
    fields = {name: getattr(episode, name) for name in ("id", "model", "policy", "subject")}
    recorder = memory.episode(episode.task, **fields, arm=arm, awaits_feedback=awaits_feedback)
    for number, step in enumerate(episode.steps):
        if number in shown:
            recorder.note(SHOWN, shown[number].record(), number)
        recorder.record(step.state, step.action, step.reward, prior=step.prior, propensity=step.propensity)
    recorder.ending, recorder.final_state = episode.ending, episode.final_state
    return recorder.commit()


def shown_from_json(value: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[int, ShownBody]]:
    """Return a posted episode without `shown` of its steps, and that by the step: the examples that its prompt showed.

    Raises:
        InputError: an item is no pair of an episode's id and a step.

    Example:
        >>> step = {"state": "cart", "action": "pay", "shown": [["e1", 0]]}
        >>> shown_from_json({"task": "shop", "steps": [step]})[1]
        {0: ShownBody(examples=(('e1', 0),), mode='prompt', purpose='act')}
    """
    steps = check_json_array("steps", value.get("steps", []), MAX_POSTED_STEPS)
    shown: dict[int, ShownBody] = {}
    plain = []
    for number, step in enumerate(steps):
        if isinstance(step, Mapping) and "shown" in step:
            body = shown_body(f"steps[{number}].shown", step["shown"])
            if body is not None:
                shown[number] = body
            step = {name: one for name, one in step.items() if name != "shown"}  # noqa: PLW2901
        plain.append(step)
    return {**value, "steps": plain}, shown


def episode_from_json(value: Mapping[str, Any]) -> Episode:
    """Return the episode of a JSON object.

    Raises:
        InputError: it breaks a rule.

    Example:
        >>> episode_from_json({"task": "shop", "steps": [{"state": "cart", "action": "pay"}]}).ending
        'terminated'
    """
    steps = check_json_array("steps", value.get("steps", []), MAX_POSTED_STEPS)
    built = [dataclass_from_json(Step, f"steps[{index}]", step) for index, step in enumerate(steps)]
    return dataclass_from_json(Episode, "episode", {**value, "steps": built})


def episode_to_json(episode: Episode) -> dict[str, Any]:
    """Return an episode as a JSON object; posting it again changes nothing.

    Example:
        >>> episode_to_json(Episode("shop", [Step("cart", "pay")], "e1"))["steps"][0]["action"]
        'pay'
    """
    steps = [
        {**dataclasses.asdict(dataclasses.replace(step, prior=None)), "prior": dict(step.prior) if step.prior else None}
        for step in episode.steps
    ]
    return {**{field.name: getattr(episode, field.name) for field in dataclasses.fields(episode)}, "steps": steps}
