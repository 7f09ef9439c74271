"""Answers kept on disk, one SQLite file, by exact request: a repeated run costs nothing and says the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from seasoned.canonical_json import canonical_json
from seasoned.errors import InputError, ModelAnswerError, excerpt
from seasoned.llms.cache.answer_file import AnswerFile
from seasoned.llms.wire.chat_completions import check_request, request_digest
from seasoned.llms.wire.token_ids import no_token_ids
from seasoned.protocols import LLM, Capabilities, Completion, CompletionRequest, TokenIds, TokenLogprob, ToolCall, Usage

__all__ = ["CachedLLM"]


class CachedLLM:
    """A model whose answers, and capabilities, are kept in a file.

    The key is sha256 over canonical JSON of (the model's name, the request). A hit is the stored answer with
    `Usage(cached_calls=1, ...)`, which costs nothing. Errors are never stored. Many processes and threads may share
    the file. Equal requests made at the same time on one event loop are asked once.

    Args:
        llm: a model, or a function without arguments that makes one; it is called only when an answer is missing.
        path: the file; made if it is missing.
        name: needed with a function: the name of the model that it makes.

    Raises:
        InputError: a function without a name.
        ForeignStoreError: the file is something else; it is left untouched.
        NewerStoreError: a newer seasoned wrote it.
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
                "it is a model, or a function that makes one together with the model's name",
                "Pass name=...",
            )
        self._make = llm
        self._kept = AnswerFile(path)

    @property
    def path(self) -> Path:
        """The file of the answers."""
        return Path(self._kept.path)

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._name

    async def capabilities(self) -> Capabilities:
        """Return what the model can do, as it was found when it was first asked.

        Raises:
            ModelError: the model had to be asked, and failed.
            StoreError: the file failed.
        """
        async with self._kept.turn("capabilities"):
            stored = self._kept.capabilities(self._name)
            if stored is not None:
                with self._kept.decoding():
                    return Capabilities(**json.loads(stored))
            found = await self._wrapped().capabilities()
            self._kept.keep_capabilities(self._name, canonical_json(asdict(found)))
            return found

    @property
    def probe_usage(self) -> Usage | None:
        """What the wrapped model spent on finding out what it can do; None if it was not asked."""
        spent: Usage | None = getattr(self._llm, "probe_usage", None)
        return spent

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the stored answer, or ask and store.

        Raises:
            InputError: the request breaks a rule.
            ModelError: the model had to be asked, and failed.
            StoreError: the file failed.
        """
        check_request(request)
        digest = request_digest(self._name, request)
        async with self._kept.turn(digest):
            stored = self._kept.answer(digest)
            if stored is not None:
                with self._kept.decoding():
                    return _decode(stored)
            answer = await self._wrapped().complete(request)
            try:
                text = canonical_json(asdict(answer))
            except ValueError:
                raise ModelAnswerError(
                    f"{self._name} answered {excerpt(answer, 160)}", "a logprob is finite", "Check the endpoint."
                ) from None
            self._kept.keep(digest, self._name, text)
            return answer

    async def token_ids(self, text: str) -> tuple[int, ...]:
        """Return what the model's own `token_ids` returns; not kept.

        Raises:
            ConfigError: the model has none.
        """
        wrapped = self._wrapped()
        if not isinstance(wrapped, TokenIds):
            raise no_token_ids(self._name)
        return await wrapped.token_ids(text)

    async def aclose(self) -> None:
        """Close the file, and the model if it was used."""
        self._kept.close()
        if self._llm is not None:
            await self._llm.aclose()

    def _wrapped(self) -> LLM:
        if self._llm is None:
            made = self._make()  # type: ignore[operator]
            if made.name != self._name:
                raise InputError(
                    f"the function made {excerpt(made.name)}", f"it makes {self._name!r}", "Pass that model's name."
                )
            self._llm = made
        return self._llm


def _decode(stored: str) -> Completion:
    fields = json.loads(stored)
    asked = Usage(**fields["usage"])
    fields["usage"] = Usage(cached_calls=1, cached_tokens=asked.tokens, cached_usd=asked.cost_usd)
    fields["top_logprobs"] = tuple(
        tuple(TokenLogprob(entry["token"], entry["logprob"]) for entry in position)
        for position in fields["top_logprobs"]
    )
    fields["tool_calls"] = tuple(ToolCall(**call) for call in fields.get("tool_calls", ()))
    return replace(Completion("", "", Usage()), **fields)
