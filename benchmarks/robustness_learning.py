"""Cases of `robustness.py` in which a preset learns or is asked many times: chance, intervals, regret, change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from robustness_case import Case, Measures

from seasoned import Episode, JitRL, Memory, Step

Floats = np.ndarray[Any, Any]


def names(n: int) -> list[str]:
    """Return n action names."""
    return [f"act{i}" for i in range(n)]


def log(probs: list[float]) -> dict[str, float]:
    """Return a prior of these probabilities."""
    return {name: math.log(p) for name, p in zip(names(len(probs)), probs, strict=True)}


def no_difference(preset: str, quick: bool) -> Measures:
    """Actions that make no difference: KL spent, and how often another action leads than the model's own."""
    prior, found = log([0.6, 0.3, 0.1]), {}
    draws = {
        "normal": lambda rng, n: rng.normal(size=n),
        "Bernoulli 0.5": lambda rng, n: rng.binomial(1, 0.5, n).astype(float),
        "Bernoulli 0.05": lambda rng, n: rng.binomial(1, 0.05, n).astype(float),
    }
    for label, draw in draws.items():
        for n_states in (1, 30):
            for visits in (3, 10, 30, 100):
                spent, flips = [], []
                for seed in range((20 if n_states == 1 else 2) if quick else (100 if n_states == 1 else 6)):
                    rng = np.random.default_rng(seed)
                    with Memory.open(":memory:") as memory:
                        memory.add_many(
                            [
                                Episode("t", [Step(f"s{s}", a, float(r))])
                                for s in range(n_states)
                                for a in prior
                                for r in draw(rng, visits)
                            ]
                        )
                        policy = JitRL.preset(preset, memory)
                        for s in range(n_states):
                            decision = policy.decide(f"s{s}", prior, seed=0)
                            spent.append(decision.kl_nats)
                            flips.append(max(decision.probs, key=decision.probs.__getitem__) != "act0")
                found[f"KL nats, {label}, {n_states} states, {visits} visits"] = float(np.mean(spent))
                found[f"share of flips, {label}, {n_states} states, {visits} visits"] = float(np.mean(flips))
    return found


def intervals(preset: str, quick: bool) -> Measures:
    """Coverage of the true advantage by the 95 % intervals, by world, number of states and visits."""
    found = {}
    visits = {"1,1,1": (1, 1, 1), "3,3,3": (3, 3, 3), "10,10,10": (10, 10, 10), "100,100,100": (100, 100, 100)}
    visits |= {"5,5,5": (5, 5, 5), "20,3,1": (20, 3, 1), "100,1,1": (100, 1, 1)}
    for ratio in (0.01, 0.1, 1.0, 3.0, 9.0):
        for n_states in (1, 30):
            for label, counts in visits.items():
                if n_states == 30 and max(counts) == 100 and quick:
                    continue
                n_worlds = (60 if n_states == 1 else 3) if quick else (250 if n_states == 1 else 9)
                covered = [
                    hit
                    for seed in range(n_worlds)
                    for hit in _covered(preset, np.random.default_rng(seed), n_states, counts, ratio)
                ]
                found[f"coverage, noise/scatter {ratio:g}, {n_states} states, visits {label}"] = float(np.mean(covered))
    for p in (0.05, 0.5):  # values near p, rewards 0 or 1
        for label, counts in visits.items():
            covered = [
                hit
                for seed in range(2 if quick else 9)
                for hit in _covered(preset, np.random.default_rng(seed), 30, counts, None, p)
            ]
            found[f"coverage, Bernoulli near {p:g}, 30 states, visits {label}"] = float(np.mean(covered))
    return found


def _covered(
    preset: str, rng: np.random.Generator, n_states: int, counts: tuple[int, ...], ratio: float | None, p: float = 0.5
) -> list[bool]:
    """Return, for each state and action of a world, whether its interval holds the true advantage."""
    n_actions = len(counts)
    if ratio is None:
        values = rng.beta(4.0 * p, 4.0 * (1.0 - p), size=(n_states, n_actions))
    else:
        values = rng.normal(size=(n_states, n_actions))
    episodes = [
        Episode("t", [Step(f"s{s}", name, float(reward))])
        for s in range(n_states)
        for a, name in enumerate(names(n_actions))
        for reward in (
            rng.binomial(1, values[s, a], counts[a])
            if ratio is None
            else values[s, a] + math.sqrt(ratio) * rng.normal(size=counts[a])
        )
    ]
    rng.shuffle(episodes)  # type: ignore[arg-type]
    prior, held = log([1.0 / n_actions] * n_actions), []
    with Memory.open(":memory:") as memory:
        memory.add_many(episodes)
        policy = JitRL.preset(preset, memory)
        for s in range(n_states):
            decision = policy.decide(f"s{s}", prior, seed=0)
            if decision.mode != "memory":
                continue
            true = (values[s] - values[s].mean()) / decision.scale
            for a, name in enumerate(names(n_actions)):
                bounds = decision.intervals[name]
                held.append(bounds is not None and bounds[0] <= true[a] + 1e-9 and true[a] - 1e-9 <= bounds[1])
    return held


BANDITS: dict[str, tuple[list[float], list[float], float | None]] = {
    "0 (liked 0.8) and 0.1": ([0.8, 0.2], [0.0, 0.1], None),
    "0, 0, 0, 0 (one liked 0.6) and 0.1": ([0.6, 0.1, 0.1, 0.1, 0.1], [0.0, 0.0, 0.0, 0.0, 0.1], None),
    "0.01 (liked 0.8) and 0.1": ([0.8, 0.2], [0.01, 0.1], None),
    "normal 0 (liked 0.8), 0.25, 0.5": ([0.8, 0.1, 0.1], [0.0, 0.25, 0.5], 1.0),
    "certain 1 (liked 0.98), 2, 3": ([0.98, 0.01, 0.01], [1.0, 2.0, 3.0], 0.0),
    "0.5 four times and 0.7": ([0.2] * 5, [0.5, 0.5, 0.5, 0.5, 0.7], None),
}
"""Prior, mean rewards, and the deviation of normal rewards; None: Bernoulli."""


def regret(preset: str, quick: bool) -> Measures:
    """Six bandits: exponent e of R(T) ~ T^e, and the share of runs in which one worse action is nearly all that is
    taken in the second half."""
    rounds, runs = (200, 6) if quick else (800, 12)
    found = {}
    for label, (probs, means, sd) in BANDITS.items():
        lost, linear = [], []
        for seed in range(runs):
            taken = _play(preset, log(probs), np.array(means), sd, rounds, seed)
            lost.append(np.cumsum(max(means) - np.array(means)[taken]))
            often = np.bincount(taken[rounds // 2 :], minlength=len(means))
            linear.append(often.max() >= 0.95 * rounds / 2 and means[int(often.argmax())] < max(means))
        curve = np.mean(lost, axis=0)
        quarter, end = curve[rounds // 4 - 1], curve[-1]
        found[f"exponent, {label}"] = math.log(end / quarter) / math.log(4.0) if quarter > 0.0 else 0.0
        found[f"linear runs, {label}"] = float(np.mean(linear))
        found[f"regret by round, {label}"] = float(end / rounds)
    return found


def _play(preset: str, prior: dict[str, float], means: Floats, sd: float | None, rounds: int, seed: int) -> Floats:
    rng, taken = np.random.default_rng(seed), np.zeros(rounds, dtype=int)
    with Memory.open(":memory:") as memory:
        policy = JitRL.preset(preset, memory)
        for t in range(rounds):
            action = policy.decide("bandit", prior, seed=seed, step=t).action
            taken[t] = int(action.removeprefix("act"))
            mean = means[taken[t]]
            reward = float(rng.random() < mean) if sd is None else float(rng.normal(mean, sd))
            memory.add(Episode("bandit", [Step("bandit", action, reward)]))
    return taken


def drift(preset: str, quick: bool) -> Measures:
    """Two actions, a gap of 1, noise 0.3, swapped: episodes until the new best leads for good; and what a world that
    does not change pays."""
    runs, found = (5 if quick else 11), {}
    for swap, limit in ((20, 300), (100, 600 if not quick else 300)):
        needed, relapsed = [], []
        for seed in range(runs):
            rng, leads = np.random.default_rng(seed), []
            with Memory.open(":memory:") as memory:
                policy = JitRL.preset(preset, memory)
                for t in range(swap + limit):
                    decision = policy.decide("page", log([0.5, 0.5]), seed=seed, step=t)
                    best = "act0" if t < swap else "act1"
                    if t >= swap:
                        leads.append(decision.probs["act1"] > 0.5)
                    reward = float(rng.normal(float(decision.action == best), 0.3))
                    memory.add(Episode("t", [Step("page", decision.action, reward)]))
            # Followed once it leads in twenty episodes in a row; later it may be left for some.
            firsts = (t for t in range(limit - 19) if all(leads[t : t + 20]))
            followed = next(firsts, limit)
            needed.append(followed)
            relapsed.append(1.0 - float(np.mean(leads[followed:])) if followed < limit else 1.0)
        found[f"episodes to follow a swap after {swap}, median"] = float(np.median(needed))
        found[f"episodes to follow a swap after {swap}, slowest"] = float(max(needed))
        found[f"share of later episodes led by the old action, swap after {swap}"] = float(np.mean(relapsed))
    for gap in (0.2, 1.0):
        lost = []
        for seed in range(runs):
            taken = _play(preset, log([0.5, 0.5]), np.array([0.0, gap]), 0.5, 200 if quick else 400, seed)
            lost.append(gap * float((taken == 0).mean()))
        found[f"regret by round, no change, gap {gap:g}, noise 0.5"] = float(np.mean(lost))
    return found


def corridor(preset: str, quick: bool) -> Measures:
    """A corridor of six rooms, cut at 30 steps: mean steps of the last ten of 30 episodes, with and without a goal."""
    found = {}
    for label, cost, goal in (("-1 a step", -1.0, 0.0), ("+1 at the end", 0.0, 1.0)):
        lengths = []
        for seed in range(6 if quick else 12):
            with Memory.open(":memory:", gamma=0.95) as memory:
                policy = JitRL.preset(preset, memory)
                played = [_walk(policy, memory, cost, goal, 1000 * seed + episode) for episode in range(30)]
            lengths.append(float(np.mean(played[-10:])))
        found[f"steps, {label}"] = float(np.mean(lengths))
        found[f"steps, {label}, worst run"] = max(lengths)
        found[f"share of runs that never arrive, {label}"] = float(np.mean([length >= 30.0 for length in lengths]))
    return found


def _walk(policy: JitRL, memory: Memory, cost: float, goal: float, seed: int) -> int:
    at, steps = 0, []
    prior = {"left": math.log(0.5), "right": math.log(0.5)}
    while at < 5 and len(steps) < 30:
        state = f"corridor room{at}"
        action = policy.decide(state, prior, task="corridor", step=len(steps), seed=seed).action
        at = max(0, at - 1) if action == "left" else at + 1
        steps.append(Step(state, action, cost + goal * (at == 5)))
    memory.add(Episode("corridor", steps, ending="terminated" if at == 5 else "truncated"))
    return len(steps)


LEARNING = (
    Case("no-difference", no_difference),
    Case("intervals", intervals, {"": (">=", 0.93)}),
    Case("regret", regret, {"exponent": ("<=", 0.95), "linear": ("<=", 0.0)}),
    Case("drift", drift, {"episodes": ("<=", 40)}),
    Case("corridor", corridor),
)
