"""Readers of tau-bench and tau2 runs: conversations of an agent with a simulated user, with the task's reward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seasoned.integrations.chat.messages import MessageReader, is_messages, written_value
from seasoned.integrations.conversation import content_id
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult, Refusal, reason
from seasoned.integrations.json_shapes import (
    last_time,
    optional_list,
    optional_record,
    optional_reward,
    optional_text,
    record,
    text_key,
)
from seasoned.integrations.readers import Format, by_document
from seasoned.types import Ending

__all__ = ["TAU2", "TAU_BENCH"]

_ENDINGS: dict[str, Ending] = {
    "max_steps": "truncated",
    "timeout": "truncated",
    "too_many_errors": "aborted",
    "agent_error": "aborted",
    "user_error": "aborted",
    "infrastructure_error": "aborted",
    "unexpected_error": "aborted",
}
"""Endings by the termination reasons of tau2; every other reason is a regular end."""


def read_run(document: Document, rules: FieldRules) -> Iterator[ReadEpisode]:
    """Yield the episode of a tau-bench run.

    | field | becomes |
    |---|---|
    | `traj`: messages, see `chat.messages.MessageReader` | steps |
    | `reward` | the last step's reward |
    | `task_id` | the task |
    | a hash of the content | the episode's id |
    | `info.error` | aborted |

    Raises:
        InputError: it is something else, or has a message of an unknown kind.
    """
    run = record("a run", document.value)
    reader = MessageReader()
    items = [item for message in optional_list("traj", run.get("traj")) for item in reader.items(message)]
    info = optional_record("info", run.get("info"))
    yield rules.read(
        items,
        source=run,
        line=document.line,
        created_at=None,
        skipped=reader.skipped,
        task=text_key("task_id", run.get("task_id")),
        id=content_id("tau-bench", run),
        reward=optional_reward("reward", run.get("reward")),
        ending="aborted" if info.get("error") else "terminated",
    )


def _recognises(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("traj"), list) and "task_id" in value


class _Tau2Reader:
    """Reads results of tau2: each simulation is an episode, and a refusal concerns that simulation only."""

    def __init__(self, rules: FieldRules) -> None:
        self._rules = rules
        self._info: dict[str, Any] = {}
        self._n_simulations = 0  # of these results, which may be read simulation by simulation

    def add(self, document: Document) -> Iterator[ReadResult]:
        try:
            results = record("results", document.value)
            info = optional_record("info", results.get("info"))
            agent = optional_record("agent_info", info.get("agent_info"))
            listed = optional_list("simulations", results["simulations"]) if "simulations" in results else [results]
            known, self._info = self._info, info
            self._n_simulations = self._n_simulations if info == known and len(listed) == 1 else 0
        except ValueError as error:
            yield Refusal(document.line, reason(error))
            return
        for simulation in listed:
            self._n_simulations += 1
            try:
                yield self._episode(simulation, agent, document.line)
            except (ValueError, OverflowError, RecursionError) as error:
                yield Refusal(document.line, f"simulation {self._n_simulations - 1}: {reason(error)}")

    def close(self) -> Iterator[ReadResult]:
        return iter(())

    def _episode(self, value: object, agent: dict[str, Any], line: int) -> ReadEpisode:
        """Return the episode of a simulation.

        `reward_info.reward` is the reward, `task_id` the task, `id` the id, `termination_reason` the ending. `messages`
        and `reward_info` may be texts of JSON or of a Python literal. The tools that the simulated user calls, and
        their results, are not shown to the agent: they are passed over.
        """
        simulation = record("a simulation", value)
        reader = MessageReader()
        items: list[Any] = []
        for fields in _flat(optional_list("messages", _parsed("messages", simulation))):
            by_user = fields.get("role") == "tool" and fields.get("requestor") == "user"
            if by_user or (fields.get("role") == "user" and fields.get("tool_calls")):
                reader.skipped["the user's own tool calls and results"] += 1
                continue
            is_result = fields.get("role") == "tool"
            items += reader.items({**fields, "tool_call_id": fields.get("id")} if is_result else fields)
        why = simulation.get("termination_reason")
        reward_info = optional_record("reward_info", _parsed("reward_info", simulation))
        identity = text_key("id", simulation.get("id"))
        return self._rules.read(
            items,
            source=simulation,
            line=line,
            created_at=last_time([simulation.get("timestamp"), simulation.get("end_time")], reader.skipped),
            skipped=reader.skipped,
            task=text_key("task_id", simulation.get("task_id")),
            id=f"tau2:{identity}" if identity else content_id("tau2", simulation),
            reward=optional_reward("reward", reward_info.get("reward")),
            ending=_ENDINGS.get(why, "terminated") if isinstance(why, str) else "terminated",
            model=optional_text("model", agent.get("llm")),
            policy=optional_text("agent", agent.get("implementation")),
        )


def _parsed(name: str, simulation: dict[str, Any]) -> object:
    """Return a field's value; rows of tables have lists and objects as texts."""
    value = simulation.get(name)
    if not isinstance(value, str):
        return value
    return written_value(name, value) if value.strip() else None


def _flat(messages: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages, with the results of parallel calls (`tool_messages`) one by one."""
    for fields in (record("a message", message) for message in messages):
        results = fields.get("tool_messages")
        yield from (
            [fields] if results is None else (record("a result", one) for one in optional_list("results", results))
        )


def _recognises_tau2(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    simulations = value.get("simulations")
    if isinstance(simulations, list):
        return "tasks" in value or "info" in value or not simulations or _is_simulation(simulations[0])
    return _is_simulation(value)


def _is_simulation(value: object) -> bool:
    if not isinstance(value, dict) or not ("termination_reason" in value or "reward_info" in value):
        return False
    messages = value.get("messages")
    return "task_id" in value and (isinstance(messages, str) or is_messages(messages))


TAU_BENCH = Format("tau-bench runs", _recognises, by_document(read_run))
TAU2 = Format("tau2 results", _recognises_tau2, _Tau2Reader)
