"""What a damaged store makes of our own code, told as what it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from seasoned.errors import InputError, IntegrityError, SeasonedError

__all__ = ["EncoderFailedError", "carrying", "naming_damage"]


class EncoderFailedError(BaseException):
    """Carries what an encoder raised past everything that would take it for damage; the store may be whole."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(reason)
        self.reason = reason


def carrying(features: Callable[[str], frozenset[str]]) -> Callable[[str], frozenset[str]]:
    """Return an encoder's function that raises EncoderFailedError where it fails."""

    def encode(text: str) -> frozenset[str]:
        try:
            return features(text)
        except Exception as error:
            raise EncoderFailedError(error) from error

    return encode


@contextlib.contextmanager
def naming_damage(path: str) -> Iterator[None]:
    """Turn what goes wrong with rows that we wrote, and cannot make sense of, into an IntegrityError.

    Only around what reads and interprets rows: nothing that a caller gave is called inside, but an encoder that is
    `carrying`.
    """
    try:
        yield
    except SeasonedError as error:
        if not isinstance(error, InputError):
            raise
        raise _damage(path, error) from error
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise _damage(path, error) from error


def _damage(path: str, error: Exception) -> IntegrityError:
    return IntegrityError(
        f"{path}: rows that make no sense ({type(error).__name__}: {str(error)[:200]})",
        "what is stored must be readable as it was written",
        "Run `seasoned memory verify`; restore a backup, or export what can still be read.",
    )
