"""Rules that give rewards for what a transcript shows: errors, exit codes, test summaries, statuses, texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from seasoned.actions import tool_name
from seasoned.checks import check_items, check_number, check_one_of, check_text, check_texts, suggest
from seasoned.errors import InputError, excerpt
from seasoned.integrations.field_rules import MISSING
from seasoned.integrations.rewards.bounded_pattern import BoundedPattern
from seasoned.integrations.rewards.called_commands import reports_tests
from seasoned.integrations.rewards.foreign_scores import ScoreScale
from seasoned.integrations.rewards.result_values import ShownResult
from seasoned.integrations.rewards.suite_summaries import FRAMEWORKS, suite_counts
from seasoned.integrations.step_results import StepResult, ToolResult
from seasoned.types import Outcome

__all__ = ["DEFAULT_SOURCE", "Counting", "Reads", "RewardEvent", "RewardRule", "RewardRules"]

Reads = Literal["text", "error", "exit_code", "http_status", "tests"]
"""What a rule reads of a result."""

Counting = Literal["each", "last"]
"""Which of the results that a rule matches in one episode give a reward."""

DEFAULT_SOURCE = "rules"
_NUMBERS = ("exit_code", "http_status")
_CONDITIONS = ("pattern", "equals", "not_equals", "at_least", "at_most")
_MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class RewardEvent:
    """A reward that a rule gives for the result of a call.

    Args:
        rule: name of the rule.
        source: recorded with the feedback.
        feedback: an `Outcome` of tests, else a reward in [-1, 1].
        weight: factor of the reward.
        step: index of the step in its episode; None if there is none yet.
    """

    rule: str
    source: str
    feedback: Outcome | float
    weight: float = 1.0
    step: int | None = None

    @property
    def reward(self) -> float:
        """The reward of the call, in [-1, 1], before `weight`."""
        if isinstance(self.feedback, Outcome):
            return self.feedback.rewards(None).executed or 0.0
        return self.feedback


@dataclass(frozen=True, slots=True)
class RewardRule:
    r"""A reward for each tool result that fulfils a condition.

    | `reads` | of a result | conditions |
    |---|---|---|
    | `text` | the text; with `field`, the value at that path of a JSON result | `pattern`, or of a value the others |
    | `error` | whether the message is marked as an error, or says so | none |
    | `exit_code` | the exit code of a command | `equals`, `not_equals`, `at_least`, `at_most`, or none |
    | `http_status` | the status of a response | the same |
    | `tests` | the summary of a test run, by one of `frameworks` | none |

    A call that does nothing but show a text, such as `cat error.log`, has no exit code and no status, and an error only
    where the message is marked as one. Of a call that runs a command, tests are read if it runs tests and prints
    nothing else, or if `action` says which commands are meant. Tests that all passed, with another exit code than 0,
    are none.

    Args:
        name: describes the rule; unique in its file.
        reads: what is read of the result.
        tools: names of tools, in which `*` stands for any characters; empty: every tool. Of an action that is a plain
            command, the first word is the name.
        field: a path of fields in a JSON result, `response.state`.
        pattern: a `BoundedPattern` that occurs in the text.
        equals, not_equals: a number, a text, or true and false.
        at_least, at_most: of a number.
        frameworks: names of test tools; empty: all.
        action: a `BoundedPattern` that occurs in the call.
        reward: in [-1, 1]; that of tests is `2 passed / total - 1`, so they have none here.
        weight: factor of the reward, above 0 and at most 1,000.
        source: recorded with the feedback.
        counts: `each` result that matches gives the reward, or the `last` one of an episode.

    Raises:
        InputError: a value breaks one of these rules, or a condition does not fit `reads`.

    Example:
        >>> rule = RewardRule("declined", tools=("charge",), field="state", pattern="declined|expired", reward=-1.0)
        >>> rule.event("charge({})", ShownResult(ToolResult("charge", '{"state": "declined"}'))).reward
        -1.0
    """

    name: str
    reads: Reads = "text"
    tools: tuple[str, ...] = ()
    field: str | None = None
    pattern: str | None = None
    equals: float | str | bool | None = None
    not_equals: float | str | bool | None = None
    at_least: float | None = None
    at_most: float | None = None
    frameworks: tuple[str, ...] = ()
    action: str | None = None
    reward: float | None = None
    weight: float = 1.0
    source: str = DEFAULT_SOURCE
    counts: Counting = "each"
    _pattern: BoundedPattern | None = dataclasses.field(init=False, default=None, repr=False, compare=False)
    _action: BoundedPattern | None = dataclasses.field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_text("name of a rule", self.name)
        try:
            self._check()
        except InputError as error:
            raise InputError(f"rule {excerpt(self.name)}: {error.seen}", error.rule, error.next_step) from None

    def _check(self) -> None:
        check_one_of("reads", self.reads, get_args(Reads))
        check_one_of("counts", self.counts, get_args(Counting))
        check_text("source", self.source)
        for name in ("tools", "frameworks"):
            object.__setattr__(self, name, check_texts(name, getattr(self, name)))
        for known in self.frameworks:
            if known not in FRAMEWORKS:
                raise InputError(
                    f"framework {excerpt(known)}", "no summary of this name is read", suggest(known, FRAMEWORKS)
                )
        object.__setattr__(self, "weight", check_number("weight", self.weight, above=0.0, at_most=1000.0))
        self._check_values()
        self._check_conditions()
        self._check_reward()
        for name in ("pattern", "action"):
            if (pattern := getattr(self, name)) is not None:
                object.__setattr__(self, f"_{name}", BoundedPattern(pattern))

    def _check_values(self) -> None:
        for name in ("at_least", "at_most", "equals", "not_equals"):
            value = getattr(self, name)
            if value is not None and (name.startswith("at_") or not isinstance(value, bool | str)):
                object.__setattr__(self, name, check_number(name, value))
        if self.field is not None:
            check_text("field", self.field)

    def _check_reward(self) -> None:
        if self.reads != "tests":
            if self.reward is None:
                raise InputError("no reward", "a rule gives a reward from -1 to 1", "Add one: reward = -0.5.")
            object.__setattr__(self, "reward", check_number("reward", self.reward, -1.0, 1.0))
        elif self.reward is not None:
            raise InputError(
                f"reward = {excerpt(self.reward)}",
                "the reward of tests is 2 passed / total - 1",
                "Leave it out, and set weight.",
            )

    def _check_conditions(self) -> None:
        given = [name for name in _CONDITIONS if getattr(self, name) is not None]
        possible: Sequence[str] = ()
        if self.reads == "text":
            possible = ("pattern",) if self.field is None else _CONDITIONS
        elif self.reads in _NUMBERS:
            possible = _CONDITIONS[1:]
        wrong = [name for name in given if name not in possible]
        wrong += ["field"] if self.field is not None and self.reads != "text" else []
        wrong += ["frameworks"] if self.frameworks and self.reads != "tests" else []
        if wrong:
            fits = f"a rule that reads {self.reads} has {', '.join(possible) or 'no condition'}"
            needs_field = self.reads == "text" and self.field is None
            next_step = "Name the field of a JSON result." if needs_field else "Leave it out."
            raise InputError(f"{wrong[0]} = {excerpt(getattr(self, wrong[0]))}", fits, next_step)
        if self.reads == "text" and not given:
            raise InputError("no condition", f"a rule that reads text has {', '.join(possible)}", "Add one.")

    def event(self, action: str, shown: ShownResult, tool: str = "") -> RewardEvent | None:
        """Return the reward for a call's result; None if the rule does not match.

        Args:
            action: the call.
            shown: its result.
            tool: name of the tool, where the call does not tell.
        """
        name = (tool_name(action) or tool or action.partition(" ")[0].strip())[:_MAX_NAME_CHARS]
        if self.tools and not any(fnmatchcase(name, each) for each in self.tools):
            return None
        if self._action is not None and not self._action.finds(action[: 1 << 16]):
            return None
        if self.reads == "tests":
            if self._action is None and not reports_tests(action):
                return None
            counts = suite_counts(shown.output, self.frameworks)
            if counts is None or (counts.passed == counts.total and shown.exit_code not in (None, 0)):
                return None
            said = f"{counts.framework}: {counts.passed} of {counts.total} passed"
            return self._of(Outcome(passed=counts.passed, total=counts.total, comment=said))
        return self._of(self.reward or 0.0) if self._matches(shown) else None

    def _of(self, feedback: Outcome | float) -> RewardEvent:
        return RewardEvent(self.name, self.source, feedback, self.weight)

    def _matches(self, shown: ShownResult) -> bool:
        if self.reads == "error":
            return shown.is_error
        if self.reads in _NUMBERS:
            value = shown.exit_code if self.reads == "exit_code" else shown.http_status
            return value is not None and self._fits(value)
        if self.field is None:
            return self._fits(shown.text)
        value = shown.field(self.field)
        return value is not MISSING and self._fits(value)

    def _fits(self, value: Any) -> bool:
        if self._pattern is not None and not (isinstance(value, str) and self._pattern.finds(value)):
            return False
        if self.equals is not None and not _equal(value, self.equals):
            return False
        if self.not_equals is not None and _equal(value, self.not_equals):
            return False
        if self.at_least is None and self.at_most is None:
            return True
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


def _equal(value: Any, stated: object) -> bool:
    """Return whether a value is the stated one; true is not 1."""
    return isinstance(value, bool) == isinstance(stated, bool) and bool(value == stated)


class RewardRules:
    """Rules in their order, as of one file (`rules_file.load_rules`): the first that matches a result gives its reward.

    Args:
        rules: with unique names.
        scores: how scores of other systems are read (`foreign_scores`), with unique names.

    Raises:
        InputError: there is neither rule nor scale, a value is none, or two have one name.

    Example:
        >>> rules = RewardRules([RewardRule("failed", reads="error", reward=-0.5), RewardRule("tests", reads="tests")])
        >>> rules.event('sh({"cmd":"make"})', ToolResult("sh", "Error: no rule")).reward
        -0.5
    """

    def __init__(self, rules: Iterable[RewardRule], scores: Iterable[ScoreScale] = ()) -> None:
        self.rules = check_items("rules", tuple(rules), RewardRule, next_step="Pass [RewardRule(...)].")
        scales = check_items("scores", tuple(scores), ScoreScale, next_step="Pass [ScoreScale(...)].")
        if not self.rules and not scales:
            raise InputError("rules = []", "there is at least one rule", "Add one.")
        for kind, names in (("rules", [one.name for one in self.rules]), ("scores", [one.name for one in scales])):
            for name in names:
                if names.count(name) > 1:
                    raise InputError(f"two {kind} called {excerpt(name)}", "names are unique", "Rename one of them.")
        self.scores = {scale.name: scale for scale in scales}

    def event(self, action: str, result: ToolResult) -> RewardEvent | None:
        """Return the reward for a call's result; None if no rule matches."""
        found = self._first(action, result)
        return None if found is None else found[1]

    def episode_events(self, results: Iterable[StepResult]) -> list[RewardEvent]:
        """Return the rewards for the results of an episode's calls, in the order of the steps.

        Of the results that a rule with `counts = "last"` matches, the last one alone gives its reward. Of several
        results of one step, the last that a rule matches.
        """
        found: dict[tuple[str, int | None], RewardEvent] = {}
        for one in results:
            if (match := self._first(one.action, one.result)) is not None:
                rule, event = match
                found[rule.name, None if rule.counts == "last" else one.step] = replace(event, step=one.step)
        return sorted(found.values(), key=lambda event: event.step or 0)

    def _first(self, action: str, result: ToolResult) -> tuple[RewardRule, RewardEvent] | None:
        shown = ShownResult(result, action)
        for rule in self.rules:
            if (event := rule.event(action, shown, result.tool)) is not None:
                return rule, event
        return None
