"""A deployment agent learns the right remedy for each kind of incident.

The file simulates a small cluster: incidents described by their symptoms, in words and in numbers that never repeat,
and five remedies, each with a hidden success rate for each kind of incident. The first reward is the state of the
dashboards, and it can be wrong: a restart hides a memory leak until the night. The engineer on call reports this some
incidents later, and the feedback corrects the stored reward. The model is a script that prefers a restart; it is read
by label, as a real model is. A run without feedback shows the value of the corrections.

Run: python examples/rollback.py [--seed 0] [--seeds 10] [--incidents 100]
"""

from __future__ import annotations

import argparse
import re

import numpy as np

from seasoned import Decision, JitRL, Memory, ModelAlone
from seasoned.core import mean_interval
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.protocols import CompletionRequest
from seasoned.states import ALL_MASKS, TokenEncoder
from seasoned.sync import Sync

TASK = "Bring the service back."
REMEDIES = ("restart the pods", "roll back the release", "roll back the config", "turn off the flag", "scale out")
FEEDBACK_DELAY = 5  # incidents
SERVICES = ("checkout", "search", "login", "billing")

# Symptoms, then for each remedy (in the order of REMEDIES) the probability that it solves the incident, and the
# probability that the dashboards turn green although it did not. The agent sees only the symptoms.
KINDS = {
    "leak": (
        "memory of every pod climbs by {a} MB a minute since deploy {hash}, then OOMKilled, exit code {b}",
        (0.05, 0.9, 0.05, 0.2, 0.05),
        (0.9, 0.0, 0.0, 0.0, 0.6),
    ),
    "config": (
        "requests answer {a} unauthorized, secret not found after config map {hash} was applied to {b} nodes",
        (0.05, 0.2, 0.9, 0.1, 0.0),
        (0.1, 0.1, 0.0, 0.0, 0.0),
    ),
    "migration": (
        "column does not exist, {a} queries failed, schema version {b} is ahead of code after migration {hash}",
        (0.0, 0.1, 0.05, 0.85, 0.0),
        (0.2, 0.5, 0.0, 0.0, 0.0),
    ),
    "traffic": (
        "p99 latency {a} ms, queue depth {b}, all replicas at their CPU limit, no deploy today, trace {hash}",
        (0.1, 0.0, 0.05, 0.3, 0.9),
        (0.2, 0.0, 0.0, 0.0, 0.0),
    ),
}
# The model's logit for a remedy, in nats, independent of the symptoms.
HABITS = {"restart the pods": 1.5, "roll back the release": 1.0}


def incident(rng: np.random.Generator) -> tuple[str, str]:
    """Return an incident's kind, hidden from the agent, and the pager's message."""
    kind = str(rng.choice(list(KINDS)))
    return kind, describe(kind, rng)


def describe(kind: str, rng: np.random.Generator) -> str:
    """Return the pager's message about an incident of this kind."""
    symptoms = KINDS[kind][0].format(a=rng.integers(10, 900), b=rng.integers(2, 400), hash=rng.bytes(5).hex())
    minute = f"2026-03-{rng.integers(10, 29)} 03:{rng.integers(10, 60)}"
    return f"incident at {minute}, service {rng.choice(SERVICES)}: {symptoms}"


def apply_remedy(kind: str, remedy: str, luck: float) -> tuple[bool, bool]:
    """Return whether the incident is solved, and whether the dashboards are green."""
    _, solves, deceives = KINDS[kind]
    index = REMEDIES.index(remedy)
    solved = luck < solves[index]
    return solved, luck < solves[index] + deceives[index] * (1.0 - solves[index])


def habitual_model(request: CompletionRequest) -> dict[str, float]:
    """Answer with a logprob for each letter of the menu, by habit."""
    menu = re.findall(r"^([A-Z])\) (.+)$", request.messages[-1].content, re.MULTILINE)
    logits = {letter: HABITS.get(action, 0.0) for letter, action in menu}
    total = np.logaddexp.reduce(list(logits.values()))
    return {letter: float(logit - total) for letter, logit in logits.items()}


def on_call(seed: int, n_incidents: int, *, arm: str) -> tuple[list[bool], Decision]:
    """Handle `n_incidents`; return for each whether it was solved, and a decision on a memory leak afterwards."""
    outcomes: list[bool] = []
    deceived: list[tuple[int, str]] = []  # (number of the incident at which the engineer reports it, episode id)
    encoder = TokenEncoder(masks=ALL_MASKS)
    with Memory.open(":memory:", encoder=encoder) as memory, Sync(LabelReader(ScriptedLLM(habitual_model))) as model:
        policy = ModelAlone() if arm == "alone" else JitRL(memory)
        for number in range(n_incidents):
            while deceived and deceived[0][0] <= number and arm == "feedback":
                memory.feedback(deceived.pop(0)[1], reward=-1.0, source="human", author="on-call")
            rng = np.random.default_rng([seed, number])
            kind, state = incident(rng)
            with memory.episode(TASK, id=f"incident-{number:03d}", arm=arm) as episode:
                prior = model.read(state, TASK, REMEDIES).prior
                decision = policy.decide(state, prior, task=TASK, seed=1000 * seed + number)
                solved, green = apply_remedy(kind, decision.action, rng.random())
                episode.record(state, decision, float(green))
            outcomes.append(solved)
            if green and not solved and episode.id is not None:
                deceived.append((number + FEEDBACK_DELAY, episode.id))
        state = describe("leak", np.random.default_rng(seed))
        return outcomes, policy.decide(state, model.read(state, TASK, REMEDIES).prior, task=TASK, seed=seed)


def main() -> None:
    """Print the success rates of the three arms by block of incidents, and one decision in full."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="independent runs, each with its own incidents")
    parser.add_argument("--incidents", type=int, default=100, help="incidents per run")
    options = parser.parse_args()
    if options.seed < 0 or options.seeds < 2 or options.incidents < 4:
        parser.error("--seed is at least 0, --seeds at least 2 for an interval, --incidents at least 4 for four blocks")
    seeds = range(options.seed, options.seed + options.seeds)
    runs = {arm: [on_call(s, options.incidents, arm=arm) for s in seeds] for arm in ("alone", "memory", "feedback")}
    solved = {arm: np.array([outcomes for outcomes, _ in of_arm], dtype=float) for arm, of_arm in runs.items()}
    print(f"solved incidents, {len(seeds)} runs from seed {options.seed}, the same incidents in every column")
    print("`memory` learns from the dashboards; `feedback` also from the corrections of the engineer on call")
    print("incidents   alone   memory   feedback   feedback - alone, paired by run")
    for block in np.array_split(np.arange(options.incidents), 4):
        alone, memory, feedback = (solved[arm][:, block].mean(axis=1) for arm in ("alone", "memory", "feedback"))
        span = f"{block[0] + 1}-{block[-1] + 1}"
        means = f"{alone.mean():>6.2f}   {memory.mean():>6.2f}   {feedback.mean():>8.2f}"
        print(f"{span:<10} {means}   {mean_interval(feedback - alone)}")
    print(f"\nfeedback - memory, all incidents: {mean_interval((solved['feedback'] - solved['memory']).mean(axis=1))}")
    print(f"\nA decision of the first run about a memory leak:\n\n{runs['feedback'][0][1].explain()}")


if __name__ == "__main__":
    main()
