"""Errors of the official clients, whose classes have the same names, as errors of `seasoned.errors`."""

from __future__ import annotations

from typing import Any

from seasoned.errors import ConfigError, ModelError, ModelTimeoutError, ModelUnavailableError, RateLimitError

__all__ = ["retry_after_header", "translated_error"]


def translated_error(
    client: Any, error: Exception, seen: str, timeout_s: float, key_variable: str
) -> ModelError | ConfigError | None:
    """Return an error of a client as one of ours; None for an error of something else.

    Args:
        client: the module `openai` or `anthropic`.
        error: what was raised.
        seen: the first part of the message.
        timeout_s: of one attempt.
        key_variable: the environment variable with the key.
    """
    if not isinstance(error, client.APIError):
        return None
    if isinstance(error, client.APITimeoutError):
        return ModelTimeoutError(seen, f"an attempt takes at most {timeout_s:g} s", "Raise timeout_s.")
    if isinstance(error, client.RateLimitError):
        return RateLimitError(seen, "the endpoint allows fewer requests", "Send fewer, or raise max_retries.")
    if isinstance(error, client.AuthenticationError | client.PermissionDeniedError):
        return ConfigError(seen, "the endpoint accepts the key", f"Set {key_variable} to a valid key.")
    status = getattr(error, "status_code", None)
    if status is None or status >= 500 or status in (408, 409):
        return ModelUnavailableError(seen, "the endpoint must answer", "Check that it runs and is reachable.")
    if status == 404:
        return ConfigError(seen, "the endpoint has the model and the path", "Check the model and the base URL.")
    return ModelError(seen, "the endpoint accepts the request", "Read its message; a setting may be too large.")


def retry_after_header(error: Exception) -> str | None:
    """Return the `Retry-After` header of the response to which an error belongs."""
    response = getattr(error, "response", None)
    header = response.headers.get("retry-after") if response is not None else None
    return header if isinstance(header, str) else None
