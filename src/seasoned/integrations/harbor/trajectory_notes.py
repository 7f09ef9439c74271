"""Notes of a trajectory: plan, reasoning, and the examples in its prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from seasoned.agents.react.agent_result import Purpose
from seasoned.checks import check_one_of
from seasoned.integrations.json_shapes import optional_list, optional_record, optional_text, record
from seasoned.types import PLAN, REASONING, SHOWN, ShownBody, text_body

__all__ = ["TrajectoryNotes", "trajectory_notes"]


@dataclass(frozen=True, slots=True)
class TrajectoryNotes:
    """Notes of one trial.

    Args:
        thoughts: its plan (step None), and its reasoning by step.
        shown: by step, one body for each prompt that showed stored steps.
    """

    thoughts: Mapping[int | None, str] = field(default_factory=dict)
    shown: Mapping[int, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)

    def items(self) -> Iterator[tuple[str, str, Mapping[str, Any], int | None]]:
        """Yield the unique name, the kind, the body and the step of each note."""
        for step, text in self.thoughts.items():
            yield (
                ("plan", PLAN, text_body(text), None) if step is None else (str(step), REASONING, text_body(text), step)
            )
        for at, bodies in self.shown.items():
            for number, body in enumerate(bodies):
                yield f"{at}:shown:{number}", SHOWN, body, at


def trajectory_notes(steps: list[Any], n_steps: int) -> TrajectoryNotes:
    """Return the notes of a trajectory by step; none if its turns and its steps do not match.

    Raises:
        InputError: a field has another shape.
    """
    thoughts: dict[int | None, str] = {}
    shown: dict[int, tuple[Mapping[str, Any], ...]] = {}
    at = 0
    for step in steps:
        if step["source"] != "agent":
            continue
        n_actions = len(step.get("tool_calls") or ()) or bool(str(step.get("message") or "").strip())
        thought = optional_text("reasoning_content", step.get("reasoning_content"))
        extra = optional_record("extra", step.get("extra"))
        plan = optional_text("plan", extra.get("plan"))
        if thought is not None and n_actions:
            thoughts[at] = thought
        if plan is not None:
            thoughts.setdefault(None, plan)
        if (bodies := tuple(map(_body, optional_list("shown", extra.get("shown"))))) and n_actions:
            shown[at] = bodies
        at += n_actions
    return TrajectoryNotes(thoughts, shown) if at == n_steps else TrajectoryNotes()


def _body(value: object) -> Mapping[str, Any]:
    one = record("shown", value)
    examples = list(optional_list("examples", one.get("examples")))
    purpose = check_one_of("purpose of shown", one.get("purpose"), get_args(Purpose))
    return ShownBody.from_record({"examples": examples, "purpose": purpose}).record()
