"""Anthropic's Messages API, through the official client."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from seasoned.checks import check_text
from seasoned.errors import ConfigError, ModelError, excerpt
from seasoned.llms.providers.client_errors import retry_after_header, translated_error
from seasoned.llms.providers.endpoint import Endpoint
from seasoned.llms.providers.endpoint_access import TokenPrices, checked_url, found_key
from seasoned.llms.wire.chat_completions import check_request, read_completion
from seasoned.llms.wire.chat_stream import ChunkSum, streamed_items
from seasoned.protocols import Capabilities, ChatContext, Completion, CompletionRequest, Usage
from seasoned.registry import load_extra

__all__ = ["AnthropicLLM"]

_URL = "https://api.anthropic.com"
_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
_PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicLLM(Endpoint):
    """A chat model behind Anthropic's Messages API, or a server that speaks it.

    Every answer is streamed. The API has neither logprobs nor `logit_bias`, and takes no seed. Refused connections,
    timeouts, 408, 409, 429 and 5xx are retried as in `Endpoint`, until the first piece of an answer has come.

    Args:
        model: the endpoint's name for the model.
        base_url: the URL without the version; None reads ANTHROPIC_BASE_URL, and defaults to Anthropic's own.
        api_key: the key; None reads ANTHROPIC_API_KEY. A server on this machine needs none.
        timeout_s: the time limit of one attempt, in seconds.
        max_retries: the number of attempts after the first.
        retry_ceiling_s: the longest wait between two attempts, in seconds.
        usd_per_million_prompt_tokens, usd_per_million_completion_tokens: prices; if one is None, `cost_usd` is None.

    Attributes:
        takes_temperature: whether the endpoint has not refused a temperature. One of 0 is not sent.

    Raises:
        InputError: a number is outside its range.
        ConfigError: there is no key for a server that is not local, or the URL is invalid.
        MissingExtraError: the official client is not installed.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 120.0,
        max_retries: int = 4,
        retry_ceiling_s: float = 20.0,
        usd_per_million_prompt_tokens: float | None = None,
        usd_per_million_completion_tokens: float | None = None,
    ) -> None:
        self._model = check_text("model", model)
        given_url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or _URL
        self._base_url = checked_url(given_url, such_as=_URL).removesuffix("/v1")
        super().__init__(timeout_s, max_retries, retry_ceiling_s)
        self._prices = TokenPrices(usd_per_million_prompt_tokens, usd_per_million_completion_tokens)
        self.takes_temperature = True
        self._anthropic = load_extra("anthropic", "anthropic")
        key = found_key(self._base_url, api_key, ["ANTHROPIC_API_KEY"])
        self._client = self._anthropic.AsyncAnthropic(
            base_url=self._base_url, api_key=key, timeout=self._timeout_s, max_retries=0
        )

    @property
    def name(self) -> str:
        """`anthropic:MODEL@BASE_URL`."""
        return f"anthropic:{self._model}@{self._base_url}"

    async def capabilities(self) -> Capabilities:
        """Return what the API has: no logprobs and no bias."""
        return Capabilities(False, 0, logit_bias=False, samples=True)

    async def stream(self, request: CompletionRequest, show: Callable[[str], object]) -> Completion:
        """Return the completion as `complete` does; `show` gets each new piece of its text as it comes.

        Raises:
            InputError, ConfigError, ModelError: as for `complete`.
        """
        check_request(request)
        begin_s = time.perf_counter()
        total = await self._with_retries(lambda: self._streamed(request, show))
        answer = self._read(total, request)
        return replace(answer, usage=replace(answer.usage, latency_s=time.perf_counter() - begin_s))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _created(self, request: CompletionRequest) -> Any:
        """Send one attempt, and another one where the endpoint refuses a temperature, which newer models do."""
        create, body = self._client.messages.create, _body(request)
        if request.temperature > 0 and self.takes_temperature:
            heat = {"temperature": min(1.0, request.temperature)}  # newer clients have no argument for it
            try:
                return await create(model=self._model, stream=True, extra_body=heat, **body)
            except self._anthropic.BadRequestError as error:
                if "temperature" not in str(error):
                    raise
                self.takes_temperature = False
        return await create(model=self._model, stream=True, **body)

    async def _send(self, request: CompletionRequest) -> ChunkSum:
        return await self._streamed(request, lambda _: None)

    async def _streamed(self, request: CompletionRequest, show: Callable[[str], object]) -> ChunkSum:
        total, usage = ChunkSum(show), {"prompt_tokens": 0, "completion_tokens": 0}
        events = await self._created(request)
        async with contextlib.aclosing(streamed_items(events, total, self.name)) as items:
            async for event in items:
                total.add(_chunk(event.model_dump(), usage))
                if total.is_full:
                    break
        return total

    def _read(self, raw: ChunkSum, request: CompletionRequest) -> Completion:
        answer, (prompt_tokens, completion_tokens) = read_completion(raw.body(), request, self.name)
        cost_usd = self._prices.cost_usd(prompt_tokens, completion_tokens) if raw.has_usage else None
        return replace(answer, usage=Usage(1, 0, prompt_tokens, completion_tokens, 0.0, cost_usd))

    def _retry_after(self, error: Exception) -> str | None:
        return retry_after_header(error)

    def _translate_error(self, error: Exception, attempts: int) -> ModelError | ConfigError | None:
        seen = f"{self.name}: {type(error).__name__} {excerpt(str(error), 160)} ({attempts} attempts)"
        return translated_error(self._anthropic, error, seen, self._timeout_s, "ANTHROPIC_API_KEY")


def _body(request: CompletionRequest) -> dict[str, Any]:
    """Return a request in the Messages dialect, without the model."""
    body: dict[str, Any] = {
        **ChatContext(request.messages, request.tools).to_anthropic(),
        "max_tokens": request.max_tokens,
    }
    if request.stop:
        body["stop_sequences"] = list(request.stop)
    if request.tool_choice is not None:
        kind = {"none": "none", "auto": "auto", "required": "any"}.get(request.tool_choice)
        body["tool_choice"] = {"type": "tool", "name": request.tool_choice} if kind is None else {"type": kind}
    return body


def _chunk(event: Mapping[str, Any], usage: dict[str, int]) -> dict[str, Any]:
    """Return an event of a stream as a chunk of chat completions; `usage` has the counts so far."""
    kind, delta = event.get("type"), event.get("delta") or {}
    choice: dict[str, Any] = {"delta": {}}
    counted = (event.get("message") or {}).get("usage") or event.get("usage") or {}
    if kind == "message_start":
        usage["prompt_tokens"] = sum(counted.get(name) or 0 for name in _PROMPT_COUNTS)
    usage["completion_tokens"] = counted.get("output_tokens") or usage["completion_tokens"]
    block = event.get("content_block") or {}
    if kind == "content_block_start" and block.get("type") == "tool_use":
        call = {
            "index": event["index"],
            "id": block.get("id"),
            "function": {"name": block.get("name"), "arguments": ""},
        }
        choice["delta"] = {"tool_calls": [call]}
    elif kind == "content_block_start" and block.get("text"):
        choice["delta"] = {"content": block["text"]}
    elif delta.get("type") == "text_delta":
        choice["delta"] = {"content": delta.get("text")}
    elif delta.get("type") == "input_json_delta":
        part = {"index": event["index"], "function": {"arguments": delta.get("partial_json")}}
        choice["delta"] = {"tool_calls": [part]}
    elif kind == "message_delta" and delta.get("stop_reason"):
        choice["finish_reason"] = _REASONS.get(delta["stop_reason"], delta["stop_reason"])
    return {"choices": [choice], **({"usage": dict(usage)} if counted else {})}
