"""Routes of an agent's loop: advice and examples for its prompt, and decisions among its own options."""

from __future__ import annotations

import dataclasses
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from seasoned.checks import check_logprobs, check_mapping, check_number, check_text, check_whole
from seasoned.decisions import Decider, NamedOptions
from seasoned.decisions.named_options import canonical_state
from seasoned.errors import InputError, excerpt
from seasoned.llms.wire.decision_types import answer_logprobs
from seasoned.llms.wire.embedded_media import without_media
from seasoned.memory import Memory
from seasoned.policies.advice import AdvisedAction, Advisor
from seasoned.policies.candidates import check_candidates
from seasoned.policies.examples.example import Example
from seasoned.policies.examples.query import ExampleQuery
from seasoned.policies.examples.rendering import render
from seasoned.policies.examples.retrieval import Examples
from seasoned.service.decisions.request_questions import INFERENCE_PREFIX
from seasoned.service.json_documents import check_json_array, check_json_fields
from seasoned.service.recall.recall_schemas import (
    ADVICE_ANSWER,
    ADVICE_SCHEMA,
    DECIDE_SCHEMA,
    DECISION_ANSWER,
    EXAMPLES_ANSWER,
    EXAMPLES_SCHEMA,
    MAX_BUDGET_TOKENS,
    MAX_LISTED_OPTIONS,
    MAX_STEP,
)
from seasoned.service.routes import Route, ServiceRequest
from seasoned.types import Decision, Prior

__all__ = ["PartOfMemory", "recall_routes"]

_MAX_SEED = 2**63 - 1
_STORED_ONLY = ("question", "instructions", "subject", "id")
_EPISODE_ONLY = ("step", "admissible")
_Part = TypeVar("_Part")


class PartOfMemory:
    """One object for each memory, made at its first request; no other memory waits for that.

    Args:
        make: returns the object of a memory.
    """

    def __init__(self, make: Callable[[Memory], Any]) -> None:
        self._make = make
        self._made: dict[str, Any] = {}
        self._making: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()

    def __call__(self, memory: Memory) -> Any:
        """Return the object of a memory."""
        name = memory.namespace
        with self._lock:
            making = self._making[name]
        with making:
            if name not in self._made:
                self._made[name] = self._make(memory)
            return self._made[name]


def recall_routes(decider: Callable[[Memory], Decider]) -> tuple[Route, ...]:
    """Return the addresses of advice, examples and decisions.

    Args:
        decider: returns what decides on a memory, and records the decisions.
    """
    advisor, examples = PartOfMemory(Advisor), PartOfMemory(Examples)

    def advise(request: ServiceRequest) -> Any:
        return _advice(advisor(request.memory), request.body)

    def retrieve_examples(request: ServiceRequest) -> Any:
        return _examples(examples(request.memory), request.body)

    def decide(request: ServiceRequest) -> Any:
        return _decision(decider(request.memory), request.body)

    return (
        Route(
            "POST",
            "/v1/advice",
            advise,
            "Lines for a prompt about actions that were clearly better or worse than others.",
            ADVICE_SCHEMA,
            answer=ADVICE_ANSWER,
        ),
        Route(
            "POST",
            "/v1/examples",
            retrieve_examples,
            "The best past steps for a prompt.",
            EXAMPLES_SCHEMA,
            answer=EXAMPLES_ANSWER,
        ),
        Route(
            "POST",
            "/v1/decide",
            decide,
            "Decide among the agent's own options; the decision awaits feedback.",
            DECIDE_SCHEMA,
            scope="write",
            answer=DECISION_ANSWER,
        ),
    )


def _advice(advisor: Advisor, body: Mapping[str, Any]) -> dict[str, Any]:
    check_json_fields("advice", body, ADVICE_SCHEMA["properties"], ADVICE_SCHEMA["required"])
    actions = None if body.get("actions") is None else check_json_array("actions", body["actions"], MAX_LISTED_OPTIONS)
    task = None if body.get("task") is None else check_text("task", body["task"])
    advice = advisor.advise(body["state"], actions, task=task, step=_step(body))
    return {
        "text": advice.text,
        "prefer": [_advised(one) for one in advice.prefer],
        "avoid": [_advised(one) for one in advice.avoid],
        "evidence": {"steps": advice.n_steps, "states": advice.n_states},
        "baseline": advice.baseline,
        "reason": advice.reason,
    }


def _advised(one: AdvisedAction) -> dict[str, Any]:
    return {**dataclasses.asdict(one), "interval": list(one.interval)}


def _examples(examples: Examples, body: Mapping[str, Any]) -> dict[str, Any]:
    check_json_fields("examples", body, EXAMPLES_SCHEMA["properties"], EXAMPLES_SCHEMA["required"])
    query = ExampleQuery(body["task"], body.get("plan"), body.get("state"), body.get("reasoning"))
    budget, excluded = body.get("budget_tokens"), body.get("exclude_task")
    found = examples.retrieve(
        query,
        purpose=body.get("purpose", "act"),
        budget_tokens=None if budget is None else check_whole("budget_tokens", budget, 1, MAX_BUDGET_TOKENS),
        exclude_task=None if excluded is None else check_text("exclude_task", excluded),
    )
    return {
        "text": render(found),
        "examples": [_example(one) for one in found],
        "shown": [list(one.place) for one in found],
    }


def _example(one: Example) -> dict[str, Any]:
    names = ("episode_id", "step", "task", "state", "action", "plan", "reasoning", "value", "kind", "similarity")
    shown = {name: getattr(one, name) for name in (*names, "n_shown", "shortened")}
    return {**shown, "return": one.return_, "interval": [one.low, one.high]}


def _decision(decider: Decider, body: Mapping[str, Any]) -> dict[str, Any]:
    check_json_fields("a decision", body, DECIDE_SCHEMA["properties"], DECIDE_SCHEMA["required"])
    in_episode = body.get("episode_id") is not None
    for name in _STORED_ONLY if in_episode else _EPISODE_ONLY:
        if name in body:
            rule = "a step of an episode has no" if in_episode else "without episode_id a decision has no"
            raise InputError(f"{name} = {excerpt(body[name])}", f"{rule} {name}", "Leave it out.")
    seed = None if body.get("seed") is None else check_whole("seed", body["seed"], 0, _MAX_SEED)
    named = ("task", "question", "instructions", "subject", "model", "id")
    texts = {name: None if body.get(name) is None else check_text(name, body[name]) for name in named}
    options = _options(body["options"])
    if in_episode:
        prior = _prior(body, options, texts["model"])
        return _shown_decision(_step_decision(decider, body, prior, texts["task"], seed), body)
    asked = NamedOptions.of(
        body["state"],
        options,
        name=texts["question"],
        instructions=texts["instructions"],
        task=texts["task"],
        redact=decider.memory.redacted,
    )
    asked = replace(asked, state=without_media(asked.state))
    id_ = texts["id"] or f"{INFERENCE_PREFIX}{uuid.uuid4().hex}"
    prior = _prior(body, asked.options, texts["model"])
    return _shown_decision(decider.decide_by(asked, prior, episode=id_, subject=texts["subject"], seed=seed), body)


def _step_decision(
    decider: Decider, body: Mapping[str, Any], prior: Prior, task: str | None, seed: int | None
) -> Decision:
    """Return the decision of a step whose episode the client posts at its end.

    It is made among the actions as the memory stores them, and shown by those of the request.
    """
    if task is None:
        rule = "a step of an episode has the task of the episode"
        raise InputError("episode_id without a task", rule, "Add it: outcomes and lift are grouped by it.")
    unit, redact = check_text("episode_id", body["episode_id"]), decider.memory.redacted
    check_candidates(dict(prior), None)
    asked_by = {redact(option): option for option in prior}
    if len(asked_by) < len(prior):  # without the options, which are to be stored and logged nowhere
        raise InputError(
            f"{len(prior) - len(asked_by) + 1} or more options that redaction makes one text",
            "the options of a decision differ once they are redacted",
            "Give the redactor a key (Redactor(keyed=...)), so that different values have different marks.",
        )
    stored = replace(prior, logprobs={redact(option): prior[option] for option in prior})
    stored = replace(stored, bounded=tuple(redact(option) for option in prior.bounded))
    admissible = body.get("admissible")
    if admissible is not None and admissible != "any":
        admissible = [
            redact(check_text("admissible", one))
            for one in check_json_array("admissible", admissible, MAX_LISTED_OPTIONS)
        ]
    state = canonical_state(body["state"])
    decided = decider.decide_for(
        unit, state, stored, task=redact(task), step=_step(body), seed=seed, admissible=admissible
    )

    def shown(values: Mapping[str, _Part]) -> dict[str, _Part]:
        return {asked_by.get(action, action): value for action, value in values.items()}

    return replace(
        decided,
        action=asked_by.get(decided.action, decided.action),
        probs=shown(decided.probs),
        base_probs=shown(decided.base_probs),
        advantages=shown(decided.advantages),
        counts=shown(decided.counts),
        prior=prior,
    )


def _step(body: Mapping[str, Any]) -> int:
    return check_whole("step", body.get("step", 0), 0, MAX_STEP)


def _options(options: object) -> list[str]:
    """Return the options of a request. Raises: InputError: there are none, or one is listed twice."""
    names = [check_text("option", option) for option in check_json_array("options", options, MAX_LISTED_OPTIONS)]
    if not names:
        raise InputError("options = []", "a decision needs one option or more", "Name those to choose among.")
    if len(set(names)) < len(names):
        twice = next(one for number, one in enumerate(names) if one in names[:number])
        raise InputError(f"{excerpt(twice)}, twice", "each option must be listed once", "Leave one of them out.")
    return names


def _prior(body: Mapping[str, Any], names: Sequence[str], model: str | None) -> Prior:
    """Return the prior that a request states over its options; without one all are equally probable.

    Raises:
        InputError: both forms are given, an option has no number or another one has, or a number breaks its rule.
    """
    given = [name for name in ("probabilities", "logprobs") if body.get(name) is not None]
    if len(given) > 1:
        raise InputError("probabilities and logprobs", "a prior is stated in one of the two", "Leave one out.")
    if not given:
        return Prior(answer_logprobs(dict.fromkeys(names, 1.0))[0], "uniform", model)
    [form] = given
    stated = check_mapping(form, body[form], "each option to a number")
    if set(stated) != set(names):
        odd = sorted({*names} ^ {*stated})[0]
        seen = f"{form} {'of' if odd in stated else 'without'} {excerpt(odd)}"
        raise InputError(seen, f"{form} has each of the options, and no other", "State one number for each.")
    if form == "logprobs":
        return Prior(check_logprobs("logprobs", {name: stated[name] for name in names}), "given", model)
    checked = {name: check_number(f"probability of {excerpt(name)}", stated[name], 0, 1) for name in names}
    if not any(checked.values()):
        raise InputError("probabilities that are all 0", "one of them is above 0", "State at least one.")
    logprobs, bounded = answer_logprobs(checked)
    return Prior(logprobs, "given", model, bounded)


def _shown_decision(decision: Decision, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decision on a request as JSON."""
    prior = decision.prior
    return {
        "id": decision.id,
        "action": decision.action,
        "state": None if isinstance(body["state"], str) else decision.state,
        "mode": decision.mode,
        "arm": decision.arm,
        "reason": decision.reason,
        "probabilities": dict(decision.probs),
        "base": dict(decision.base_probs),
        "advantages": dict(decision.advantages),
        "counts": dict(decision.counts),
        "beta": decision.beta,
        "kl_nats": decision.kl_nats,
        "propensity": decision.propensity,
        "evidence": {"steps": decision.n_steps, "states": decision.n_states},
        "policy": decision.policy,
        "prior": {} if prior is None else dict(prior),
    }
