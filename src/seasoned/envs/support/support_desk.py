"""A support desk: tickets to route by hidden rules, with delayed and noisy rewards."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from seasoned.checks import check_number, check_one_of, check_whole, suggest
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.envs.support.routing_rules import TEAMS, RoutingRules, draw_rules
from seasoned.envs.support.tickets import Ticket, draw_ticket
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Observation

__all__ = ["ASK", "LateReward", "Split", "SupportTriage", "open_support"]

ASK = "ask for details"
"""The action that reveals a missing fact, if it is admissible."""

Split = Literal["same", "new", "heldout"]
"""The training tickets; new tickets under the same rules; new tickets under other rules."""

_P_MISSING = 0.25


@dataclass(frozen=True, slots=True)
class LateReward:
    """A reward, the step that earned it, and the step at which it arrived.

    Example:
        >>> LateReward(step=2, reward=1.0, arrived=5).arrived
        5
    """

    step: int
    reward: float
    arrived: int


class SupportTriage:
    """A shift at a support desk: route each ticket to the team that handles it. The end of the shift terminates it.

    The right team depends on product, problem, plan, region and amount, by hidden rules. The agent only observes the
    customers' answers: 1 if the team was right and 0 if not, flipped with probability `noise`. A ticket's answer
    arrives with the step that routes the `delay`-th ticket after it; the last step of the shift brings all remaining
    answers.

    `Observation.reward` is the sum of the rewards that arrived with the step, so the score is noisy. `true_rewards`,
    `true_score` and `regret` are the rewards that each step earned; they are for reports, not for agents. `feedback()`
    moves each reward to the step that earned it: this is a `seasoned.protocols.DelayedFeedback`. Tickets are
    independent: learn with gamma 0.

    Args:
        rules_seed: the seed of the routing rules.
        tickets_seed: the seed of the tickets.
        split: `same`, `new` (other tickets and customers, the same rules) or `heldout` (other rules as well).
        tickets: the number of tickets in a shift.
        delay: the delay of an answer, in tickets; with `tickets` or more, all answers arrive at the end of the shift.
        noise: the probability, in [0, 0.5), that an answer is wrong.
        ask: whether a quarter of the tickets lack the plan or the region, and the agent may ask for it once a ticket.
        ask_cost: the immediate cost of asking, in [0, 1].
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
        check_one_of("split", split, get_args(Split))
        self._rules_seed = check_whole("rules_seed", rules_seed, 0)
        self._tickets_seed = check_whole("tickets_seed", tickets_seed, 0)
        self._rules = draw_rules(rules_seed, heldout=split == "heldout")
        self._split, self._count = split, check_whole("tickets", tickets, 1)
        self._delay = check_whole("delay", delay, 0)
        self._noise = check_number("noise", noise, at_least=0.0, below=0.5)
        self._ask, self._body = bool(ask), bool(body)
        self._ask_cost = check_number("ask_cost", ask_cost, at_least=0.0, at_most=1.0)
        self._guard = EpisodeGuard(None)
        self._next_shift = 0
        self._flips: list[bool] = []
        self._begin(())

    @property
    def name(self) -> str:
        """The specification that opens the same environment with `open_env`."""
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
        """The task in words."""
        asking = f" Or {ASK}, which costs a little, where a fact is missing." if self._ask else ""
        return f"Route each support ticket to the team that handles it.{asking}"

    @property
    def max_score(self) -> float | None:
        """1 a ticket."""
        return float(self._count)

    @property
    def rules(self) -> RoutingRules:
        """The hidden rules; for reports and oracles, not for agents."""
        return self._rules

    @property
    def right_team(self) -> str:
        """The team that handles the shown ticket; for oracles, not for agents.

        Raises:
            EnvError: no ticket is shown.
        """
        if self._position >= len(self._tickets):
            raise EnvError(
                "right_team while no ticket is shown", "a ticket is shown from reset to the end", "Call reset."
            )
        return self._rules.team(self._tickets[self._position].facts)

    @property
    def true_rewards(self) -> tuple[float, ...]:
        """The reward that each step of this episode earned, without delay and noise."""
        return tuple(self._true_rewards)

    @property
    def true_score(self) -> float:
        """The sum of `true_rewards`: the tickets routed right, minus the cost of asking."""
        return sum(self._true_rewards)

    @property
    def regret(self) -> float:
        """The tickets routed so far, minus `true_score`: at least 0, and 0 with the rules and every fact."""
        return self._position - self.true_score

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin the shift of this seed; without a seed, the shift after the last one.

        Raises:
            EnvError: the environment was closed.
        """
        self._guard.check_open()
        shift = self._next_shift if seed is None else check_whole("seed", seed, 0)
        self._next_shift = shift + 1
        stream = "same" if self._split == "same" else "new"
        rng = random.Random(f"tickets/{stream}/{self._tickets_seed}/{shift}")  # noqa: S311 - randomness of a game
        self._flips = [rng.random() < self._noise for _ in range(self._count)]
        p_missing = _P_MISSING if self._ask else 0.0
        self._begin(
            tuple(draw_ticket(rng, p_missing=p_missing, new_customers=stream == "new") for _ in range(self._count))
        )
        return self._guard.begin(self._state(), self._actions())

    async def step(self, action: str) -> Observation:
        """Route the ticket, or ask for details.

        Raises:
            EnvError: before `reset`, after the end, or for an inadmissible action.
        """
        chosen = self._guard.resolve_action(action)
        step, reward = len(self._true_rewards), 0.0
        if chosen == ASK:
            self._asked, reward = True, -self._ask_cost
            self._true_rewards.append(reward)
        else:
            right = chosen == self.right_team
            self._true_rewards.append(float(right))
            self._pending.append((step, float(right != self._flips[self._position])))
            self._position += 1
            self._asked = False
            left = 0 if self._position == self._count else self._delay
            while len(self._pending) > left:
                earned, late = self._pending.pop(0)
                self._late_rewards.append(LateReward(earned, late, step))
                reward += late
        return self._guard.observe(
            self._state(), self._actions(), reward=reward, terminated=self._position == self._count
        )

    def late_rewards(self) -> tuple[LateReward, ...]:
        """Return the arrived answers of customers, with noise, in order."""
        return tuple(self._late_rewards)

    def feedback(self) -> tuple[tuple[int, float], ...]:
        """Return, by step, the correction of its recorded reward that moves each answer to the step that earned it."""
        moved: defaultdict[int, float] = defaultdict(float)
        for late in self._late_rewards:
            if late.step != late.arrived:
                moved[late.step] += late.reward
                moved[late.arrived] -= late.reward
        return tuple(sorted(moved.items()))

    async def aclose(self) -> None:
        """Refuse every later call."""
        self._guard.close()

    def _begin(self, tickets: tuple[Ticket, ...]) -> None:
        self._tickets, self._asked = tickets, False
        self._position = 0  # of the shown ticket
        self._true_rewards: list[float] = []
        self._pending: list[tuple[int, float]] = []
        self._late_rewards: list[LateReward] = []

    def _state(self) -> str:
        if self._position == self._count:
            return "the shift is over"
        return self._tickets[self._position].state(body=self._body, complete=self._asked)

    def _actions(self) -> tuple[str, ...]:
        return (*TEAMS, ASK) if self._ask and not self._asked else TEAMS


def open_support(target: str, options: Mapping[str, str]) -> SupportTriage:
    """Return the environment of `support:triage?option=value&...`; the options are the arguments of `SupportTriage`.

    `seed` is the default of `rules_seed` and `tickets_seed`.

    Raises:
        InputError: the target or an option is unknown, or a value is not allowed.

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
    values = option_values(options, known, ("split",), ("noise", "ask_cost"))
    if (seed := values.pop("seed", None)) is not None:
        values = {"rules_seed": seed, "tickets_seed": seed, **values}
    return SupportTriage(**values)
