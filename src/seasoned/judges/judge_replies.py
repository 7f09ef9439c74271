"""Strict reading of a judge's reply: all of it, or a fault that can be named.

Read: one JSON object, with blanks around it, or as the whole of one Markdown code fence. Everything else is refused,
and no number is guessed, clipped or filled in: prose around it (a refusal too), an empty text, a reply that was cut
off, a key twice, a step too many or too few, a number as a string, true, null, NaN, or one outside its range.

What a fault says is our own words and numbers, never the model's: it is sent back to the model, whose reply may repeat
what an observation said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from seasoned.errors import ModelAnswerError, excerpt
from seasoned.protocols import Completion

__all__ = ["read_better", "read_scores"]

_FENCED = re.compile(r"```(?:json|JSON)?[ \t]*\n(?P<body>.*)\n[ \t]*```", re.DOTALL)
_LISTED = 10


def read_scores(answer: Completion, steps: Sequence[int]) -> dict[int, float]:
    r"""Return the scores of exactly these steps, each in [-1, 1], from an object such as `{"0": 0.5, "1": -1}`.

    Raises:
        ModelAnswerError: the reply is anything else; its `rule` names the fault.

    Example:
        >>> from seasoned.protocols import Usage
        >>> read_scores(Completion('```json\n{"0": 0.5, "1": -1}\n```', "m", Usage()), [0, 1])
        {0: 0.5, 1: -1.0}
    """
    found = _read_object(answer)
    wanted = {str(step): step for step in steps}
    missing = [name for name in wanted if name not in found]
    if missing:
        raise _fault(answer, f"every step that was asked for has a score; missing: {_listed(missing)}")
    if len(found) > len(wanted):
        raise _fault(answer, f"only steps that were asked for have a score: {_listed(list(wanted))}")
    return {step: _score(answer, step, found[name]) for name, step in wanted.items()}


def read_better(answer: Completion) -> int:
    """Return which of two is better, from `{"better": 1}`: 1, 2, or 0 where neither is.

    Raises:
        ModelAnswerError: the reply is anything else.

    Example:
        >>> from seasoned.protocols import Usage
        >>> read_better(Completion('{"better": 2}', "m", Usage()))
        2
    """
    found = _read_object(answer)
    choice = found.get("better")
    if set(found) != {"better"} or isinstance(choice, bool) or not isinstance(choice, int) or choice not in (0, 1, 2):
        raise _fault(answer, 'the reply has one key, "better", and its value is 0, 1 or 2')
    return choice


def _read_object(answer: Completion) -> dict[str, object]:
    text = answer.text.strip()
    if not text:
        raise _fault(answer, "the reply is not empty")
    if fenced := _FENCED.fullmatch(text):
        text = fenced["body"]
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except _DuplicateKeyError:
        raise _fault(answer, "every key occurs once") from None
    except (ValueError, RecursionError):
        cut = " (it was cut off at the most tokens that it may have)" if answer.finish_reason == "length" else ""
        raise _fault(answer, f"the reply is one JSON object and nothing else{cut}") from None
    if not isinstance(found, dict):
        raise _fault(answer, "the reply is one JSON object, not another kind of JSON")
    return found


class _DuplicateKeyError(ValueError):
    pass


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _DuplicateKeyError
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _score(answer: Completion, step: int, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _fault(answer, f"a score is a number; that of step {step} is none")
    if not -1 <= value <= 1:
        raise _fault(answer, f"a score is between -1 and 1; that of step {step} is outside")
    return float(value) + 0.0


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _fault(answer: Completion, rule: str) -> ModelAnswerError:
    return ModelAnswerError(
        f"{answer.model} replied {excerpt(answer.text, 160)}", rule, "Use a model that follows instructions."
    )
