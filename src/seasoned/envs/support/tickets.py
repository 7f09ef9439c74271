"""Support tickets drawn by seed: their facts recur, their wording does not."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from seasoned.envs.support.routing_rules import AMOUNTS_USD, PLANS, PRODUCTS, REGIONS, TICKET_PROBLEMS, TicketFacts

__all__ = ["Ticket", "draw_ticket"]

_SUBJECTS = {
    "bug": (
        "{p} shows the wrong numbers",
        "{p}: export crashes",
        "Broken chart in {p}",
        "{p} saves nothing",
        "Bug in {p}",
    ),
    "howto": (
        "How do I share a view in {p}?",
        "Question about {p} settings",
        "{p}: where do I find the API key?",
        "How to import data into {p}",
        "Help with a {p} setup",
    ),
    "invoice": (
        "Invoice for {p} is wrong",
        "Question on our {p} invoice",
        "{p} invoice: wrong VAT number",
        "Two invoices for {p}",
        "Missing {p} invoice",
    ),
    "login": (
        "Cannot log in to {p}",
        "{p} login fails",
        "Locked out of {p}",
        "{p}: password reset never comes",
        "{p} sign-in loop",
    ),
    "outage": ("{p} is down", "{p} outage?", "{p} not reachable", "All of {p} times out", "{p} down for everyone here"),
    "privacy": (
        "Delete my personal data from {p}",
        "{p}: data access request",
        "What personal data does {p} keep?",
        "Right to erasure, {p}",
        "Personal data in {p}",
    ),
    "refund": (
        "Refund for {p}",
        "Please refund my {p} payment",
        "Money back for {p}",
        "{p}: refund request",
        "Charged for {p}, want a refund",
    ),
    "security": (
        "Vulnerability in {p}",
        "Suspicious access to our {p}",
        "{p}: token leaked",
        "Security report on {p}",
        "Phishing mail in the name of {p}",
    ),
}
_STORIES = {
    "bug": (
        "the totals on the {place} page no longer add up",
        "exporting the {place} report crashes every time",
        "the {place} filter is ignored since the last update",
        "what I change on the {place} page is not saved",
    ),
    "howto": (
        "I cannot find out how to share the {place} view",
        "where in the {place} menu do I add a colleague",
        "can you explain how the {place} settings work",
        "we want to import last year's {place} figures",
    ),
    "invoice": (
        "the invoice of {usd} usd for {place} names the wrong company",
        "our bookkeeping cannot match the invoice over {usd} usd for {place}",
        "we got the {usd} usd invoice for {place} twice",
        "the VAT on the {usd} usd invoice is wrong",
    ),
    "login": (
        "my password is refused on the {place} page",
        "the sign-in page for {place} loads again and again",
        "the reset mail for the {place} account never arrives",
        "after the new phone I am locked out of {place}",
    ),
    "outage": (
        "nothing has loaded for our {place} team",
        "every request to {place} times out",
        "the whole {place} service answers with 503",
        "nobody in our {place} office can reach it",
    ),
    "privacy": (
        "I want all data of our {place} users deleted",
        "please send me what you store on me and {place}",
        "a former {place} employee wants her data erased",
        "which of our {place} data leave the country",
    ),
    "refund": (
        "I cancelled {place} in time and was still charged {usd} usd",
        "please return the {usd} usd for {place}",
        "we paid {usd} usd for {place} twice and want one back",
        "{place} never worked, I want {usd} usd back",
    ),
    "security": (
        "I found a way to read other customers' {place} pages",
        "a stranger opened our {place} account",
        "our {place} token was posted in public",
        "a mail in your name asks for {place} passwords",
    ),
}
_PLACES = ("sales", "stock", "travel", "payroll", "warehouse", "marketing", "research", "service", "team", "branch")
_TONES = (
    ("Dear support team,", "could you please help: {story}.", "Many thanks in advance and kind regards,"),
    ("Hello,", "{story}. It began on {day} at {hour}:{minute:02d}.", "Thanks,"),
    ("Hi there!", "Sorry to bother you again, but {story}...", "Have a nice {day}!"),
    ("", "{story}. THIS IS THE {count}. TIME I WRITE. Fix it now.", ""),
    ("To whom it may concern,", "on {day} we noticed that {story}. Please treat this as urgent.", "Sincerely,"),
    ("hey", "{story} :( any idea?", "cheers"),
)
_NOTES = (
    "My reference is {number}.",
    "Case {number}, opened on {day}.",
    "I am on version {count}.{number}.",
    "We have {number} of them here.",
    "Call me under ext. {number}.",
    "Browser: Firefox {minute}, build {number}.",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIRST = (
    "Aiko",
    "Ben",
    "Carla",
    "Deniz",
    "Elif",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kofi",
    "Lena",
    "Milan",
    "Nadia",
    "Omar",
    "Priya",
    "Quentin",
    "Rosa",
    "Sven",
    "Tara",
)
_LAST = (
    "Abe",
    "Brandt",
    "Costa",
    "Dubois",
    "Evans",
    "Fischer",
    "Garcia",
    "Haas",
    "Ito",
    "Jensen",
    "Khan",
    "Lopez",
    "Moreau",
    "Novak",
    "Okafor",
    "Patel",
    "Quinn",
    "Rossi",
    "Silva",
    "Tanaka",
)
_FIRMS = ("Alder Works", "Bluewater", "Cobalt Labs", "Dune Foods", "Elm & Sons", "Fjord Air", "Granite Bank", "Helio")


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket: its facts and the customer's words.

    Args:
        facts: the facts that determine its team.
        subject: its subject line.
        body: its text, 10 to 50 words.
        missing: the fact that is missing in the form, or None.
    """

    facts: TicketFacts
    subject: str
    body: str
    missing: Literal["plan", "region"] | None = None

    def state(self, *, body: bool, complete: bool) -> str:
        """Return the state of the ticket: the subject, the form's fields, and optionally the text.

        Args:
            body: whether to include the text.
            complete: whether to fill in the missing fact.

        Example:
            >>> facts = TicketFacts("Atlas", "bug", "pro", "EU")
            >>> print(Ticket(facts, "Bug in Atlas", "It broke.", missing="plan").state(body=False, complete=False))
            subject: Bug in Atlas
            product:Atlas plan:unknown region:EU
        """
        facts = self.facts
        unknown = None if complete else self.missing
        fields = {"product": facts.product, "plan": facts.plan, "region": facts.region, "amount_usd": facts.amount_usd}
        words = [f"{k}:{'unknown' if k == unknown else v}" for k, v in fields.items() if v is not None]
        return "\n".join([f"subject: {self.subject}", " ".join(words), *([f"body: {self.body}"] if body else [])])


def draw_ticket(rng: random.Random, *, p_missing: float = 0.0, new_customers: bool = False) -> Ticket:
    """Return a ticket whose facts have the frequencies of `routing_rules`.

    Args:
        rng: the random generator.
        p_missing: the probability that the plan or the region is missing.
        new_customers: draw from the second half of the customers, instead of the first.

    Example:
        >>> draw_ticket(random.Random(1)).facts.problem in TICKET_PROBLEMS
        True
    """
    problem = rng.choices(list(TICKET_PROBLEMS), list(TICKET_PROBLEMS.values()))[0]
    amount = rng.choice(AMOUNTS_USD)
    facts = TicketFacts(
        rng.choice(PRODUCTS),
        problem,
        rng.choices(list(PLANS), list(PLANS.values()))[0],
        rng.choices(list(REGIONS), list(REGIONS.values()))[0],
        amount if problem in ("refund", "invoice") else None,
    )
    subject = rng.choice(_SUBJECTS[problem]).format(p=facts.product)
    missing: Literal["plan", "region"] | None = rng.choice(("plan", "region"))
    if rng.random() >= p_missing:
        missing = None
    return Ticket(facts, subject, _body(rng, problem, amount, new_customers), missing)


def _body(rng: random.Random, problem: str, amount: int, new_customers: bool) -> str:
    """Return greeting, story, one or two irrelevant notes, closing and name, with occasional typing errors."""
    chance = {
        "number": rng.randint(1_000, 99_999),
        "count": rng.randint(2, 9),
        "hour": rng.randint(6, 22),
        "minute": rng.randint(0, 59),
        "day": rng.choice(_DAYS),
    }
    greeting, sentence, closing = rng.choice(_TONES)
    story = rng.choice(_STORIES[problem]).format(place=rng.choice(_PLACES), usd=amount)
    notes = [note.format(**chance) for note in rng.sample(_NOTES, rng.randint(1, 2))]
    half = slice(len(_FIRST) // 2, None) if new_customers else slice(0, len(_FIRST) // 2)
    name = f"{rng.choice(_FIRST[half])} {rng.choice(_LAST)}, {rng.choice(_FIRMS)}"
    parts = (greeting, sentence.format(story=story, **chance), *notes, closing.format(**chance), name)
    words = " ".join(part for part in parts if part).split()
    return " ".join(_typo(rng, word) if len(word) > 4 and rng.random() < 0.02 else word for word in words)


def _typo(rng: random.Random, word: str) -> str:
    """Return the word with two letters swapped."""
    at = rng.randrange(1, len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
