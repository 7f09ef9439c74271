"""Embeddings from any OpenAI-compatible endpoint, through the official client."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from seasoned.checks import check_text
from seasoned.errors import ModelAnswerError, ModelTimeoutError, ModelUnavailableError, RateLimitError, excerpt
from seasoned.llms.embeddings.batched_embedder import BatchedEmbedder
from seasoned.llms.providers.endpoint import backoff_s
from seasoned.llms.providers.openai import OpenAILLM
from seasoned.protocols import Usage

__all__ = ["EndpointEmbedder"]

_PASSING = (ModelUnavailableError, ModelTimeoutError, RateLimitError)


class EndpointEmbedder(BatchedEmbedder):
    """A model behind `/v1/embeddings`: OpenAI's, or a server that speaks like it (llama.cpp, vLLM, TEI, Ollama).

    Key, address, errors, waits and attempts are those of `OpenAILLM`; each batch is one call, and is tried again alone.

    Args:
        model: the endpoint's name for the model.
        base_url: with the version path; None reads OPENAI_BASE_URL, then takes OpenAI's own.
        api_key: as for `OpenAILLM`.
        dimensions: shorter vectors, where the model can make them; None: its own length.
        name: what the identity says instead of `model`, where two endpoints call one model differently.
        batch_size: texts a call, at most.
        timeout_s: limit of one attempt, in seconds.
        max_retries: attempts after the first, for each batch.
        retry_ceiling_s: the longest wait between two attempts, in seconds.
        usd_per_million_tokens: the price; None: `spent.cost_usd` is None.

    Raises:
        InputError: a number is outside its range.
        ConfigError: no key for a server that is not local, or the URL is not one.
        MissingExtraError: the official client is not installed.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        dimensions: int | None = None,
        name: str | None = None,
        batch_size: int = 64,
        timeout_s: float = 30.0,
        max_retries: int = 4,
        retry_ceiling_s: float = 20.0,
        usd_per_million_tokens: float | None = None,
    ) -> None:
        super().__init__(batch_size, dimensions)
        # The chat model at the same address: its key, its errors and its price are the same.
        self._endpoint = OpenAILLM(
            model, base_url, api_key, timeout_s, max_retries, retry_ceiling_s, usd_per_million_tokens, 0.0
        )
        self._model = model
        self._name = check_text("name", model if name is None else name)
        self._asked_dimensions = dimensions
        self._max_retries, self._retry_ceiling_s = max_retries, float(retry_ceiling_s)
        library, client = self._endpoint._openai, self._endpoint._client
        self._client = library.OpenAI(
            base_url=client.base_url, api_key=client.api_key, timeout=float(timeout_s), max_retries=0
        )

    @property
    def identity(self) -> str:
        """`openai:NAME`, with the length that was asked for; the same wherever the model runs."""
        length = f"?dimensions={self._asked_dimensions}" if self._asked_dimensions else ""
        return f"openai:{self._name}{length}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _ask(self, texts: list[str]) -> tuple[npt.ArrayLike, Usage]:
        begin_s = time.perf_counter()
        asked: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asked_dimensions is not None:
            asked["dimensions"] = self._asked_dimensions
        for attempt in range(self._max_retries + 1):
            try:
                raw = self._client.embeddings.with_raw_response.create(**asked)
                break
            except Exception as error:  # the library passes errors of its own and of others through
                translated = self._endpoint._translated(error, attempt + 1)
                if translated is None:
                    raise
                if attempt == self._max_retries or not isinstance(translated, _PASSING):
                    raise translated from error
                time.sleep(backoff_s(attempt, self._endpoint._retry_after(error), self._retry_ceiling_s))
        rows, tokens = self._read(raw, len(texts))
        usage = Usage(calls=1, prompt_tokens=tokens, cost_usd=self._endpoint._cost_usd(tokens, 0))
        return rows, replace(usage, latency_s=time.perf_counter() - begin_s)

    def _read(self, raw: Any, n_texts: int) -> tuple[list[Any], int]:
        """The rows in the order of the texts, by the index that each carries, and the tokens."""
        try:
            body = raw.http_response.json()
            by_index = {int(entry["index"]): entry["embedding"] for entry in body["data"]}
            tokens = int(body["usage"]["prompt_tokens"])
            return [by_index[index] for index in range(n_texts)], tokens
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelAnswerError(
                f"{self._endpoint.name} answered {excerpt(raw.http_response.text, 160)}",
                "an answer has the vector of every text, and says how many tokens it took",
                "Check the model's name, and that it makes embeddings.",
            ) from error
