"""Decisions over a model with a slope equal a dense Gaussian process with the mean that its definition gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seasoned import Episode, JitRL, Memory, Step


def slope_and_mean_lead(taken, mean, unit):
    """Return b, less one deviation, and mean x, by the normal equations of y = c + b x + d e, with b, d ~ N(0, 1)."""
    x, e, y = np.array(taken).T
    n = math.ceil(len(x) / 10)
    x, e = (np.clip(column, np.sort(column)[n], np.sort(column)[-1 - n]) for column in (x, e))
    design = np.column_stack([np.ones(len(x)), x, e])
    covariance = np.linalg.inv(design.T @ design + np.diag([0.0, 1.0, 1.0]))
    posterior = covariance @ design.T @ np.clip((y - mean) / unit, -2.0, 2.0)
    return posterior[1] - math.sqrt(covariance[1, 1]), x.mean()


@pytest.mark.parametrize("seed", range(4))
def test_advantages_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    actions = [f"act{number}" for number in range(rng.integers(2, 5))]
    even = 1.0 / len(actions)
    policies, taken, episodes = {}, [], []
    for number in range(40):
        state, p = f"word{rng.integers(9)} is{rng.integers(5)} on{number}", rng.dirichlet(np.ones(len(actions)))
        action, prior = int(rng.choice(len(actions), p=p)), dict(zip(actions, np.log(p).tolist(), strict=True))
        return_ = 1.5 * p[action] + 0.3 * rng.normal()
        episodes.append(Episode("t", [Step(state, actions[action], return_, prior=prior)]))
        policies[state] = p
        taken.append((p[action] - even, p @ p - even, return_))
    with Memory.open(":memory:") as memory:
        memory.add_many(episodes)
        policy, state, p = JitRL(memory), "word3 is2 now", rng.dirichlet(np.ones(len(actions)))
        evidence = policy.evidence(state)
        decision = policy.decide(state, dict(zip(actions, np.log(p).tolist(), strict=True)), seed=0)
    sums, near, mean, unit = evidence.by_state, evidence.similarities, evidence.recent.mean, evidence.recent.spread
    states = [policies[neighbor.experience.state] for neighbor in evidence.neighbors]  # each was visited once
    assert len(states) == len(near)
    b, mean_lead = slope_and_mean_lead(taken, mean, unit)
    assert b > 0.0
    at, action_of = sums.states, np.array([actions.index(evidence.actions[row]) for row in sums.actions])
    blended = np.array([near[s] * p[a] + (1 - near[s]) * states[s][a] for s, a in zip(at, action_of, strict=True)])
    beyond = (sums.totals / sums.weights - mean) / unit - b * (blended - even - mean_lead)
    process = policy.settings.process
    alike = process.level + (1.0 - process.level) * (action_of[:, None] == action_of)
    solved = np.linalg.solve(
        evidence.state_similarities[np.ix_(at, at)] * alike + process.noise * np.eye(len(at)), beyond
    )
    values = b * (p - even - mean_lead)
    for a in range(len(actions)):
        value = near[at] * (process.level + (1.0 - process.level) * (action_of == a)) @ solved
        if own := np.flatnonzero(action_of == a).tolist():  # at most two deviations from what the nearest pair says
            nearest = max(own, key=lambda pair: near[at[pair]])
            gain = near[at[nearest]] / (1.0 + process.noise)
            half = process.deviations * math.sqrt(1.0 - near[at[nearest]] * gain)
            value = np.clip(value, gain * beyond[nearest] - half, gain * beyond[nearest] + half)
        values[a] += value
    assert list(decision.estimated_advantages.values()) == pytest.approx((values - p @ values).tolist(), abs=1e-9)
