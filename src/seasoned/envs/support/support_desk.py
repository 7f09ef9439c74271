"""A support desk: tickets to route by hidden rules, and customers who answer late and are sometimes wrong."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from seasoned.checks import check_number, suggest
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import Turns, check_whole
from seasoned.envs.support.routing_rules import TEAMS, RoutingRules, draw_rules
from seasoned.envs.support.tickets import Ticket, draw_ticket
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Observation

__all__ = ["ASK", "LateReward", "Split", "SupportTriage", "open_support"]

ASK = "ask for details"
"""The action that reveals a missing fact, where it is offered."""

Split = Literal["same", "new", "heldout"]
"""The tickets to learn from; new tickets under the same rules; new tickets under other rules."""

_P_MISSING = 0.25


@dataclass(frozen=True, slots=True)
class LateReward:
    """A reward, the step that earned it, and the step whose observation brought it.

    Example:
        >>> LateReward(step=2, reward=1.0, arrived=5).arrived
        5
    """

    step: int
    reward: float
    arrived: int


class SupportTriage:
    """A shift at a support desk: route each ticket to the team that handles it. An episode is terminated at its end.

    Who handles what depends on product, problem, plan, region and amount, by rules that are not shown. What an agent
    learns of them is whether customers were content: 1 where the team was right and 0 where it was not, and the other
    way round with probability `noise`. A ticket's answer arrives with the step that routes the `delay`-th ticket after
    it; the shift's last step brings all that are left.

    `Observation.reward` is what arrived with the step, so that the score is the noisy one. What each step really earned
    is known to `true_rewards`, `true_score` and `regret`, for reports and not for agents. `feedback()` moves each
    reward to the step that earned it: this is a `seasoned.protocols.DelayedFeedback`. A ticket tells nothing of the
    next: learn with gamma 0.

    Args:
        rules_seed: of the routing rules.
        tickets_seed: of the tickets.
        split: `same`, `new` (other tickets and customers, the same rules) or `heldout` (other rules as well).
        tickets: how many a shift has.
        delay: in tickets; with `tickets` or more, all is known at the end of the shift.
        noise: the probability, in [0, 0.5), that an answer is wrong.
        ask: whether a quarter of the tickets lack the plan or the region, and details can be asked for, once a ticket.
        ask_cost: what asking costs at once, in [0, 1].
        body: whether the state has the customer's text. Without it states recur, and similar ones have similar words.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> from seasoned.sync import Sync
        >>> with Sync(SupportTriage(tickets=3, delay=1, noise=0.0)) as desk:
        ...     seen = [desk.reset(seed=0)] + [desk.step(desk.right_team) for _ in range(3)]
        >>> [observation.reward for observation in seen], desk.feedback(), desk.true_score
        ([0.0, 0.0, 1.0, 2.0], ((0, 1.0), (1, 0.0), (2, -1.0)), 3.0)
    """

    def __init__(
        self,
        *,
        rules_seed: int = 0,
        tickets_seed: int = 0,
        split: Split = "same",
        tickets: int = 20,
        delay: int = 3,
        noise: float = 0.05,
        ask: bool = False,
        ask_cost: float = 0.2,
        body: bool = True,
    ) -> None:
        if split not in get_args(Split):
            raise InputError(f"split = {excerpt(split)}", "no split has this name", suggest(split, get_args(Split)))
        for name, value, high, rule in (
            ("noise", noise, 0.5, "in [0, 0.5)"),
            ("ask_cost", ask_cost, None, "in [0, 1]"),
        ):
            if not 0.0 <= check_number(name, value) <= 1.0 or (high is not None and value >= high):
                raise InputError(f"{name} = {value}", f"{name} is {rule}", f"Try {name}=0.1.")
        self._rules_seed = check_whole("rules_seed", rules_seed, 0)
        self._tickets_seed = check_whole("tickets_seed", tickets_seed, 0)
        self._rules = draw_rules(rules_seed, heldout=split == "heldout")
        self._split, self._count = split, check_whole("tickets", tickets, 1)
        self._delay, self._noise = check_whole("delay", delay, 0), float(noise)
        self._ask, self._ask_cost, self._body = bool(ask), float(ask_cost), bool(body)
        self._turns = Turns(None)
        self._next_shift = 0
        self._flips: list[bool] = []
        self._begin(())

    @property
    def name(self) -> str:
        """The specification that makes it again, with `open_env`."""
        given = {
            "rules_seed": (self._rules_seed, None),
            "tickets_seed": (self._tickets_seed, None),
            "split": (self._split, "same"),
            "tickets": (self._count, None),
            "delay": (self._delay, None),
            "noise": (self._noise, None),
            "ask": (int(self._ask), 0),
            "ask_cost": (self._ask_cost, 0.2),
            "body": (int(self._body), 1),
        }
        return "support:triage?" + "&".join(f"{k}={v}" for k, (v, default) in given.items() if v != default)

    @property
    def task(self) -> str:
        """What is attempted, in words."""
        asking = f" Or {ASK}, which costs a little, where a fact is missing." if self._ask else ""
        return f"Route each support ticket to the team that handles it.{asking}"

    @property
    def max_score(self) -> float | None:
        """One a ticket."""
        return float(self._count)

    @property
    def rules(self) -> RoutingRules:
        """The hidden rules: for reports and oracles, not for agents."""
        return self._rules

    @property
    def right_team(self) -> str:
        """The team that handles the ticket shown: for oracles, not for agents.

        Raises:
            EnvError: no ticket is shown.
        """
        if self._at >= len(self._tickets):
            raise EnvError(
                "right_team while no ticket is shown", "a ticket is shown from reset to the end", "Call reset."
            )
        return self._rules.team(self._tickets[self._at].facts)

    @property
    def true_rewards(self) -> tuple[float, ...]:
        """What each step of this episode really earned: at once, and without noise."""
        return tuple(self._true)

    @property
    def true_score(self) -> float:
        """The sum of `true_rewards`: the tickets routed right, less what asking cost."""
        return sum(self._true)

    @property
    def regret(self) -> float:
        """The tickets routed so far, less `true_score`: 0 for who knows the rules and every fact, and never below."""
        return self._at - self.true_score

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin a shift: the one of this seed, or the one after the last.

        Raises:
            EnvError: the environment was closed.
        """
        self._turns.check_open()
        shift = self._next_shift if seed is None else check_whole("seed", seed, 0)
        self._next_shift = shift + 1
        stream = "same" if self._split == "same" else "new"
        rng = random.Random(f"tickets/{stream}/{self._tickets_seed}/{shift}")  # noqa: S311 - a game's chance
        self._flips = [rng.random() < self._noise for _ in range(self._count)]
        p_missing = _P_MISSING if self._ask else 0.0
        self._begin(
            tuple(draw_ticket(rng, p_missing=p_missing, new_customers=stream == "new") for _ in range(self._count))
        )
        return self._turns.begin(self._state(), self._actions())

    async def step(self, action: str) -> Observation:
        """Route the ticket, or ask for details.

        Raises:
            EnvError: before `reset`, after the end, or for an inadmissible action.
        """
        chosen = self._turns.take(action)
        step, reward = len(self._true), 0.0
        if chosen == ASK:
            self._asked, reward = True, -self._ask_cost
            self._true.append(reward)
        else:
            right = chosen == self.right_team
            self._true.append(float(right))
            self._waiting.append((step, float(right != self._flips[self._at])))
            self._at += 1
            self._asked = False
            left = 0 if self._at == self._count else self._delay
            while len(self._waiting) > left:
                earned, late = self._waiting.pop(0)
                self._late.append(LateReward(earned, late, step))
                reward += late
        return self._turns.show(self._state(), self._actions(), reward=reward, terminated=self._at == self._count)

    def late_rewards(self) -> tuple[LateReward, ...]:
        """Return every customer's answer that has arrived, noise included, in order."""
        return tuple(self._late)

    def feedback(self) -> tuple[tuple[int, float], ...]:
        """Return, by step, what to add to its recorded reward so that each answer counts where it was earned."""
        moved: defaultdict[int, float] = defaultdict(float)
        for late in self._late:
            if late.step != late.arrived:
                moved[late.step] += late.reward
                moved[late.arrived] -= late.reward
        return tuple(sorted(moved.items()))

    async def aclose(self) -> None:
        """Refuse every later call."""
        self._turns.close()

    def _begin(self, tickets: tuple[Ticket, ...]) -> None:
        self._tickets, self._asked = tickets, False
        self._at = 0  # of the ticket that is shown
        self._true: list[float] = []
        self._waiting: list[tuple[int, float]] = []
        self._late: list[LateReward] = []

    def _state(self) -> str:
        if self._at == self._count:
            return "the shift is over"
        return self._tickets[self._at].state(body=self._body, complete=self._asked)

    def _actions(self) -> tuple[str, ...]:
        return (*TEAMS, ASK) if self._ask and not self._asked else TEAMS


def open_support(target: str, given: dict[str, str], _: str | Path | None = None) -> SupportTriage:
    """Return the environment of `support:triage?option=value&...`, the options being the arguments of `SupportTriage`.

    `seed` stands for `rules_seed` and `tickets_seed`, where these are not given.

    Raises:
        InputError: no such world or option, or a value that is not allowed.

    Example:
        >>> open_support("triage", {"seed": "3", "tickets": "10"}).name
        'support:triage?rules_seed=3&tickets_seed=3&tickets=10&delay=3&noise=0.05'
    """
    if target != "triage":
        raise InputError(
            f"support world {excerpt(target)}", "no support world has this name", suggest(target, ["triage"])
        )
    seeds = {name: Option(0, high=2**31 - 1) for name in ("seed", "rules_seed", "tickets_seed")}
    known = {**seeds, "tickets": Option(20, low=1), "delay": Option(3), "ask": Option(False), "body": Option(True)}
    values = option_values(given, known, ("split",), ("noise", "ask_cost"))
    if (seed := values.pop("seed", None)) is not None:
        values = {"rules_seed": seed, "tickets_seed": seed, **values}
    return SupportTriage(**values)
