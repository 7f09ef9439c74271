"""Rule judge: deterministic rewards from rules that a person wrote, without model calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from seasoned.checks import check_instance, check_reward, check_text, suggest
from seasoned.errors import InputError, excerpt
from seasoned.types import Episode, Step

__all__ = ["Rule", "RuleContext", "RuleJudge"]


@dataclass(frozen=True, slots=True)
class RuleContext:
    """One step of a finished episode, with the states before and after it.

    `previous_state` is None at the first step; `next_state` is None at the last one if the episode's final state is not
    known.
    """

    step: Step
    index: int
    previous_state: str | None
    next_state: str | None
    episode: Episode

    def text(self, field: str) -> str | None:
        """Return the text of a field that a pattern can search."""
        texts = {
            "action": self.step.action,
            "next_state": self.next_state,
            "previous_state": self.previous_state,
            "state": self.step.state,
        }
        return texts[field]


_FIELDS = ("action", "next_state", "previous_state", "state")


@dataclass(frozen=True, slots=True)
class Rule:
    """A reward for every step that fulfils a condition.

    Args:
        name: describes the rule; unique within a judge.
        when: a function of the `RuleContext` that returns a bool, or a regular expression for each field (`state`,
            `action`, `next_state`, `previous_state`); all of them must be found. An unknown text matches nothing.
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
            for field, pattern in self.when.items():
                _check_field_pattern(self.name, field, pattern)
            object.__setattr__(self, "when", dict(self.when))
        elif not callable(self.when):
            raise InputError(
                f"rule {self.name!r}, when = {excerpt(self.when)}",
                "when must be a function of a RuleContext, or patterns by field",
                'Try {"action": "buy"}.',
            )

    def applies(self, context: RuleContext) -> bool:
        """Return whether the step fulfils the condition.

        Raises:
            InputError: the rule's function did not return a bool.
        """
        if isinstance(self.when, Mapping):
            texts = {field: context.text(field) for field in self.when}
            return all(text is not None and re.search(self.when[field], text) for field, text in texts.items())
        applies: object = self.when(context)
        if not isinstance(applies, bool):
            raise InputError(
                f"rule {self.name!r} returned {excerpt(applies)} at step {context.index}",
                "a rule's function must return a bool",
                "Wrap its return value in bool(...).",
            )
        return applies


class RuleJudge:
    """Scores an episode by rules. Rewards of several rules for one step add up; other steps have no reward.

    Args:
        rules: at least one, with unique names.
        source: recorded with every reward.

    Raises:
        InputError: no rules, two with one name, or a value that is not a Rule.

    Example:
        >>> judge = RuleJudge([Rule("paid", {"action": "confirm"}, 1.0), Rule("any step", lambda context: True, -0.1)])
        >>> judge.score(Episode("checkout", [Step("cart", "click(pay)"), Step("pay", "click(confirm)")]))
        {0: -0.1, 1: 0.9}
    """

    def __init__(self, rules: Iterable[Rule], *, source: str = "rules") -> None:
        check_instance("rules", rules, Iterable, "rules must be a list of Rule", "Pass [rule] for one.")
        self._rules = tuple(rules)
        self._source = check_text("source", source)
        if not self._rules:
            raise InputError("rules = []", "a judge needs at least one rule", "Add one, or leave the judge out.")
        names: set[str] = set()
        for rule in self._rules:
            check_instance("rule", rule, Rule, next_step="Build it with Rule(...).")
            if rule.name in names:
                raise InputError(f"two rules called {rule.name!r}", "names must be unique", "Rename one of them.")
            names.add(rule.name)

    @property
    def source(self) -> str:
        """Recorded with every reward."""
        return self._source

    def score(self, episode: Episode) -> dict[int, float]:
        """Return the sum of the rewards by step index, for the steps that fulfil a rule.

        Raises:
            InputError: a rule's function did not return a bool, or a sum is out of range.
        """
        rewards: dict[int, float] = {}
        for context in _contexts(episode):
            applying = [rule.reward for rule in self._rules if rule.applies(context)]
            if applying:
                rewards[context.index] = check_reward(f"sum of rewards of step {context.index}", sum(applying))
        return rewards

    def explain(self, episode: Episode) -> dict[int, tuple[str, ...]]:
        """Return the names of the rules that apply, by step index.

        Raises:
            InputError: a rule's function did not return a bool.
        """
        named = {m.index: tuple(rule.name for rule in self._rules if rule.applies(m)) for m in _contexts(episode)}
        return {index: names for index, names in named.items() if names}


def _contexts(episode: Episode) -> list[RuleContext]:
    states = [None, *(step.state for step in episode.steps), episode.final_state]
    return [RuleContext(step, i, states[i], states[i + 2], episode) for i, step in enumerate(episode.steps)]


def _check_field_pattern(rule: str, field: str, pattern: str) -> None:
    if field not in _FIELDS:
        raise InputError(
            f"rule {rule!r}, field {excerpt(field)}",
            f"a pattern searches one of {', '.join(_FIELDS)}",
            suggest(str(field), _FIELDS),
        )
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InputError(
            f"rule {rule!r}, {field} = {excerpt(pattern)} ({error})",
            "a pattern must be a regular expression",
            "Escape literal text with re.escape.",
        ) from None
