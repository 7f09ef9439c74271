"""What an agent says to its model: plain texts with named fields, filled in once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt

__all__ = ["FIELDS", "TOOL_TEMPLATES", "Templates", "fill"]

_FIELD = re.compile(r"\{\{([^\W\d]\w*)\}\}|\{([^\W\d]\w*)\}")
_MISWRITTEN = re.compile(r"\{[^\S\n]*([^\W\d]\w*)[^\S\n]*(?:![^{}\s]*)?(?::[^{}\s]*)?[^\S\n]*\}")
_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n\s*")

_SEEN = ("goal", "plan", "examples", "history", "observation")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "system": ("goal",),
    "plan": ("goal", "examples", "observation", "actions"),
    "reason": (*_SEEN, "actions"),
    "act": (*_SEEN, "reasoning", "actions"),
    "reason_act": (*_SEEN, "actions"),
    "read": (*_SEEN, "reasoning"),
}
"""The fields that each template may use."""


def fill(template: str, values: Mapping[str, str]) -> str:
    r"""Return a template with its fields filled in, all at once: what a value holds is never read as a field.

    A paragraph (between blank lines) whose fields are all empty is left out, its heading with it. `{{name}}` is the
    text `{name}`; every other brace stays as it is.

    Raises:
        InputError: a field that `values` does not have, or one with blanks, a conversion or a format.

    Example:
        >>> fill('Goal: {goal}\n\nPlan:\n{plan}\n\nAnswer as {"a": 1} or {{plan}}.', {"goal": "{plan}", "plan": ""})
        'Goal: {plan}\n\nAnswer as {"a": 1} or {plan}.'
    """
    check_template("template", template, tuple(values))

    def put(found: re.Match[str]) -> str:
        return f"{{{found[1]}}}" if found[1] else values[found[2]]

    kept: list[str] = []
    for paragraph in _PARAGRAPHS.split(template.strip()):
        used = _used(paragraph)
        if not used or any(values[name].strip() for name in used):
            kept.append(_FIELD.sub(put, paragraph))
    return "\n\n".join(kept)


def _used(template: str) -> list[str]:
    return [found[2] for found in _FIELD.finditer(template) if found[2]]


def check_template(name: str, template: object, known: tuple[str, ...]) -> str:
    """Return a template if it is text, and every field in it is known and is its name in braces, without more.

    Raises:
        InputError: it is not.

    Example:
        >>> check_template("act", "Now: {observation} {}", ("observation",))
        'Now: {observation} {}'
    """
    text = check_text(f"{name} template", template)
    for used in _used(text):
        if used not in known:
            raise InputError(
                f"field {{{excerpt(used)[1:-1]}}} in the {name} template",
                f"its fields are {', '.join(f'{{{field}}}' for field in known)}",
                f"For the text itself write {{{{{excerpt(used)[1:-1]}}}}}; other braces stay as they are.",
            )
    for found in _MISWRITTEN.finditer(text):
        if found[1] in known and found[0] != f"{{{found[1]}}}":
            raise InputError(
                f"{excerpt(found[0])} in the {name} template",
                "a field is its name in braces, without blanks, a conversion or a format",
                f"Write {{{found[1]}}}.",
            )
    return text


def _joined(*paragraphs: str) -> str:
    return "\n\n".join(paragraphs)


_GOAL = "Goal: {goal}"
_NOW = "Now:\n{observation}"
_KNOWN = _joined("Plan:\n{plan}", "{examples}", "So far:\n{history}", _NOW)
_THOUGHT = "Thought: {reasoning}"
_ACTIONS = "Possible actions:\n{actions}"
_BEFORE_THINKING = _joined(_GOAL, _KNOWN, _ACTIONS)
_BEFORE_ACTING = _joined(_GOAL, _KNOWN, _THOUGHT, _ACTIONS)
_CALL = "Call one tool."


@dataclass(frozen=True, slots=True)
class Templates:
    r"""The prompts of an agent. Each may be replaced by a text of your own; see `FIELDS` and `fill`.

    Args:
        system: the system message of every call.
        plan: asks for a plan, once an episode.
        reason: asks for reasoning alone, where reasoning and acting are two calls.
        act: asks for an action, with the reasoning there is.
        reason_act: asks for both in one call.
        read: what a reader shows as the state; it adds the task, the actions and its own question.

    Raises:
        InputError: a template is blank, or has a field that it cannot be given (the message names those it can), or
            one with blanks, a conversion or a format.

    Example:
        >>> Templates(act='{observation}\n{"json": true}\nOne of:\n{actions}').plan == Templates().plan
        True
    """

    system: str = "You act in an environment, one action at a time, to reach a goal. Be brief."
    plan: str = _joined(
        _GOAL,
        "{examples}",
        _NOW,
        "Possible actions now:\n{actions}",
        "Write a short plan to reach the goal, a few lines, and nothing else.",
    )
    reason: str = _joined(_BEFORE_THINKING, "Say in one or two sentences what matters now and what to do next.")
    act: str = _joined(_BEFORE_ACTING, "Answer with one line, the action as it is to be taken:\nAction: ...")
    reason_act: str = _joined(
        _BEFORE_THINKING,
        "Answer with two lines, the second one the action as it is to be taken:\nThought: ...\nAction: ...",
    )
    read: str = _joined(_KNOWN, _THOUGHT)

    def __post_init__(self) -> None:
        for field in fields(self):
            check_template(field.name, getattr(self, field.name), FIELDS[field.name])

    def uses(self, name: str, field: str) -> bool:
        """Return whether the template of this name has this field."""
        return field in _used(getattr(self, name))

    def render(self, name: str, values: Mapping[str, str]) -> str:
        """Return the template of this name, filled in; a value that it has no field for is not looked at."""
        return fill(getattr(self, name), {field: values.get(field, "") for field in FIELDS[name]})


TOOL_TEMPLATES = Templates(
    act=_joined(_BEFORE_ACTING, _CALL),
    reason_act=_joined(_BEFORE_THINKING, f"Say in one sentence what matters now, then act. {_CALL}"),
)
"""The default prompts of an agent whose actions are tool calls."""
