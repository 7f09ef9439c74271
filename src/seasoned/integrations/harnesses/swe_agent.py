"""Reader of SWE-agent trajectories: `.traj` files with the agent's actions and the shell's observations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from seasoned.checks import check_reward
from seasoned.integrations.conversation import AgentTurn, InputMessage, content_id, exit_ending
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, parse_strict_json
from seasoned.integrations.json_shapes import (
    content_text,
    optional_list,
    optional_record,
    optional_text,
    record,
    text_key,
)
from seasoned.integrations.readers import Format, by_document

__all__ = ["SWE_AGENT", "read_trajectory"]

_SUFFIX = ".traj"
_FENCE = "```"
_OF_DATA_SET = {"role", "text", "system_prompt"}  # of a message in nebius/SWE-agent-trajectories


def read_trajectory(document: Document, rules: FieldRules) -> Iterator[ReadEpisode]:
    """Yield the episode of a trajectory.

    | field | becomes |
    |---|---|
    | `history` before the first answer, without demonstrations, else the first `query` | the first state |
    | `problem_statement`, if there is neither | the first state |
    | `action` of a step of `trajectory` | the action |
    | `observation` | the next state |
    | `thought`, else `response` | the text beside the action |
    | `instance_id`, else that of `replay_config`, else the file's name `ID.traj`, else the first message | the task |
    | a hash of the content | the episode's id |
    | `info.resolved`, `info.score`, else `info.reward` | the last step's reward: true is 1, false is 0 |
    | `info.exit_status`: submitted; cost, context, time; an error | terminated; truncated; aborted |

    A trajectory has no reward as SWE-agent writes it: the tests of the benchmark run later.

    The rows of nebius/SWE-agent-trajectories have messages in `trajectory`: the last block of code in the text of `ai`
    is the action, the text before it is beside it; `target` is the reward, `exit_status` the ending.

    Raises:
        InputError: it is something else.
    """
    source = record("a trajectory", document.value)
    skipped: Counter[str] = Counter()
    steps = [record("a step", step) for step in optional_list("trajectory", source.get("trajectory"))]
    info = optional_record("info", source.get("info"))
    outcome = next((info[key] for key in ("resolved", "score", "reward") if info.get(key) is not None), None)
    if _is_of_data_set(steps):
        answer = next((index for index, step in enumerate(steps) if step.get("role") == "ai"), len(steps))
        items = [_item(step, first=index < answer) for index, step in enumerate(steps)]
        outcome, info = source.get("target"), source
    else:
        items = [*_first_messages(source, skipped), *_of_steps(steps, skipped)]
    yield rules.read(
        items,
        source=source,
        line=document.line,
        created_at=None,
        skipped=skipped,
        task=_task(source, rules.file),
        id=content_id("swe-agent", source),
        reward=None if outcome is None else _number(outcome),
        ending=exit_ending(info.get("exit_status")),
        model=optional_text("model", source.get("model_name") or _model(info)),
        policy="swe-agent",
    )


def _model(info: dict[str, Any]) -> object:
    return optional_record("model_stats", info.get("model_stats")).get("model")


def _of_steps(steps: list[dict[str, Any]], skipped: Counter[str]) -> Iterator[InputMessage | AgentTurn]:
    for step in steps:
        action = content_text("an action", step.get("action"))
        thought = step.get("thought") or step.get("response")
        observation = content_text("an observation", step.get("observation"))
        if action.strip():
            yield AgentTurn((action.strip(),), text=thought.strip() if isinstance(thought, str) else "")
        else:
            skipped["steps without an action"] += 1
        if observation.strip():
            yield InputMessage("observation", observation)


def _is_of_data_set(steps: list[Any]) -> bool:
    return bool(steps) and all(isinstance(step, dict) and step.keys() >= _OF_DATA_SET for step in steps[:3])


def _item(message: dict[str, Any], *, first: bool) -> InputMessage | AgentTurn:
    role, text = message.get("role"), content_text("a text", message.get("text"))
    if role == "system":
        return InputMessage("system", text or content_text("a system prompt", message.get("system_prompt")))
    if role != "ai":
        return InputMessage("user" if first else "observation", text)
    before, *block = text.rsplit(_FENCE, 2)
    command = block[0].partition("\n")[2].strip() if len(block) == 2 else ""
    return AgentTurn((command,), text=before.strip()) if command else AgentTurn((text,) if text.strip() else ())


def _number(outcome: object) -> float:
    return check_reward("the outcome", float(outcome) if isinstance(outcome, bool) else outcome)


def _first_messages(source: dict[str, Any], skipped: Counter[str]) -> Iterator[InputMessage]:
    found = False
    steps = [step for step in optional_list("trajectory", source.get("trajectory")) if isinstance(step, dict)]
    asked = steps[0].get("query") if steps else None
    for entry in optional_list("history", source.get("history")) or (asked if isinstance(asked, list) else []):
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


def _recognises(value: object) -> bool:
    steps = value.get("trajectory") if isinstance(value, dict) else None
    if not isinstance(steps, list):
        return False
    return all(map(_is_step, steps[:3])) or _is_of_data_set(steps)


def _is_step(step: object) -> bool:
    """Return whether an object is an action, and then its observation; an observation before it is a state."""
    names = list(step) if isinstance(step, dict) else []
    return "action" in names and "observation" in names[names.index("action") :]


SWE_AGENT = Format("SWE-agent trajectories", _recognises, by_document(read_trajectory))
