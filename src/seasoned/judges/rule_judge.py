"""Rewards from rules that a person wrote: free, exact, and the same every time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from seasoned.checks import check_reward, check_text, suggest
from seasoned.errors import InputError, excerpt
from seasoned.types import Episode, Step

__all__ = ["Rule", "RuleContext", "RuleJudge"]


@dataclass(frozen=True, slots=True)
class RuleContext:
    """One step of a finished episode, with what was before and after it.

    `previous_state` is None at the first step; `next_state` is None at the last one if the episode's final state is not
    known.
    """

    step: Step
    index: int
    previous_state: str | None
    next_state: str | None
    episode: Episode

    def text(self, place: str) -> str | None:
        """Return the text at one of the places that a pattern may look at."""
        places = {
            "action": self.step.action,
            "next_state": self.next_state,
            "previous_state": self.previous_state,
            "state": self.step.state,
        }
        return places[place]


_PLACES = ("action", "next_state", "previous_state", "state")


@dataclass(frozen=True, slots=True)
class Rule:
    """A reward for every step to which a condition applies.

    Args:
        name: says what the rule rewards; distinct within a judge.
        when: a function of the `RuleContext` that returns a bool, or regular expressions by place (`state`, `action`,
            `next_state`, `previous_state`), searched for, all of which must be found. A text that is not known matches
            nothing.
        reward: finite, in reward units; may be negative.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Rule("an error page", {"next_state": "(?i)error 5[0-9][0-9]"}, reward=-0.5).reward
        -0.5
    """

    name: str
    when: Callable[[RuleContext], bool] | Mapping[str, str]
    reward: float

    def __post_init__(self) -> None:
        check_text("rule name", self.name)
        object.__setattr__(self, "reward", check_reward(f"reward of rule {self.name!r}", self.reward))
        if isinstance(self.when, Mapping):
            if not self.when:
                raise InputError(
                    f"rule {self.name!r}, when = {{}}", "a rule has at least one condition", 'Try {"action": "buy"}.'
                )
            for place, pattern in self.when.items():
                _check_pattern(self.name, place, pattern)
            object.__setattr__(self, "when", dict(self.when))
        elif not callable(self.when):
            raise InputError(
                f"rule {self.name!r}, when = {excerpt(self.when)}",
                "when is a function of the moment, or patterns by place",
                'Try {"action": "buy"}.',
            )

    def applies(self, moment: RuleContext) -> bool:
        """Return whether the rule speaks of this step.

        Raises:
            InputError: the rule's own function returned something else than a bool.
        """
        if isinstance(self.when, Mapping):
            texts = {place: moment.text(place) for place in self.when}
            return all(text is not None and re.search(self.when[place], text) for place, text in texts.items())
        answer: object = self.when(moment)
        if not isinstance(answer, bool):
            raise InputError(
                f"rule {self.name!r} answered {excerpt(answer)} at step {moment.index}",
                "a rule's function returns a bool",
                "Wrap what it returns in bool(...).",
            )
        return answer


class RuleJudge:
    """Scores an episode by rules. Rewards of rules that apply to one step add up; other steps get none.

    Args:
        rules: at least one, with distinct names.
        source: recorded with every reward.

    Raises:
        InputError: no rules, two of one name, or something that is not a rule.

    Example:
        >>> judge = RuleJudge([Rule("paid", {"action": "confirm"}, 1.0), Rule("any step", lambda moment: True, -0.1)])
        >>> judge.score(Episode("checkout", [Step("cart", "click(pay)"), Step("pay", "click(confirm)")]))
        {0: -0.1, 1: 0.9}
    """

    def __init__(self, rules: Iterable[Rule], *, source: str = "rules") -> None:
        if not isinstance(rules, Iterable):
            raise InputError(f"rules = {excerpt(rules)}", "they are a list of Rules", "Pass [rule] for one.")
        self._rules = tuple(rules)
        self._source = check_text("source", source)
        if not self._rules:
            raise InputError("rules = []", "a judge has at least one rule", "Add one, or leave the judge out.")
        names: set[str] = set()
        for rule in self._rules:
            if not isinstance(rule, Rule):
                raise InputError(f"rule {excerpt(rule)}", "a judge takes Rules", "Build it with Rule(...).")
            if rule.name in names:
                raise InputError(f"two rules called {rule.name!r}", "names are distinct", "Rename one of them.")
            names.add(rule.name)

    @property
    def source(self) -> str:
        """Recorded with every reward."""
        return self._source

    def score(self, episode: Episode) -> dict[int, float]:
        """Return the summed reward by step index, for the steps of which a rule speaks.

        Raises:
            InputError: a rule's function returned no bool, or rewards add up to more than a float holds.
        """
        rewards: dict[int, float] = {}
        for moment in _moments(episode):
            applying = [rule.reward for rule in self._rules if rule.applies(moment)]
            if applying:
                rewards[moment.index] = check_reward(f"summed reward of step {moment.index}", sum(applying))
        return rewards

    def explain(self, episode: Episode) -> dict[int, tuple[str, ...]]:
        """Return the names of the rules that apply, by step index.

        Raises:
            InputError: a rule's function returned no bool.
        """
        named = {m.index: tuple(rule.name for rule in self._rules if rule.applies(m)) for m in _moments(episode)}
        return {index: names for index, names in named.items() if names}


def _moments(episode: Episode) -> list[RuleContext]:
    states = [None, *(step.state for step in episode.steps), episode.final_state]
    return [RuleContext(step, i, states[i], states[i + 2], episode) for i, step in enumerate(episode.steps)]


def _check_pattern(rule: str, place: str, pattern: str) -> None:
    if place not in _PLACES:
        raise InputError(
            f"rule {rule!r} looks at {excerpt(place)}", "a pattern looks at a known place", suggest(str(place), _PLACES)
        )
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InputError(
            f"rule {rule!r}, {place} = {excerpt(pattern)} ({error})",
            "a pattern is a regular expression",
            "Escape literal text with re.escape.",
        ) from None
