"""Scores of whole texts kept on disk, beside a model's answers: a repeated reading costs nothing and says the same."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.llms.cache.answer_file import AnswerFile
from seasoned.llms.cache.completion_cache import CachedLLM
from seasoned.llms.wire.text_scores import TextScorer, TextScores, check_question
from seasoned.protocols import LLM, Message, Usage

__all__ = ["CachedScorer"]


class CachedScorer:
    """A model that scores texts, whose scores are kept in a file: a `TextScorer`, for `ExactReader`.

    The key is sha256 over canonical JSON of (the model's name, the messages, the texts in their order). A hit is the
    stored scores with a usage of cached calls, which costs nothing. Errors are never stored. The file may be one of
    `CachedLLM`, and is shared in the same way.

    Args:
        scorer: the model.
        path: the file; made if it is missing.

    Raises:
        ForeignStoreError: the file is something else; it is left untouched.
        NewerStoreError: a newer seasoned wrote it.
        StoreError: the file cannot be opened.
    """

    def __init__(self, scorer: TextScorer, path: str | os.PathLike[str]) -> None:
        self._scorer = scorer
        self._kept = AnswerFile(path)
        self._llm = CachedLLM(scorer, path) if isinstance(scorer, LLM) else None

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._scorer.name

    @property
    def llm(self) -> CachedLLM | None:
        """The same model for text, its answers kept in the same file; None if it only scores."""
        return self._llm

    async def score(self, messages: Sequence[Message], texts: Sequence[str]) -> TextScores:
        """Return the stored scores, or ask and store.

        Raises:
            InputError: no messages or texts, or one that is blank or not a text.
            ModelError: the model had to be asked, and failed.
            StoreError: the file failed.
        """
        check_question(messages, texts)
        asked = canonical_json(["scores", self.name, [asdict(message) for message in messages], list(texts)])
        digest = hashlib.sha256(asked.encode()).hexdigest()
        async with self._kept.turn(digest):
            stored = self._kept.answer(digest)
            if stored is not None:
                with self._kept.decoding():
                    return _decode(stored)
            scores = await self._scorer.score(messages, texts)
            self._kept.keep(digest, self.name, canonical_json(asdict(scores)))
            return scores

    async def aclose(self) -> None:
        """Close the file, and the model if it can be closed."""
        self._kept.close()
        if self._llm is not None:
            await self._llm.aclose()


def _decode(stored: str) -> TextScores:
    fields: dict[str, Any] = json.loads(stored)
    asked = Usage(**fields["usage"])
    return TextScores(
        fields["model"],
        tuple(fields["texts"]),
        tuple(map(tuple, fields["token_ids"])),
        tuple(map(tuple, fields["token_logprobs"])),
        tuple(fields["prompt_ids"]),
        tuple(fields["end_token_ids"]),
        Usage(cached_calls=asked.calls, cached_tokens=asked.tokens, cached_usd=asked.cost_usd),
    )
