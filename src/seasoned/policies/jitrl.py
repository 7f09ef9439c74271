"""JitRL, the policy that learns: the model's own logits, shifted by advantages from memory."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from seasoned.checks import check_instance, check_text, check_whole
from seasoned.core import (
    AdvantageEstimate,
    Cells,
    ChoiceModel,
    LatestReturns,
    PriorMean,
    ReturnLabels,
    SimilarStates,
    Sums,
    UntriedReturn,
    capped_beta,
    faded,
    log_softmax,
    mix_in,
    modulate,
    prior_leads,
    prior_slope,
    sample_index,
    within_tasks,
)
from seasoned.errors import InputError, counted
from seasoned.policies.base_policy import base_decision, generator
from seasoned.policies.calibration.prior_watch import PriorWatch
from seasoned.policies.call_evidence import action_rows, call_shapes, merge_spellings, proposable, task_cells
from seasoned.policies.candidates import Candidates, check_candidates
from seasoned.policies.frontier import frontier_note, towards_frontier
from seasoned.policies.jitrl_settings import JitRLSettings
from seasoned.policies.presets import PRESETS, preset
from seasoned.policies.untried_candidates import ROUNDING, comparison_note, tried_here, untried_of
from seasoned.protocols import Admissible, EvidenceSource
from seasoned.types import Decision, Evidence, EvidenceQuery, Floats, Ints, Prior, StateSums

__all__ = ["JitRL"]

_ALL = 2**31 - 1
_MIN_LOGPROB = -700.0
_RECURRENCE_POWER = 8


class JitRL:
    """Encode, retrieve, estimate, modulate, choose.

    `z'(a) = z(a) + beta * A(a)`, then softmax and sample: the exact maximiser of `E_p[A] - KL(p || softmax(z)) / beta`
    (JitRL, arXiv 2601.18510). Little evidence, little shift; none, no shift. No model or network call.

    Args:
        memory: the source of evidence: a `seasoned.Memory`, or another `EvidenceSource`.
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
            UnknownNameError: there is no such preset.
            InputError: a setting is unknown or breaks its rule.
        """
        policy = cls.__new__(cls)
        policy._configure(name, memory, overrides)
        return policy

    def _configure(self, name: str, memory: EvidenceSource, overrides: Mapping[str, Any]) -> None:
        rule = "memory must return evidence, by a method evidence()"
        self.memory = check_instance("memory", memory, EvidenceSource, rule, "Pass a seasoned.Memory.")
        self.settings: JitRLSettings = preset(name, **overrides)
        changed = self.settings != PRESETS[name]
        self.name = f"{name}+" if changed else name
        self._prior_watch = PriorWatch(memory)

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
            state: the agent's observation, as text.
            candidates: the model's proposals, each with its logit or logprob in nats (a constant added to all changes
                nothing); a `Prior` also records how it was read, and is compared with what the agent did: where it
                departs widely, a warning is logged first (`PriorWatch`).
            admissible: None: the candidates are complete. A collection, a predicate or "any": candidates that do not
                pass are dropped, and actions from memory that pass are added.
            task: the task being played; needed by the leave-one-task-out guard.
            step, seed: the same seed and step give the same draw; without a seed each call draws differently.

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
        if isinstance(candidates, Prior):  # read from a model, whose policy may not be that of the agent
            self._prior_watch.check(candidates, state, task)
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
        limit = self.kl_limit(evidence)
        weightless = limit is not None and limit <= 0.0
        enough = evidence.n_steps - evidence.n_shown >= settings.min_neighbors and not weightless
        added, held_back = self._added(checked, evidence, state, task) if enough else ((), 0)
        if not checked.logits and not added:
            raise InputError(
                f"{len(checked.dropped)} candidates, none admissible",
                "a decision needs one admissible action or more",
                "Ask the model to choose among the possible actions.",
            )
        if not enough:
            needed = f"{settings.min_neighbors} {'is' if settings.min_neighbors == 1 else 'are'} needed"
            reason = (
                f"{_steps_note(evidence)} among the neighbours (similarity at least "
                f"{settings.threshold_at(step):g}{_shown_note(evidence)}), {needed}"
            )
            if weightless and evidence.n_steps >= settings.min_neighbors:
                reason = f"the {_steps_note(evidence)} among the neighbours have no weight{_shown_note(evidence)}"
            return self._abstained(state, checked, evidence, rng, reason, recorded)
        added += self._untried_instead(checked, added, evidence)
        actions, base = (*checked.logits, *added), self._base_logits(checked, len(added))
        estimate = self.estimate(actions, np.exp(base), evidence, rng)
        if evidence.frontier is not None:
            estimate = towards_frontier(
                estimate, action_rows(actions, evidence), base, evidence.frontier, settings.beta
            )
        if settings.clear_only:
            note = _shown_note(evidence) or comparison_note(action_rows(actions, evidence), evidence, estimate)
            estimate = _clear_only(estimate)
            if checked.logits and not added and not estimate.advantages.any():
                reason = f"no advantage among {_steps_note(evidence)} is clear: every 95 % interval contains 0"
                return self._abstained(state, checked, evidence, rng, reason + note, recorded)
        decision = self._modulated(state, actions, base, added, evidence, estimate, rng, recorded)
        return _with_held_back(decision, held_back)

    def evidence(self, state: str, *, step: int = 0, task: str | None = None) -> Evidence:
        """Return the memory's evidence about a state, under these settings.

        Raises:
            InputError: the step is negative or not whole; the leave-one-task-out guard is on and `task` is None; or as
                for `Memory.evidence`.
        """
        settings, step = self.settings, check_whole("step", step, 0)
        if task is not None:
            check_text("task", task)
        elif settings.exclude_same_task:
            raise InputError("task = None", "the leave-one-task-out guard needs the task", "Pass task=...")

        def nearest(k: int, threshold: float) -> Evidence:
            query = EvidenceQuery(
                state,
                k=k,
                unit=settings.unit,
                threshold=threshold,
                gamma=settings.gamma,
                similarity_power=settings.similarity_power,
                decay=settings.decay,
                exclude_task=task if settings.exclude_same_task else None,
                backup=settings.backup,  # type: ignore[arg-type]  # a beta was turned into a Backup
                propensity_floor=settings.propensity_floor,
                similarity=settings.similarity,
                current_task=task,
                compare_choices=settings.compares_choices,
                labels=settings.uses_labels,
                by_task=settings.similarity == "rarity",
                recent_returns=settings.baseline == "base_policy" and settings.backup is None,
                frontier=settings.explores_frontier,
                leads=settings.reads_leads,
            )
            return merge_spellings(self.memory.evidence(query))

        if settings.all_above is not None:
            every = nearest(_ALL, settings.all_above)
            if (every.n_steps if settings.unit == "steps" else every.n_states) > settings.k:
                return every
        return nearest(settings.k, settings.threshold_at(step))

    def _added(
        self, checked: Candidates, evidence: Evidence, state: str, task: str | None
    ) -> tuple[tuple[str, ...], int]:
        """Return the actions that memory adds to the model's proposals, and how many calls fit only elsewhere."""
        settings = self.settings
        if settings.beta == 0.0 or not settings.memory_actions:
            return (), 0
        above = settings.memory_return_above
        in_choices = {row for choice in evidence.choices for row in choice.options}
        remembered = [
            (action, row)
            for row, (action, weight, total, n_steps, unshown) in enumerate(
                zip(
                    evidence.actions,
                    evidence.weights,
                    evidence.totals,
                    evidence.step_counts,
                    _unshown(evidence),
                    strict=True,
                )
            )
            if (min(n_steps, unshown) > 0.0 or row in in_choices)
            and (above is None or (weight > 0.0 and total / weight > above))
        ]
        texts = [state] if task is None else [state, task]
        anything = checked.listed or settings.estimation == "means"
        fitting = [a for a, row in remembered if anything or proposable(a, row, evidence, texts)]
        return checked.added(fitting), len(remembered) - len(fitting)

    def _untried_instead(self, checked: Candidates, added: tuple[str, ...], evidence: Evidence) -> tuple[str, ...]:
        """Return the listed actions that nobody proposed, if each candidate is worth less than an untried one here."""
        others = tuple(action for action in checked.others if action not in added)
        candidates = (*checked.logits, *added)
        settings = self.settings
        if (
            not others
            or not settings.memory_actions
            or settings.beta == 0.0
            or settings.memory_return_above is not None
        ):
            return ()
        if not tried_here(action_rows(candidates, evidence), evidence).all():
            return ()
        even = np.full(len(candidates) + 1, 1.0 / (len(candidates) + 1))
        estimate = self.estimate((*candidates, others[0]), even, evidence, np.random.default_rng(0))
        learned = estimate.advantages - estimate.bonuses
        return others if (learned[:-1] < learned[-1] - ROUNDING).all() else ()

    def _base_logits(self, checked: Candidates, n_added: int) -> Floats:
        """Return the base policy's logprobs (nats, normalised) over the proposals and the added actions."""
        settings = self.settings
        own = log_softmax(list(checked.logits.values())) if checked.logits else np.zeros(0)
        if settings.memory_base == "mass" or not n_added:
            return mix_in(own, n_added, settings.memory_prior)
        if settings.prior_scale == "probabilities":  # a probability of 0, as near as a logarithm allows
            return log_softmax([*own, *[_MIN_LOGPROB] * n_added])
        return log_softmax([*own, *[0.0] * n_added])

    def estimate(
        self, actions: tuple[str, ...], base_probs: Floats, evidence: Evidence, rng: np.random.Generator
    ) -> AdvantageEstimate:
        """Return the advantages of these actions under these settings; see `AdvantageEstimator` and `ChoiceModel`."""
        rows = action_rows(actions, evidence)
        estimate = self._reward_estimate(actions, rows, base_probs, evidence, rng)
        return self._with_choices(estimate, rows, base_probs, evidence) if evidence.choices else estimate

    def _reward_estimate(
        self, actions: tuple[str, ...], rows: Ints, base_probs: Floats, evidence: Evidence, rng: np.random.Generator
    ) -> AdvantageEstimate:
        """Return the advantages by the returns alone."""
        sums = evidence.by_state
        cells = (
            None
            if sums is None
            else Cells(
                sums.states,
                sums.actions,
                sums.counts,
                sums.weights,
                sums.totals,
                sums.squares,
                sums.shares,
                None if sums.labelled is None else sums.labelled >= sums.weights,
            )
        )
        if self.settings.estimation == "process":
            estimate = self._process_estimate(cells, actions, rows, base_probs, evidence)
        else:
            estimate = self.settings.estimator.estimate(
                Sums(evidence.counts, evidence.weights, evidence.totals, evidence.squares, cells),
                rows=rows,
                base_probs=base_probs,
                spread=evidence.spread,
                rng=rng,
                untried=untried_of(rows, evidence) if self.settings.backup is None else None,
            )
        if evidence.unshown is None:
            return estimate
        # The process gives an untried action a value too, from all steps together.
        elsewhere = 1.0 - _shown_share(evidence) if self.settings.estimation == "process" else 1.0
        shares = np.divide(
            _unshown(evidence), evidence.counts, out=np.ones(len(evidence.counts)), where=evidence.counts > 0
        )
        return estimate.discounted(np.append(shares, elsewhere)[rows])

    def _with_choices(
        self, estimate: AdvantageEstimate, rows: Ints, base_probs: Floats, evidence: Evidence
    ) -> AdvantageEstimate:
        """Return the estimate with the utilities of choices over beta, so that `beta * A` holds them in nats.

        Evidence by `means` has no similarity between states: all neighbours are then one state, as for their returns.
        """
        beta = self.settings.beta_after(evidence.n_episodes)
        if beta == 0.0:
            return estimate
        choices, to_query, to_each_other = evidence.choices, evidence.similarities, evidence.state_similarities
        if to_query is None or to_each_other is None:
            choices = tuple(choice._replace(state=0) for choice in choices)
            to_query, to_each_other = np.ones(1), np.ones((1, 1))
        found = ChoiceModel().estimate(choices, to_query, to_each_other, rows=rows, base_probs=base_probs)
        if found is None:
            return estimate
        if not evidence.weights.any():  # choices alone: returns say nothing, not even how little
            unknown = np.full(len(rows), np.nan)
            estimate = dataclasses.replace(estimate, estimated=unknown, low=unknown, high=unknown)
        return estimate.shifted(found.beta / beta * found.advantages, found.beta / beta * found.deviations)

    def _process_estimate(
        self, cells: Cells | None, actions: tuple[str, ...], rows: Ints, base_probs: Floats, evidence: Evidence
    ) -> AdvantageEstimate:
        """Return the advantages by the Gaussian process."""
        to_query, to_each_other, recent = evidence.similarities, evidence.state_similarities, evidence.recent
        if cells is None or to_query is None or to_each_other is None or recent is None:
            raise InputError(
                "evidence without similarities between states",
                "a memory must answer a query with similarity='rarity' by the similarities",
                "Use a seasoned.Memory, or estimation='means'.",
            )
        expected = untried_of(rows, evidence) or UntriedReturn(recent.mean, recent.spread)
        unit = expected.spread if expected.spread > 0.0 else 1.0
        if self.settings.change_rate > 0.0 and evidence.latest is not None:
            latest = evidence.latest
            labels = None if latest.labels is None else ReturnLabels(*latest.labels)
            since = LatestReturns(latest.states, latest.actions, latest.returns, labels)
            cells = faded(cells, since, rate=self.settings.change_rate, mean=expected.mean, unit=unit)
        process, sums = self.settings.process, evidence.by_task
        if sums is not None:
            by_task = task_cells(sums)
            shares = {"level": process.level, "noise": process.noise, "mean": expected.mean}
            cells = within_tasks(cells, by_task, to_each_other, to_query=to_query, **shares)
        return process.estimate(
            cells,
            SimilarStates(to_query, to_each_other),
            rows=rows,
            base_probs=base_probs,
            mean=expected.mean,
            unit=unit,
            n_returns=recent.n,
            mean_deviation=expected.deviation,
            moderation_nats=self.settings.moderation * self.settings.beta_after(evidence.n_episodes),
            # What is learned at a state is used again only as far as alike states come again: the deviation counts in
            # full where the state itself is stored, and hardly among sentences, each of which comes once.
            recurrence=float(to_query.max(initial=0.0)) ** _RECURRENCE_POWER,
            calls=call_shapes(actions, rows, evidence),
            prior=_prior_mean(evidence, rows, base_probs, expected.mean, unit),
        )

    def kl_limit(self, evidence: Evidence) -> float | None:
        """Return the most nats that a decision by this evidence may spend; None: no limit."""
        settings, limits = self.settings, []
        if settings.max_kl_nats is not None:
            limits.append(settings.max_kl_nats)
        sums, similarities = evidence.by_state, evidence.similarities
        if settings.nats_per_step is not None and sums is not None and similarities is not None:
            steps = (1.0 - _shown_share(evidence)) * _effective_steps(sums, similarities)
            choices = sum(min(1.0, choice.weight) * similarities[choice.state] for choice in evidence.choices)
            limits.append(settings.nats_per_step * (steps + choices))
        return min(limits, default=None)

    def _abstained(
        self,
        state: str,
        checked: Candidates,
        evidence: Evidence,
        rng: np.random.Generator,
        reason: str,
        recorded: Mapping[str, Any],
    ) -> Decision:
        """Return a decision by the model's own policy, with the counts and values in the evidence."""
        actions = tuple(checked.logits)
        rows = action_rows(actions, evidence)
        weights, totals = (np.append(column, 0.0)[rows] for column in (evidence.weights, evidence.totals))
        known = zip(actions, weights.tolist(), totals.tolist(), strict=True)
        return base_decision(
            state,
            checked.logits,
            rng=rng,
            selection=self.settings.selection,
            reason=reason,
            counts=_observations(actions, rows, evidence),
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
        limit = self.kl_limit(evidence)
        if limit is not None:
            beta = capped_beta(logits, estimate.advantages, beta, limit)
        # At beta = 0 the model decides alone, on whichever scale.
        shifted = modulate(logits if beta else base, estimate.advantages, beta)
        probs = np.exp(shifted)
        chosen = int(np.argmax(probs)) if settings.selection == "argmax" else sample_index(probs, rng)

        def by_action(values: Floats) -> dict[str, float]:
            return dict(zip(actions, values.tolist(), strict=True))

        rows = action_rows(actions, evidence)
        observations = _observations(actions, rows, evidence)
        tried = sum(n > 0 for n in observations.values())
        reason = (
            f"{_steps_note(evidence)} at {counted(evidence.n_states, 'similar state')} cover "
            f"{tried} of {len(actions)} candidates{_shown_note(evidence) or comparison_note(rows, evidence, estimate)}"
        )
        if estimate.preferred is not None:
            reason += (
                f"; {estimate.preferred[chosen]:+.3f} of the advantage of the chosen one is the model's own preference,"
                " with which returns rise"
            )
        if evidence.n_unlogged:
            reason += f"; {evidence.n_unlogged} of the steps have no propensity, which was estimated"
        if evidence.frontier is not None:
            reason += frontier_note(rows, evidence.frontier)
        if beta < wanted:
            reason += f"; beta lowered from {wanted:g} to spend at most {limit:.3g} nats"
        bounds = zip(actions, estimate.low.tolist(), estimate.high.tolist(), strict=True)
        return Decision(
            state=state,
            action=actions[chosen],
            probs=by_action(probs),
            base_probs=by_action(np.exp(base)),
            logprobs=by_action(base),
            advantages=by_action(estimate.advantages),
            values={a: None if math.isnan(q) else q for a, q in by_action(estimate.values).items()},
            counts=observations,
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
            estimated_advantages={a: None if math.isnan(x) else x for a, x in by_action(estimate.estimated).items()},
            intervals={a: None if math.isnan(low) else (low, high) for a, low, high in bounds},
            **recorded,
        )


def _prior_mean(evidence: Evidence, rows: Ints, base_probs: Floats, mean: float, unit: float) -> PriorMean | None:
    """Return what the model's own policy says of values; None if nothing, as an even policy does."""
    taken, sums, similarities = evidence.taken_leads, evidence.by_state, evidence.similarities
    if taken is None or sums is None or sums.leads is None or similarities is None:
        return None
    slope = prior_slope(*taken, mean=mean, unit=unit)
    if slope is None or np.abs(prior_leads(base_probs)).max() <= ROUNDING:
        return None
    candidates = np.full(len(evidence.actions), -1)
    candidates[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    of_cells = {"candidates": candidates[sums.actions], "similarities": similarities[sums.states]}
    return PriorMean.of(slope, base_probs, sums.leads, **of_cells)


def _with_held_back(decision: Decision, n_calls: int) -> Decision:
    """Return the decision with a note on the calls that memory did not propose."""
    if not n_calls:
        return decision
    note = f"; {counted(n_calls, 'remembered call')} not proposed: the arguments occur neither here nor in other tasks"
    return dataclasses.replace(decision, reason=decision.reason + note)


def _observations(actions: tuple[str, ...], rows: Ints, evidence: Evidence) -> dict[str, int]:
    """Return the number of observations of each candidate: steps that took it, labels, choices among it and others."""
    counts = np.append(evidence.counts, 0.0)
    shown = [row for choice in evidence.choices for row in choice.options]
    np.add.at(counts, np.array(shown, dtype=np.int64), 1.0)
    return {action: int(n) for action, n in zip(actions, counts[rows].tolist(), strict=True)}


def _steps_note(evidence: Evidence) -> str:
    """Return the numbers of stored steps and of choices in words."""
    n_choices = len(evidence.choices)
    steps = counted(evidence.n_steps - n_choices, "stored step")
    return f"{steps} and {counted(n_choices, 'choice')}" if n_choices else steps


def _effective_steps(sums: StateSums, similarities: Floats) -> float:
    """Return what the neighbours' steps are worth in steps here: `sum_s k_s n_s / (1 + (n_s - 1) (1 - k_s))`.

    n_s steps at a state of similarity k_s share what that state has of its own, 1 - k_s, as the members of a cluster do
    (design effect: Kish 1965, Survey Sampling). However many they are, they are worth at most `k_s / (1 - k_s)`.
    """
    n = np.bincount(sums.states, sums.step_weights, minlength=len(similarities))
    return float(similarities @ (n / (1.0 + np.maximum(n - 1.0, 0.0) * np.clip(1.0 - similarities, 0.0, 1.0))))


def _shown_share(evidence: Evidence) -> float:
    """Return the share of the steps that are in the model's prompt."""
    n_observations = float(evidence.counts.sum())
    return evidence.n_shown / n_observations if n_observations else 0.0


def _unshown(evidence: Evidence) -> Floats:
    """Return, for each action, the number of its observations that are not in the prompt."""
    return evidence.counts if evidence.unshown is None else evidence.unshown


def _shown_note(evidence: Evidence) -> str:
    """Return a note with the number of steps in the prompt, which have no weight here; '' if there are none."""
    return f"; already in the prompt: {evidence.n_shown} of the steps" if evidence.n_shown else ""


def _clear_only(estimate: AdvantageEstimate) -> AdvantageEstimate:
    """Return the estimate without the advantages whose interval contains 0; bonuses stay."""
    unclear = (estimate.low <= 0.0) & (estimate.high >= 0.0)
    return dataclasses.replace(estimate, advantages=np.where(unclear, estimate.bonuses, estimate.advantages))
