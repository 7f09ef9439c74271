"""Routes of an agent that converses: memory's block for a request of messages, and the conversation as an episode.

Messages are those of Chat Completions, and are read as the gateway, `wrap` and `seasoned memory import` read them: what
one of them stores, the others find.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from seasoned.checks import check_number, check_one_of, check_text, check_texts
from seasoned.errors import InputError, excerpt
from seasoned.integrations.clients.call_holdout import CallArms, CallHoldout
from seasoned.integrations.clients.call_modes import AdviceText, ExampleText, PromptText
from seasoned.integrations.clients.prompt_block import framed_block, without_blocks
from seasoned.integrations.clients.wires.chat_wire import ChatWire
from seasoned.integrations.conversation import AgentTurn, episode_of
from seasoned.memory import Memory
from seasoned.policies.advice import Advisor
from seasoned.policies.examples.retrieval import Examples
from seasoned.service.decisions.decision_service import DecisionSettings
from seasoned.service.decisions.feedback_caps import check_episode_rewards
from seasoned.service.json_documents import (
    MAX_POSTED_STEPS,
    add_with_shown,
    check_json_array,
    check_json_fields,
    shown_body,
)
from seasoned.service.permissions import check_scope
from seasoned.service.recall.recall_routes import PartOfMemory
from seasoned.service.recall.recall_schemas import (
    MAX_LISTED_OPTIONS,
    RECALL_ANSWER,
    RECALL_SCHEMA,
    TRANSCRIPT_ANSWER,
    TRANSCRIPT_SCHEMA,
)
from seasoned.service.routes import Route, ServiceRequest
from seasoned.types.experience import Ending

__all__ = ["conversation_routes"]

RecallMode = Literal["examples", "advise"]
_FAMILY = "conversations"
_WIRE = ChatWire()


class _Prompts:
    """Memory's texts for the requests of conversations, by mode, under the holdout of a service."""

    def __init__(self, memory: Memory, settings: DecisionSettings) -> None:
        self._memory = memory
        self._parts: dict[RecallMode, PromptText] = {
            "examples": ExampleText(Examples(memory)),
            "advise": AdviceText(Advisor(memory)),
        }
        self._arms: dict[RecallMode, CallArms] = {}
        if settings.holdout and not memory.session.store.read_only:
            for mode, part in self._parts.items():
                self._arms[mode] = CallArms(CallHoldout(bounds=settings.bounds, epoch=f"recall:{mode}"), part, memory)

    def recall(self, body: Mapping[str, Any], mode: RecallMode, texts: Mapping[str, str | None]) -> dict[str, Any]:
        """Return the answer to a request."""
        units, unit, task = without_blocks(_messages(body)), texts["episode_id"], texts["task"]
        arm: str | None = None
        pause = self._memory.pause_of(task or _FAMILY)
        if pause is not None:
            reason = f"memory is paused for the family {excerpt(task or _FAMILY)} by {excerpt(pause.who)}"
            return _recalled(None, "base", None, reason)
        if unit is not None and mode in self._arms:
            arm = self._arms[mode].arm(unit, task, texts["model"] or "model")
            if arm != "treated":
                return _recalled(None, "holdout", arm, "held out of memory, to measure its lift")
        names = check_texts("tools", check_json_array("tools", body.get("tools", []), MAX_LISTED_OPTIONS))
        offered = {"tools": [{"function": {"name": name}} for name in names]}
        found = self._parts[mode].recall(_WIRE.moment(units), task, functools.partial(_WIRE.can_call, offered))
        if not found.text:
            return _recalled(None, "base", arm, "memory has nothing to say here")
        shown = [list(place) for place in found.shown]
        return _recalled(found.text, "memory", arm, "memory has a text for this moment", shown)


def _recalled(
    text: str | None, mode: str, arm: str | None, reason: str, shown: Sequence[list[Any]] = ()
) -> dict[str, Any]:
    block = "" if text is None else framed_block(text)
    return {"text": text or "", "block": block, "shown": list(shown), "mode": mode, "arm": arm, "reason": reason}


def conversation_routes(settings: DecisionSettings) -> tuple[Route, ...]:
    """Return the addresses of conversations.

    Args:
        settings: the holdout and its bounds.
    """
    prompts = PartOfMemory(lambda memory: _Prompts(memory, settings))

    def recall(request: ServiceRequest) -> Any:
        body = check_json_fields("recall", request.body, RECALL_SCHEMA["properties"], RECALL_SCHEMA["required"])
        mode = check_one_of("mode", body.get("mode", "examples"), get_args(RecallMode))
        texts = _texts(body, ("task", "episode_id", "model"))
        if texts["episode_id"] is not None:  # its arm is stored
            check_scope(request.holder, "write")
        return prompts(request.memory).recall(body, mode, texts)

    return (
        Route(
            "POST",
            "/v1/recall",
            recall,
            "Memory's block for the end of a conversation's last message: examples, or advice.",
            RECALL_SCHEMA,
            answer=RECALL_ANSWER,
        ),
        Route(
            "POST",
            "/v1/transcripts",
            add_transcript,
            "Store a conversation as an episode; idempotent with an id.",
            TRANSCRIPT_SCHEMA,
            201,
            scope="write",
            answer=TRANSCRIPT_ANSWER,
        ),
    )


def add_transcript(request: ServiceRequest) -> Any:
    """Store a conversation: each turn of the agent is a step, or several if it has parallel calls."""
    body = check_json_fields("transcript", request.body, TRANSCRIPT_SCHEMA["properties"], TRANSCRIPT_SCHEMA["required"])
    texts = _texts(body, ("task", "id", "model", "policy", "arm", "subject"))
    units = without_blocks(_messages(body))
    awaits, ending = body.get("awaits_feedback"), body.get("ending", "terminated")
    if awaits not in (None, True, False):
        raise InputError(f"awaits_feedback = {excerpt(awaits)}", "it is true, false or null", "Leave it out.")
    reward = None if body.get("reward") is None else check_number("reward", body["reward"])
    items, shown, n_steps = [], {}, 0
    for index, item in _WIRE.items(units, [True] * len(units)):
        items.append(item)
        if isinstance(item, AgentTurn) and item.actions:
            listed = shown_body(f"messages[{index}].shown", units[index].get("shown"))
            if listed is not None:
                shown[n_steps] = listed
            n_steps += len(item.actions)
    episode, _ = episode_of(
        items,
        task=texts["task"],
        id=texts["id"],
        reward=reward,
        ending=check_one_of("ending", ending, get_args(Ending)),
        model=texts["model"],
        policy=texts["policy"],
        subject=texts["subject"],
    )
    check_episode_rewards(request.memory, request.holder, episode)
    id_ = add_with_shown(request.memory, episode, shown, arm=texts["arm"], awaits_feedback=awaits)
    return {"id": id_, "steps": len(episode.steps)}


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a body without instructions."""
    listed = check_json_array("messages", body["messages"], MAX_POSTED_STEPS)
    for number, message in enumerate(listed):
        if not isinstance(message, Mapping):
            raise InputError(f"messages[{number}] = {excerpt(message)}", "a message is a JSON object", "Put it in { }.")
    units = _WIRE.units({"messages": listed})
    if not units:
        raise InputError("no message but instructions", "a conversation has a message", "Send what the user said.")
    return units


def _texts(body: Mapping[str, Any], names: Sequence[str]) -> dict[str, str | None]:
    return {name: None if body.get(name) is None else check_text(name, body[name]) for name in names}
