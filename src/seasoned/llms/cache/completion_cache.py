"""The answer cache: a model with completions cached in one SQLite file, by the exact request."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

from seasoned.canonical_json import canonical_json
from seasoned.errors import InputError, ModelAnswerError, excerpt
from seasoned.llms.wire.chat_completions import check_request, request_digest
from seasoned.llms.wire.token_ids import missing_token_ids
from seasoned.protocols import LLM, Capabilities, Completion, CompletionRequest, TokenIds, TokenLogprob, ToolCall, Usage
from seasoned.sqlite_cache import CacheFile, CacheFormat, Codec, SqliteCache, SqlValue

__all__ = ["ANSWER_COLUMNS", "ANSWER_FORMAT", "AnswerKey", "CachedLLM"]

ANSWER_FORMAT = CacheFormat(
    noun="an answer cache",
    application_id=0x5EA50CAC,
    schema=(
        "CREATE TABLE IF NOT EXISTS answers (digest TEXT PRIMARY KEY, model TEXT NOT NULL, completion TEXT NOT NULL)"
        " WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS capabilities (model TEXT PRIMARY KEY, capabilities TEXT NOT NULL) WITHOUT ROWID",
    ),
    repair="Delete the file; the model is called again for its answers.",
)
ANSWER_COLUMNS = ("digest", "model", "completion")


class AnswerKey(NamedTuple):
    """The key of one answer: the digest of the model's name and the request, and the name."""

    digest: str
    model: str


class CachedLLM:
    """A model whose completions and capabilities are cached in a file: a repeated run costs nothing.

    The key is sha256 over canonical JSON of (the model's name, the request). A hit is the stored completion with
    `Usage(cached_calls=1, ...)`, which costs nothing. Errors are never stored. Many processes and threads may share
    the file. Equal requests in flight on one event loop are sent once.

    Args:
        llm: a model, or a function without arguments that makes one; it is called only when a completion is missing.
        path: the file; created if it is missing.
        name: the name of the model that the function makes; required with a function.

    Raises:
        InputError: a function without a name.
        ForeignStoreError: the file has another format; it is left untouched.
        NewerStoreError: a newer seasoned wrote the file.
        StoreError: the file cannot be opened.
    """

    def __init__(self, llm: LLM | Callable[[], LLM], path: str | os.PathLike[str], name: str | None = None) -> None:
        if isinstance(llm, LLM):
            self._llm: LLM | None = llm
            self._name = name or llm.name
        elif callable(llm) and name:
            self._llm = None
            self._name = name
        else:
            raise InputError(
                f"llm = {excerpt(llm)}, name = {excerpt(name)}",
                "llm must be a model, or a function that makes one together with the model's name",
                "Pass name=...",
            )
        self._make = llm
        self._file = CacheFile(path, ANSWER_FORMAT)
        self._completions: SqliteCache[AnswerKey, Completion] = SqliteCache(
            self._file, Codec("answers", ANSWER_COLUMNS, self._encode_completion, _decode_completion)
        )
        self._capabilities: SqliteCache[tuple[str], Capabilities] = SqliteCache(
            self._file, Codec("capabilities", ("model", "capabilities"), _encode_capabilities, _decode_capabilities)
        )

    @property
    def path(self) -> Path:
        """The file of the completions."""
        return Path(self._file.path)

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._name

    async def capabilities(self) -> Capabilities:
        """Return the model's capabilities, as its first probe found them.

        Raises:
            ModelError: the model had to be probed, and failed.
            StoreError: the file failed.
        """
        return await self._capabilities.get_or_compute((self._name,), lambda: self._model().capabilities())

    @property
    def probe_usage(self) -> Usage | None:
        """The wrapped model's usage for probing its capabilities; None if it was not probed."""
        usage: Usage | None = getattr(self._llm, "probe_usage", None)
        return usage

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the stored completion, or call the model and store its completion.

        Raises:
            InputError: the request breaks a rule.
            ModelError: the model had to be called, and failed.
            StoreError: the file failed.
        """
        check_request(request)
        key = AnswerKey(request_digest(self._name, request), self._name)
        return await self._completions.get_or_compute(key, lambda: self._model().complete(request))

    async def token_ids(self, text: str) -> tuple[int, ...]:
        """Return the result of the model's own `token_ids`, which is not stored.

        Raises:
            ConfigError: the model has no such method.
        """
        model = self._model()
        if not isinstance(model, TokenIds):
            raise missing_token_ids(self._name)
        return await model.token_ids(text)

    async def aclose(self) -> None:
        """Close the file, and the model if it was used."""
        self._file.park()
        if self._llm is not None:
            await self._llm.aclose()

    def _model(self) -> LLM:
        """Return the wrapped model, made at the first call."""
        if self._llm is None:
            made = self._make()  # type: ignore[operator]
            if made.name != self._name:
                raise InputError(
                    f"the function made the model {excerpt(made.name)}",
                    f"it must make the model {self._name!r}",
                    "Pass that model's name.",
                )
            self._llm = made
        return self._llm

    def _encode_completion(self, completion: Completion) -> str:
        try:
            return canonical_json(asdict(completion))
        except ValueError:
            raise ModelAnswerError(
                f"{self._name} answered {excerpt(completion, 160)}", "a logprob is finite", "Check the endpoint."
            ) from None


def _decode_completion(stored: SqlValue) -> Completion:
    fields = json.loads(stored)  # type: ignore[arg-type]
    usage = Usage(**fields["usage"])
    fields["usage"] = Usage(cached_calls=1, cached_tokens=usage.tokens, cached_usd=usage.cost_usd)
    fields["top_logprobs"] = tuple(
        tuple(TokenLogprob(entry["token"], entry["logprob"]) for entry in position)
        for position in fields["top_logprobs"]
    )
    fields["tool_calls"] = tuple(ToolCall(**call) for call in fields.get("tool_calls", ()))
    return replace(Completion("", "", Usage()), **fields)


def _encode_capabilities(capabilities: Capabilities) -> str:
    return canonical_json(asdict(capabilities))


def _decode_capabilities(stored: SqlValue) -> Capabilities:
    return Capabilities(**json.loads(stored))  # type: ignore[arg-type]
