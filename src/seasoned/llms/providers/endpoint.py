"""What every model behind a network has in common: attempts and waits, and being probed once, at a price."""

from __future__ import annotations

import abc
import asyncio
import email.utils
import math
import random
import time
from dataclasses import replace
from typing import Any

from seasoned.checks import check_number
from seasoned.errors import (
    ConfigError,
    InputError,
    ModelError,
    ModelTimeoutError,
    ModelUnavailableError,
    RateLimitError,
    excerpt,
)
from seasoned.llms.wire.capability_probe import probe
from seasoned.llms.wire.chat_completions import check_request
from seasoned.protocols import Capabilities, Completion, CompletionRequest, Usage

__all__ = ["Endpoint", "backoff_s"]

_FIRST_WAIT_S = 0.5


class Endpoint(abc.ABC):
    """A model that is asked over a network.

    Tried again: what `_translated` calls down, late or rate limited. The wait before retry n (from 0) is drawn
    uniformly from [w/2, w], w = min(retry_ceiling_s, 0.5 * 2^n) seconds; `Retry-After` replaces it, under the same
    ceiling.

    `probe_usage` is what finding out its capabilities cost; None as long as nobody asked.

    Args:
        timeout_s: limit of one attempt, in seconds.
        max_retries: attempts after the first.
        retry_ceiling_s: the longest wait between two attempts, in seconds.

    Raises:
        InputError: a number is outside its range.
    """

    def __init__(self, timeout_s: float, max_retries: int, retry_ceiling_s: float) -> None:
        for label, value, least in (("timeout_s", timeout_s, 1e-3), ("retry_ceiling_s", retry_ceiling_s, 0.0)):
            if check_number(label, value) < least:
                raise InputError(f"{label} = {value}", f"it is at least {least:g}", "Pass a larger number.")
        if isinstance(max_retries, bool) or not isinstance(max_retries, int) or max_retries < 0:
            raise InputError(f"max_retries = {excerpt(max_retries)}", "it is a whole number >= 0", "Use 0 for none.")
        self._timeout_s = float(timeout_s)
        self._max_retries = max_retries
        self._retry_ceiling_s = float(retry_ceiling_s)
        self._capabilities: Capabilities | None = None
        self.probe_usage: Usage | None = None

    @abc.abstractmethod
    async def _send(self, request: CompletionRequest) -> Any:
        """One attempt: what the client's library returns."""

    @abc.abstractmethod
    def _read(self, raw: Any, request: CompletionRequest) -> Completion:
        """The answer in it, with its usage but for `latency_s`."""

    @abc.abstractmethod
    def _translated(self, error: Exception, attempts: int) -> ModelError | ConfigError | None:
        """The library's error as one of ours; None: it is none of the library's, and passes."""

    @abc.abstractmethod
    def _retry_after(self, error: Exception) -> str | None:
        """The `Retry-After` header of the answer that was an error."""

    async def capabilities(self) -> Capabilities:
        """Return what the endpoint can do; probed with a few tiny requests, once (`probe_usage`).

        Raises:
            ModelError: the endpoint could not be asked.
        """
        if self._capabilities is None:
            spent = Usage()

            async def counted(request: CompletionRequest) -> Completion:
                nonlocal spent
                try:
                    answer = await self.complete(request)
                except ModelError as error:  # one that was refused made no tokens; of others nobody knows
                    spent += Usage(calls=1, cost_usd=0.0 if type(error) is ModelError else None)
                    raise
                spent += answer.usage
                return answer

            self._capabilities = await probe(counted)
            self.probe_usage = spent
        return self._capabilities

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the answer; `latency_s` includes retries.

        Raises:
            InputError: the request breaks a rule.
            ConfigError: the key is missing or refused, the model is unknown, or a package is missing.
            ModelUnavailableError: down, or failing after all retries.
            ModelTimeoutError: every attempt took longer than `timeout_s`.
            RateLimitError: 429 until the retries ran out.
            ModelAnswerError: the answer cannot be used.
            ModelError: the endpoint refuses the request.
        """
        check_request(request)
        begin_s = time.perf_counter()
        for attempt in range(self._max_retries + 1):
            try:
                raw = await self._send(request)
                break
            except Exception as error:  # each library passes errors of its own and of others through
                translated = self._translated(error, attempt + 1)
                if translated is None:
                    raise
                passes = isinstance(translated, ModelUnavailableError | ModelTimeoutError | RateLimitError)
                if attempt == self._max_retries or not passes:
                    raise translated from error
                await asyncio.sleep(backoff_s(attempt, self._retry_after(error), self._retry_ceiling_s))
        answer = self._read(raw, request)
        return replace(answer, usage=replace(answer.usage, latency_s=time.perf_counter() - begin_s))


def backoff_s(attempt: int, retry_after: str | None, ceiling_s: float) -> float:
    """Return the wait before retry `attempt` (from 0), in seconds.

    It is drawn uniformly from [w/2, w], w = min(ceiling_s, 0.5 * 2^attempt); the server's `Retry-After` header replaces
    it, under the same ceiling.

    Example:
        >>> backoff_s(0, "2", 20.0), backoff_s(0, "3600", 20.0)
        (2.0, 20.0)
    """
    requested_s = _retry_after_s(retry_after)
    if requested_s is not None:
        return min(requested_s, ceiling_s)
    longest_s = min(ceiling_s, _FIRST_WAIT_S * 2.0 ** min(attempt, 30))
    return longest_s * random.uniform(0.5, 1.0)  # noqa: S311


def _retry_after_s(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date; None if it is neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
