"""Importer of ATIF, the Agent Trajectory Interchange Format of Harbor: one JSON document per trajectory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from seasoned.actions import call_action
from seasoned.errors import InputError
from seasoned.integrations.conversation import AgentTurn, InputMessage, content_id, ending_of
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult
from seasoned.integrations.json_shapes import (
    CORRECT,
    content_text,
    describe_value,
    last_time,
    optional_list,
    optional_record,
    optional_reward,
    optional_text,
    record,
    text_key,
)
from seasoned.integrations.readers import DocumentReader, Format

__all__ = ["ATIF", "read_atif", "trajectories"]

_OUR_AGENT = "seasoned"  # of `integrations.harbor`, which decides on the last observation alone
_VERSION = re.compile(r"ATIF-v1\.\d{1,4}")


def read_atif(document: Document, rules: FieldRules | None = None) -> Iterator[ReadEpisode]:
    """Yield the episode of a trajectory; `trajectories` yields the embedded trajectories of sub-agents.

    Source: Harbor's RFC 0001, versions 1.x. Later minor versions only add fields, so unknown fields are allowed.

    | field | becomes |
    |---|---|
    | `steps` of source agent | steps: `tool_calls` as `call_action`, else the `message` |
    | `steps` of source user or system, `observation.results` | incoming messages, see `conversation.episode_of` |
    | a message beside a tool call | `AgentTurn.text` |
    | `reasoning_content`, `metrics`, `notes` | nothing |
    | an agent step without call and message, but with a thought or an observation | no step, a message |
    | `is_copied_context` | context, no step: the original trajectory records it |
    | `trajectory_id`, else `session_id`, else a hash of the content | the episode's id |
    | `agent.model_name`, else the first `model_name` of a step | model |
    | `agent.name` | policy; states of our own agent for Harbor, `seasoned`, are its observations as they are |
    | the last `timestamp` | time of the episode |
    | `extra.reward` or `extra.score` of a step | the reward of the step's last action |
    | `extra.reward` or `extra.score` of the document, else of `final_metrics` | the last step's reward |
    | `extra.task`, `extra.subject` | task, subject |
    | `extra.ending`; `extra.truncated`: true; `extra.error` | the ending, else terminated |

    The format has no reward field: harnesses put rewards into `extra`, or into another file.

    Raises:
        InputError: it is not an ATIF 1.x document, or a step has an unknown source.

    Example:
        >>> steps = [
        ...     {"step_id": 1, "source": "user", "message": "List the files."},
        ...     {"step_id": 2, "source": "agent", "message": "",
        ...      "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}],
        ...      "observation": {"results": [{"source_call_id": "c1", "content": "a.txt"}]}},
        ... ]
        >>> trajectory = {"schema_version": "ATIF-v1.7", "session_id": "s1", "agent": {"name": "a", "version": "1"},
        ...               "steps": steps}
        >>> episode = next(read_atif(Document(1, trajectory))).episode
        >>> episode.steps[0].action, episode.final_state.splitlines()[-2:]
        ('{"arguments":{"command":"ls"},"name":"bash"}', ['tool bash:', 'a.txt'])
    """
    trajectory = record("a trajectory", document.value)
    version = trajectory.get("schema_version")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise InputError(
            f"schema_version = {describe_value(version)}",
            "the version must be ATIF-v1.x",
            "Check the format of the file.",
        )
    agent = record("agent", trajectory.get("agent"))
    steps = [record("a step", step) for step in optional_list("steps", trajectory.get("steps"))]
    if not steps:
        raise InputError("steps = []", "a trajectory needs at least one step", "Leave it out.")
    calls: dict[str, str] = {}
    items = [item for step in steps for item in _items(step, calls)]
    extra = optional_record("extra", trajectory.get("extra"))
    metrics = optional_record("final_metrics", trajectory.get("final_metrics"))
    reward = _reward(extra)
    if reward is None:
        reward = _reward(optional_record("extra", metrics.get("extra")))
    models = [agent.get("model_name"), *(step.get("model_name") for step in steps)]
    times = [step.get("timestamp") for step in steps]
    skipped: Counter[str] = Counter()
    ids = (
        text_key("trajectory_id", trajectory.get("trajectory_id")),
        text_key("session_id", trajectory.get("session_id")),
    )
    rules = rules or FieldRules()
    yield rules.read(
        items,
        source=trajectory,
        line=document.line,
        created_at=last_time(times, skipped),
        skipped=skipped,
        task=optional_text("task", extra.get("task")),
        id=ids[0] or ids[1] or content_id("atif", trajectory),
        reward=reward,
        ending=ending_of({key: extra.get(key) for key in ("ending", "error", "truncated")}),
        model=next((text for model in models if (text := optional_text("model_name", model))), None),
        policy=optional_text("agent name", agent.get("name")),
        subject=optional_text("subject", extra.get("subject")),
        plain_states=agent.get("name") == _OUR_AGENT,
    )


def trajectories(document: Document) -> Iterator[Document]:
    """Yield a document and the documents in its `subagent_trajectories`, at any depth.

    Example:
        >>> inner = {"trajectory_id": "t2"}
        >>> len(list(trajectories(Document(1, {"trajectory_id": "t1", "subagent_trajectories": [inner]}))))
        2
    """
    pending = [document.value]
    while pending:
        value = pending.pop()
        yield Document(document.line, value)
        if isinstance(value, dict) and isinstance(embedded := value.get("subagent_trajectories"), list):
            pending.extend(reversed(embedded))


def _reward(extra: dict[str, Any]) -> float | None:
    reward = optional_reward("reward", extra.get("reward"))
    return optional_reward("score", extra.get("score")) if reward is None else reward


def _items(step: dict[str, Any], calls: dict[str, str]) -> Iterator[InputMessage | AgentTurn]:
    source = step.get("source")
    if source not in ("system", "user", "agent"):
        raise InputError(f"source {describe_value(source)}", "the source must be system, user or agent", CORRECT)
    message = content_text(f"the message of {source}", step.get("message"))
    results = optional_list("results", optional_record("observation", step.get("observation")).get("results"))
    if source == "agent":
        actions = tuple(_call(call, calls) for call in optional_list("tool_calls", step.get("tool_calls")))
        text = message.strip() if actions else ""
        if not actions and message.strip():
            actions = (message,)
        if not actions and not results and not optional_text("reasoning_content", step.get("reasoning_content")):
            raise InputError(
                "an empty step of the agent", "a step needs a message, a call or an observation", "Remove it."
            )
        reward = _reward(optional_record("extra", step.get("extra")))
        yield AgentTurn(actions, reward, step.get("is_copied_context") is not True, text)
    elif message.strip():
        yield InputMessage(str(source), message)
    elif not results:
        raise InputError(f"an empty step of {source}", "a step needs a message or an observation", "Remove it.")
    for result in results:
        fields = record("a result", result)
        name = calls.get(str(fields.get("source_call_id")))
        text = content_text("the content of a result", fields.get("content"))
        yield InputMessage(f"tool {name}" if name else "observation", text)


def _call(call: object, calls: dict[str, str]) -> str:
    fields = record("a tool call", call)
    text = call_action(fields.get("function_name"), fields.get("arguments"))
    calls[str(fields.get("tool_call_id"))] = str(fields["function_name"])
    return text


class _TrajectoryReader:
    """Reads trajectories and those embedded in them, each on its own."""

    def __init__(self, rules: FieldRules) -> None:
        self._reader = DocumentReader(read_atif, rules)

    def add(self, document: Document) -> Iterator[ReadResult]:
        for each in trajectories(document):
            yield from self._reader.add(each)

    def close(self) -> Iterator[ReadResult]:
        yield from self._reader.close()


def _recognises(value: object) -> bool:
    version = value.get("schema_version") if isinstance(value, dict) else None
    return isinstance(version, str) and version.startswith("ATIF-")


ATIF = Format("ATIF trajectories", _recognises, _TrajectoryReader)
