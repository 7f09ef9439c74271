"""The regret of each rule of exploration on a bandit with known mean rewards, played by the whole policy.

Run: python benchmarks/regret.py [--rounds 1000] [--seeds 10] [--plot regret.png]

Five arms, Gaussian noise, a uniform prior, a separate memory for each seed: `JitRL.decide`, then `Memory.add`, once a
round. With `selection="argmax"` the regret is the best mean reward minus that of the chosen arm. With sampling it is
the loss of the policy in `E_p[A] - KL / beta` against the closed form at the true advantages. `exponent` e is that of
R(T) ~ T^e between a quarter of the rounds and all of them: 1 is linear, less is sublinear. The table gives means over
seeds with 95 % intervals. Writes `benchmarks/results/regret.json`, and a plot if asked.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
from workload import write_result

from seasoned import Episode, JitRL, Memory, Step
from seasoned.core import UCB, CountBonus, ExplorationBonus, Thompson, kl_objective, mean_interval, modulate

MEANS = {"a": 0.3, "b": 0.5, "c": 0.7, "d": 0.4, "e": 0.1}
NOISE_SD = 0.5
BETA = 4.0
RULES: dict[str, dict[str, Any]] = {
    "argmax, greedy": {"selection": "argmax"},
    "argmax, bonus 0.1 w.p. 0.3": {"selection": "argmax", "exploration": ExplorationBonus(0.1, 0.3)},
    "argmax, count bonus 0.5": {"selection": "argmax", "exploration": CountBonus(0.5)},
    "argmax, UCB": {"selection": "argmax", "exploration": UCB()},
    "argmax, Thompson": {"selection": "argmax", "exploration": Thompson()},
    "sample": {},
}


def play(settings: dict[str, Any], seed: int, rounds: int) -> np.ndarray[Any, Any]:
    """Return the regret after each round."""
    rng = np.random.default_rng(seed)
    true = np.array(list(MEANS.values())) - np.mean(list(MEANS.values()))
    prior = np.full(len(MEANS), -np.log(len(MEANS)))
    best = kl_objective(np.exp(modulate(prior, true, BETA)), true, prior, BETA)
    lost = np.zeros(rounds)
    candidates = dict(zip(MEANS, prior.tolist(), strict=True))
    common: dict[str, Any] = {"beta": BETA, "kappa": None, "min_neighbors": 1, "scale": "none"}
    with Memory.open(":memory:") as memory:
        policy = JitRL.preset("means", memory, **common, **settings)
        for t in range(rounds):
            decision = policy.decide("five arms", candidates, seed=seed, step=t)
            if policy.settings.selection == "argmax":
                lost[t] = max(MEANS.values()) - MEANS[decision.action]
            else:
                lost[t] = best - kl_objective(list(decision.probs.values()), true, prior, BETA)
            reward = float(rng.normal(MEANS[decision.action], NOISE_SD))
            memory.add(Episode("bandit", [Step("five arms", decision.action, reward)]))
    return np.cumsum(lost)


def draw(curves: dict[str, np.ndarray[Any, Any]], path: Path) -> None:
    """Draw mean regret by round, on two axes: argmax and sampling have different units."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), width_ratios=[2, 1], layout="constrained")
    for name, runs in curves.items():
        axis = axes[0] if name.startswith("argmax") else axes[1]
        rounds = np.arange(1, runs.shape[1] + 1)
        (line,) = axis.plot(rounds, runs.mean(axis=0), label=name.removeprefix("argmax, "))
        low, high = np.quantile(runs, [0.1, 0.9], axis=0)
        axis.fill_between(rounds, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
    axes[0].set(title="argmax", xlabel="round", ylabel="regret, reward units", ylim=0)
    axes[1].set(title="sampling", xlabel="round", ylabel="regret in E[A] - KL / beta", ylim=0)
    axes[0].legend(frameon=False)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Play, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    curves = {
        name: np.array([play(settings, seed, options.rounds) for seed in range(options.seeds)])
        for name, settings in RULES.items()
    }
    rows: dict[str, Any] = {}
    print(f"{'rule':<28}{'regret at the end':>34}{'exponent':>10}")
    for name, runs in curves.items():
        end = mean_interval(runs[:, -1])
        means = runs.mean(axis=0)
        exponent = float(np.log(means[-1] / means[options.rounds // 4 - 1]) / np.log(4.0))
        rows[name] = {"regret": dataclasses.asdict(end), "exponent": exponent}
        print(f"{name:<28}{end.mean:>14.2f} [{end.low:>7.2f}, {end.high:>7.2f}]{exponent:>10.2f}")
    print(f"{options.seeds} seeds, {options.rounds} rounds, 95 % intervals ({end.method})")
    if options.plot:
        draw(curves, options.plot)
    write_result(
        "regret",
        {
            "command": " ".join(["python benchmarks/regret.py", *sys.argv[1:]]),
            "rounds": options.rounds,
            "seeds": options.seeds,
            "means": MEANS,
            "noise_sd": NOISE_SD,
            "beta": BETA,
            "rules": rows,
        },
    )


if __name__ == "__main__":
    main()
