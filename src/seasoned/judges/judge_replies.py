"""Strict parser of a judge's reply: one JSON object, or an error that names the fault.

Accepted is one JSON object, with blanks around it, or as the whole content of one Markdown code fence. Everything else
is refused, and no number is guessed, clipped or filled in: prose around the object (also a refusal), an empty text, a
reply that was cut off, a repeated key, a missing or an additional step, a number as a string, true, null, NaN, or one
outside its range.

The text of a fault contains no words of the reply, which may repeat an observation, since it goes back to the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from seasoned.errors import ModelAnswerError, excerpt
from seasoned.protocols import Completion

__all__ = ["read_better", "read_scores"]

_CODE_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(?P<body>.*)\n[ \t]*```", re.DOTALL)
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
    values = _read_object(answer)
    wanted = {str(step): step for step in steps}
    missing = [name for name in wanted if name not in values]
    if missing:
        raise _fault(answer, f"every step that was asked for has a score; missing: {_listed(missing)}")
    if len(values) > len(wanted):
        raise _fault(answer, f"only steps that were asked for have a score: {_listed(list(wanted))}")
    return {step: _score(answer, step, values[name]) for name, step in wanted.items()}


def read_better(answer: Completion) -> int:
    """Return the better of two from `{"better": 1}`: 1, 2, or 0 for neither.

    Raises:
        ModelAnswerError: the reply is anything else.

    Example:
        >>> from seasoned.protocols import Usage
        >>> read_better(Completion('{"better": 2}', "m", Usage()))
        2
    """
    values = _read_object(answer)
    choice = values.get("better")
    if set(values) != {"better"} or isinstance(choice, bool) or not isinstance(choice, int) or choice not in (0, 1, 2):
        raise _fault(answer, 'the reply has one key, "better", and its value is 0, 1 or 2')
    return choice


def _read_object(answer: Completion) -> dict[str, object]:
    text = answer.text.strip()
    if not text:
        raise _fault(answer, "the reply is not empty")
    if fenced := _CODE_FENCE.fullmatch(text):
        text = fenced["body"]
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except _DuplicateKeyError:
        raise _fault(answer, "every key occurs once") from None
    except (ValueError, RecursionError):
        cut = " (it was cut off at the most tokens that it may have)" if answer.finish_reason == "length" else ""
        raise _fault(answer, f"the reply is one JSON object and nothing else{cut}") from None
    if not isinstance(value, dict):
        raise _fault(answer, "the reply is one JSON object, not another kind of JSON")
    return value


class _DuplicateKeyError(ValueError):
    pass


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise _DuplicateKeyError
    return record


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
