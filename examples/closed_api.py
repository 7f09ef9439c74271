"""A support agent on a closed API: no logprobs, answers are tool calls as JSON.

The file simulates a small help desk with tickets in words; their numbers never repeat. The agent makes one lookup, then
resolves the ticket. The only reward is 1 at the end if the customer is content. `advice` adds a few lines to the end of
the prompt, with one call per step. `votes` makes four calls and counts the answers as the model's own policy, which
`JitRL` then shifts. The model is a script that follows advice only sometimes. The probabilities (FOLLOWS, HEEDS) are
assumptions, and the gain of `advice` depends on them; measure them for your model.

Run: python examples/closed_api.py [--seed 0] [--seeds 10] [--tickets 120]
"""

from __future__ import annotations

import argparse
import json
import re
import zlib
from collections.abc import Sequence

import numpy as np

from seasoned import JitRL, Memory
from seasoned.actions import canonical_tool_call
from seasoned.core import mean_interval
from seasoned.llms import ScriptedLLM, VotesReader
from seasoned.policies.advice import Advice, Advisor
from seasoned.protocols import CompletionRequest, Message
from seasoned.states import ALL_MASKS, TokenEncoder
from seasoned.sync import Sync

TASK = "Resolve the ticket so that the customer is content."
VOTES = 4  # calls per step
FOLLOWS, HEEDS = 0.6, 0.8  # the probabilities that the model takes a preferred action, and excludes those to avoid
LOOKUPS = [("lookup", {"what": what}) for what in ("order", "account")]
FIXES = [("refund", {"share": "full"}), ("replace", {"express": False}), ("reset", {"scope": "all"}), ("escalate", {})]
CALLS = {canonical_tool_call({"name": n, "arguments": {**a, "notify": True}}): (n, a) for n, a in LOOKUPS + FIXES}
# The model's logit for each call, in nats, independent of the ticket.
HABITS = dict(zip(CALLS, (0.7, 0.0, 1.0, 0.0, 0.0, 0.5), strict=True))

# For each kind of ticket: its text, the right lookup, and the success rate of each resolution after that lookup.
KINDS = {
    "parcel": ("parcel {a} arrived broken, box crushed, ordered on day {b}", "order", (0.4, 0.95, 0.0, 0.0)),
    "login": ("cannot sign in, error {a} since {b} hours, the code by text never comes", "account", (0, 0, 0.95, 0.2)),
    "twice": ("card charged twice for invoice {a}, {b} euro, bank says booked", "account", (0.3, 0.0, 0.0, 0.95)),
}


class Ticket:
    """One ticket: a page for the lookup, and one for the resolution."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.kind = str(rng.choice(list(KINDS)))
        self.words = KINDS[self.kind][0].format(a=rng.integers(100, 9999), b=rng.integers(2, 60))
        self.luck, self.looked = rng.random(), ""

    @property
    def state(self) -> str:
        """The page as text."""
        question = f"The {self.looked} is open. How to resolve it?" if self.looked else "What to look up?"
        return f"{self.words}\n{question}"

    @property
    def actions(self) -> list[str]:
        """The admissible actions, as canonical tool calls."""
        return list(CALLS)[len(LOOKUPS) :] if self.looked else list(CALLS)[: len(LOOKUPS)]

    def call(self, action: str) -> float:
        """Take an action; return the reward."""
        if not self.looked:
            self.looked = str(CALLS[action][1]["what"])
            return 0.0
        success_rate = KINDS[self.kind][2][self.actions.index(action)]
        return float(self.luck < success_rate * (1.0 if self.looked == KINDS[self.kind][1] else 0.5))


def prompt(state: str, task: str, actions: Sequence[str]) -> tuple[Message, ...]:
    """Return the conversation so far."""
    return Message("system", task), Message("user", "\n* ".join([f"{state}\nAnswer with one of:", *actions]))


def obliging_model(request: CompletionRequest) -> str:
    """Answer with one tool call, by habit, and sometimes by the advice at the end of the prompt."""
    text = request.messages[-1].content
    rng = np.random.default_rng([request.seed or 0, zlib.crc32(text.encode())])
    menu = re.findall(r"^\* (.+)$", text, re.MULTILINE)
    advice = {verb: re.findall(rf'^- {verb} ("(?:[^"\\]|\\.)*")', text, re.MULTILINE) for verb in ("prefer", "avoid")}
    prefer, avoid = ([json.loads(quoted) for quoted in advice[verb]] for verb in ("prefer", "avoid"))
    choices = [action for action in menu if action not in avoid] if rng.random() < HEEDS else menu
    choices = (prefer if prefer and rng.random() < FOLLOWS else choices) or menu
    weights = np.exp([HABITS[action] for action in choices])
    name, arguments = CALLS[str(rng.choice(choices, p=weights / weights.sum()))]
    shuffled = {"notify": True, **arguments} if rng.random() < 0.5 else {**arguments, "notify": True}
    function = {"name": name, "arguments": json.dumps(shuffled)}
    return json.dumps({"id": f"call_{rng.bytes(4).hex()}", "function": function})


def work(seed: int, n_tickets: int, *, arm: str) -> tuple[list[float], Advice]:
    """Resolve `n_tickets`; return their rewards, and the advice on one more broken parcel."""
    earned, llm = [], ScriptedLLM(obliging_model, max_top_logprobs=0)
    canonical, encoder = canonical_tool_call, TokenEncoder(masks=ALL_MASKS)
    reader = VotesReader(llm, VOTES, canonical=canonical, prompt=prompt, parse=lambda answer: answer.text, seed=seed)
    with Memory.open(":memory:", encoder=encoder) as memory, Sync(llm) as model, Sync(reader) as voters:
        advisor, policy = Advisor(memory), JitRL(memory)
        for number in range(n_tickets):
            ticket, reward = Ticket(np.random.default_rng([seed, number])), 0.0
            with memory.episode(TASK, id=f"ticket-{number:03d}", arm=arm) as episode:
                for step in range(2):
                    state, actions, draw = ticket.state, ticket.actions, 1000 * seed + number
                    if arm == "votes":
                        prior = voters.read(state, TASK, actions).prior
                        action = policy.decide(state, prior, task=TASK, step=step, seed=draw).action
                    else:
                        messages = prompt(state, TASK, actions)
                        if arm == "advice":
                            messages = advisor.advise(state, actions).append_to(messages)
                        action = canonical(model.complete(CompletionRequest(messages, temperature=1.0, seed=draw)).text)
                    reward = ticket.call(action)
                    episode.record(state, action, reward)
            earned.append(reward)
        ticket.words, ticket.looked = KINDS["parcel"][0].format(a=4711, b=12), "order"
        return earned, advisor.advise(ticket.state, ticket.actions)


def main() -> None:
    """Print the success rates of the three arms by block of tickets, and the last advice."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="independent runs, each with its own tickets")
    parser.add_argument("--tickets", type=int, default=120, help="tickets per run")
    options = parser.parse_args()
    if options.seed < 0 or options.seeds < 2 or options.tickets < 4:
        parser.error("--seed is at least 0, --seeds at least 2 for an interval, --tickets at least 4 for four blocks")
    seeds = range(options.seed, options.seed + options.seeds)
    runs = {arm: [work(s, options.tickets, arm=arm) for s in seeds] for arm in ("alone", "votes", "advice")}
    content = {arm: np.array([earned for earned, _ in of_arm]) for arm, of_arm in runs.items()}
    print(f"content customers, {len(seeds)} runs from seed {options.seed}, the same tickets in every column")
    print(f"the scripted model follows a preference with probability {FOLLOWS}, heeds a warning with {HEEDS}")
    print(f"calls per step: alone 1, votes {VOTES}, advice 1")
    print("tickets     alone   votes   advice   advice - alone, paired by run")
    for block in np.array_split(np.arange(options.tickets), 4):
        alone, votes, advice = (content[arm][:, block].mean(axis=1) for arm in runs)
        means = f"{alone.mean():>6.2f}   {votes.mean():>5.2f}   {advice.mean():>6.2f}"
        print(f"{f'{block[0] + 1}-{block[-1] + 1}':<10} {means}   {mean_interval(advice - alone)}")
    print(f"\nvotes - alone, all tickets: {mean_interval((content['votes'] - content['alone']).mean(axis=1))}")
    print(f"\nThe advice of the first run about a broken parcel:\n\n{runs['advice'][0][1].text}")


if __name__ == "__main__":
    main()
