"""OpenAI-compatible chat endpoints, through the official client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from seasoned.checks import check_text
from seasoned.errors import ConfigError, ModelAnswerError, ModelError, NoDecisionsError, excerpt
from seasoned.llms.providers.client_errors import retry_after_header, translated_error
from seasoned.llms.providers.endpoint import Endpoint
from seasoned.llms.providers.endpoint_access import TokenPrices, checked_url, found_key
from seasoned.llms.wire.chat_completions import check_request, read_completion, request_json
from seasoned.llms.wire.chat_stream import ChunkSum, streamed_items
from seasoned.llms.wire.decision_formats import built_request, parse_decision_answer
from seasoned.llms.wire.decision_server import DecisionAnswers, DecisionProbe, probe_decisions
from seasoned.llms.wire.decision_types import DecisionFormat, DecisionRequest, TypedQuestion
from seasoned.llms.wire.token_ids import server_token_ids, tiktoken_ids
from seasoned.protocols import Completion, CompletionRequest, Usage
from seasoned.registry import load_extra

__all__ = ["OpenAILLM"]

_OPENAI_URL = "https://api.openai.com/v1"
_OTHER_LIMIT = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_NO_DECISIONS = (404, 405, 501)
_UNTRUNCATED = {"top_p": 1.0, "top_k": 0, "min_p": 0.0}


class OpenAILLM(Endpoint):
    """A chat model behind an OpenAI-compatible endpoint, or a decision model behind its address for decisions.

    Refused connections, timeouts, 408, 409, 429 and 5xx are retried as in `Endpoint`.

    The token limit is sent as `max_tokens`, until an endpoint refuses it with a 400 that names `max_completion_tokens`;
    `token_limit_field` is the name in use. Above temperature 0 the samplers that cut off unlikely tokens are switched
    off (`top_p` 1, `top_k` 0, `min_p` 0; some servers have them on by default); fields that an endpoint refuses by name
    are no longer sent, and are listed in `refused_fields`.

    Args:
        model: the endpoint's name for the model.
        base_url: the URL with the version path; None reads OPENAI_BASE_URL, and defaults to OpenAI's own.
        api_key: the key; None reads SEASONED_OPENAI_API_KEY, then OPENAI_API_KEY. A server on this machine needs none.
        timeout_s: the time limit of one attempt, in seconds.
        max_retries: the number of attempts after the first.
        retry_ceiling_s: the longest wait between two attempts, in seconds.
        usd_per_million_prompt_tokens, usd_per_million_completion_tokens: prices; if one is None, `cost_usd` is None.

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
        self._base_url = checked_url(
            base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL, such_as="http://127.0.0.1:8080/v1"
        )
        super().__init__(timeout_s, max_retries, retry_ceiling_s)
        self._prices = TokenPrices(usd_per_million_prompt_tokens, usd_per_million_completion_tokens)
        self._openai = load_extra("openai", "openai")
        key = found_key(self._base_url, api_key, ["SEASONED_OPENAI_API_KEY", "OPENAI_API_KEY"])
        self._client = self._openai.AsyncOpenAI(
            base_url=self._base_url, api_key=key, timeout=self._timeout_s, max_retries=0
        )
        self.token_limit_field = "max_tokens"  # noqa: S105
        self.refused_fields: frozenset[str] = frozenset()
        self._decisions: DecisionProbe | None = None

    @property
    def name(self) -> str:
        """`openai:MODEL@BASE_URL`."""
        return f"openai:{self._model}@{self._base_url}"

    async def token_ids(self, text: str) -> tuple[int, ...]:
        """Return the tokens of `text`: from `tiktoken` for OpenAI's own models, else from the server.

        Raises:
            MissingExtraError: tiktoken is not installed.
            ConfigError: tiktoken does not support the model, or the server has no `/tokenize`.
            ModelError: the server failed.
        """
        if self._base_url == _OPENAI_URL:
            return await asyncio.to_thread(tiktoken_ids, self._model, text)
        server = self._base_url.removesuffix("/v1")
        return await server_token_ids(
            server, text, model=self._model, key=self._client.api_key, timeout_s=self._timeout_s
        )

    async def decision_probe(self) -> DecisionProbe:
        """Return the wire formats of decisions that the endpoint answers for this model; probed once.

        Raises:
            ModelError: the probe failed.
        """
        if self._decisions is not None:
            return self._decisions
        found = await probe_decisions(self)
        self._decisions = replace(found, usage=Usage())
        return found

    async def ask(self, wire_format: DecisionFormat, state: str, questions: Sequence[TypedQuestion]) -> DecisionAnswers:
        """Return the answers of `POST /v1/systemone` or `/v1/decisions` to questions about a state.

        Raises:
            NoDecisionsError: the endpoint has no such address, or not for this model (404, 405, 501).
            ConfigError, ModelError: as `complete`.
        """
        document = built_request(wire_format, self._model, state, questions)
        begin_s = time.perf_counter()
        body = await self._with_retries(lambda: self._post_decision(wire_format, document))
        request = DecisionRequest(wire_format, self._model, state, tuple(questions), document)
        answers = parse_decision_answer(request, body)
        tokens = [_count(body, name) for name in ("input_tokens", "output_tokens")]
        cost_usd = None if None in tokens else self._prices.cost_usd(tokens[0] or 0, tokens[1] or 0)
        latency_s = time.perf_counter() - begin_s
        return DecisionAnswers(answers, Usage(1, 0, tokens[0] or 0, tokens[1] or 0, latency_s, cost_usd))

    async def _post_decision(self, wire_format: DecisionFormat, document: Mapping[str, Any]) -> object:
        try:
            body: object = await self._client.post(f"/{wire_format}", cast_to=object, body=document)
        except self._openai.APIStatusError as error:
            if error.status_code not in _NO_DECISIONS:
                raise
            raise NoDecisionsError(
                f"{self.name}: {error.status_code} for POST /{wire_format} {excerpt(str(error), 120)}",
                "the endpoint answers decisions for this model",
                "Use another model or endpoint, or the reader 'label'.",
            ) from error
        return body

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def stream(self, request: CompletionRequest, show: Callable[[str], object]) -> Completion:
        """Return the completion as `complete` does; `show` gets each new piece of its text as it comes.

        Attempts are repeated until the first piece has come. A stream that breaks off after it is an error, and so is
        one that states no reason for its end and brings nothing. `cost_usd` is None where a stream states no tokens.

        Raises:
            InputError, ConfigError, ModelError: as for `complete`.
        """
        check_request(request)
        begin_s = time.perf_counter()
        total = await self._with_retries(lambda: self._streamed(request, show))
        if total.is_empty:
            raise ModelAnswerError(f"{self.name} sent no chunk", "an answer is streamed", "Check the base URL.")
        answer, (prompt_tokens, completion_tokens) = read_completion(total.body(), request, self.name)
        cost_usd = self._prices.cost_usd(prompt_tokens, completion_tokens) if total.has_usage else None
        usage = Usage(1, 0, prompt_tokens, completion_tokens, time.perf_counter() - begin_s, cost_usd)
        return replace(answer, usage=usage)

    async def _streamed(self, request: CompletionRequest, show: Callable[[str], object]) -> ChunkSum:
        total = ChunkSum(show)
        more = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = await self._created(self._client.chat.completions.create, request, more)
        async with contextlib.aclosing(streamed_items(chunks, total, self.name)) as items:
            async for chunk in items:
                total.add(chunk.model_dump())
                if total.is_full:
                    break
        return total

    async def _send(self, request: CompletionRequest) -> str:
        raw = await self._created(self._client.chat.completions.with_raw_response.create, request, {})
        return str(raw.http_response.text)

    async def _created(
        self, create: Callable[..., Awaitable[Any]], request: CompletionRequest, more: dict[str, Any]
    ) -> Any:
        """Send one attempt, and another one for each field that the endpoint refuses by name."""
        body = {**request_json(request), **more}
        swapped = False
        while True:
            samplers = _UNTRUNCATED if request.temperature > 0 else {}
            extra = {name: value for name, value in samplers.items() if name not in self.refused_fields}
            limit = self.token_limit_field
            try:
                return await create(model=self._model, **body, **{limit: request.max_tokens}, extra_body=extra)
            except self._openai.BadRequestError as error:
                other = _OTHER_LIMIT[limit]
                refused = {name for name in extra if name in str(error)}
                if refused:
                    self.refused_fields |= refused
                elif other in str(error) and not swapped:
                    self.token_limit_field, swapped = other, True
                else:
                    raise

    def _read(self, raw: Any, request: CompletionRequest) -> Completion:
        try:
            body = json.loads(raw)
        except ValueError:
            raise ModelAnswerError(
                f"{self.name} answered {excerpt(raw, 120)}", "an answer is JSON", "Check the base URL; is /v1 missing?"
            ) from None
        answer, (prompt_tokens, completion_tokens) = read_completion(body, request, self.name)
        cost_usd = self._prices.cost_usd(prompt_tokens, completion_tokens)
        return replace(answer, usage=Usage(1, 0, prompt_tokens, completion_tokens, 0.0, cost_usd))

    def _retry_after(self, error: Exception) -> str | None:
        return retry_after_header(error)

    def _translate_error(self, error: Exception, attempts: int) -> ModelError | ConfigError | None:
        seen = f"{self.name}: {type(error).__name__} {excerpt(str(error), 160)} ({attempts} attempts)"
        return translated_error(self._openai, error, seen, self._timeout_s, "OPENAI_API_KEY")


def _count(body: object, name: str) -> int | None:
    """Return a count of tokens in the usage of an answer; None if it is not stated."""
    usage = body.get("usage") if isinstance(body, Mapping) else None
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1 << 53 else None
