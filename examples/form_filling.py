"""A web agent fills in insurance claims, and improves from session to session.

The file simulates a small site: pages as text, with ids and URLs that change from claim to claim, validation errors
that appear immediately, and mistakes that appear only when the claim is refused. The only reward is 1 at the end for an
accepted claim. The model is a script with plausible habits, most of them wrong on this site. It is read by label, as a
real model is, and has no record of past sessions, so all learning comes from `JitRL` and its memory.

Run: python examples/form_filling.py [--seed 0] [--seeds 10] [--sessions 48]
"""

from __future__ import annotations

import argparse
import re

import numpy as np

from seasoned import Decision, JitRL, Memory, ModelAlone
from seasoned.core import mean_interval
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.protocols import CompletionRequest
from seasoned.states import ALL_MASKS, TokenEncoder, UrlRules
from seasoned.sync import Sync

TASK = "Fill in the insurance claim so that it is accepted."
PATIENCE_STEPS = 8  # then the site's session expires
DATES = ("type the date as 2026-04-03", "type the date as 03/04/2026", "pick the date in the calendar")
PAPERS = ("attach the invoice", "attach the police report", "attach a photo")
PAYOUTS = ("pay to a new account", "pay to the account on file")
SUBMITS = ("submit", "save the draft, then submit")

# For each kind of claim: its words, and the paper that its department requires. The agent sees only the words.
KINDS = {
    "theft": ("stolen goods burglary lock forced police informed home contents department", PAPERS[1]),
    "glass": ("cracked windscreen stone chip motorway garage repair motor department", PAPERS[2]),
    "travel": ("flight cancelled hotel night missed connection luggage travel department", PAPERS[0]),
}
# The model's logit for an action, in nats, independent of the page.
HABITS = {DATES[0]: 1.0, DATES[1]: 0.5, PAPERS[0]: 0.5, PAYOUTS[0]: 1.0, SUBMITS[0]: 0.5}


class ClaimSite:
    """One claim: a page for the date, the papers, the payout and the submission, in this order."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.kind = str(rng.choice(list(KINDS)))
        self.number = int(rng.integers(1000, 99999))
        self.token = rng.bytes(8).hex()
        self.page = self.steps = 0
        self.error = ""
        self.papers = ""
        self.done = False

    @property
    def actions(self) -> tuple[str, ...]:
        """The admissible actions of this page."""
        return (DATES, PAPERS, PAYOUTS, SUBMITS)[self.page]

    @property
    def state(self) -> str:
        """The page as text."""
        path, title = (
            ("date", "When did it happen? Enter the day of the loss."),
            ("papers", f"Supporting papers: {KINDS[self.kind][0]}. Add what proves your loss, max 10 MB."),
            ("payout", "Where shall we transfer the money? Choose a bank account."),
            ("review", "Check all your answers, then send them to us."),
        )[self.page]
        return (
            f"https://claims.example/claims/edit/{self.number}/{path}?token={self.token}\n"
            f"claim {self.number}\n{title}\n{self.error}"
        ).strip()

    def click(self, action: str) -> float:
        """Take an action; return the reward."""
        self.steps += 1
        self.error = ""
        if action in SUBMITS:
            self.done = True
            saved = action == SUBMITS[1]  # else the site drops the attachment without an error
            return float(saved and self.papers == KINDS[self.kind][1])
        if action in PAPERS:
            self.papers = action  # the form accepts any file; the department checks it later
        elif action in (DATES[0], DATES[1]):
            self.error = f"Error {self.number % 7 + 400}: this date is not valid, please correct the highlighted field."
        elif action == PAYOUTS[0]:
            self.error = f"Error {self.number % 7 + 500}: we could not verify the holder of this new account today."
        self.page += not self.error
        self.done = self.steps >= PATIENCE_STEPS
        return 0.0


def habitual_model(request: CompletionRequest) -> dict[str, float]:
    """Answer with a logprob for each letter of the menu, by habit; an error in the prompt halves the logits."""
    prompt = request.messages[-1].content
    certainty = 0.5 if "Error" in prompt else 1.0
    menu = re.findall(r"^([A-Z])\) (.+)$", prompt, re.MULTILINE)
    logits = {letter: certainty * HABITS.get(action, 0.0) for letter, action in menu}
    total = np.logaddexp.reduce(list(logits.values()))
    return {letter: float(logit - total) for letter, logit in logits.items()}


def work(seed: int, n_sessions: int, *, learn: bool) -> tuple[list[float], Decision]:
    """Fill in `n_sessions` claims; return their rewards, and a decision on the papers of one more."""
    encoder = TokenEncoder(masks=ALL_MASKS, urls=UrlRules())  # /claims/edit/4711 and /claims/edit/90210 are one page
    earned = []
    with Memory.open(":memory:", encoder=encoder) as memory, Sync(LabelReader(ScriptedLLM(habitual_model))) as model:
        policy = JitRL(memory) if learn else ModelAlone()
        for session in range(n_sessions):
            site, reward = ClaimSite(np.random.default_rng([seed, session])), 0.0
            with memory.episode(TASK, id=f"session-{session:03d}") as episode:
                while not site.done:
                    state, prior = site.state, model.read(site.state, TASK, site.actions).prior
                    decision = policy.decide(state, prior, task=TASK, step=site.steps, seed=1000 * seed + session)
                    reward = site.click(decision.action)
                    episode.record(state, decision, reward)
            earned.append(reward)
        site = ClaimSite(np.random.default_rng(seed))
        site.kind, site.page = "theft", 1
        return earned, policy.decide(site.state, model.read(site.state, TASK, site.actions).prior, seed=seed)


def main() -> None:
    """Print success with and without memory by block of sessions, and one decision in full."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="independent runs, each with its own claims")
    parser.add_argument("--sessions", type=int, default=48, help="claims per run")
    options = parser.parse_args()
    if options.seed < 0 or options.seeds < 2 or options.sessions < 4:
        parser.error("--seed is at least 0, --seeds at least 2 for an interval, --sessions at least 4 for four blocks")
    seeds = range(options.seed, options.seed + options.seeds)
    alone = np.array([work(seed, options.sessions, learn=False)[0] for seed in seeds])
    runs = [work(seed, options.sessions, learn=True) for seed in seeds]
    memory = np.array([earned for earned, _ in runs])
    print(f"accepted claims, {len(seeds)} runs from seed {options.seed}, the same claims in both columns")
    print("sessions    alone   memory   memory - alone, paired by run")
    for block in np.array_split(np.arange(options.sessions), 4):
        difference = mean_interval((memory - alone)[:, block].mean(axis=1))
        span = f"{block[0] + 1}-{block[-1] + 1}"
        print(f"{span:<10} {alone[:, block].mean():>6.2f}   {memory[:, block].mean():>6.2f}   {difference}")
    print(f"\nA decision of the first run about a theft claim's papers:\n\n{runs[0][1].explain()}")


if __name__ == "__main__":
    main()
