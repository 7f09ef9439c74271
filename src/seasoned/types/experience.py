"""What was experienced, and what memory knows about it.

Rewards and returns are in reward units. `reward` follows `action`, taken in `state`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from seasoned.errors import InputError, excerpt

__all__ = [
    "MAX_INT_BITS",
    "Ending",
    "Episode",
    "Experience",
    "Neighbor",
    "Step",
    "check_finite",
    "check_int",
    "check_logprobs",
    "check_reward",
    "check_text",
    "normalize_action",
]

Ending = Literal["terminated", "truncated", "aborted"]
"""How an episode ended: the task was over, it was cut off by a limit, or it broke off (kept, never retrieved)."""

MAX_INT_BITS = 2048
"""How many bits a whole number has at most: it must be writable as JSON, and Python refuses to write longer ones."""

_LOGPROB_ROUNDING_NATS = 1e-9
_MAX_REWARD = 1e100


def _a(name: str) -> str:
    """The name with its article."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def check_text(name: str, text: object) -> str:
    """Return `text` if it can be stored and compared: a str, not blank, encodable as UTF-8.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_text("state", "page:cart")
        'page:cart'
    """
    if not isinstance(text, str):
        raise InputError(
            f"{name} = {excerpt(text)}", f"{_a(name)} is a str, not {type(text).__name__}", "Convert it first."
        )
    if not text or text.isspace():
        raise InputError(f"{name} = {excerpt(text)}", f"{_a(name)} is not empty or blank", f"Say what the {name} is.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} has a lone surrogate {text[error.start]!r} at character {error.start}",
            f"{_a(name)} is text that UTF-8 can encode",
            "Decode the bytes it came from with errors='replace'.",
        ) from None
    return text


def check_finite(name: str, value: object) -> float:
    """Return `value` as a float if it is a finite number (and not a bool); -0.0 becomes 0.0.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_finite("reward", 1)
        1.0
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(
            f"{name} = {excerpt(value)}", f"{_a(name)} is a number, not {type(value).__name__}", "Convert it."
        )
    if isinstance(value, int):
        check_int(name, value)
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} = {excerpt(value)}", f"{_a(name)} is finite", "Find out where it was computed.")
    return number


def check_int(name: str, value: object) -> int:
    """Return `value` as an int if it is a whole number (and not a bool) of at most 2,048 bits.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_int("exit code", -9)
        -9
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} = {excerpt(value)}", f"{_a(name)} is a whole number", "Pass an int.")
    if int(value).bit_length() > MAX_INT_BITS:
        raise InputError(
            f"{name} of {int(value).bit_length()} bits",
            f"a whole number has at most {MAX_INT_BITS} bits",
            "Keep it as a text.",
        )
    return int(value)


def check_reward(name: str, value: object) -> float:
    """Return `value` as a float if it is a reward: finite, and at most 1e100 in size, so that its square is finite too.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_reward("reward", -1)
        -1.0
    """
    number = check_finite(name, value)
    if abs(number) > _MAX_REWARD:
        raise InputError(
            f"{name} = {number}", f"{_a(name)} is between -{_MAX_REWARD:g} and {_MAX_REWARD:g}", "Scale it."
        )
    return number


def check_logprobs(name: str, logprobs: object) -> dict[str, float]:
    """Return a copy of `logprobs` if it maps one action or more to logprobs: finite, at most 0, in nats.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_logprobs("prior", {"click(pay)": -0.5})
        {'click(pay)': -0.5}
    """
    if not isinstance(logprobs, Mapping) or not logprobs:
        raise InputError(
            f"{name} = {excerpt(logprobs)}", f"{_a(name)} maps actions to logprobs", "Pass a dict, or None."
        )
    checked = {
        check_text(f"action in the {name}", action): check_finite(f"{name}[{action!r}]", logprob)
        for action, logprob in logprobs.items()
    }
    for action, logprob in checked.items():
        if logprob > _LOGPROB_ROUNDING_NATS:
            raise InputError(
                f"{name}[{action!r}] = {logprob}",
                "a logprob is at most 0",
                "Turn logits into logprobs first: seasoned.core.log_softmax.",
            )
    return checked


def normalize_action(text: str) -> str:
    """Return the key under which two spellings of an action are the same action: blanks collapsed, case folded.

    Example:
        >>> normalize_action("  Go   NORTH ")
        'go north'
    """
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True)
class Step:
    """One executed step: `action` was taken in `state`, and `reward` followed.

    Args:
        state: what the agent saw, as text.
        action: what it did, as text.
        reward: the environment's reward, finite, in reward units.
        prior: the model's logprobs over the candidates (each <= 0, in nats), if known.
        propensity: the probability, in (0, 1], with which the action was taken, if known.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> Step(state="page:pay", action="click(confirm)", reward=1.0).reward
        1.0
    """

    state: str
    action: str
    reward: float = 0.0
    prior: Mapping[str, float] | None = None
    propensity: float | None = None

    def __post_init__(self) -> None:
        check_text("state", self.state)
        check_text("action", self.action)
        object.__setattr__(self, "reward", check_reward("reward", self.reward))
        if self.prior is not None:
            object.__setattr__(self, "prior", check_logprobs("prior", self.prior))
        if self.propensity is not None:
            propensity = check_finite("propensity", self.propensity)
            if not 0.0 < propensity <= 1.0:
                raise InputError(
                    f"propensity = {propensity}",
                    "a propensity is a probability in (0, 1]",
                    "Pass None if it is unknown.",
                )
            object.__setattr__(self, "propensity", propensity)


@dataclass(frozen=True, slots=True)
class Episode:
    """One run of a task: its steps in order, and how it ended.

    Args:
        task: what was attempted; episodes of one task share it.
        steps: the executed steps, at least one (an aborted episode may have none).
        id: the caller's key; adding the same id and content again is a no-op. None: the memory makes one.
        final_state: what the agent saw after the last step.
        ending: `terminated`, `truncated` (by a limit) or `aborted` (kept, never retrieved).
        model, policy, arm: provenance.
        subject: the person whom the episode is about, so that it can be erased by subject.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> len(Episode(task="checkout", steps=[Step("page:pay", "click(confirm)", 1.0)]).steps)
        1
    """

    task: str
    steps: Sequence[Step]
    id: str | None = None
    final_state: str | None = None
    ending: Ending = "terminated"
    model: str | None = None
    policy: str | None = None
    arm: str | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        check_text("task", self.task)
        for name in ("id", "final_state", "model", "policy", "arm", "subject"):
            if (value := getattr(self, name)) is not None:
                check_text(name, value)
        if self.ending not in get_args(Ending):
            raise InputError(
                f"ending = {excerpt(self.ending)}",
                f"an ending is one of {', '.join(get_args(Ending))}",
                "Use 'truncated' when a step limit cut the episode off.",
            )
        steps: object = self.steps
        if isinstance(steps, str | bytes) or not isinstance(steps, Sequence):
            raise InputError(f"steps = {excerpt(steps)}", "steps are a list of Step", "Pass a list.")
        object.__setattr__(self, "steps", tuple(self.steps))
        for index, step in enumerate(self.steps):
            if not isinstance(step, Step):
                raise InputError(
                    f"steps[{index}] = {excerpt(step)}", "every step is a Step", "Build it with Step(...)."
                )
        if not self.steps and self.ending != "aborted":
            raise InputError(
                "steps = []", "a finished episode has at least one step", "Record a step, or mark it aborted."
            )


@dataclass(frozen=True, slots=True)
class Experience:
    """One stored step with what followed it.

    `reward` is the environment's reward plus the weighted sum of the unrevoked feedback on the step; `return_` is the
    discounted sum of such rewards from this step to the end of its episode.

    Example:
        >>> Experience("page:pay", "click(confirm)", 1.0, 1.0, "e1", 0, "checkout").return_
        1.0
    """

    state: str
    action: str
    reward: float
    return_: float
    episode_id: str
    step: int
    task: str


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A stored step and how similar its state is to the query: Jaccard, in [0, 1].

    Example:
        >>> seen = Experience("page:pay", "click(confirm)", 1.0, 1.0, "e1", 0, "checkout")
        >>> Neighbor(seen, similarity=0.8).similarity
        0.8
    """

    experience: Experience
    similarity: float
