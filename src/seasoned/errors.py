"""Every error that seasoned raises on purpose, as one tree.

Each is raised with three sentences: the value that was seen, the rule that it broke, and the next step.

    SeasonedError
    ├── InputError (ValueError)        a value that the caller passed breaks a rule; nothing was written
    ├── NotFoundError (LookupError)    the episode, step or event named does not exist
    ├── ConfigError                    a setting, a name or an installation is wrong
    │   ├── UnknownNameError           a name that no registry knows ("did you mean ...")
    │   └── MissingExtraError          an optional part is not installed (says the install line)
    ├── StoreError                     the memory's file or server
    │   ├── ForeignStoreError          the file is not a seasoned store
    │   ├── NewerStoreError            the store was written by a newer seasoned
    │   ├── StoreBusyError             another process held the lock for too long
    │   ├── StoreFullError             the disk is full; the transaction was rolled back
    │   ├── ReadOnlyStoreError         the store cannot be written
    │   ├── EncoderMismatchError       the namespace was encoded by another encoder
    │   ├── EpisodeConflictError       this episode id is already stored with other content
    │   └── IntegrityError             what is stored disagrees with itself
    ├── ModelError                     the language model or its endpoint
    │   ├── ModelUnavailableError      down, refused, or failing after all retries
    │   ├── ModelTimeoutError          did not answer in time
    │   ├── RateLimitError             told us to slow down until the retries ran out
    │   └── ModelAnswerError           answered, but with something that cannot be used
    └── EnvError                       the environment failed, or was used out of turn
"""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "EncoderMismatchError",
    "EnvError",
    "EpisodeConflictError",
    "ForeignStoreError",
    "InputError",
    "IntegrityError",
    "MissingExtraError",
    "ModelAnswerError",
    "ModelError",
    "ModelTimeoutError",
    "ModelUnavailableError",
    "NewerStoreError",
    "NotFoundError",
    "RateLimitError",
    "ReadOnlyStoreError",
    "SeasonedError",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "UnknownNameError",
    "counted",
    "excerpt",
]


class SeasonedError(Exception):
    """The root: what was seen, the rule, and what to do next.

    Example:
        >>> print(SeasonedError("k = 0", "k is at least 1", "Ask for one neighbour or more."))
        k = 0: k is at least 1. Ask for one neighbour or more.
    """

    def __init__(self, seen: str, rule: str, next_step: str) -> None:
        super().__init__(seen, rule, next_step)
        self.seen = seen
        self.rule = rule
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.seen}: {self.rule}. {self.next_step}"


class InputError(SeasonedError, ValueError):
    """A value that the caller passed breaks a rule; nothing was written."""


class NotFoundError(SeasonedError, LookupError):
    """The episode, step, event or file named does not exist."""


class ConfigError(SeasonedError):
    """A setting, a name or an installation is wrong."""


class UnknownNameError(ConfigError, LookupError):
    """A name that no registry knows."""


class MissingExtraError(ConfigError, ImportError):
    """An optional part is not installed; the message carries the install line."""


class StoreError(SeasonedError):
    """The memory's file or server failed."""


class ForeignStoreError(StoreError):
    """The file is not a seasoned store; it was left untouched."""


class NewerStoreError(StoreError):
    """The store was written by a newer seasoned; it was left untouched."""


class StoreBusyError(StoreError):
    """Another process held the store's lock for too long; nothing was written."""


class StoreFullError(StoreError):
    """The disk is full; the transaction was rolled back, earlier episodes are safe."""


class ReadOnlyStoreError(StoreError):
    """The store cannot be written."""


class EncoderMismatchError(StoreError):
    """The namespace was encoded by another encoder; features of two encoders are never mixed."""


class EpisodeConflictError(StoreError):
    """This episode id is already stored with other content."""


class IntegrityError(StoreError):
    """What is stored disagrees with itself."""


class ModelError(SeasonedError):
    """The language model or its endpoint failed."""


class ModelUnavailableError(ModelError):
    """The endpoint is down, refuses, or failed after all retries."""


class ModelTimeoutError(ModelError):
    """The endpoint did not answer in time."""


class RateLimitError(ModelError):
    """The endpoint told us to slow down until the retries ran out."""


class ModelAnswerError(ModelError):
    """The endpoint answered with something that cannot be used."""


class EnvError(SeasonedError):
    """The environment failed, or was used out of turn."""


def counted(n: int, what: str) -> str:
    """A number and what it counts.

    Example:
        >>> counted(1, "step"), counted(2, "step")
        ('1 step', '2 steps')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def excerpt(value: object, limit_chars: int = 80) -> str:
    """A value as an error message shows it: its repr, cut to `limit_chars` characters.

    Example:
        >>> excerpt("x" * 200, 10)
        "'xxxxxx..."
    """
    try:
        text = repr(value[: limit_chars + 1] if isinstance(value, str) else value)
    except ValueError:  # an integer of more digits than Python writes
        text = f"<{type(value).__name__} too long to write>"
    return text if len(text) <= limit_chars else text[: limit_chars - 3] + "..."
