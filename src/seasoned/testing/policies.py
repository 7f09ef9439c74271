"""The conformance check of policies."""

from __future__ import annotations

import math

import numpy as np

from seasoned.core import kl_divergence
from seasoned.errors import InputError, SeasonedError, excerpt
from seasoned.protocols import Policy
from seasoned.testing.requirement import name_of, require
from seasoned.types import Decision, normalize_action

__all__ = ["check_policy"]

_TOLERANCE = 1e-9


def check_policy(policy: Policy) -> None:
    """Check decisions on ordinary, single, extreme and invalid inputs.

    Checked: the action is a key of `probs`; `probs` and `base_probs` are distributions over the same keys, equal in
    mode `base` or at beta 0; `kl_nats` is at least 0 and is KL(probs || base_probs); propensity is in (0, 1];
    equal seeds give equal decisions; only admissible actions are chosen; no candidates, an empty state and NaN are
    refused.

    Raises:
        InputError: the first violation.
    """
    subject = f"policy {name_of(policy)}"
    require(isinstance(policy, Policy), subject, "it has name and decide", "Add the missing members.")
    require(bool(policy.name), f"{subject}, name = {policy.name!r}", "a name is not empty", "Name it.")
    cases: list[dict[str, float]] = [
        {"click(checkout)": -0.3, "click(back)": -1.4},
        {"only": -0.7},
        {"a": -1e-3, "b": -800.0, "c": -40.0},
        {f"action {i}": -math.log(40) for i in range(40)},
    ]
    for candidates in cases:
        for seed in range(3):
            decision = policy.decide("page:cart total:12", candidates, seed=seed)
            _check_decision(f"{subject} on {excerpt(candidates)}", decision, candidates)
            again = policy.decide("page:cart total:12", candidates, seed=seed)
            require(
                (again.action, again.probs) == (decision.action, decision.probs),
                f"{subject}, seed {seed}: {decision.action!r} and then {again.action!r}",
                "equal seeds give equal decisions",
                "Draw from numpy.random.default_rng(seed).",
            )
            chosen = policy.decide("page:cart total:12", candidates, admissible=tuple(candidates), seed=seed).action
            require(
                normalize_action(chosen) in {normalize_action(action) for action in candidates},
                f"{subject} chose {chosen!r}",
                "the chosen action is admissible",
                "Filter candidates by `admissible`.",
            )
    refused: list[tuple[str, dict[str, float]]] = [("state", {}), ("", {"a": -0.1}), ("state", {"a": math.nan})]
    for state, candidates in refused:
        try:
            policy.decide(state, candidates)
        except SeasonedError:
            continue
        raise InputError(
            f"{subject} decided on state {state!r} with candidates {candidates}",
            "an empty state, no candidates and NaN are refused",
            "Raise InputError before deciding.",
        )


def _check_decision(subject: str, decision: Decision, candidates: dict[str, float]) -> None:
    require(
        isinstance(decision, Decision), f"{subject}: {excerpt(decision)}", "decide returns a Decision", "Build one."
    )
    probs, base = dict(decision.probs), dict(decision.base_probs)
    require(
        decision.action in probs, f"{subject}: action {decision.action!r}", "the action is a key of probs", "Add it."
    )
    require(list(probs) == list(base), f"{subject}: {excerpt(base)}", "base_probs has the keys of probs", "Align them.")
    require(
        set(probs) <= set(candidates), f"{subject}: {excerpt(probs)}", "admissible=None adds no action", "Add none."
    )
    for name, part in (("probs", probs), ("base_probs", base)):
        values = list(part.values())
        require(
            all(0.0 <= p <= 1.0 + _TOLERANCE for p in values) and abs(sum(values) - 1.0) <= 1e-6,
            f"{subject}: {name} = {excerpt(part)}",
            f"{name} are at least 0 and sum to 1",
            "Use softmax.",
        )
    kl = decision.kl_nats
    require(
        math.isfinite(kl) and kl >= 0.0, f"{subject}: kl_nats = {kl}", "a KL is finite, at least 0", "Recompute it."
    )
    exact = kl_divergence(np.array(list(probs.values())), np.array(list(base.values())))
    require(
        abs(kl - exact) <= 1e-6 * max(1.0, exact),
        f"{subject}: kl_nats = {kl}",
        f"KL(probs || base) is {exact}",
        "Return that value.",
    )
    require(
        0.0 < decision.propensity <= 1.0 + _TOLERANCE,
        f"{subject}: propensity = {decision.propensity}",
        "a propensity is in (0, 1]",
        "Record the probability with which the action was chosen.",
    )
    if decision.mode == "base" or decision.beta == 0.0:
        same = all(abs(probs[action] - base[action]) <= _TOLERANCE for action in probs)
        require(
            same,
            f"{subject}: mode {decision.mode}, {excerpt(probs)}",
            "without memory probs equals base_probs",
            "Return the base policy.",
        )
