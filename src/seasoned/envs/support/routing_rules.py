"""The hidden routing rules of a support desk, drawn by seed, and their exact statistics."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "AMOUNTS_USD",
    "PLANS",
    "PRODUCTS",
    "REGIONS",
    "TEAMS",
    "TICKET_PROBLEMS",
    "RoutingRule",
    "RoutingRules",
    "TicketFacts",
    "draw_rules",
]

TEAMS = ("billing", "engineering", "finance", "legal", "on-call", "security", "success")
PRODUCTS = ("Atlas", "Beacon", "Cargo", "Harbor", "Ledger")
TICKET_PROBLEMS = {
    "bug": 5,
    "howto": 4,
    "invoice": 3,
    "login": 3,
    "outage": 4,
    "privacy": 3,
    "refund": 5,
    "security": 3,
}
"""The problems of tickets, with their frequencies in thirtieths."""
PLANS = {"free": 7, "pro": 9, "enterprise": 4}
"""The plans of customers, with their frequencies in twentieths."""
REGIONS = {"EU": 4, "US": 4, "APAC": 2}
"""The regions of customers, with their frequencies in tenths."""
AMOUNTS_USD = (29, 49, 90, 120, 180, 240, 360, 480, 750, 990, 1500, 2400)
"""The amounts of refunds and invoices, equally frequent."""

_MONEY = ("refund", "invoice")
_USUAL = {
    "bug": ("engineering", "success"),
    "howto": ("success", "engineering"),
    "invoice": ("billing", "finance"),
    "login": ("security", "success", "engineering"),
    "outage": ("engineering", "on-call"),
    "privacy": ("legal", "security", "success"),
    "refund": ("billing", "success"),
    "security": ("security", "engineering"),
}
_MIN_SHARE, _MAX_SHARE, _MIN_DIFFERENT = 0.05, 0.35, 0.3


@dataclass(frozen=True, slots=True)
class TicketFacts:
    """The facts of a ticket that determine its team. `amount_usd` is None if the problem is not about money.

    Example:
        >>> TicketFacts("Atlas", "refund", "pro", "EU", 240).amount_usd
        240
    """

    product: str
    problem: str
    plan: str
    region: str
    amount_usd: int | None = None


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """A rule that sends tickets about `problem` to `team` if they meet the other conditions; None is no condition.

    Example:
        >>> str(RoutingRule("refund", "finance", above_usd=500))
        'refund, above 500 usd: finance'
    """

    problem: str
    team: str
    product: str | None = None
    plan: str | None = None
    region: str | None = None
    above_usd: int | None = None

    def matches(self, facts: TicketFacts) -> bool:
        """Return whether the rule applies to such a ticket."""
        return (
            self.problem == facts.problem
            and self.product in {None, facts.product}
            and self.plan in {None, facts.plan}
            and self.region in {None, facts.region}
            and (self.above_usd is None or (facts.amount_usd or 0) > self.above_usd)
        )

    def __str__(self) -> str:
        named = [word for word in (self.product, self.plan, self.region) if word]
        named += [] if self.above_usd is None else [f"above {self.above_usd} usd"]
        return f"{', '.join([self.problem, *named])}: {self.team}"


@dataclass(frozen=True, slots=True)
class RoutingRules:
    """Rules in order: the first matching rule applies. Exceptions come first; the last eight cover every problem.

    Example:
        >>> rules = draw_rules(0)
        >>> rules.team(TicketFacts("Atlas", "outage", "enterprise", "EU"))
        'on-call'
    """

    rules: tuple[RoutingRule, ...]

    def team(self, facts: TicketFacts) -> str:
        """Return the team that handles such a ticket."""
        return next(rule.team for rule in self.rules if rule.matches(facts))

    def shares(self) -> dict[str, float]:
        """Return the exact share of tickets that goes to each team."""
        shares = dict.fromkeys(TEAMS, 0.0)
        for facts, probability in _all_facts():
            shares[self.team(facts)] += probability
        return shares

    def difference(self, other: RoutingRules) -> float:
        """Return the exact share of tickets that two rule sets send to different teams.

        Example:
            >>> draw_rules(0).difference(draw_rules(0))
            0.0
        """
        return sum((p for facts, p in _all_facts() if self.team(facts) != other.team(facts)), start=0.0)


def draw_rules(seed: int, *, heldout: bool = False) -> RoutingRules:
    """Return the rules of this seed: every team gets 5 to 35 % of the tickets.

    Some rules follow common practice (enterprise outages go to on-call, large refunds to finance, the privacy requests
    of one region to legal). The usual team of each problem, the limits, and the exceptions by product, plan and region
    are drawn.

    Args:
        seed: any whole number.
        heldout: return another set of rules, which sends at least 30 % of the tickets to other teams.

    Example:
        >>> draw_rules(0).difference(draw_rules(0, heldout=True)) >= 0.3
        True
    """
    rng = random.Random(f"rules/{heldout}/{seed}")  # noqa: S311 - randomness of a game, no secret
    known = draw_rules(seed) if heldout else None
    while True:
        rules = _draw(rng)
        if all(_MIN_SHARE <= share <= _MAX_SHARE for share in rules.shares().values()) and (
            known is None or rules.difference(known) >= _MIN_DIFFERENT
        ):
            return rules


def _draw(rng: random.Random) -> RoutingRules:
    base = {problem: rng.choice(usual) for problem, usual in _USUAL.items()}
    rules = [
        RoutingRule("outage", "on-call", plan="enterprise"),
        RoutingRule("refund", "finance", above_usd=rng.choice((100, 300, 500))),
        RoutingRule("invoice", rng.choice(("finance", "legal", "billing")), above_usd=rng.choice((200, 700))),
        RoutingRule("privacy", "legal", region=rng.choice(("EU", "US"))),
        RoutingRule("security", "on-call", plan=rng.choice(("pro", "enterprise"))),
    ]
    for problem in rng.sample(("bug", "howto", "login", "outage", "privacy"), 3):
        rules.append(RoutingRule(problem, _other(rng, base[problem]), product=rng.choice(PRODUCTS)))
    for problem in rng.sample(("bug", "howto", "login", "refund", "security"), 2):
        rules.append(RoutingRule(problem, _other(rng, base[problem]), region=rng.choice(list(REGIONS))))
    problem = rng.choice(("bug", "howto", "login"))
    rules.append(RoutingRule(problem, _other(rng, base[problem]), plan=rng.choice(list(PLANS))))
    return RoutingRules((*rules, *(RoutingRule(problem, team) for problem, team in base.items())))


def _other(rng: random.Random, team: str) -> str:
    return rng.choice([other for other in TEAMS if other != team])


def _all_facts() -> Iterator[tuple[TicketFacts, float]]:
    """Yield every combination of facts, with its probability."""
    for product, (problem, n), (plan, m), (region, k) in itertools.product(
        PRODUCTS, TICKET_PROBLEMS.items(), PLANS.items(), REGIONS.items()
    ):
        amounts: tuple[int | None, ...] = AMOUNTS_USD if problem in _MONEY else (None,)
        probability = n * m * k / (len(PRODUCTS) * 30 * 20 * 10 * len(amounts))
        for amount in amounts:
            yield TicketFacts(product, problem, plan, region, amount), probability
