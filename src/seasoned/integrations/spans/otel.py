"""Importer of OpenTelemetry GenAI telemetry: spans grouped by conversation, across lines, in bounded memory."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterable, Iterator

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_whole
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult, Refusal, reason
from seasoned.integrations.readers import MAX_IDLE_EVENTS, Format
from seasoned.integrations.spans.genai_spans import conversation_episode, kind_of
from seasoned.integrations.spans.otlp import Telemetry, is_telemetry, leaves, telemetry, trace_of

__all__ = ["MAX_BUFFER_BYTES", "OTEL", "read_otel"]

MAX_BUFFER_BYTES = 1024 * 1024 * 1024
_CONVERSATION = "gen_ai.conversation.id"


def read_otel(
    documents: Iterable[Document | Refusal], *, evaluation: str | None = None, max_buffer_bytes: int = MAX_BUFFER_BYTES
) -> Iterator[ReadResult]:
    """Yield an episode for each conversation: spans and log records of one `gen_ai.conversation.id`, else of one trace.

    A span without a conversation id belongs to the conversation of its trace, if the trace has only one. Spans may have
    any order within a conversation. An episode follows when 20,000 spans of others have followed its last one, or at
    the end; those that follow together are in the order of their starts. Only the GenAI part of a span is buffered.
    Beyond `max_buffer_bytes`, the conversation with the oldest last span is closed. Later spans of a closed one are
    refused: sort the file. A repeated span counts once. A refused span refuses its whole
    conversation, so that every episode is complete.

    Source: the GenAI semantic conventions; messages in attributes (since 1.37), and as events or log records before.
    Other conventions are translated first: `dialects.genai_attributes`. `otlp.leaves` lists the shapes of files.

    | telemetry | becomes |
    |---|---|
    | a span of `chat`, `generate_content`, `text_completion` | a turn |
    | `gen_ai.input.messages` after the last assistant message | incoming messages, see `conversation.episode_of` |
    | `gen_ai.output.messages` | the actions: tool calls as `call_action`, else the text; no reasoning |
    | `gen_ai.user.message`, `gen_ai.choice` and similar events | the same, in earlier form |
    | `execute_tool` with `gen_ai.tool.call.result` | an incoming message, if no later input has it |
    | `execute_tool` with `gen_ai.tool.call.arguments`, if no model call has messages | a turn |
    | `invoke_agent`, if no model call has messages | a turn |
    | the first user message of the first span that has one | the task |
    | `gen_ai.evaluation.result` on a turn's span | the reward of the turn's last action |
    | the same on another span, or on none | the last step's reward |
    | `gen_ai.response.model`, else `gen_ai.request.model`; `gen_ai.agent.name` | model; policy |
    | the end of the last span | time of the episode |
    | an error of the outermost agent or of the last call; finish reason `length` | aborted; truncated |
    | `embeddings`, `retrieval`, `create_agent`, memory operations; spans without `gen_ai.*` | nothing |

    Args:
        documents: JSON values, from `json_input.documents`.
        evaluation: the name of the evaluation whose score is the reward; needed if a conversation has several.
        max_buffer_bytes: limit of the buffered spans.

    Raises:
        InputError: an argument breaks a rule. A fault in the file is a Refusal.
    """
    check_whole("max_buffer_bytes", max_buffer_bytes, 1)
    return _read(documents, SpanReader(FieldRules(evaluation=evaluation), max_buffer_bytes))


def _read(documents: Iterable[Document | Refusal], reader: SpanReader) -> Iterator[ReadResult]:
    for document in documents:
        if isinstance(document, Refusal):
            yield document
        else:
            yield from reader.add(document)
    yield from reader.close()


class SpanReader:
    """Reads telemetry as `read_otel` does, one document at a time."""

    def __init__(self, rules: FieldRules, max_buffer_bytes: int = MAX_BUFFER_BYTES) -> None:
        self._rules = rules
        self._limit = max_buffer_bytes
        self._buffer = _SpanBuffer()
        self._kept = {name for name in (rules.task, rules.reward) if name is not None}

    def add(self, document: Document) -> Iterator[ReadResult]:
        buffer = self._buffer
        try:
            for log, leaf in leaves(document.value):
                try:
                    span = telemetry(leaf, log=log, keep=self._kept)
                    refusal = None if span is None else buffer.add(span, document.line)
                except (ValueError, OverflowError, RecursionError) as error:
                    refusal = Refusal(document.line, reason(error))
                    buffer.refuse(trace_of(leaf), document.line)
                if refusal is not None:
                    yield refusal
        except (ValueError, OverflowError, RecursionError) as error:
            yield Refusal(document.line, reason(error))
        while buffer.bytes > self._limit or buffer.oldest_is_idle():
            yield from _episodes(buffer.take_oldest(), buffer.refused, self._rules)

    def close(self) -> Iterator[ReadResult]:
        yield from _episodes(self._buffer.take_all(), self._buffer.refused, self._rules)


_Lines = list[tuple[int, bytes]]


def _episodes(traces: dict[str, _Lines], refused: dict[str, int], rules: FieldRules) -> Iterator[ReadResult]:
    """Yield the conversations of some traces, in the order of their starts."""
    conversations: dict[str, list[tuple[int, Telemetry]]] = {}
    for trace, lines in traces.items():
        spans = [(line, marshal.loads(data)) for line, data in lines]  # noqa: S302 - written by `_SpanBuffer.add`
        named = {str(name) for _, span in spans if (name := span["attributes"].get(_CONVERSATION)) is not None}
        default = next(iter(named)) if len(named) == 1 else trace
        for line, span in spans:
            name = span["attributes"].get(_CONVERSATION)
            conversations.setdefault(default if name is None else str(name), []).append((line, span))
    for key, numbered in sorted(conversations.items(), key=lambda item: min(line for line, _ in item[1])):
        first = min(line for line, _ in numbered)
        spans_only = [span for _, span in numbered]
        refused_lines = sorted(refused[span["trace"]] for span in spans_only if span["trace"] in refused)
        if refused_lines:
            yield Refusal(first, f"conversation {key[:80]!a}: a span of it was refused, on line {refused_lines[0]}")
        elif any(span["log"] or kind_of(span) != "other" for span in spans_only):
            yield _episode(key, spans_only, first, rules)


def _episode(key: str, spans: list[Telemetry], line: int, rules: FieldRules) -> ReadEpisode | Refusal:
    try:
        return conversation_episode(key, spans, line, rules)
    except (ValueError, OverflowError, RecursionError) as error:
        return Refusal(line, f"conversation {key[:80]!a}: {reason(error)}")


class _SpanBuffer:
    """Spans by trace, each as bytes of this process; the trace with the oldest last span is first.

    A span is mostly one long text of messages. `marshal` copies it, where JSON would escape it again.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._traces: dict[str, _Lines] = {}
        self._n_spans = 0
        self._last: dict[str, int] = {}  # the number of the last span of each trace, and of each conversation
        self._names: dict[str, set[str]] = {}
        self._members: dict[str, set[str]] = {}
        self._seen: dict[str, set[str]] = {}
        self._closed: set[str] = set()
        self.refused: dict[str, int] = {}

    def add(self, span: Telemetry, line: int) -> Refusal | None:
        kind_of(span)
        trace, name = span["trace"], span["attributes"].get(_CONVERSATION)
        key = trace if name is None else str(name)
        if trace in self._closed or key in self._closed:
            return Refusal(line, f"conversation {key[:80]!a} was closed, too many spans ago: sort the file by trace")
        data = marshal.dumps(span)
        mark = hashlib.sha256(canonical_json(span).encode()).hexdigest() if span["log"] else span["span"]
        seen = self._seen.setdefault(trace, set())
        if mark in seen:
            return None
        seen.add(mark)
        lines = self._traces.pop(trace, [])
        lines.append((line, data))
        self._traces[trace] = lines
        self._n_spans += 1
        self._last[trace] = self._last[key] = self._n_spans
        self.bytes += len(data)
        if name is not None:
            self._names.setdefault(trace, set()).add(key)
            self._members.setdefault(key, set()).add(trace)
        return None

    def refuse(self, trace: str | None, line: int) -> None:
        """Refuse the conversations of a trace, because one of its spans was refused."""
        if trace is not None:
            self.refused.setdefault(trace, line)

    def oldest_is_idle(self) -> bool:
        """Return whether so many spans of others have followed that the oldest trace's conversation is complete."""
        while self._traces:
            oldest = next(iter(self._traces))
            if self._n_spans - self._last[oldest] <= MAX_IDLE_EVENTS:
                return False
            last = max((self._last[name] for name in self._names.get(oldest, ())), default=0)
            if self._n_spans - last > MAX_IDLE_EVENTS:
                return True
            self._traces[oldest] = self._traces.pop(oldest)  # its conversation goes on in another trace
            self._last[oldest] = self._n_spans
        return False

    def take_all(self) -> dict[str, _Lines]:
        traces, self._traces = self._traces, {}
        return traces

    def take_oldest(self) -> dict[str, _Lines]:
        """Remove and return the oldest trace, with every trace that shares a conversation with it."""
        taken: dict[str, _Lines] = {}
        pending = [next(iter(self._traces))]
        while pending:
            trace = pending.pop()
            if trace not in self._traces:
                continue
            taken[trace] = self._traces.pop(trace)
            self._last.pop(trace, None)
            self._seen.pop(trace, None)
            self._closed.add(trace)
            for name in self._names.pop(trace, ()):
                self._closed.add(name)
                self._last.pop(name, None)
                pending.extend(self._members.pop(name, ()))
        self.bytes -= sum(len(data) for lines in taken.values() for _, data in lines)
        return taken


OTEL = Format("OpenTelemetry spans", is_telemetry, SpanReader)
