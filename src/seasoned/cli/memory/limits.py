"""`seasoned memory limits`: limits of feedback in a namespace."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from seasoned.cli.format.output import present, printable_line
from seasoned.cli.format.value_text import number
from seasoned.cli.memory.access import memory_command, open_writable, read_memory
from seasoned.errors import InputError, excerpt
from seasoned.memory import FeedbackLimits

__all__ = ["limits"]

_OFF = "none"


@memory_command(
    "seasoned memory limits agent.db",
    "seasoned memory limits agent.db --max-weight 1 --source-weight judge=0.5 --max-step-feedback 3",
    "seasoned memory limits agent.db --max-weight none",
)
@click.option("--max-weight", metavar="W", help="The largest weight of feedback; none: no limit.")
@click.option("--source-weight", multiple=True, metavar="SOURCE=W", help="The same for one source; repeatable.")
@click.option("--max-step-feedback", metavar="R", help="The largest sum of a step's feedback, + or -; none: no limit.")
@click.option("--author-choices", metavar="N", help="Choices of an author that count among others; none: no limit.")
def limits(
    path: str,
    max_weight: str | None,
    source_weight: tuple[str, ...],
    max_step_feedback: str | None,
    author_choices: str | None,
    namespace: str | None,
) -> None:
    """Show or set the limits of feedback.

    New feedback that exceeds one is refused, in every process; of an author's choices among others the latest N count.
    Without options, shows the limits. Stored feedback stays.
    """
    changes: dict[str, Any] = {}
    for name, value in (("max_weight", max_weight), ("max_step_feedback", max_step_feedback)):
        if value is not None:
            changes[name] = _limit(f"--{name.replace('_', '-')}", value)
    if author_choices is not None:
        n_choices = _limit("--author-choices", author_choices)
        changes["max_author_choices"] = int(n_choices) if n_choices is not None and n_choices % 1 == 0 else n_choices
    if not changes and not source_weight:
        _present(read_memory(path, namespace, lambda memory: memory.feedback_limits()))
        return
    with open_writable(path, namespace) as memory:
        present_limits = memory.feedback_limits()
        weights = dict(present_limits.max_source_weights)
        for pair in source_weight:
            source, sign, value = pair.rpartition("=")
            if not sign or not source:
                raise InputError(f"--source-weight {excerpt(pair)}", "it is SOURCE=W", "For example: judge=0.5")
            weight = _limit("--source-weight", value)
            weights.pop(source, None)
            if weight is not None:
                weights[source] = weight
        memory.set_feedback_limits(dataclasses.replace(present_limits, max_source_weights=weights, **changes))
        _present(memory.feedback_limits())


def _limit(option: str, value: str) -> float | None:
    if value == _OFF:
        return None
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{option} {excerpt(value)}", "a limit is a number, or none", "For example: 1") from None


def _present(found: FeedbackLimits) -> None:
    def shown(value: float | None) -> str:
        return _OFF if value is None else number(value)

    weights = {f"weight of {printable_line(name, 40)}": shown(w) for name, w in found.max_source_weights.items()}
    fields = {
        "max weight": shown(found.max_weight),
        **weights,
        "max step feedback": shown(found.max_step_feedback),
        "choices of an author at a state": shown(found.max_author_choices),
    }
    present(dataclasses.asdict(found), fields)
