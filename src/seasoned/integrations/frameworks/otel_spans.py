"""OpenTelemetry spans of an agent, recorded as episodes while they end."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from seasoned.checks import check_whole
from seasoned.errors import EpisodeConflictError, SeasonedError, counted
from seasoned.integrations.clients.prompt_block import framed_block, without_blocks
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult
from seasoned.integrations.rewards import RewardRules, load_rules, store_rewards
from seasoned.integrations.spans.genai_spans import kind_of
from seasoned.integrations.spans.otel import SpanReader
from seasoned.integrations.spans.otlp import telemetry
from seasoned.memory import Memory
from seasoned.registry import load_extra
from seasoned.types.notes import RESPONSE

__all__ = ["otel_span_recorder"]

_EXTRA = "otel"
_LOG = logging.getLogger("seasoned.clients")
_MOST_TRACES, _MOST_SPANS, _MOST_STORED = 1000, 10_000, 10_000
_MAX_BYTES = 64 << 20
_MARK = framed_block("").splitlines()[0]
_CONVERSATION, _RESPONSE_ID = "gen_ai.conversation.id", "gen_ai.response.id"


def otel_span_recorder(
    memory: Memory,
    *,
    awaits_feedback: bool = True,
    evaluation: str | None = None,
    rewards: str | RewardRules | None = None,
    max_bytes: int = _MAX_BYTES,
) -> Any:
    """Return a `SpanProcessor` for `TracerProvider.add_span_processor`, which records spans of agents as episodes.

    A trace is one episode, stored by a thread in the background when its root span in this process ends. Its id is that
    of the trace, as 32 hexadecimal digits; `memory.feedback` takes it, or the id of the last response
    (`gen_ai.response.id`). States and actions are those that `seasoned memory import` reads from the same spans, so
    that the instrumentation must record the content of messages as attributes of spans. An error is logged
    (`seasoned.clients`) and reaches no program. Spans that end after their root are not recorded. A trace one of whose
    spans has no room is not recorded at all, and the log says how many spans it had: half an episode would teach what
    did not happen.

    Args:
        memory: an open memory.
        awaits_feedback: whether an episode without an evaluation is no evidence before someone has judged it.
        evaluation: name of the `gen_ai.evaluation.result` whose score is the reward; needed where there are several.
        rewards: rules over what tools answered, as of `seasoned.wrap`.
        max_bytes: of the spans that are not stored yet, together, as JSON.

    Raises:
        InputError: a rule breaks its form, or `max_bytes` is no number of bytes.
        MissingExtraError: the package `opentelemetry-sdk` is not installed.
    """
    rules = rewards if rewards is None or isinstance(rewards, RewardRules) else load_rules(rewards)
    recorder = _recorder_class()
    limit = check_whole("max_bytes", max_bytes, at_least=1)
    return recorder(memory, awaits_feedback, evaluation, rules, limit)


@dataclass(slots=True)
class _Trace:
    """The spans of a trace that is not stored, as JSON; how many had no room; the id of its last response."""

    spans: list[str] = field(default_factory=list)
    n_bytes: int = 0
    n_dropped: int = 0
    response_id: str | None = None


class _SpanRecorder:
    """Records the spans of agents as episodes; one of the memory's background recorders."""

    def __init__(
        self, memory: Memory, awaits_feedback: bool, evaluation: str | None, rewards: RewardRules | None, max_bytes: int
    ) -> None:
        self._memory, self._awaits_feedback, self._rewards = memory, awaits_feedback, rewards
        self._rules = FieldRules(evaluation=evaluation, results=rewards is not None)
        self._max_bytes, self._n_bytes = max_bytes, 0
        self._open: OrderedDict[str, _Trace] = OrderedDict()
        self._stored: OrderedDict[str, None] = OrderedDict()  # whose late spans are passed over
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "seasoned-spans")
        self._thread_id: int | None = None
        self._is_shut = False
        memory.session.recorders.append(self)

    # ------------------------------------------------------------------------------------------- as a span processor

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Do nothing: a span is recorded at its end."""

    def on_end(self, span: Any) -> None:
        """Keep a span of an agent, and record its trace if it is the root."""
        try:
            self._add(span)
        except Exception as error:
            _LOG.warning("A span was not recorded: %s", error, exc_info=not isinstance(error, SeasonedError))

    def shutdown(self) -> None:
        """Record what is not complete, and wait until all is stored."""
        with self._lock:
            left, self._open = self._open, OrderedDict()
            was_shut, self._is_shut = self._is_shut, True
        if was_shut:
            return
        for trace_id, trace in left.items():
            self._store_later(trace_id, trace)
        self._thread.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until the traces that are complete are stored; return whether they are."""
        try:
            self._thread.submit(lambda: None).result(timeout_millis / 1000)
        except RuntimeError:  # after the shutdown nothing is left
            return True
        except TimeoutError:
            return False
        return True

    # ------------------------------------------------------------------------------------- as the memory's recorder

    def settle(self, id_: str | None = None) -> None:
        """Wait until the traces that are complete are stored."""
        if threading.get_ident() != self._thread_id:
            self.force_flush()

    def session_episode(self, id_: str, owner: str | None) -> str | None:
        """Return the id of a running episode of an owner's session: traces have none."""
        return None

    def is_anothers(self, id_: str, owner: str) -> bool:
        """Return whether feedback would end a running episode of another owner: it ends no trace."""
        return False

    def close(self) -> None:
        """Record what is left."""
        self.shutdown()

    # ----------------------------------------------------------------------------------------------------- privately

    def _add(self, span: Any) -> None:
        trace_id = f"{span.context.trace_id:032x}"
        is_root = span.parent is None or span.parent.is_remote
        attributes = span.attributes or {}
        leaf = None
        if any(name.startswith(("gen_ai.", "llm.", "openinference.", "traceloop.")) for name in attributes):
            leaf = span.to_json(indent=None)
        with self._lock:
            if self._is_shut or trace_id in self._stored:
                return
            trace = self._open.setdefault(trace_id, _Trace())
            if leaf is not None:
                self._keep(trace, leaf)
                trace.response_id = str(attributes.get(_RESPONSE_ID) or "") or trace.response_id
            over = [trace_id] if is_root else []
            if len(self._open) > _MOST_TRACES:
                over.append(next(iter(self._open)))
            ended = [(one, self._open.pop(one)) for one in dict.fromkeys(over)]
        for one, trace in ended:
            self._store_later(one, trace)

    def _keep(self, trace: _Trace, leaf: str) -> None:
        """Keep a span if there is room; else give up its trace, and the room that it had."""
        n_bytes = len(leaf)  # its SDK writes ASCII
        has_room = len(trace.spans) < _MOST_SPANS and self._n_bytes + n_bytes <= self._max_bytes
        if has_room and not trace.n_dropped:
            trace.spans.append(leaf)
            trace.n_bytes += n_bytes
            self._n_bytes += n_bytes
        else:
            trace.n_dropped += 1 + len(trace.spans)
            self._free(trace)

    def _free(self, trace: _Trace) -> None:
        self._n_bytes -= trace.n_bytes
        trace.n_bytes = 0
        trace.spans.clear()

    def _store_later(self, trace_id: str, trace: _Trace) -> None:
        if trace.n_dropped:
            _LOG.warning(
                "The trace %s was not recorded: no room for its %s; a trace has at most %d spans, and those that are "
                "not stored %d bytes together (max_bytes).",
                *(trace_id, counted(trace.n_dropped, "span"), _MOST_SPANS, self._max_bytes),
            )
        if not trace.spans:
            return
        with self._lock:
            self._stored[trace_id] = None
            while len(self._stored) > _MOST_STORED:
                self._stored.popitem(last=False)
        self._thread.submit(self._store, trace_id, trace)

    def _store(self, trace_id: str, trace: _Trace) -> None:
        self._thread_id = threading.get_ident()
        try:
            for read in self._episodes(trace):
                if isinstance(read, ReadEpisode):
                    self._commit(trace_id, read, trace.response_id)
                else:
                    _LOG.warning("The trace %s was not recorded: %s", trace_id, read.reason)
        except Exception as error:
            _LOG.warning("The trace %s was not recorded: %s", trace_id, error)
        finally:
            with self._lock:
                self._free(trace)

    def _episodes(self, trace: _Trace) -> Sequence[ReadResult]:
        spans = list(map(_as_json, trace.spans))
        if not any((read := telemetry(leaf, log=False)) and kind_of(read) != "other" for leaf in spans):
            return []
        reader = SpanReader(self._rules)
        found = [one for line, leaf in enumerate(spans, 1) for one in reader.add(Document(line, leaf))]
        return [*found, *reader.close()]

    def _commit(self, trace_id: str, read: ReadEpisode, response_id: str | None) -> None:
        given = read.episode
        recorder = self._memory.episode(
            given.task,
            id=trace_id,
            model=given.model,
            policy=given.policy or "otel:observe",
            subject=given.subject,
            awaits_feedback=self._awaits_feedback and not read.rewarded,
        )
        for step in given.steps:
            recorder.record(step.state, step.action, reward=step.reward)
        if response_id is not None:
            note_id = self._memory.next_response_note_id(response_id)
            recorder.note(RESPONSE, {}, len(recorder) - 1, id=note_id)
        recorder.ending, recorder.final_state = given.ending, given.final_state
        with contextlib.suppress(EpisodeConflictError):  # another process recorded the trace
            recorder.commit()
            if self._rewards is not None and (events := self._rewards.episode_events(read.results)):
                store_rewards(self._memory, {trace_id: events})


@cache
def _recorder_class() -> Any:
    base = load_extra("opentelemetry.sdk.trace", _EXTRA).SpanProcessor
    return type("SpanRecorder", (_SpanRecorder, base), {"__doc__": _SpanRecorder.__doc__})


def _as_json(span: str) -> Mapping[str, Any]:
    """Return a span of its SDK's JSON, of its own trace alone, without what memory had added to its messages."""
    leaf: dict[str, Any] = json.loads(span)
    attributes = leaf.get("attributes") or {}
    attributes.pop(_CONVERSATION, None)
    for name, value in attributes.items():
        if isinstance(value, str) and _MARK in value:
            with contextlib.suppress(ValueError):
                attributes[name] = json.dumps(without_blocks(json.loads(value)))
    return leaf
