"""Reader of OpenHands events: of the event stream, of `history` in evaluation outputs, and of the SDK's events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from seasoned.checks import check_reward
from seasoned.integrations.conversation import AgentTurn, InputMessage, content_id
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.harnesses.openhands_events import event_items, is_event
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult, Refusal, reason
from seasoned.integrations.json_shapes import last_time, optional_list, optional_record, optional_text, record, text_key
from seasoned.integrations.readers import Format, SessionReader
from seasoned.types import Ending

__all__ = ["OPENHANDS"]

_LISTS = ("history", "trajectory", "events")
_STREAM = "events"
_OF_EVALUATION = {"instance_id", "test_result", "history"}  # of a run that failed before its first event


class _EventsReader:
    """Reads documents with a list of events, and events on lines of their own, which are one session."""

    def __init__(self, rules: FieldRules) -> None:
        self._rules = rules
        self._stream = SessionReader(
            lambda event: (_STREAM, event),
            lambda _, events: iter((self._episode({}, [event for _, event in events], events[0][0]),)),
        )

    def add(self, document: Document) -> Iterator[ReadResult]:
        if is_event(document.value):
            yield from self._stream.add(document)
            return
        try:
            value = document.value
            source = {"events": value} if isinstance(value, list) else record("a run", value)
            name = next((name for name in _LISTS if isinstance(source.get(name), list)), "events")
            yield self._episode(source, optional_list(name, source.get(name)), document.line)
        except (ValueError, OverflowError, RecursionError) as error:
            yield Refusal(document.line, reason(error))

    def close(self) -> Iterator[ReadResult]:
        yield from self._stream.close()

    def _episode(self, source: dict[str, Any], events: list[Any], line: int) -> ReadEpisode:
        """Return the episode of a run.

        | field | becomes |
        |---|---|
        | events, see `openhands_events.event_items` | steps |
        | `instruction`, if the events begin with the agent | the first state |
        | `instance_id` | the task |
        | `resolved`, else that of `test_result.report`, `test_result.result`, `test_result` | reward |
        | `error`; a maximum of iterations in it | aborted; truncated |
        | `metadata.llm_config.model`; `metadata.agent_class` | model; policy |
        | a hash of the content | the episode's id |
        """
        skipped: Counter[str] = Counter()
        calls: dict[str, str] = {}
        flat = [each for event in events for each in (event if isinstance(event, list) else [event])]
        items = list(_joined(item for event in flat for item in event_items(event, calls, skipped)))
        asked = optional_text("instruction", source.get("instruction"))
        if asked and (not items or isinstance(items[0], AgentTurn)):
            items.insert(0, InputMessage("user", asked))
        metadata = optional_record("metadata", source.get("metadata"))
        llm = optional_record("llm_config", metadata.get("llm_config") or metadata.get("llm"))
        times = [event.get("timestamp") for event in flat if isinstance(event, dict)]
        return self._rules.read(
            items,
            source=source or events,
            line=line,
            created_at=last_time(times, skipped),
            skipped=skipped,
            task=text_key("instance_id", source.get("instance_id")),
            id=content_id("openhands", source or events),
            reward=_outcome(source),
            ending=_ending(source.get("error")),
            model=optional_text("model", llm.get("model")),
            policy=optional_text("agent", metadata.get("agent_class")) or "openhands",
        )


def _joined(items: Iterator[InputMessage | AgentTurn]) -> Iterator[InputMessage | AgentTurn]:
    """Yield the items; calls without an input between them are one turn."""
    turns: list[AgentTurn] = []
    for item in items:
        if isinstance(item, AgentTurn):
            turns.append(item)
            continue
        yield from _one_turn(turns)
        turns = []
        yield item
    yield from _one_turn(turns)


def _one_turn(turns: list[AgentTurn]) -> Iterator[AgentTurn]:
    if turns:
        actions = tuple(action for turn in turns for action in turn.actions)
        yield AgentTurn(actions, text="\n".join(turn.text for turn in turns if turn.text))


def _outcome(source: dict[str, Any]) -> float | None:
    test = source.get("test_result")
    test = test if isinstance(test, dict) else {}
    places = [source, *(test.get(key) for key in ("report", "result")), test]
    for place in places:
        if isinstance(place, dict) and place.get("resolved") is not None:
            resolved = place["resolved"]
            return check_reward("resolved", float(resolved) if isinstance(resolved, bool) else resolved)
    return None


def _ending(error: object) -> Ending:
    if not error:
        return "terminated"
    return "truncated" if isinstance(error, str) and "maximum iteration" in error else "aborted"


def _recognises(value: object) -> bool:
    if is_event(value):
        return True
    lists = [value] if isinstance(value, list) else []
    if isinstance(value, dict):
        lists = [value[name] for name in _LISTS if isinstance(value.get(name), list)]
    for events in lists:
        first = next((event for event in events if event), None)
        first = first[0] if isinstance(first, list) and first else first
        if is_event(first):
            return True
    return isinstance(value, dict) and value.get("history") == [] and value.keys() >= _OF_EVALUATION


OPENHANDS = Format("OpenHands events", _recognises, _EventsReader)
