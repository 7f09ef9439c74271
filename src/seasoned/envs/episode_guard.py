"""Whose turn it is: the order of calls, the step limit and the score, kept once for every environment here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from seasoned.checks import check_number
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Observation
from seasoned.types import normalize_action

__all__ = ["Turns", "check_whole"]


def check_whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return `value` if it is an int (and not a bool) in [low, high].

    Raises:
        InputError: it is something else.

    Example:
        >>> check_whole("max_steps", 50, 1)
        50
    """
    in_range = isinstance(value, int) and not isinstance(value, bool) and low <= value <= (high or value)
    if not in_range or not isinstance(value, int):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} = {excerpt(value)}", f"{name} is a whole number, {limits}", f"Try {name}={low}.")
    return value


class Turns:
    """Keeps the turns of one environment.

    The end is `terminated` or `truncated`, never both: a step that ends the task on the limit is terminated.

    Args:
        max_steps: the episode is truncated after this many steps; None for no limit.

    Example:
        >>> turns = Turns(max_steps=1)
        >>> turns.begin("a door", ["open it"]).admissible
        ('open it',)
        >>> turns.take("Open  it")
        'open it'
        >>> turns.show("a hall", ["walk on"], reward=1.0, terminated=False).truncated
        True
    """

    def __init__(self, max_steps: int | None) -> None:
        self._max_steps = None if max_steps is None else check_whole("max_steps", max_steps, 1)
        self._steps = 0
        self._score = 0.0
        self._admissible: tuple[str, ...] = ()
        self._status = "not begun"

    def begin(self, state: str, admissible: Iterable[str]) -> Observation:
        """Start an episode and return its first observation.

        Raises:
            EnvError: the environment was closed.
        """
        self.check_open()
        self._steps, self._score, self._status = 0, 0.0, "running"
        self._admissible = tuple(admissible)
        return Observation(state, self._admissible)

    def take(self, action: str, *, free_text: bool = False) -> str:
        """Return the admissible action that `action` spells, up to case and blanks.

        Raises:
            EnvError: no episode is running, or the action is not admissible now (unless `free_text`).
        """
        self.check_open()
        if self._status != "running":
            raise EnvError(
                f"step({excerpt(action)}) while the episode has {self._status}",
                "a step follows reset, and none follows the end",
                "Call reset first.",
            )
        if not isinstance(action, str):
            raise EnvError(f"action = {excerpt(action)}", "an action is a str", "Pass one of the admissible actions.")
        known = {normalize_action(text): text for text in self._admissible}
        key = normalize_action(action)
        if key in known:
            return known[key]
        if free_text and key and action.isprintable():
            return action.strip()
        close = difflib.get_close_matches(key, known, n=3, cutoff=0.4) or list(known)[:5]
        raise EnvError(
            f"action {excerpt(action)}",
            f"it is not one of the {len(known)} actions that are admissible now",
            f"Close ones are: {', '.join(known[match] for match in close)}.",
        )

    def show(self, state: str, admissible: Iterable[str], *, reward: float, terminated: bool) -> Observation:
        """Return what followed the action: the limit applied, the score added up, no actions after the end."""
        self._steps += 1
        reward = check_number("reward", reward)
        self._score += reward
        truncated = not terminated and self._max_steps is not None and self._steps >= self._max_steps
        ended = terminated or truncated
        self._admissible = () if ended else tuple(admissible)
        self._status = "ended" if ended else "running"
        return Observation(state, self._admissible, reward, terminated, truncated, self._score)

    def close(self) -> None:
        """Refuse every later call."""
        self._status = "closed"

    def check_open(self) -> None:
        """Raise if the environment was closed.

        Raises:
            EnvError: it was.
        """
        if self._status == "closed":
            raise EnvError("a call after aclose", "a closed environment cannot be played", "Open it again.")
