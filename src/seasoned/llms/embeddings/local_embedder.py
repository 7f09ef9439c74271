"""Local embedders under llama.cpp in this process (PyPI `xllamacpp`), without a server, a key or a price.

A vector is the mean of the last layer over the text's tokens. Embedding models are trained for this; the vectors of a
chat model are poor, and reflect little more than common words. Each text is evaluated alone, so that its vector does
not depend on other texts.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from seasoned.checks import check_whole
from seasoned.errors import InputError, ModelAnswerError, ModelError, ModelUnavailableError, excerpt
from seasoned.llms.embeddings.batched_embedder import BatchedEmbedder
from seasoned.llms.providers.local import default_model_path, gguf_digest
from seasoned.protocols import Usage
from seasoned.registry import load_extra

__all__ = ["LocalEmbedder"]

_QUIET = -1
_LEAST_CONTEXT_TOKENS = 64


class LocalEmbedder(BatchedEmbedder):
    """A GGUF model with mean-pooled embeddings. It is loaded on the first call; calls run one at a time.

    Args:
        model_path: a GGUF file; None is the default model, which is a chat model.
        context_tokens: the largest number of tokens of one text; a longer one is refused.
        threads: the number of threads; None is every core.

    Raises:
        InputError: a number is outside its range, or the file is not GGUF.
        NotFoundError: there is no such file.
        MissingExtraError: xllamacpp or the default model is not installed.
    """

    def __init__(
        self, model_path: str | os.PathLike[str] | None = None, context_tokens: int = 512, threads: int | None = None
    ) -> None:
        super().__init__(1, None)
        check_whole("context_tokens", context_tokens, _LEAST_CONTEXT_TOKENS)
        if threads is not None:
            check_whole("threads", threads, 1)
        self._path = default_model_path() if model_path is None else Path(model_path)
        self._digest = gguf_digest(self._path)
        self._xllamacpp = load_extra("xllamacpp", "local")
        self._context_tokens = context_tokens
        self._threads = threads or os.cpu_count() or 1
        self._server: Any = None
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        """`local:FILE#DIGEST?pooling=mean`, with the digest of the file's content; independent of its folder."""
        return f"local:{self._path.name}#{self._digest}?pooling=mean"

    def close(self) -> None:
        """Unload the model; the next call loads it again."""
        with self._lock:
            self._server = None

    def _embed_batch(self, texts: list[str]) -> tuple[npt.ArrayLike, Usage]:
        with self._lock:
            if self._server is None:
                self._server = self._load()
            begin_s = time.perf_counter()
            answer = self._server.handle_embeddings({"input": texts, "model": "local"})
            latency_s = time.perf_counter() - begin_s
        if isinstance(answer, Mapping) and "error" in answer:
            raise self._refusal(answer["error"])
        try:
            rows = [entry["embedding"] for entry in sorted(answer["data"], key=lambda entry: int(entry["index"]))]
            tokens = int(answer["usage"]["prompt_tokens"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelAnswerError(
                f"llama.cpp answered {excerpt(answer, 160)}",
                "an answer has a vector for every text",
                "Update xllamacpp.",
            ) from error
        return rows, Usage(1, 0, tokens, 0, latency_s, 0.0)

    def _load(self) -> Any:
        params = self._xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.embedding = True
        params.pooling_type = self._xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        # Pooling needs a whole text in one batch.
        params.n_ctx = params.n_batch = params.n_ubatch = self._context_tokens
        params.n_parallel = 1
        params.cpuparams.n_threads = self._threads
        params.warmup = False
        params.verbosity = _QUIET
        params.api_keys = [secrets.token_urlsafe(32)]  # xllamacpp also opens a port; no one has its key
        try:
            return self._xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelUnavailableError(
                f"{self._path}: {excerpt(str(error), 160)}", "llama.cpp can load the model", "Use a complete model."
            ) from error

    def _refusal(self, error: Any) -> InputError | ModelError:
        message = str(error.get("message", error)) if isinstance(error, Mapping) else str(error)
        if "too large" in message or "context size" in message:
            return InputError(
                f"a text ({excerpt(message, 120)})",
                f"a text fits into context_tokens = {self._context_tokens}; nothing is cut off",
                "Shorten it, or raise context_tokens.",
            )
        return ModelError(
            f"llama.cpp answered {excerpt(message, 200)}", "llama.cpp accepts the text", "Read its message."
        )
