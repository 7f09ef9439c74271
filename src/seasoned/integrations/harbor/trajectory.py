"""Trajectory file of a running agent, in ATIF: complete up to the last step, also if the trial is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seasoned.agents import StepEvent
from seasoned.protocols import Usage

__all__ = ["TrajectoryLog"]

_VERSION = "ATIF-v1.7"


class TrajectoryLog:
    """Replaces a trajectory file after each step, atomically.

    A step's message is the action for the shell, its observation the state after it. The plan and the ids of the
    examples in the prompts are in `extra`. The examples' texts are not written, so that retrieved text is not learned
    again.

    Args:
        path: the file; its folder exists.
        instruction: of the user.
        agent: the agent's name, version and model.
        session_id: of the trial.
        mode: `train` or `test`: whether learning from the trial is allowed.
    """

    def __init__(self, path: Path, instruction: str, *, agent: dict[str, Any], session_id: str, mode: str) -> None:
        self.path = path
        self._document: dict[str, Any] = {
            "schema_version": _VERSION,
            "session_id": session_id,
            "agent": agent,
            "extra": {"mode": mode},
            "steps": [{"step_id": 1, "source": "user", "message": instruction}],
        }
        self._save()

    def add(self, event: StepEvent) -> None:
        """Append a step."""
        usage = event.usage
        shown = [
            {"purpose": one.purpose, "examples": [list(each) for each in one.examples]} for one in event.impressions
        ]
        extra: dict[str, Any] = {"shown": shown} if shown else {}
        if event.step == 0 and event.plan:
            extra["plan"] = event.plan
        metrics: dict[str, Any] = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
        if usage.cost_usd is not None:
            metrics["cost_usd"] = usage.cost_usd
        step: dict[str, Any] = {
            "step_id": len(self._document["steps"]) + 1,
            "source": "agent",
            "message": event.action,
            "observation": {"results": [{"content": event.after.state}]},
            "metrics": metrics,
        }
        if event.reasoning:
            step["reasoning_content"] = event.reasoning
        if extra:
            step["extra"] = extra
        self._document["steps"].append(step)
        self._save()

    def end(self, usage: Usage, *, truncated: bool) -> None:
        """Write the ending and the total usage."""
        if truncated:
            self._document["extra"]["truncated"] = True
        self._document["final_metrics"] = {
            "total_prompt_tokens": usage.prompt_tokens,
            "total_completion_tokens": usage.completion_tokens,
            "total_steps": len(self._document["steps"]),
        }
        if usage.cost_usd is not None:
            self._document["final_metrics"]["total_cost_usd"] = usage.cost_usd
        self._save()

    def _save(self) -> None:
        partial = self.path.with_name(f".{self.path.name}.partial")
        partial.write_text(json.dumps(self._document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.path)
