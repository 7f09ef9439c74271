"""Providers beyond the OpenAI shape, through the `litellm` package: `litellm:anthropic/...`, `litellm:bedrock/...`.

LiteLLM is loaded when a model is made. It would fetch its price list from the network on import; it is told to use the
one that it carries, unless LITELLM_LOCAL_MODEL_COST_MAP says otherwise. It sends what the provider takes and refuses
the rest: nothing that was asked for is dropped (`drop_params=False`), so that a probe finds out what the provider
cannot do.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from seasoned.errors import (
    ConfigError,
    InputError,
    MissingExtraError,
    ModelAnswerError,
    ModelError,
    ModelTimeoutError,
    ModelUnavailableError,
    RateLimitError,
    excerpt,
)
from seasoned.llms.probing import probe
from seasoned.llms.requests import check_request, read_completion, request_json
from seasoned.llms.retrying import wait_s
from seasoned.protocols import Capabilities, Completion, CompletionRequest, Usage
from seasoned.registry import load_extra
from seasoned.types import check_finite, check_text

__all__ = ["LiteLLM"]


class LiteLLM:
    """A chat model of any provider that LiteLLM knows.

    Retried as in `OpenAILLM`: timeouts, lost connections, 408, 409, 429 and 5xx, with the same waits. `cost_usd` is
    LiteLLM's own estimate from its price list, and None for a model that is not in it.

    Args:
        model: `provider/model`, as LiteLLM names it.
        base_url: of the provider's server; None is the provider's own.
        api_key: None: LiteLLM reads the provider's environment variable.
        timeout_s: limit of one attempt, in seconds.
        max_retries: attempts after the first.
        retry_ceiling_s: the longest wait between two attempts, in seconds.

    Raises:
        InputError: a number is outside its range.
        ConfigError: LiteLLM knows no such provider.
        MissingExtraError: LiteLLM is not installed.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        max_retries: int = 4,
        retry_ceiling_s: float = 20.0,
    ) -> None:
        self._model = check_text("model", model)
        for label, value, least in (("timeout_s", timeout_s, 1e-3), ("retry_ceiling_s", retry_ceiling_s, 0.0)):
            if check_finite(label, value) < least:
                raise InputError(f"{label} = {value}", f"it is at least {least:g}", "Pass a larger number.")
        if isinstance(max_retries, bool) or not isinstance(max_retries, int) or max_retries < 0:
            raise InputError(f"max_retries = {excerpt(max_retries)}", "it is a whole number >= 0", "Use 0 for none.")
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        self._litellm = load_extra("litellm", "litellm")
        self._litellm.suppress_debug_info = True  # type: ignore[attr-defined]
        try:
            self._litellm.get_llm_provider(model, api_base=base_url)
        except self._litellm.exceptions.BadRequestError as error:
            raise ConfigError(
                f"model {excerpt(model)}", "LiteLLM knows its provider", "Write PROVIDER/MODEL, such as anthropic/...."
            ) from error
        self._base_url = base_url
        self._settings: dict[str, Any] = {"timeout": timeout_s, "max_retries": 0, "num_retries": 0}
        self._settings |= {"drop_params": False}
        self._settings |= {"api_base": base_url} if base_url else {}
        self._settings |= {"api_key": api_key} if api_key else {}
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._retry_ceiling_s = retry_ceiling_s
        self._capabilities: Capabilities | None = None

    @property
    def name(self) -> str:
        """`litellm:PROVIDER/MODEL`, with `@BASE_URL` where one was given."""
        return f"litellm:{self._model}" + (f"@{self._base_url}" if self._base_url else "")

    async def capabilities(self) -> Capabilities:
        """Return what the provider can do; probed with a few tiny requests, once.

        Raises:
            ModelError: the provider could not be asked.
        """
        if self._capabilities is None:
            self._capabilities = await probe(self.complete)
        return self._capabilities

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the answer; `latency_s` includes retries.

        Raises:
            InputError: the request breaks a rule.
            ConfigError: no key, a refused one, or an unknown model; or LiteLLM lacks a package of its own.
            ModelUnavailableError: down, or failing after all retries.
            ModelTimeoutError: every attempt took longer than `timeout_s`.
            RateLimitError: 429 until the retries ran out.
            ModelAnswerError: the answer cannot be used.
            ModelError: the provider refuses the request, or LiteLLM knows that it would.
        """
        check_request(request)
        begin_s = time.perf_counter()
        attempt = 0
        while True:
            try:
                raw = await self._litellm.acompletion(
                    model=self._model, max_tokens=request.max_tokens, **request_json(request), **self._settings
                )
                break
            except Exception as error:  # LiteLLM passes some of its providers' own errors through
                translated = self._translate(error, attempt + 1)
                if attempt == self._max_retries or not isinstance(
                    translated, ModelUnavailableError | ModelTimeoutError | RateLimitError
                ):
                    raise translated from error
                await asyncio.sleep(wait_s(attempt, _retry_after(error), self._retry_ceiling_s))
                attempt += 1
        answer, (prompt_tokens, completion_tokens) = read_completion(raw.model_dump(), request, self.name)
        usage = Usage(1, 0, prompt_tokens, completion_tokens, time.perf_counter() - begin_s, self._cost_usd(raw))
        return replace(answer, usage=usage)

    async def aclose(self) -> None:
        """Close the connections that LiteLLM keeps for the whole process; it opens them again when asked."""
        await self._litellm.close_litellm_async_clients()

    def _cost_usd(self, raw: Any) -> float | None:
        try:
            return float(self._litellm.completion_cost(raw, model=self._model))
        except Exception:  # it raises its own errors for a model without a known price
            return None

    def _translate(self, error: Exception, attempts: int) -> ModelError | ConfigError:
        kinds = self._litellm.exceptions
        seen = f"{self.name}: {type(error).__name__} {excerpt(str(error), 160)} ({attempts} attempts)"
        if isinstance(error.__context__, ImportError):  # parts of LiteLLM are its own extras: mcp, for tools
            return MissingExtraError(
                seen, "LiteLLM needs another package for this request", "Run: pip install 'seasoned[litellm]'"
            )
        if isinstance(error, kinds.Timeout):
            return ModelTimeoutError(seen, f"an attempt takes at most {self._timeout_s:g} s", "Raise timeout_s.")
        if isinstance(error, kinds.RateLimitError):
            return RateLimitError(seen, "the provider allows fewer requests", "Send fewer, or raise max_retries.")
        if isinstance(error, kinds.AuthenticationError | kinds.PermissionDeniedError):
            return ConfigError(seen, "the provider accepts the key", "Set the provider's key in its variable.")
        if isinstance(error, kinds.NotFoundError):
            return ConfigError(seen, "the provider knows the model", "Check the model's name and the base URL.")
        if isinstance(error, kinds.APIResponseValidationError | kinds.JSONSchemaValidationError):
            return ModelAnswerError(seen, "the answer is a chat completion", "Check the provider and the base URL.")
        status = getattr(error, "status_code", None)
        if not isinstance(status, int) or status >= 500 or status in (408, 409):
            return ModelUnavailableError(seen, "the provider answers", "Check that it runs and is reachable.")
        return ModelError(seen, "the provider accepts the request", "Read its message; it may lack what was asked for.")


def _retry_after(error: Exception) -> str | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    found = headers.get("retry-after") if isinstance(headers, Mapping) else None
    return found if isinstance(found, str) else None
