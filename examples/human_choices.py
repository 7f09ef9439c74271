"""A support desk learns to triage tickets from a person's choices among its answers.

The file simulates a small desk: tickets in words, whose numbers never repeat, and six queues. The company's own rules
assign a queue to each ticket, and no model knows them. The agent draws three queues from its policy and shows them in
shuffled order; the person on duty chooses the best, with occasional mistakes. The choice is stored as feedback: the
chosen queue gains, the others lose. The score counts correct first draws, which the agent would have sent without a
question. In the arm `thumbs` a person only gives that first draw a thumb up or down.

Run: python examples/human_choices.py [--seed 0] [--seeds 10] [--tickets 80]
"""

from __future__ import annotations

import argparse
import re

import numpy as np

from seasoned import Decision, Episode, JitRL, Memory, ModelAlone, Step
from seasoned.core import mean_interval
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.protocols import CompletionRequest
from seasoned.states import ALL_MASKS, TokenEncoder
from seasoned.sync import Sync
from seasoned.types import Choice, Thumbs

TASK = "Send the ticket to the right queue."
QUEUES = ("first line", "billing", "hardware", "network", "accounts", "legal")
SHOWN = 3  # queues shown to the person
SLIPS = 0.1  # the probability that the person chooses, or judges, at random

# For each kind of ticket: its text, and its queue by the company's rules, hidden from the agent.
KINDS = {
    "printer": ("printer {a} on floor {b} shows a paper jam, the tray is empty, toner was changed", "network"),
    "invoice": ("invoice {a} names our old address, bookkeeping needs it again before day {b}", "legal"),
    "badge": ("badge {a} does not open door {b}, the light stays red since this morning", "hardware"),
    "leaver": ("colleague number {a} leaves in {b} days, please close every account and forward the mail", "billing"),
    "slow": ("the shared drive takes {a} seconds to open a folder, all {b} of us in the office see it", "accounts"),
}
# The model's logit for a queue, in nats, independent of the ticket.
HABITS = {"first line": 1.5, "hardware": 0.5, "network": 0.5}


def ticket(rng: np.random.Generator) -> tuple[str, str]:
    """Return the text of a ticket, and its right queue."""
    words, queue = KINDS[str(rng.choice(list(KINDS)))]
    return words.format(a=rng.integers(100, 9999), b=rng.integers(2, 60)), queue


def habitual_model(request: CompletionRequest) -> dict[str, float]:
    """Answer with a logprob for each letter of the menu, by habit."""
    menu = re.findall(r"^([A-Z])\) (.+)$", request.messages[-1].content, re.MULTILINE)
    logits = {letter: HABITS.get(action, 0.0) for letter, action in menu}
    total = np.logaddexp.reduce(list(logits.values()))
    return {letter: float(logit - total) for letter, logit in logits.items()}


def answers(decision: Decision, rng: np.random.Generator) -> tuple[str, ...]:
    """Return the chosen queue and others drawn from the policy, in shuffled order."""
    others = [queue for queue in decision.probs if queue != decision.action]
    weights = np.array([decision.probs[queue] for queue in others]) + 1e-9
    drawn = rng.choice(others, size=SHOWN - 1, replace=False, p=weights / weights.sum())
    return tuple(str(queue) for queue in rng.permutation([decision.action, *drawn]))


def duty(seed: int, n_tickets: int, *, arm: str) -> tuple[list[bool], Decision]:
    """Triage `n_tickets`; return for each whether the first draw was right, and a decision on a badge afterwards."""
    right: list[bool] = []
    encoder = TokenEncoder(masks=ALL_MASKS)
    with Memory.open(":memory:", encoder=encoder) as memory, Sync(LabelReader(ScriptedLLM(habitual_model))) as model:
        policy = ModelAlone() if arm == "alone" else JitRL(memory)
        for number in range(n_tickets):
            rng = np.random.default_rng([seed, number])
            state, queue = ticket(rng)
            prior = model.read(state, TASK, QUEUES).prior
            decision = policy.decide(state, prior, task=TASK, seed=1000 * seed + number)
            right.append(decision.action == queue)
            episode_id = memory.add(Episode(TASK, [Step(state, decision.action)], f"ticket-{number:03d}", arm=arm))
            slips = rng.random() < SLIPS
            if arm == "choices":
                shown = answers(decision, rng)
                picked = rng.integers(SHOWN) if slips else (shown.index(queue) if queue in shown else None)
                if picked is not None:  # else the right queue is not shown, and the person gives no feedback
                    memory.feedback(episode_id, Choice(shown, int(picked)), author="on duty", id=f"on-{episode_id}")
            elif arm == "thumbs":
                up = bool(rng.random() < 0.5) if slips else right[-1]
                memory.feedback(episode_id, Thumbs(up), author="on duty")
        state = KINDS["badge"][0].format(a=1234, b=5)
        return right, policy.decide(state, model.read(state, TASK, QUEUES).prior, task=TASK, seed=seed)


def main() -> None:
    """Print the share of right first draws in the three arms by block of tickets, and one decision in full."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="independent runs, each with its own tickets")
    parser.add_argument("--tickets", type=int, default=80, help="tickets per run")
    options = parser.parse_args()
    if options.seed < 0 or options.seeds < 2 or options.tickets < 4:
        parser.error("--seed is at least 0, --seeds at least 2 for an interval, --tickets at least 4 for four blocks")
    seeds = range(options.seed, options.seed + options.seeds)
    runs = {arm: [duty(s, options.tickets, arm=arm) for s in seeds] for arm in ("alone", "thumbs", "choices")}
    right = {arm: np.array([outcomes for outcomes, _ in of_arm], dtype=float) for arm, of_arm in runs.items()}
    print(f"right first draws, {len(seeds)} runs from seed {options.seed}, the same tickets in every column")
    print("tickets   alone   thumbs   choices   choices - alone, paired by run")
    for block in np.array_split(np.arange(options.tickets), 4):
        alone, thumbs, choices = (right[arm][:, block].mean(axis=1) for arm in ("alone", "thumbs", "choices"))
        span = f"{block[0] + 1}-{block[-1] + 1}"
        means = f"{alone.mean():>6.2f}   {thumbs.mean():>6.2f}   {choices.mean():>7.2f}"
        print(f"{span:<9} {means}   {mean_interval(choices - alone)}")
    print(f"\nchoices - thumbs, all tickets: {mean_interval((right['choices'] - right['thumbs']).mean(axis=1))}")
    print(f"\nA decision of the first run about a badge:\n\n{runs['choices'][0][1].explain()}")


if __name__ == "__main__":
    main()
