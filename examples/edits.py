"""A writing assistant learns the preferred wording of replies from people's edits of its drafts.

The file simulates a small office: requests in words, whose numbers never repeat; three drafts that the model knows,
with gaps for names and numbers; and for each kind of request a preferred wording that its clerk never states. A clerk
edits the draft before it is sent. The cost is the normalised edit distance; the draft's reward is 1 - 2 x cost. The
edited text becomes an answer of its own, with reward 1, and from then on is a candidate for similar requests. `thumbs`
learns only whether a draft was sent without a change. The setting is that of PRELUDE (arXiv 2404.15269): preferences
are hidden, and only edits reveal them.

Run: python examples/edits.py [--seed 0] [--seeds 10] [--requests 80]
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
from seasoned.types import Edit, Thumbs, edit_reward

TASK = "Draft a reply that goes out as it is."
DRAFTS = (
    "Dear {name}, thank you for your message. We have received it and will come back to you within {days} days.",
    "Hello {name}! Thanks for writing. Your request has the number {number}.",
    "Dear {name}, we regret that we cannot help with this. Please see our terms, section {number}.",
)
# For each kind of request: its text, and the clerk's preferred reply, hidden from the agent.
KINDS = {
    "delay": (
        "order {a} should have arrived {b} days ago, where is it",
        "Hello {name}! Sorry for the wait. Order {number} is on its way and arrives within {days} days.",
    ),
    "return": (
        "the shoes from order {a} are too small, can they go back after {b} days",
        "Hello {name}! Of course. The label for your return is attached; it is valid for {days} days.",
    ),
    "contract": (
        "please confirm the end of contract {a} and the notice period of {b} days in writing",
        "Dear {name}, we confirm the end of your contract {number}. The notice period is {days} days.",
    ),
    "job": (
        "application {a} for the post in the warehouse, when do the {b} candidates hear from you",
        "Dear {name}, thank you for your message. We have received it and will come back to you within {days} days.",
    ),
}
# The model's logit for each draft, in nats, independent of the request.
HABITS = dict(zip(DRAFTS, (1.0, 0.5, 0.0), strict=True))
PATIENCE = 0.8  # the probability that a clerk edits the whole draft, and not only the first half of the words


def habitual_model(request: CompletionRequest) -> dict[str, float]:
    """Answer with a logprob for each letter of the menu, by habit."""
    menu = re.findall(r"^([A-Z])\) (.+)$", request.messages[-1].content, re.MULTILINE)
    logits = {letter: HABITS.get(action, 0.0) for letter, action in menu}
    total = np.logaddexp.reduce(list(logits.values()))
    return {letter: float(logit - total) for letter, logit in logits.items()}


def edited(draft: str, wanted: str, rng: np.random.Generator) -> str:
    """Return a clerk's edit of a draft: the wanted text, or sometimes only its first half."""
    if rng.random() < PATIENCE:
        return wanted
    words, wanted_words = draft.split(), wanted.split()
    half = len(wanted_words) // 2
    return " ".join(wanted_words[:half] + words[half:])


def office(seed: int, n_requests: int, *, arm: str) -> tuple[list[float], Decision]:
    """Answer `n_requests`; return the unchanged share of each draft, and a decision on a delay afterwards."""
    unchanged: list[float] = []
    encoder = TokenEncoder(masks=ALL_MASKS)
    with Memory.open(":memory:", encoder=encoder) as memory, Sync(LabelReader(ScriptedLLM(habitual_model))) as model:
        policy = ModelAlone() if arm == "alone" else JitRL(memory)
        for number in range(n_requests):
            rng = np.random.default_rng([seed, number])
            words, wanted = KINDS[str(rng.choice(list(KINDS)))]
            state = words.format(a=rng.integers(100, 9999), b=rng.integers(2, 60))
            prior = model.read(state, TASK, DRAFTS).prior
            decision = policy.decide(state, prior, admissible="any", task=TASK, seed=1000 * seed + number)
            unchanged.append((1.0 + edit_reward(decision.action, wanted)) / 2.0)
            episode_id = memory.add(Episode(TASK, [Step(state, decision.action)], f"request-{number:03d}", arm=arm))
            if arm == "edits":
                text = edited(decision.action, wanted, rng)
                memory.feedback(episode_id, Edit(text), author="clerk", id=f"on-{episode_id}")
            elif arm == "thumbs":
                memory.feedback(episode_id, Thumbs(decision.action == wanted), author="clerk")
        state = KINDS["delay"][0].format(a=1234, b=5)
        prior = model.read(state, TASK, DRAFTS).prior
        return unchanged, policy.decide(state, prior, admissible="any", task=TASK, seed=seed)


def main() -> None:
    """Print the unchanged share of drafts in the three arms by block of requests, and one decision in full."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="independent runs, each with its own requests")
    parser.add_argument("--requests", type=int, default=80, help="requests per run")
    options = parser.parse_args()
    if options.seed < 0 or options.seeds < 2 or options.requests < 4:
        parser.error("--seed is at least 0, --seeds at least 2 for an interval, --requests at least 4 for four blocks")
    seeds = range(options.seed, options.seed + options.seeds)
    runs = {arm: [office(s, options.requests, arm=arm) for s in seeds] for arm in ("alone", "thumbs", "edits")}
    unchanged = {arm: np.array([shares for shares, _ in of_arm]) for arm, of_arm in runs.items()}
    print(f"unchanged share of a draft, {len(seeds)} runs from seed {options.seed}, the same requests everywhere")
    print("requests   alone   thumbs   edits   edits - alone, paired by run")
    for block in np.array_split(np.arange(options.requests), 4):
        alone, thumbs, edits = (unchanged[arm][:, block].mean(axis=1) for arm in ("alone", "thumbs", "edits"))
        span = f"{block[0] + 1}-{block[-1] + 1}"
        means = f"{alone.mean():>6.2f}   {thumbs.mean():>6.2f}   {edits.mean():>5.2f}"
        print(f"{span:<10} {means}   {mean_interval(edits - alone)}")
    print(f"\nedits - thumbs, all requests: {mean_interval((unchanged['edits'] - unchanged['thumbs']).mean(axis=1))}")
    print(f"\nA decision of the first run about a delay:\n\n{runs['edits'][0][1].explain()}")


if __name__ == "__main__":
    main()
