"""OpenTelemetry GenAI telemetry: spans are gathered by conversation, across lines, in bounded memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from seasoned.canonical_json import canonical_json
from seasoned.errors import InputError, excerpt
from seasoned.integrations.genai_spans import conversation_episode, kind_of
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult, Refusal, reason
from seasoned.integrations.otlp import Telemetry, leaves, telemetry, trace_of

__all__ = ["MAX_HELD_BYTES", "read_otel"]

MAX_HELD_BYTES = 1024 * 1024 * 1024
_CONVERSATION = "gen_ai.conversation.id"


def read_otel(
    documents: Iterable[Document | Refusal], *, evaluation: str | None = None, max_held_bytes: int = MAX_HELD_BYTES
) -> Iterator[ReadResult]:
    """Yield an episode for each conversation: spans and log records of one `gen_ai.conversation.id`, else of one trace.

    A span without a conversation id is of its trace's, where the trace has just one. Spans come in any order; an
    episode comes at the end, in the order in which conversations began. Only the GenAI part of a span is held. Beyond
    `max_held_bytes` of it, the conversation that was quiet the longest is taken as over, and a span of it that comes
    later is refused: sort the file, or raise the limit. A span that comes twice counts once. A span that is refused
    takes its conversation with it: an episode is whole.

    Source: the GenAI semantic conventions; messages in attributes (since 1.37), and as events or log records before.

    | telemetry | becomes |
    |---|---|
    | a span of `chat`, `generate_content`, `text_completion` | a turn |
    | `gen_ai.input.messages` after the last assistant message | what came in, see `conversation.episode_of` |
    | `gen_ai.output.messages` | the actions: tool calls as `name({"arg":value})`, else the text; no reasoning |
    | `gen_ai.user.message`, `gen_ai.choice` and their like | the same, in earlier form |
    | `execute_tool` with `gen_ai.tool.call.result` | what came in, where no later input tells it: the final state |
    | `execute_tool` with `gen_ai.tool.call.arguments`, where no call of a model has messages | a turn |
    | `invoke_agent`, where no call of a model has messages | a turn |
    | the first user message of the first span that has one | the task |
    | `gen_ai.evaluation.result` on a turn's span | the reward of the turn's last action |
    | the same on another span, or on none | the last step's reward |
    | `gen_ai.response.model`, else `gen_ai.request.model`; `gen_ai.agent.name` | model; policy |
    | the end of the last span | when it was |
    | an error of the outermost agent or of the last call; finish reason `length` | aborted; truncated |
    | `embeddings`, `retrieval`, `create_agent`, memory operations; spans without `gen_ai.*` | nothing |

    Args:
        documents: JSON values, as `reading.documents` yields them.
        evaluation: the name of the evaluation whose score is the reward; needed where a conversation has several.
        max_held_bytes: how much is held at once, at most, as JSON.

    Raises:
        InputError: an argument breaks a rule. What is wrong in the file is a Refusal.
    """
    if isinstance(max_held_bytes, bool) or not isinstance(max_held_bytes, int) or max_held_bytes < 1:
        raise InputError(
            f"max_held_bytes = {excerpt(max_held_bytes)}",
            "it is a positive number of bytes",
            "Leave it at its default.",
        )
    return _read(documents, evaluation, max_held_bytes)


def _read(documents: Iterable[Document | Refusal], evaluation: str | None, limit: int) -> Iterator[ReadResult]:
    held = _Held()
    for document in documents:
        if isinstance(document, Refusal):
            yield document
            continue
        try:
            for log, leaf in leaves(document.value):
                try:
                    span = telemetry(leaf, log=log)
                    refusal = None if span is None else held.add(span, document.line)
                except (ValueError, OverflowError, RecursionError) as error:
                    refusal = Refusal(document.line, reason(error))
                    held.spoil(trace_of(leaf), document.line)
                if refusal is not None:
                    yield refusal
        except (ValueError, OverflowError, RecursionError) as error:
            yield Refusal(document.line, reason(error))
        while held.bytes > limit:
            yield from _episodes(held.take_quietest(), held.spoilt, evaluation)
    yield from _episodes(held.take_all(), held.spoilt, evaluation)


_Lines = list[tuple[int, bytes]]


def _episodes(traces: dict[str, _Lines], spoilt: dict[str, int], evaluation: str | None) -> Iterator[ReadResult]:
    """The conversations of some traces, in the order in which they began."""
    conversations: dict[str, list[tuple[int, Telemetry]]] = {}
    for trace, lines in traces.items():
        spans = [(line, json.loads(text)) for line, text in lines]
        named = {str(name) for _, span in spans if (name := span["attributes"].get(_CONVERSATION)) is not None}
        usual = next(iter(named)) if len(named) == 1 else trace
        for line, span in spans:
            name = span["attributes"].get(_CONVERSATION)
            conversations.setdefault(usual if name is None else str(name), []).append((line, span))
    for key, found in sorted(conversations.items(), key=lambda item: min(line for line, _ in item[1])):
        first = min(line for line, _ in found)
        spans_only = [span for _, span in found]
        holes = sorted(spoilt[span["trace"]] for span in spans_only if span["trace"] in spoilt)
        if holes:
            yield Refusal(first, f"conversation {key[:80]!a}: a span of it was refused, on line {holes[0]}")
        elif any(span["log"] or kind_of(span) != "other" for span in spans_only):
            yield _episode(key, spans_only, first, evaluation)


def _episode(key: str, spans: list[Telemetry], line: int, evaluation: str | None) -> ReadEpisode | Refusal:
    try:
        return conversation_episode(key, spans, line, evaluation)
    except (ValueError, OverflowError, RecursionError) as error:
        return Refusal(line, f"conversation {key[:80]!a}: {reason(error)}")


class _Held:
    """Spans by trace, as compact JSON, the trace that was quiet the longest first."""

    def __init__(self) -> None:
        self.bytes = 0
        self._traces: dict[str, _Lines] = {}
        self._names: dict[str, set[str]] = {}
        self._members: dict[str, set[str]] = {}
        self._seen: dict[str, set[str]] = {}
        self._over: set[str] = set()
        self.spoilt: dict[str, int] = {}

    def add(self, span: Telemetry, line: int) -> Refusal | None:
        kind_of(span)
        trace, name = span["trace"], span["attributes"].get(_CONVERSATION)
        key = trace if name is None else str(name)
        if trace in self._over or key in self._over:
            return Refusal(line, f"conversation {key[:80]!a} was over: it was quiet for longer than memory allows")
        text = canonical_json(span).encode()
        mark = hashlib.sha256(text).hexdigest() if span["log"] else span["span"]
        seen = self._seen.setdefault(trace, set())
        if mark in seen:
            return None
        seen.add(mark)
        lines = self._traces.pop(trace, [])
        lines.append((line, text))
        self._traces[trace] = lines
        self.bytes += len(text)
        if name is not None:
            self._names.setdefault(trace, set()).add(key)
            self._members.setdefault(key, set()).add(trace)
        return None

    def spoil(self, trace: str | None, line: int) -> None:
        """An episode is whole or is none: one refused span refuses its conversation."""
        if trace is not None:
            self.spoilt.setdefault(trace, line)

    def take_all(self) -> dict[str, _Lines]:
        traces, self._traces = self._traces, {}
        return traces

    def take_quietest(self) -> dict[str, _Lines]:
        """The quietest trace, with every trace that shares a conversation with it."""
        taken: dict[str, _Lines] = {}
        together = [next(iter(self._traces))]
        while together:
            trace = together.pop()
            if trace not in self._traces:
                continue
            taken[trace] = self._traces.pop(trace)
            self._seen.pop(trace, None)
            self._over.add(trace)
            for name in self._names.pop(trace, ()):
                self._over.add(name)
                together.extend(self._members.pop(name, ()))
        self.bytes -= sum(len(text) for lines in taken.values() for _, text in lines)
        return taken
