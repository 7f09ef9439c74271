"""The distances between the ways to read one model's policy, and the cost of each.

    python benchmarks/backends.py

TextWorld states (a cooking game under a uniform policy), the default local model. Every pair of ways is compared on the
states that both could read: mean total variation, and mean KL(row || column) in nats. The ways ask different questions
(letters, bullets, numbers), so their answers differ. Three figures below the table measure the part of chance: the
distance to `exact` of a sample of as many draws from the exact prior as votes matched a candidate; the share of samples
that were a candidate; and the exact probability that the model writes one of the candidates.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
from workload import write_result

from seasoned.agents import UniformReader
from seasoned.envs import open_env
from seasoned.errors import ModelAnswerError
from seasoned.llms import BiasChooser, LabelReader, VerbalizedReader, VotesReader
from seasoned.llms.priors.exact import ExactReader
from seasoned.llms.providers.local_scorer import LocalScorer
from seasoned.protocols import PriorReader, Usage

GAME = "textworld:cooking?take=1&open=1&cut=1&seed=3&max_steps=40"


async def states(n: int, seed: int) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """Return the task, and n different states with 2 to 12 admissible actions, met under a uniform policy."""
    rng = np.random.default_rng(seed)
    environment = open_env(GAME)
    found: dict[str, tuple[str, ...]] = {}
    while len(found) < n:
        seen = await environment.reset(seed=int(rng.integers(1 << 31)))
        while not (seen.terminated or seen.truncated) and len(found) < n:
            actions = seen.admissible or ()
            if 2 <= len(actions) <= 12:
                found.setdefault(seen.state, actions)
            seen = await environment.step(actions[int(rng.integers(len(actions)))])
    await environment.aclose()
    return environment.task, list(found.items())


def probs(prior: Mapping[str, float]) -> np.ndarray:
    return np.exp(np.array(list(prior.values())))


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(p - q).sum() / 2)


def kl_nats(p: np.ndarray, q: np.ndarray) -> float:
    return float((p[p > 0] * np.log(p[p > 0] / np.maximum(q[p > 0], 1e-300))).sum())


def by_chance(p: np.ndarray, n: int, rng: np.random.Generator, draws: int = 400) -> float:
    """The mean total variation between p and a smoothed reading of n votes drawn from p itself."""
    counts = rng.multinomial(n, p / p.sum(), size=draws)
    smoothed = (counts + 1 / len(p)) / (n + 1)
    return float(np.abs(smoothed - p).sum(axis=1).mean() / 2)


async def measure(n_states: int, n_votes: int, seed: int, threads: int | None) -> dict[str, object]:
    task, situations = await states(n_states, seed)
    model = LocalScorer(context_tokens=2048, threads=threads, prefix_cache=True)
    await model.capabilities()
    readers: dict[str, PriorReader] = {
        "exact": ExactReader(model),
        "votes": VotesReader(model, n=n_votes, concurrency=1, max_tokens=24),
        "label": LabelReader(model),
        "label, calibrated": LabelReader(model, calibrate=True),
        "verbalized": VerbalizedReader(model),
        "uniform": UniformReader(),
    }
    priors: dict[str, dict[int, np.ndarray]] = {name: {} for name in readers}
    costs: dict[str, dict[str, float]] = {}
    faults: dict[str, list[str]] = {name: [] for name in readers}
    matched: dict[int, int] = {}
    covered: list[float] = []
    for name, reader in readers.items():
        usage, began = Usage(), time.perf_counter()
        for number, (state, actions) in enumerate(situations):
            try:
                reading = await reader.read(state, task, actions)
            except ModelAnswerError as error:
                faults[name].append(str(error)[:200])
                continue
            usage += reading.usage
            priors[name][number] = probs(reading.prior)
            if name == "votes":
                matched[number] = sum(reading.votes.counts.values())
            if name == "exact":
                covered.append(reading.scores.coverage)
        n = len(priors[name])
        costs[name] = {
            "n": n,
            "failed": len(faults[name]),
            "calls": usage.calls / max(n, 1),
            "prompt_tokens": usage.prompt_tokens / max(n, 1),
            "completion_tokens": usage.completion_tokens / max(n, 1),
            "elapsed_s": (time.perf_counter() - began) / len(situations),
        }
        print(f"{name}: {n} of {len(situations)} states read", flush=True)
    costs["bias"] = await choosing(model, task, situations)
    await model.aclose()
    rng = np.random.default_rng(seed)
    chance = [by_chance(priors["exact"][i], n, rng) for i, n in matched.items() if i in priors["exact"]]
    pairs = []
    for one, other in permutations(readers, 2):
        both = sorted(set(priors[one]) & set(priors[other]))
        tv = [total_variation(priors[one][i], priors[other][i]) for i in both]
        kl = [kl_nats(priors[one][i], priors[other][i]) for i in both]
        same = [int(priors[one][i].argmax() == priors[other][i].argmax()) for i in both]
        pairs.append({"one": one, "other": other, "n": len(both), **means(tv, kl, same)})
    return {
        "game": GAME,
        "model": model.name,
        "seed": seed,
        "n_states": len(situations),
        "candidates": [len(actions) for _, actions in situations],
        "n_votes": n_votes,
        "costs_per_decision": costs,
        "pairs": pairs,
        "votes_to_exact_by_chance_alone": mean(chance),
        "votes_that_matched": sum(matched.values()) / (n_votes * len(situations)),  # where none did, it failed
        "exact_probability_of_candidates": mean(covered),
        "faults": faults,
    }


async def choosing(
    model: LocalScorer, task: str, situations: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, float]:
    """The cost of one choice inside the server, at shifts of zero."""
    chooser, usage, began = BiasChooser(model), Usage(), time.perf_counter()
    for number, (state, actions) in enumerate(situations):
        usage += (await chooser.choose(state, task, actions, dict.fromkeys(actions, 0.0), number)).usage
    n = len(situations)
    return {
        "n": n,
        "failed": 0,
        "calls": usage.calls / n,
        "prompt_tokens": usage.prompt_tokens / n,
        "completion_tokens": usage.completion_tokens / n,
        "elapsed_s": (time.perf_counter() - began) / n,
    }


def means(tv: Sequence[float], kl: Sequence[float], same: Sequence[int]) -> dict[str, float | None]:
    return {"total_variation": mean(tv), "kl_nats": mean(kl), "same_best": mean(same)}


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def cost_table(costs: Mapping[str, Mapping[str, float]]) -> str:
    """The cost of a decision by each way, over the states that it could read; seconds over all of them."""
    columns = ("n", "failed", "calls", "prompt_tokens", "completion_tokens", "elapsed_s")
    lines = [f"{'a decision':<26}" + "".join(f"{column:>19}" for column in columns)]
    lines += [f"{name:<26}" + "".join(f"{cost[column]:>19.4g}" for column in columns) for name, cost in costs.items()]
    return "\n".join(lines)


def table(result: dict[str, object]) -> str:
    names = list(dict.fromkeys(pair["one"] for pair in result["pairs"]))
    cells = {(pair["one"], pair["other"]): pair for pair in result["pairs"]}

    def shown(one: str, other: str) -> str:
        pair = cells.get((one, other))
        if pair is None or not pair["n"]:
            return "-"
        return f"{pair['total_variation']:.2f} / {pair['kl_nats']:.2f}"

    lines = [f"{'TV / KL(row||column) nats':<26}" + "".join(f"{name:>19}" for name in names)]
    lines += [f"{one:<26}" + "".join(f"{shown(one, other):>19}" for other in names) for one in names]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=12)
    parser.add_argument("--votes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=None, help="of the model; 1 where other work takes the cores")
    given = parser.parse_args()
    result = asyncio.run(measure(given.states, given.votes, given.seed, given.threads))
    print(cost_table(result["costs_per_decision"]), "", table(result), "", sep="\n")
    for key in ("votes_to_exact_by_chance_alone", "votes_that_matched", "exact_probability_of_candidates"):
        print(f"{key}: {result[key]}")
    write_result("backends", {"command": " ".join(["python benchmarks/backends.py", *sys.argv[1:]]), **result})


if __name__ == "__main__":
    main()
