"""The decision service: answers of a server or a model, shifted by memory and stored, in two wire formats."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import math
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seasoned.build import close_reader, make_reader
from seasoned.checks import check_number, check_one_of
from seasoned.decisions.decider import Decider, OptionSelection
from seasoned.decisions.model_prior import OptionPriors
from seasoned.decisions.named_options import NamedOptions
from seasoned.errors import ConfigError, InputError, ModelAnswerError, ModelUnavailableError, SeasonedError, excerpt
from seasoned.llms.wire.decision_formats import (
    built_answer,
    parse_decision_answer,
    parse_decision_request,
    replaced_answer,
)
from seasoned.llms.wire.decision_types import (
    DecisionFormat,
    DecisionRequest,
    TypedAnswer,
    TypedQuestion,
    answer_logprobs,
)
from seasoned.memory import Memory
from seasoned.policies import FailOpen, Holdout, JitRL, MemoryFallback, TemperedPrior
from seasoned.protocols import Chooser, Policy, PriorReader, Usage
from seasoned.service.decisions.decision_queue import DecisionQueue
from seasoned.service.decisions.http_messages import REASON, HttpAnswer, HttpRequest, check_not_encoded, json_answer
from seasoned.service.decisions.question_turns import QuestionTurns
from seasoned.service.decisions.request_cost import request_cost
from seasoned.service.decisions.request_questions import INFERENCE_PREFIX, episode_id, named_options, stated_choice
from seasoned.service.decisions.session_episodes import SessionEpisodes
from seasoned.service.decisions.session_spool import SessionSpool
from seasoned.service.decisions.upstream import UPSTREAM_TIMEOUT_S, Upstream
from seasoned.service.json_documents import parse_json_body
from seasoned.service.permissions import check_scope
from seasoned.sync import Cancellation, Sync
from seasoned.types import Decision, Evidence, EvidenceQuery, Prior
from seasoned.types.episode_cost import EpisodeCost

__all__ = ["UPSTREAM_KEY", "DecisionService", "DecisionSettings"]

_log = logging.getLogger(__name__)

UPSTREAM_KEY = "SEASONED_UPSTREAM_KEY"
"""Environment variable with the key for the upstream server, sent where a client's own is not."""

_OK = 200
_LARGE_BYTES = 256 * 1024
_RESPONSE_ID = re.compile(r"[!-~]{1,200}")
_MOST_MODEL_CHARS = 200
_TURN_SHARE = 0.4
"""Of the wait for memory: so long a decision waits for those before it, and so long at most is its own turn."""

_GRACE_WAITS = 4
"""Waits for a silent memory before decisions go without it at once: a decision without it is never learned from."""


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """What answers decisions, and how memory shifts them.

    Args:
        upstream: URL of a server that answers `POST /v1/systemone` or `POST /v1/decisions`.
        model: in place of an upstream server, a model as of `make_reader`: `local`, `openai:NAME`, `uniform`.
        holdout: whether a share of the decisions is made without memory, so that its lift is measured.
        choose: `argmax`, as the servers do, or `sample`: a draw from the shifted policy.
        upstream_timeout_s: seconds for an answer of the upstream server.
        temperature: whether the upstream's probabilities are tempered first, as outcomes show (`TemperedPrior`).
        memory_timeout_s: seconds that a decision waits for memory, above 1,000 options in proportion; after that the
            answer is the upstream's.
        questions_s: seconds in which the questions of a request are decided; the answers to others are the upstream's.
        bounds: the lowest and the highest outcome of a decision, or of an episode of a session: of the lift and the
            temperature.
        sessions: the folder for the running episodes of sessions; None: a killed process loses them.

    Raises:
        ConfigError: both an upstream server and a model are named.
    """

    upstream: str | None = None
    model: str | None = None
    holdout: bool = True
    choose: OptionSelection = "argmax"
    upstream_timeout_s: float = UPSTREAM_TIMEOUT_S
    temperature: bool = False
    memory_timeout_s: float = 0.25
    questions_s: float = 10.0
    bounds: tuple[float, float] = (0.0, 1.0)
    sessions: Path | None = None

    def __post_init__(self) -> None:
        check_one_of("choose", self.choose, ("argmax", "sample"))
        low = check_number("lowest outcome", self.bounds[0])
        check_number("highest outcome", self.bounds[1], above=low)
        if self.upstream is not None and self.model is not None:
            raise ConfigError(
                f"upstream = {excerpt(self.upstream)} and model = {excerpt(self.model)}",
                "decisions are answered by one of the two",
                "Leave one out.",
            )


@dataclass(slots=True)
class _Outcome:
    """What became of the questions of one request.

    Args:
        inference_id: of the request.
        several: whether the request has several questions that memory can decide, answered or not: each decision then
            has its own episode, and `fields` are by question.
        decisions: by the key of the question.
        reasons: why memory has no part, by the key of the question, or "" for all.
        upstream_s: seconds until the answer of the server or the model.
        session: the id of the session and its owner, if the decisions are steps of the session's episode.
        upstream_id: the `id` in the upstream's answer, by which feedback finds the decisions too.
    """

    inference_id: str
    several: bool = False
    upstream_s: float = 0.0
    session: tuple[str, str | None] | None = None
    upstream_id: str | None = None
    decisions: dict[str, Decision] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def response_note(self, memory: Memory, key: str) -> str | None:
        """Return the id of the note by which feedback with the upstream's id finds the decision on a question."""
        if self.upstream_id is None:
            return None
        key = memory.redacted(key)
        return memory.next_response_note_id(episode_id(self.upstream_id, key if self.several else None))

    def mode(self) -> str:
        """Return the strongest of the modes: memory, holdout, base."""
        modes = {decision.mode for decision in self.decisions.values()}
        return next((mode for mode in ("memory", "holdout") if mode in modes), "base")

    def headers(self) -> dict[str, str]:
        """Return the headers of the answer."""
        headers = {"x-seasoned-mode": self.mode()}
        stored = [decision for decision in self.decisions.values() if decision.id is not None]
        if stored:
            headers["x-seasoned-inference-id"] = self.inference_id
            if self.session is not None:
                headers["x-seasoned-episode-id"] = str(stored[-1].id)
            elif not self.several:  # else no episode has this id
                headers["x-seasoned-episode-id"] = self.inference_id
            arms = {decision.arm for decision in stored if decision.arm is not None}
            if arms:
                headers["x-seasoned-arm"] = arms.pop() if len(arms) == 1 else "mixed"
        reasons = [*self.reasons.values(), *(one.reason for one in self.decisions.values() if one.id is None)]
        reasons += [one.reason for one in self.decisions.values() if one.mode == "base"]
        if reasons:
            headers[REASON] = reasons[0]
        return headers

    def fields(self) -> dict[str, Any]:
        """Return the fields of the answer's body: `id`, and `x_seasoned`, by question if several were asked."""
        if not self.decisions:
            return {}
        records = {key: _record(decision) for key, decision in self.decisions.items()}
        shown: Any = records if self.several else next(iter(records.values()))
        is_stored = any(decision.id is not None for decision in self.decisions.values())
        return {**({"id": self.inference_id} if is_stored else {}), "x_seasoned": shown}


def _record(decision: Decision) -> dict[str, Any]:
    stated = decision.base_probs
    if decision.prior is not None:
        stated = {option: math.exp(logprob) for option, logprob in decision.prior.items()}
    return {
        "mode": decision.mode,
        "base": dict(stated),
        "advantages": dict(decision.advantages),
        "beta": decision.beta,
        "evidence": {"steps": decision.n_steps, "states": decision.n_states},
        **({} if decision.temperature == 1.0 else {"temperature": decision.temperature}),
    }


class DecisionService:
    """Answers decision requests on a memory. Its methods wait for the upstream server; call them in a thread.

    Args:
        settings: of the service.

    Raises:
        InputError, UnknownNameError: the upstream server's URL or the model is wrong.
    """

    def __init__(self, settings: DecisionSettings) -> None:
        self.settings = settings
        self._upstream = (
            None if settings.upstream is None else Upstream(settings.upstream, timeout_s=settings.upstream_timeout_s)
        )
        self._reader = None if settings.model is None else make_reader(settings.model)
        if self._reader is not None and not isinstance(self._reader, PriorReader):
            raise ConfigError(f"model = {excerpt(settings.model)}", "a model must be read", "Name another model.")
        self._priors = None if self._reader is None else OptionPriors(self._reader)
        self._key = os.environ.get(UPSTREAM_KEY)
        self._deciders: dict[str, Decider] = {}
        self._sessions: dict[str, SessionEpisodes] = {}
        self._spool = None if settings.sessions is None else SessionSpool(settings.sessions)
        self._fallbacks: dict[str, MemoryFallback] = {}  # by namespace: a late call in one delays no other
        self._queues: dict[str, DecisionQueue] = {}
        self._lock = threading.Lock()
        self._large_bodies = threading.Lock()
        self._turns = QuestionTurns(memory_s=settings.questions_s)
        self._loading = Cancellation()
        self._loader = threading.Thread(target=self._load, name="seasoned-model-load", daemon=True)
        self._loader.start()

    # ------------------------------------------------------------------------------------------ addresses

    def answer(self, wire_format: DecisionFormat, memory: Memory, request: HttpRequest) -> HttpAnswer:
        """Return the answer to a decision request.

        Raises:
            InputError: the request breaks a rule, and there is no upstream server to judge it.
            ConfigError: there is neither an upstream server nor a model.
            ModelError: the upstream server or the model failed.
        """
        check_scope(request.holder, "write")
        strict = check_one_of("strict", request.query.get("strict", "0"), ("0", "1")) == "1"
        outcome = _Outcome(f"{INFERENCE_PREFIX}{uuid.uuid4().hex}")
        if request.session is not None and not memory.session.store.read_only:
            outcome.session = request.session, request.holder.author
        parsed: DecisionRequest | None = None
        try:
            with self._turn(request.body):
                parsed = parse_decision_request(wire_format, parse_json_body(request.body))
        except InputError as error:
            if self._upstream is None:
                raise
            outcome.reasons[""] = f"not decided by memory: {error}"  # the upstream server may know more of the format
        if parsed is not None:
            outcome.several = sum(question.decidable for question in parsed.questions) > 1
        began = time.perf_counter()
        if self._upstream is None and parsed is not None:
            answer = self._answer_of_model(parsed)
        else:
            answer = self._forwarded("POST", request)
        outcome.upstream_s = time.perf_counter() - began
        if parsed is not None and answer.status == _OK:
            answer = self._shifted(memory, parsed, answer, outcome, strict=strict)
        return answer.with_headers(outcome.headers())

    def models(self, request: HttpRequest) -> HttpAnswer:
        """Return the models: those of the upstream server, or the one that is read here.

        Raises:
            ForbiddenError: the token lacks the scope `read`.
            ModelError: the upstream server failed.
        """
        check_scope(request.holder, "read")
        if self._upstream is not None:
            return self._forwarded("GET", request)
        name = None if self._reader is None else self._reader.name
        listed = [] if name is None else [{"id": name, "object": "model", "created": 0, "owned_by": "seasoned"}]
        return json_answer({"object": "list", "data": listed})

    # ------------------------------------------------------------------------------------------ answers before memory

    def _forwarded(self, method: str, request: HttpRequest) -> HttpAnswer:
        """Return the upstream server's answer to a request, sent on with one authorization or none."""
        headers = list(request.headers)
        own = [value for name, value in headers if name == "authorization"] if request.passes_authorization else []
        if own or self._key:
            headers.append(("Authorization", own[0] if own else f"Bearer {self._key}"))
        assert self._upstream is not None  # noqa: S101 - for the type checker
        return self._upstream.send(method, request.path, request.body, headers, held=request.held)

    def _answer_of_model(self, request: DecisionRequest) -> HttpAnswer:
        """Return an answer of the model that is read here."""
        if self._priors is None:
            raise ConfigError(
                "no upstream server and no model",
                "decisions are answered by a server or a model",
                "Start the service with --upstream URL, or with --model local, for example.",
            )
        self._loader.join()
        probabilities: dict[str, dict[str, float]] = {}
        model, usage = "", Usage()
        for question in request.questions:
            if question.kind == "other":
                rule = "a model is asked a choice, a yes-or-no or a score"
                raise InputError(f"question {excerpt(question.key)} of an unknown type", rule, "Give it such a type.")
            try:
                reading = self._priors.read(named_options(request, question))
            except concurrent.futures.CancelledError:
                rule = "a model is read while its client waits and the service runs"
                raise ModelUnavailableError(f"question {excerpt(question.key)}", rule, "Send it again.") from None
            model, usage = reading.prior.model or model, usage + reading.usage
            probabilities[question.key] = {option: math.exp(reading.prior[option]) for option in question.options}
        return json_answer(built_answer(request, probabilities, model=model, usage=usage))

    # ------------------------------------------------------------------------------------------ memory

    def _shifted(
        self, memory: Memory, request: DecisionRequest, answer: HttpAnswer, outcome: _Outcome, *, strict: bool
    ) -> HttpAnswer:
        """Decide the questions, and return the answer with what memory changed; the same bytes if that is nothing."""
        try:
            check_not_encoded(answer)
            with self._turn(answer.body):
                document = parse_json_body(answer.body, "the answer")
                answers = parse_decision_answer(request, document)
        except (InputError, ModelAnswerError) as error:
            outcome.reasons[""] = f"the upstream's answer cannot be read: {error}"
            return answer
        stated_id = document.get("id")
        if isinstance(stated_id, str) and _RESPONSE_ID.fullmatch(stated_id) and self._upstream is not None:
            outcome.upstream_id = stated_id
        stated = document.get("model")
        name = stated if isinstance(stated, str) and stated.strip() else request.model
        model = name.strip()[:_MOST_MODEL_CHARS] or None
        spent = request_cost(document, outcome.upstream_s, sum(question.decidable for question in request.questions))
        turns = self._turns.request()
        for question, its_answer in zip(request.questions, answers, strict=True):
            if question.decidable:
                with turns.next(len(question.options)) as has_turn:
                    if not has_turn:
                        rule = f"the questions of a request have {self.settings.questions_s:g} s"
                        outcome.reasons[question.key] = f"not decided by memory: no time left, {rule}"
                        continue
                    default = stated_choice(request, document, question)
                    self._decide(
                        memory, request, question, its_answer, outcome, model=model, default=default, spent=spent
                    )
        shown: dict[str, Mapping[str, float]] = {}
        for question, its_answer in zip(request.questions, answers, strict=True):
            decision = outcome.decisions.get(question.key)
            if decision is not None and (decision.mode == "memory" or decision.temperature != 1.0):
                shown[question.key] = decision.probs
            elif decision is not None and self.settings.choose == "sample" and question.kind == "choice":
                shown[question.key] = its_answer.probabilities or {}
        if not shown and (self._upstream is not None or strict):
            return answer
        choices = {key: outcome.decisions[key].action for key in shown}
        extra = {} if strict else outcome.fields()
        try:
            shifted = json_answer(replaced_answer(request, document, shown, choices, extra))
        except (ValueError, RecursionError) as error:  # a number such as 1e999 in another field
            outcome.reasons[""] = f"the upstream's answer cannot be written: {error}"
            return answer
        return HttpAnswer(answer.status, shifted.body, answer.headers)

    def _decide(
        self,
        memory: Memory,
        request: DecisionRequest,
        question: TypedQuestion,
        answer: TypedAnswer,
        outcome: _Outcome,
        *,
        model: str | None,
        default: str | None,
        spent: EpisodeCost,
    ) -> None:
        """Decide one question by memory and store it; what cannot be decided is left as it is, with the reason."""
        if answer.probabilities is None:
            outcome.reasons[question.key] = "refused" if answer.refused else answer.problem or "no probabilities"
            return
        logprobs, bounded = answer_logprobs(answer.probabilities)
        subject = request.document.get("safety_identifier")

        def decide() -> Callable[[], Decision]:
            """Return what records the decision, unless this took too long: that is quick, and needs no store."""
            asked, decider = named_options(request, question, memory.redacted), self.decider(memory)
            prior = Prior(logprobs, "decisions", model, bounded)
            id_ = episode_id(outcome.inference_id, memory.redacted(question.key) if outcome.several else None)
            person = subject if isinstance(subject, str) and subject.strip() else None
            # A yes or no has no choice on the wire: the caller takes the more probable one.
            options: dict[str, Any] = {"choose": "argmax" if question.kind == "yes_no" else None}
            options |= {"default": default, "spent": spent, "waited_s": waited_s}
            if outcome.session is None:
                options["response"] = outcome.response_note(memory, question.key)
                decision = decider.decide_by(asked, prior, episode=id_, subject=person, **options)
                return lambda: decision
            sessions = self._sessions_of(memory)
            running = sessions.episode(*outcome.session, task=asked.task, subject=person)
            step = sessions.decide(running, decider, asked, prior, **options)
            return lambda: sessions.record(running, step, id_)

        def failed(reason: str) -> None:
            outcome.reasons[question.key] = reason

        limit_s = self.settings.memory_timeout_s * max(1.0, len(question.options) / 1000)
        queue = self._queue(memory)
        asked_at, waited_s = time.monotonic(), 0.0
        try:
            with queue.turn() as has_turn:
                if not has_turn:
                    rule = f"a decision waits at most {queue.admission.most_wait_s:g} s for those before it"
                    failed(f"not decided by memory: too many decisions at a time, {rule}")
                    return
                waited_s = time.monotonic() - asked_at
                recorded = self._fallback(memory).run(decide, otherwise=failed, timeout_s=limit_s - waited_s)
            if recorded is not None:
                outcome.decisions[question.key] = recorded()
        except SeasonedError as error:
            outcome.reasons[question.key] = f"not decided by memory: {error}"

    def _turn(self, body: bytes) -> contextlib.AbstractContextManager[object]:
        """Return what a thread parses a body in: large ones one at a time, since the parser holds Python's lock."""
        return self._large_bodies if len(body) > _LARGE_BYTES else contextlib.nullcontext()

    def _queue(self, memory: Memory) -> DecisionQueue:
        with self._lock:
            if memory.namespace not in self._queues:
                share_s = _TURN_SHARE * self.settings.memory_timeout_s
                self._queues[memory.namespace] = DecisionQueue(most_wait_s=share_s, most_turn_s=share_s)
            return self._queues[memory.namespace]

    def decider(self, memory: Memory) -> Decider:
        """Return what decides on a memory and records its decisions: one object for all requests."""
        with self._lock:
            if memory.namespace not in self._deciders:
                policy: Policy = JitRL(_WithoutNeighbors(memory))
                if self.settings.temperature:
                    policy = TemperedPrior(policy, memory, bounds=self.settings.bounds)
                if memory.session.store.read_only:  # decides, and stores nothing
                    policy = FailOpen(policy, timeout_s=self.settings.memory_timeout_s)
                elif self.settings.holdout:
                    policy = Holdout(
                        policy, memory, bounds=self.settings.bounds, epoch=f"choose {self.settings.choose}"
                    )
                self._deciders[memory.namespace] = Decider(memory, policy=policy, choose=self.settings.choose)
            return self._deciders[memory.namespace]

    def _sessions_of(self, memory: Memory) -> SessionEpisodes:
        with self._lock:
            if memory.namespace not in self._sessions:
                rewrites = memory.session.redaction.rewrites  # what must be redacted first is on no disk
                self._sessions[memory.namespace] = SessionEpisodes(memory, spool=None if rewrites else self._spool)
            return self._sessions[memory.namespace]

    def _fallback(self, memory: Memory) -> MemoryFallback:
        with self._lock:
            if memory.namespace not in self._fallbacks:
                wait_s = self.settings.memory_timeout_s
                self._fallbacks[memory.namespace] = MemoryFallback(
                    wait_s, what="a decision", grace_s=_GRACE_WAITS * wait_s
                )
            return self._fallbacks[memory.namespace]

    def restore(self, memories: Mapping[str, Memory]) -> None:
        """Store the running episodes of sessions that killed processes have left."""
        writable = {name: one for name, one in memories.items() if not one.session.store.read_only}
        if self._spool is not None and writable:
            self._spool.restore(writable)

    def close_spool(self) -> None:
        """Leave the running episodes that could not be stored to the next process; after the memories are closed."""
        if self._spool is not None:
            self._spool.close()

    def warm_up(self, memory: Memory) -> None:
        """Load what the first decision on a memory would wait for."""
        if self._upstream is not None or self._priors is not None:
            policy = self.decider(memory).policy
            if isinstance(policy, Holdout):
                memory.lift()
                policy = policy.policy
            policy.decide("the first state", {"one": 0.0, "another": 0.0}, task="warm-up")

    def _load(self) -> None:
        """Read a first question by a model of this process: it is loaded beside the first requests, which wait."""
        if self._priors is None or str(self.settings.model).partition(":")[0] != "local":
            return
        try:
            with self._loading:
                self._priors.read(NamedOptions.of("the first state", ["one", "another"]))
        except (SeasonedError, concurrent.futures.CancelledError) as error:
            _log.warning("the model is not loaded: %s", error)  # the first request tries again

    def close(self) -> None:
        """Close the connections and the model."""
        self._loading.cancel()
        self._loader.join()
        if self._upstream is not None:
            self._upstream.close()
        if self._priors is not None:
            self._priors.close()
        if self._reader is not None:
            with Sync(_Closing(self._reader)) as closing:
                closing.close_reader()


class _WithoutNeighbors:
    """The evidence of a memory without the list of neighbours, which no answer shows; the decisions are the same."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def evidence(self, query: EvidenceQuery) -> Evidence:
        return self._memory.evidence(replace(query, listed=0))


class _Closing:
    """Closes the model of a reader, for `Sync`."""

    def __init__(self, reader: PriorReader | Chooser) -> None:
        self._reader = reader

    async def close_reader(self) -> None:
        await close_reader(self._reader)
