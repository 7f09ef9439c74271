"""Reader of SWE-agent trajectories: `.traj` files with the agent's actions and the shell's observations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from seasoned.checks import check_reward
from seasoned.integrations.conversation import AgentTurn, InputMessage, content_id
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, parse_strict_json
from seasoned.integrations.json_shapes import (
    content_text,
    describe_value,
    optional_list,
    optional_record,
    optional_text,
    record,
    text_key,
)
from seasoned.integrations.readers import Format, by_document
from seasoned.types import Ending

__all__ = ["SWE_AGENT", "read_trajectory"]

_SUFFIX = ".traj"
_CUT_OFF = ("exit_cost", "exit_context", "exit_total_execution_time", "exit_command_timeout", "early_exit")
_FAILED = ("exit_api", "exit_error", "exit_environment_error", "exit_format", "error")


def read_trajectory(document: Document, rules: FieldRules) -> Iterator[ReadEpisode]:
    """Yield the episode of a trajectory.

    | field | becomes |
    |---|---|
    | `history` before the first answer, without demonstrations; else `problem_statement` | the first state |
    | `action` of a step of `trajectory` | the action |
    | `observation` | the next state |
    | `thought`, else `response` | the text beside the action |
    | `instance_id`, else that of `replay_config`, else the file's name `ID.traj`, else the first message | the task |
    | a hash of the content | the episode's id |
    | `info.resolved`, `info.score`, else `info.reward` | the last step's reward: true is 1, false is 0 |
    | `info.exit_status`: submitted; cost, context, time; an error | terminated; truncated; aborted |

    A trajectory has no reward as SWE-agent writes it: the tests of the benchmark run later.

    Raises:
        InputError: it is something else.
    """
    source = record("a trajectory", document.value)
    skipped: Counter[str] = Counter()
    items: list[Any] = list(_first_messages(source, skipped))
    steps = [record("a step", step) for step in optional_list("trajectory", source.get("trajectory"))]
    for step in steps:
        action = content_text("an action", step.get("action"))
        thought = step.get("thought") or step.get("response")
        observation = content_text("an observation", step.get("observation"))
        if action.strip():
            items.append(AgentTurn((action.strip(),), text=thought.strip() if isinstance(thought, str) else ""))
        else:
            skipped["steps without an action"] += 1
        if observation.strip():
            items.append(InputMessage("observation", observation))
    info = optional_record("info", source.get("info"))
    outcome = next((info[key] for key in ("resolved", "score", "reward") if info.get(key) is not None), None)
    yield rules.read(
        items,
        source=source,
        line=document.line,
        created_at=None,
        skipped=skipped,
        task=_task(source, rules.file),
        id=content_id("swe-agent", source),
        reward=None if outcome is None else _number(outcome),
        ending=_ending(info.get("exit_status")),
        model=optional_text("model", optional_record("model_stats", info.get("model_stats")).get("model")),
        policy="swe-agent",
    )


def _number(outcome: object) -> float:
    return check_reward("the outcome", float(outcome) if isinstance(outcome, bool) else outcome)


def _first_messages(source: dict[str, Any], skipped: Counter[str]) -> Iterator[InputMessage]:
    found = False
    for entry in optional_list("history", source.get("history")):
        fields = record("a message of the history", entry)
        if fields.get("role") == "assistant" and not fields.get("is_demo"):
            break
        if fields.get("is_demo"):
            skipped["demonstrations"] += 1
        elif (text := content_text("a message of the history", fields.get("content"))).strip():
            role = "system" if fields.get("role") == "system" else "user"
            found = found or role == "user"
            yield InputMessage(role, text)
    problem = optional_text("problem_statement", source.get("problem_statement"))
    if not found and problem:
        yield InputMessage("user", problem)


def _task(source: dict[str, Any], file: str | None) -> str | None:
    """Return the id of the problem, from wherever the version of the agent has it; `environment` is a constant."""
    replay = source.get("replay_config")
    if isinstance(replay, str) and replay.strip():
        replay = parse_strict_json(replay)
    problem = replay.get("problem_statement") if isinstance(replay, dict) else None
    for key, holder in (("instance_id", source), ("instance_id", replay), ("id", problem)):
        if isinstance(holder, dict) and isinstance(holder.get(key), str | int):
            return text_key(key, holder[key])
    name = PurePath(file or "").name.removesuffix(".gz")
    return name.removesuffix(_SUFFIX) if name.endswith(_SUFFIX) and len(name) > len(_SUFFIX) else None


def _ending(status: object) -> Ending:
    if status is None:
        return "terminated"
    text = status if isinstance(status, str) else describe_value(status)
    cut = any(mark in text for mark in _CUT_OFF)
    return "truncated" if cut else "aborted" if any(mark in text for mark in _FAILED) else "terminated"


def _recognises(value: object) -> bool:
    steps = value.get("trajectory") if isinstance(value, dict) else None
    if not isinstance(steps, list):
        return False
    return all(isinstance(step, dict) and {"action", "observation"} <= step.keys() for step in steps[:3])


SWE_AGENT = Format("SWE-agent trajectories", _recognises, by_document(read_trajectory))
