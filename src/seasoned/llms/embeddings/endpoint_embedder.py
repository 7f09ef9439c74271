"""Embedders behind an OpenAI-compatible endpoint, through the official client."""

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

_TRANSIENT = (ModelUnavailableError, ModelTimeoutError, RateLimitError)


class EndpointEmbedder(BatchedEmbedder):
    """A model behind `/v1/embeddings`: OpenAI's, or a compatible server (llama.cpp, vLLM, TEI, Ollama).

    Key, address, errors and retries are those of `OpenAILLM`; each batch is one call with its own retries.

    Args:
        model: the endpoint's name for the model.
        base_url: the URL with the version path; None reads OPENAI_BASE_URL, and defaults to OpenAI's own.
        api_key: as for `OpenAILLM`.
        dimensions: the length of shortened vectors, if the model supports it; None: its own length.
        name: replaces `model` in the identity, for endpoints with different names for one model.
        batch_size: the largest number of texts a call.
        timeout_s: the time limit of one attempt, in seconds.
        max_retries: the number of attempts after the first, for each batch.
        retry_ceiling_s: the longest wait between two attempts, in seconds.
        usd_per_million_tokens: the price; None: `spent.cost_usd` is None.

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
        # The chat model at the same address has the same key, errors and price.
        self._endpoint = OpenAILLM(
            model, base_url, api_key, timeout_s, max_retries, retry_ceiling_s, usd_per_million_tokens, 0.0
        )
        self._model = model
        self._name = check_text("name", model if name is None else name)
        self._requested_dimensions = dimensions
        self._max_retries, self._retry_ceiling_s = max_retries, float(retry_ceiling_s)
        library, client = self._endpoint._openai, self._endpoint._client
        self._client = library.OpenAI(
            base_url=client.base_url, api_key=client.api_key, timeout=float(timeout_s), max_retries=0
        )

    @property
    def identity(self) -> str:
        """`openai:NAME`, with the requested length; equal for every location of the model."""
        length = f"?dimensions={self._requested_dimensions}" if self._requested_dimensions else ""
        return f"openai:{self._name}{length}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _embed_batch(self, texts: list[str]) -> tuple[npt.ArrayLike, Usage]:
        begin_s = time.perf_counter()
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._requested_dimensions is not None:
            body["dimensions"] = self._requested_dimensions
        for attempt in range(self._max_retries + 1):
            try:
                raw = self._client.embeddings.with_raw_response.create(**body)
                break
            except Exception as error:  # the library raises its own errors and those of others
                translated = self._endpoint._translate_error(error, attempt + 1)
                if translated is None:
                    raise
                if attempt == self._max_retries or not isinstance(translated, _TRANSIENT):
                    raise translated from error
                time.sleep(backoff_s(attempt, self._endpoint._retry_after(error), self._retry_ceiling_s))
        rows, tokens = self._read(raw, len(texts))
        usage = Usage(calls=1, prompt_tokens=tokens, cost_usd=self._endpoint._prices.cost_usd(tokens, 0))
        return rows, replace(usage, latency_s=time.perf_counter() - begin_s)

    def _read(self, raw: Any, n_texts: int) -> tuple[list[Any], int]:
        """Return the rows in the order of the texts, by their index, and the number of tokens."""
        try:
            body = raw.http_response.json()
            by_index = {int(entry["index"]): entry["embedding"] for entry in body["data"]}
            tokens = int(body["usage"]["prompt_tokens"])
            return [by_index[index] for index in range(n_texts)], tokens
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelAnswerError(
                f"{self._endpoint.name} answered {excerpt(raw.http_response.text, 160)}",
                "an answer has the vector of every text, and a token count",
                "Check the model's name, and that it is an embedding model.",
            ) from error
