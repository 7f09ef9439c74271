"""Address, key and prices of a model's endpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from seasoned.checks import check_number
from seasoned.errors import ConfigError, excerpt

__all__ = ["TokenPrices", "checked_url", "found_key"]

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104


def checked_url(url: str, such_as: str) -> str:
    """Return a base URL without slashes at its end.

    Args:
        url: to check.
        such_as: a right one, for the message.

    Raises:
        ConfigError: it is no http(s) URL with a host.

    Example:
        >>> checked_url("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1")
        'http://127.0.0.1:8080/v1'
    """
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # such as an open bracket
        is_right = False
    if not is_right:
        raise ConfigError(f"base_url = {excerpt(url)}", "base_url is an http(s) URL", f"Use one such as {such_as}.")
    return url.rstrip("/")


def found_key(base_url: str, api_key: str | None, variables: Sequence[str]) -> str:
    """Return the key of an endpoint: as given, else from the environment; "none" for a server on this machine.

    Args:
        base_url: of the endpoint.
        api_key: as given.
        variables: of the environment, the first that is set counts; the message names the last.

    Raises:
        ConfigError: there is none, and the server is on another machine.

    Example:
        >>> found_key("http://127.0.0.1:8080/v1", None, ["SEASONED_DOCTEST_KEY"])
        'none'
    """
    key = api_key or next(filter(None, map(os.environ.get, variables)), None)
    if key is None and urlsplit(base_url).hostname in _LOCAL_HOSTS:
        return "none"
    if key is None:
        rule = "a server that is not on this machine needs a key"
        raise ConfigError(f"no key for {base_url}", rule, f"Set {variables[-1]}.")
    return key


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """Prices in USD per million tokens; None: unknown.

    Raises:
        InputError: a price is no number from 0 on.

    Example:
        >>> TokenPrices(3.0, 15.0).cost_usd(1000, 100), TokenPrices(3.0, None).cost_usd(1000, 100)
        (0.0045, None)
    """

    prompt_usd: float | None
    completion_usd: float | None

    def __post_init__(self) -> None:
        for price in (self.prompt_usd, self.completion_usd):
            if price is not None:
                check_number("price in USD per million tokens", price, at_least=0)

    def cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return what tokens cost; None if a price is unknown."""
        if self.prompt_usd is None or self.completion_usd is None:
            return None
        return (prompt_tokens * self.prompt_usd + completion_tokens * self.completion_usd) / 1e6
