"""The policy that learns: the model's own logits, shifted by what memory knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from seasoned.core import log_softmax, mix_in, modulate, sample_index
from seasoned.errors import InputError, excerpt
from seasoned.policies.alone import base_decision, generator
from seasoned.policies.candidates import Candidates, check_candidates
from seasoned.policies.presets import PRESETS, JitRLSettings, preset
from seasoned.protocols import Admissible, EvidenceSource
from seasoned.types import Decision, Evidence, Floats, Prior, check_text, normalize_action

__all__ = ["JitRL"]


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
        """Return the policy of a preset (`default`, `seed`, `snippet`), with some settings changed.

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
        if task is not None:
            check_text("task", task)
        elif settings.exclude_same_task:
            raise InputError("task = None", "the leave-one-task-out guard needs the task", "Pass task=...")
        evidence = self.memory.evidence(
            state,
            k=settings.k,
            unit=settings.unit,
            threshold=settings.threshold,
            gamma=settings.gamma,
            similarity_power=settings.similarity_power,
            decay=settings.decay,
            exclude_task=task if settings.exclude_same_task else None,
        )
        recorded: dict[str, Any] = {
            "policy": self.name,
            "beta": settings.beta,
            "gamma": evidence.gamma,
            "n_steps": evidence.n_steps,
            "n_states": evidence.n_states,
            "neighbors": evidence.neighbors,
            "dropped": checked.dropped,
            "prior": candidates if isinstance(candidates, Prior) else None,
            "step": step,
            "seed": seed,
        }
        enough = evidence.n_steps >= settings.min_neighbors
        opens = enough and settings.beta > 0 and settings.memory_actions
        added = checked.added(evidence.actions) if opens else ()
        if not checked.logits and not added:
            raise InputError(
                f"{len(checked.dropped)} candidates, none admissible",
                "a decision is between one admissible action or more",
                "Ask the model among what is possible.",
            )
        if enough:
            return self._modulated(state, checked, added, evidence, rng, recorded)
        reason = (
            f"{evidence.n_steps} stored steps among the neighbours (similarity at least {settings.threshold:g}), "
            f"{settings.min_neighbors} are needed"
        )
        counts, weights, totals = _aligned(tuple(checked.logits), evidence)
        known = zip(checked.logits, counts.tolist(), weights.tolist(), totals.tolist(), strict=True)
        table = {action: (int(n), total / weight if weight > 0 else None) for action, n, weight, total in known}
        recorded["counts"] = {action: n for action, (n, _) in table.items()}
        recorded["values"] = {action: q for action, (_, q) in table.items()}
        return base_decision(state, checked.logits, rng=rng, selection=settings.selection, reason=reason, **recorded)

    def _modulated(
        self,
        state: str,
        checked: Candidates,
        added: tuple[str, ...],
        evidence: Evidence,
        rng: np.random.Generator,
        recorded: Mapping[str, Any],
    ) -> Decision:
        settings = self.settings
        own = list(checked.logits.values())
        actions = (*checked.logits, *added)
        logprobs = mix_in(log_softmax(own) if own else [], len(added), settings.memory_prior)
        base = np.exp(logprobs)
        counts, weights, totals = _aligned(actions, evidence)
        estimate = settings.estimator.estimate(
            weights=weights,
            totals=totals,
            base_probs=base,
            neighbor_weight=float(evidence.weights.sum()),
            neighbor_total=float(evidence.totals.sum()),
            n_neighbors=evidence.n_steps,
            spread=evidence.spread,
            rng=rng,
        )
        shifted = modulate(logprobs, estimate.advantages, settings.beta)
        probs = np.exp(shifted)
        chosen = int(np.argmax(probs)) if settings.selection == "argmax" else sample_index(probs, rng)

        def by_action(values: Floats) -> dict[str, float]:
            return dict(zip(actions, values.tolist(), strict=True))

        tried = int((counts > 0).sum())
        states = "state" if evidence.n_states == 1 else "states"
        return Decision(
            state=state,
            action=actions[chosen],
            probs=by_action(probs),
            base_probs=by_action(base),
            logprobs=by_action(logprobs),
            advantages=by_action(estimate.advantages),
            values={a: None if np.isnan(q) else q for a, q in by_action(estimate.values).items()},
            counts={a: int(n) for a, n in by_action(counts).items()},
            baseline=estimate.baseline,
            scale=estimate.scale,
            # From the logprobs: a base probability that underflows to 0 would make it infinite.
            kl_nats=max(0.0, float(probs @ (shifted - logprobs))),
            mode="memory",
            reason=f"{evidence.n_steps} stored steps at {evidence.n_states} similar {states} speak of {tried} of "
            f"{len(actions)} candidates",
            propensity=1.0 if settings.selection == "argmax" else float(probs[chosen]),
            explored={a: bonus for a, bonus in by_action(estimate.bonuses).items() if bonus},
            memory_only=added,
            **recorded,
        )


def _aligned(actions: tuple[str, ...], evidence: Evidence) -> tuple[Floats, Floats, Floats]:
    """Counts, weights and totals per candidate; 0 where nobody tried it."""
    row_of = {normalize_action(action): row for row, action in enumerate(evidence.actions)}
    rows = [row_of.get(normalize_action(action), -1) for action in actions]
    padded = [np.append(column, 0.0)[rows] for column in (evidence.counts, evidence.weights, evidence.totals)]
    return padded[0], padded[1], padded[2]
