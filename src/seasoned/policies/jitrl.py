"""The policy that learns: the model's own logits, shifted by what memory knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from seasoned.checks import check_text
from seasoned.core import AdvantageEstimate, Cells, Sums, capped_beta, log_softmax, mix_in, modulate, sample_index
from seasoned.errors import InputError, counted, excerpt
from seasoned.policies.base_policy import base_decision, generator
from seasoned.policies.candidates import Candidates, check_candidates
from seasoned.policies.jitrl_settings import JitRLSettings
from seasoned.policies.presets import PRESETS, preset
from seasoned.protocols import Admissible, EvidenceSource
from seasoned.types import Decision, Evidence, Floats, Ints, Prior, normalize_action

__all__ = ["JitRL"]

_ALL = 2**31 - 1
_LEAST_LOGPROB = -700.0
_ZERO = 1e-9  # of advantages, in their unit: what rounding leaves of Q - V


class JitRL:
    """Encode, retrieve, estimate, modulate, choose.

    `z'(a) = z(a) + beta * A(a)`, then softmax and sample: the exact maximiser of `E_p[A] - KL(p || softmax(z)) / beta`
    (JitRL, arXiv 2601.18510). Little evidence, little shift; none, no shift. No model or network call.

    Args:
        memory: what it asks; a `seasoned.Memory`, or anything that gives evidence.
        overrides: settings of the `default` preset to change; see `JitRLSettings`.

    Raises:
        InputError: a setting is unknown or breaks its rule.

    Example:
        >>> from seasoned import Episode, JitRL, Memory, Step
        >>> with Memory.open(":memory:") as memory:
        ...     for action, reward in [("click(pay)", 1.0), ("click(pay)", 1.0), ("click(back)", 0.0)]:
        ...         _ = memory.add(Episode(task="checkout", steps=[Step("page:cart", action, reward)]))
        ...     decision = JitRL(memory).decide("page:cart", {"click(pay)": -1.4, "click(back)": -0.3}, seed=0)
        >>> decision.probs["click(pay)"] > decision.base_probs["click(pay)"]
        True
    """

    def __init__(self, memory: EvidenceSource, **overrides: Any) -> None:
        self._configure("default", memory, overrides)

    @classmethod
    def preset(cls, name: str, memory: EvidenceSource, **overrides: Any) -> Self:
        """Return the policy of a preset (see `seasoned.policies.PRESETS`), with some settings changed.

        Raises:
            UnknownNameError: no preset has this name.
            InputError: a setting is unknown or breaks its rule.
        """
        policy = cls.__new__(cls)
        policy._configure(name, memory, overrides)
        return policy

    def _configure(self, name: str, memory: EvidenceSource, overrides: Mapping[str, Any]) -> None:
        if not isinstance(memory, EvidenceSource):
            raise InputError(
                f"memory = {excerpt(memory)}", "a policy asks a memory for evidence", "Pass a seasoned.Memory."
            )
        self.memory = memory
        self.settings: JitRLSettings = preset(name, **overrides)
        changed = self.settings != PRESETS[name]
        self.name = f"{name}+" if changed else name

    def decide(
        self,
        state: str,
        candidates: Mapping[str, float],
        *,
        admissible: Admissible = None,
        task: str | None = None,
        step: int = 0,
        seed: int | None = None,
    ) -> Decision:
        """Choose an action.

        Args:
            state: what the agent sees, as text.
            candidates: the model's proposals, each with its logit or logprob in nats (a constant added to all changes
                nothing); a `Prior` also records how it was read.
            admissible: None: the candidates are all there is. A collection, a predicate or "any": candidates that do
                not pass are dropped, and actions that only memory knows are added where they pass.
            task: what is being played; needed by the leave-one-task-out guard.
            step, seed: the same seed and step give the same draw; without a seed every call draws anew.

        Returns:
            The decision, with every number that led to it.

        Raises:
            InputError: the state is blank or too large, there are no candidates, two of them are the same, or a logit
                is not finite.
        """
        settings = self.settings
        rng = generator(seed, step)
        checked = check_candidates(candidates, admissible)
        evidence = self.evidence(state, step=step, task=task)
        recorded: dict[str, Any] = {
            "policy": self.name,
            "gamma": evidence.gamma,
            "n_steps": evidence.n_steps,
            "n_states": evidence.n_states,
            "neighbors": evidence.neighbors,
            "dropped": checked.dropped,
            "prior": candidates if isinstance(candidates, Prior) else None,
            "step": step,
            "seed": seed,
        }
        enough = evidence.n_steps - evidence.n_shown >= settings.min_neighbors
        added = self._added(checked, evidence) if enough else ()
        if not checked.logits and not added:
            raise InputError(
                f"{len(checked.dropped)} candidates, none admissible",
                "a decision is between one admissible action or more",
                "Ask the model among what is possible.",
            )
        if not enough:
            reason = (
                f"{counted(evidence.n_steps, 'stored step')} among the neighbours (similarity at least "
                f"{settings.threshold_at(step):g}{_read(evidence)}), {settings.min_neighbors} are needed"
            )
            return self._abstained(state, checked, evidence, rng, reason, recorded)
        actions, base = (*checked.logits, *added), self._base_logits(checked, len(added))
        estimate = self.estimate(actions, np.exp(base), evidence, rng)
        if settings.clear_only:
            alone = _read(evidence) or _incomparable(_counts(actions, evidence), estimate)
            estimate = _clear_only(estimate)
            if checked.logits and not added and not estimate.advantages.any():
                known = counted(evidence.n_steps, "stored step")
                reason = f"no advantage among {known} is clear: every 95 % interval holds 0"
                return self._abstained(state, checked, evidence, rng, reason + alone, recorded)
        return self._modulated(state, actions, base, added, evidence, estimate, rng, recorded)

    def evidence(self, state: str, *, step: int = 0, task: str | None = None) -> Evidence:
        """Return what memory knows about this moment, asked as these settings ask.

        Raises:
            InputError: no task, where the leave-one-task-out guard is on; or as for `Memory.evidence`.
        """
        settings = self.settings
        if task is not None:
            check_text("task", task)
        elif settings.exclude_same_task:
            raise InputError("task = None", "the leave-one-task-out guard needs the task", "Pass task=...")
        # Only where they are wanted: an EvidenceSource of somebody's own need not know of graphs or propensities.
        more = {"backup": settings.backup, "propensity_floor": settings.propensity_floor}
        asked: dict[str, Any] = {name: value for name, value in more.items() if value is not None}

        def ask(k: int, threshold: float) -> Evidence:
            return self.memory.evidence(
                state,
                k=k,
                unit=settings.unit,
                threshold=threshold,
                gamma=settings.gamma,
                similarity_power=settings.similarity_power,
                decay=settings.decay,
                exclude_task=task if settings.exclude_same_task else None,
                **asked,
            )

        if settings.all_above is not None:
            every = ask(_ALL, settings.all_above)
            if (every.n_steps if settings.unit == "steps" else every.n_states) > settings.k:
                return every
        return ask(settings.k, settings.threshold_at(step))

    def _added(self, checked: Candidates, evidence: Evidence) -> tuple[str, ...]:
        """The actions that memory adds to the model's proposals."""
        settings = self.settings
        if settings.beta == 0.0 or not settings.memory_actions:
            return ()
        least = settings.memory_return_above
        remembered = [
            action
            for action, weight, total, left in zip(
                evidence.actions, evidence.weights, evidence.totals, _unshown(evidence), strict=True
            )
            if left > 0.0 and (least is None or (weight > 0.0 and total / weight > least))
        ]
        return checked.added(remembered)

    def _base_logits(self, checked: Candidates, n_added: int) -> Floats:
        """The base policy's logprobs (nats, normalised) over proposals and what memory added."""
        settings = self.settings
        own = log_softmax(list(checked.logits.values())) if checked.logits else np.zeros(0)
        if settings.memory_base == "mass" or not n_added:
            return mix_in(own, n_added, settings.memory_prior)
        if settings.prior_scale == "probabilities":  # their probability is 0, or as near as a logarithm allows
            return log_softmax([*own, *[_LEAST_LOGPROB] * n_added])
        return log_softmax([*own, *[0.0] * n_added])

    def estimate(
        self, actions: tuple[str, ...], base_probs: Floats, evidence: Evidence, rng: np.random.Generator
    ) -> AdvantageEstimate:
        """Return the advantages of these actions, as these settings estimate them; see `AdvantageEstimator`."""
        kept = evidence.by_state
        cells = (
            None
            if kept is None
            else Cells(kept.states, kept.actions, kept.counts, kept.weights, kept.totals, kept.squares, kept.shares)
        )
        rows = _rows(actions, evidence)
        estimate = self.settings.estimator.estimate(
            Sums(evidence.counts, evidence.weights, evidence.totals, evidence.squares, cells),
            rows=rows,
            base_probs=base_probs,
            spread=evidence.spread,
            rng=rng,
        )
        if evidence.unshown is None:
            return estimate
        return estimate.weighed(np.append(_unshown(evidence) / evidence.counts, 1.0)[rows])

    def _abstained(
        self,
        state: str,
        checked: Candidates,
        evidence: Evidence,
        rng: np.random.Generator,
        reason: str,
        recorded: Mapping[str, Any],
    ) -> Decision:
        """The model's own policy, with what little is known beside it."""
        actions = tuple(checked.logits)
        rows = _rows(actions, evidence)
        counts, weights, totals = (
            np.append(column, 0.0)[rows] for column in (evidence.counts, evidence.weights, evidence.totals)
        )
        known = zip(actions, weights.tolist(), totals.tolist(), strict=True)
        return base_decision(
            state,
            checked.logits,
            rng=rng,
            selection=self.settings.selection,
            reason=reason,
            counts={action: int(n) for action, n in zip(actions, counts, strict=True)},
            values={action: total / weight if weight > 0 else None for action, weight, total in known},
            beta=self.settings.beta,
            **recorded,
        )

    def _modulated(
        self,
        state: str,
        actions: tuple[str, ...],
        base: Floats,
        added: tuple[str, ...],
        evidence: Evidence,
        estimate: AdvantageEstimate,
        rng: np.random.Generator,
        recorded: Mapping[str, Any],
    ) -> Decision:
        settings = self.settings
        logits = np.exp(base) if settings.prior_scale == "probabilities" else base
        wanted = beta = settings.beta_after(evidence.n_episodes)
        if settings.max_kl_nats is not None:
            beta = capped_beta(logits, estimate.advantages, beta, settings.max_kl_nats)
        # At beta = 0 the model decides alone, on whichever scale.
        shifted = modulate(logits if beta else base, estimate.advantages, beta)
        probs = np.exp(shifted)
        chosen = int(np.argmax(probs)) if settings.selection == "argmax" else sample_index(probs, rng)

        def by_action(values: Floats) -> dict[str, float]:
            return dict(zip(actions, values.tolist(), strict=True))

        counts = _counts(actions, evidence)
        tried = int((counts > 0).sum())
        reason = (
            f"{counted(evidence.n_steps, 'stored step')} at {counted(evidence.n_states, 'similar state')} speak of "
            f"{tried} of {len(actions)} candidates{_read(evidence) or _incomparable(counts, estimate)}"
        )
        if evidence.n_unlogged:
            reason += f"; {evidence.n_unlogged} of the steps without a propensity, which was estimated"
        if beta < wanted:
            reason += f"; beta lowered from {wanted:g} to spend {settings.max_kl_nats:g} nats at most"
        bounds = zip(actions, estimate.low.tolist(), estimate.high.tolist(), strict=True)
        return Decision(
            state=state,
            action=actions[chosen],
            probs=by_action(probs),
            base_probs=by_action(np.exp(base)),
            logprobs=by_action(base),
            advantages=by_action(estimate.advantages),
            values={a: None if np.isnan(q) else q for a, q in by_action(estimate.values).items()},
            counts={a: int(n) for a, n in by_action(counts).items()},
            baseline=estimate.baseline,
            beta=beta,
            scale=estimate.scale,
            # From the logprobs: a base probability that underflows to 0 would make it infinite.
            kl_nats=max(0.0, float(probs @ (shifted - base))),
            mode="memory",
            reason=reason,
            propensity=1.0 if settings.selection == "argmax" else float(probs[chosen]),
            explored={a: bonus for a, bonus in by_action(estimate.bonuses).items() if bonus},
            memory_only=added,
            intervals={a: None if np.isnan(low) else (low, high) for a, low, high in bounds},
            **recorded,
        )


def _rows(actions: tuple[str, ...], evidence: Evidence) -> Ints:
    """Where the evidence speaks of each candidate; -1 where it does not."""
    row_of = {normalize_action(action): row for row, action in enumerate(evidence.actions)}
    return np.array([row_of.get(normalize_action(action), -1) for action in actions], dtype=np.int64)


def _counts(actions: tuple[str, ...], evidence: Evidence) -> Floats:
    """Return how many of the neighbours' steps took each candidate."""
    return np.append(evidence.counts, 0.0)[_rows(actions, evidence)]


def _unshown(evidence: Evidence) -> Floats:
    """Return how many of each action's steps the model has not read."""
    return evidence.counts if evidence.unshown is None else evidence.unshown


def _read(evidence: Evidence) -> str:
    """Say how many of the steps the model has read, which gives them no weight here; else ''."""
    return f"; already in the prompt: {evidence.n_shown} of the steps" if evidence.n_shown else ""


def _incomparable(counts: Floats, estimate: AdvantageEstimate) -> str:
    """Say that Q = V because nothing else was tried, which more rewards for that one action do not change; else ''."""
    learned = np.abs(estimate.advantages - estimate.bonuses).max()
    if len(counts) == 1 or (counts > 0).sum() != 1 or learned > _ZERO:
        return ""
    return "; only one of the candidates was tried there: nothing to compare it with"


def _clear_only(estimate: AdvantageEstimate) -> AdvantageEstimate:
    """Without the advantages whose interval holds 0; bonuses stay."""
    unclear = (estimate.low <= 0.0) & (estimate.high >= 0.0)
    return dataclasses.replace(estimate, advantages=np.where(unclear, estimate.bonuses, estimate.advantages))
