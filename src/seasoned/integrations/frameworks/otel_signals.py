"""Decisions and lift of a memory as OpenTelemetry spans and `gen_ai.evaluation.result` events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seasoned.checks import check_flag, check_instance
from seasoned.memory import Memory
from seasoned.protocols import Policy
from seasoned.registry import load_extra
from seasoned.types import Decision

__all__ = ["TracedPolicy", "trace_lift"]

_EXTRA = "otel"
_SCOPE = "seasoned"
_EVALUATION = "gen_ai.evaluation.result"


class TracedPolicy:
    """A policy each of whose decisions is a span, `seasoned.decide`, below the span that runs.

    Attributes of the span, none of them without a tracer provider: `seasoned.decision.mode`, `.reason`, `.arm`,
    `.policy`, `.kl_nats`, `.n_steps`, `.n_states`, `.n_candidates`, `.changed` (whether memory made another action the
    most likely one), `.probability` and `.base_probability` of the action, and `seasoned.episode.id`. Texts of states
    and actions are left out, as those of messages are by the conventions, unless that is asked for.

    Args:
        policy: decides.
        content: whether `seasoned.decision.state` and `.action` are attributes too.
        tracer_provider: None: the global one.

    Raises:
        InputError: an argument breaks its rule.
        MissingExtraError: the package `opentelemetry-sdk` is not installed.
    """

    def __init__(self, policy: Policy, *, content: bool = False, tracer_provider: Any = None) -> None:
        self.policy = check_instance("policy", policy, Policy, next_step="Pass a JitRL, for example.")
        self._content = check_flag("content", content)
        self._tracer = _tracer(tracer_provider)

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.policy.name

    @property
    def settings(self) -> Any:
        """The settings of the policy; None if it has none."""
        return getattr(self.policy, "settings", None)

    def decide(self, state: str, candidates: Any, **options: Any) -> Decision:
        """Return the policy's decision; see `seasoned.protocols.Policy`."""
        with self._tracer.start_as_current_span("seasoned.decide") as span:
            decision = self.policy.decide(state, candidates, **options)
            span.set_attributes(self._attributes(decision))
        return decision

    def _attributes(self, decision: Decision) -> dict[str, Any]:
        action = decision.action
        found: Mapping[str, Any] = {
            "mode": decision.mode,
            "reason": decision.reason,
            "arm": decision.arm,
            "policy": decision.policy,
            "kl_nats": decision.kl_nats,
            "n_steps": decision.n_steps,
            "n_states": decision.n_states,
            "n_candidates": len(decision.probs),
            "changed": _most_likely(decision.probs) != _most_likely(decision.base_probs),
            "probability": decision.probs[action],
            "base_probability": decision.base_probs[action],
            **({"state": decision.state, "action": action} if self._content else {}),
        }
        named = {f"seasoned.decision.{name}": value for name, value in found.items() if value is not None}
        return named if decision.id is None else {**named, "seasoned.episode.id": decision.id}


def trace_lift(memory: Memory, *, tracer_provider: Any = None) -> int:
    """Emit the lift of each family as an event `gen_ai.evaluation.result` on a span `seasoned.lift`; return how many.

    The event has `gen_ai.evaluation.name` (`seasoned.lift`), `.score.value` (the mean; left out before the first rated
    episode), `.score.label` (`learning`, `proven`, `harmful`, `unclear`), and `seasoned.lift.family`, `.low`, `.high`,
    `.n_treated`, `.n_control`, `.is_off`. Call it as often as it is wanted: after a batch, or by a timer.

    Args:
        memory: has a holdout's records.
        tracer_provider: None: the global one.

    Raises:
        MissingExtraError: the package `opentelemetry-sdk` is not installed.
        StoreError: the memory failed.
    """
    lifts = memory.lift().values()
    with _tracer(tracer_provider).start_as_current_span("seasoned.lift") as span:
        for lift in lifts:
            found = {
                "gen_ai.evaluation.name": "seasoned.lift",
                "gen_ai.evaluation.score.value": lift.mean,
                "gen_ai.evaluation.score.label": lift.state,
                "seasoned.lift.family": lift.family,
                "seasoned.lift.low": lift.low,
                "seasoned.lift.high": lift.high,
                "seasoned.lift.n_treated": lift.n_treated,
                "seasoned.lift.n_control": lift.n_control,
                "seasoned.lift.is_off": lift.is_off,
            }
            span.add_event(_EVALUATION, {name: value for name, value in found.items() if value is not None})
    return len(lifts)


def _tracer(provider: Any) -> Any:
    return load_extra("opentelemetry.trace", _EXTRA).get_tracer(_SCOPE, tracer_provider=provider)


def _most_likely(probs: Mapping[str, float]) -> str:
    return max(probs, key=probs.__getitem__)
