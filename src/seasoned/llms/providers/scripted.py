"""A scripted model: deterministic, in process, for tests and documentation.

It is public so that no test has to patch a client: a script can contain the faults of a real endpoint as well.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping, Sequence

from seasoned.checks import check_whole
from seasoned.errors import InputError, SeasonedError, excerpt
from seasoned.llms.wire.chat_completions import check_request, check_tool_call
from seasoned.protocols import Capabilities, Completion, CompletionRequest, TokenLogprob, Usage

__all__ = ["Script", "ScriptedAnswer", "ScriptedLLM"]

ScriptedAnswer = Completion | str | Mapping[str, float] | SeasonedError
"""A scripted answer: a completion, its text, one token's top logprobs (nats) by token text, or an error to raise."""

Script = Callable[[CompletionRequest], ScriptedAnswer] | Sequence[ScriptedAnswer]
"""A script: a function of the request, or answers in order."""


class ScriptedLLM:
    """A model that returns the answers of its script; equal scripts give equal answers.

    Args:
        script: a function of the request, or a sequence with one answer a call. An answer is a `Completion`, a text, a
            mapping from token to logprob (the first new token's alternatives), or a SeasonedError to raise.
        name: the model's name, which is part of the cache key; give two scripts two names.
        max_top_logprobs: the largest number of returned alternatives; 0 is an endpoint without logprobs.

    Raises:
        InputError: the script is something else, or `max_top_logprobs` is negative.

    Example:
        >>> from seasoned.protocols import CompletionRequest, Message
        >>> from seasoned.sync import Sync
        >>> llm = ScriptedLLM(["yes", "no"])
        >>> request = CompletionRequest((Message("user", "Ready?"),))
        >>> with Sync(llm) as model:
        ...     [model.complete(request).text, model.complete(request).text]
        ['yes', 'no']
    """

    def __init__(self, script: Script, name: str = "scripted", max_top_logprobs: int = 20) -> None:
        if isinstance(script, str | bytes) or not (callable(script) or isinstance(script, Sequence)):
            raise InputError(
                f"script = {excerpt(script)}", "a script is a function or a sequence of answers", "Pass [answer]."
            )
        self._script = script
        self._name = name
        self._max_top_logprobs = check_whole("max_top_logprobs", max_top_logprobs, 0)
        self.requests: list[CompletionRequest] = []

    @property
    def name(self) -> str:
        """The given name."""
        return self._name

    async def capabilities(self) -> Capabilities:
        """Return the given capabilities; the script is not called."""
        return Capabilities(self._max_top_logprobs > 0, self._max_top_logprobs)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the script's answer. The request is appended to `requests`.

        Raises:
            InputError: the request breaks a rule, the script is at its end, or its answer is something else: a fault of
                the script, which does not count as a model's.
            SeasonedError: the error in the script.
        """
        check_request(request)
        self.requests.append(request)
        answer = self._next(request)
        if isinstance(answer, SeasonedError):
            raise answer
        if isinstance(answer, Completion):
            for call in answer.tool_calls:
                check_tool_call(call)
            return answer
        if isinstance(answer, str):
            return Completion(answer, self._name, _usage(request, answer), "stop")
        if isinstance(answer, Mapping) and answer:
            return self._from_logprobs(request, answer)
        raise InputError(
            f"the script answered {excerpt(answer)}",
            "an answer is a Completion, a str, a mapping from token to logprob, or a SeasonedError",
            "Correct the script.",
        )

    async def stream(self, request: CompletionRequest, show: Callable[[str], object]) -> Completion:
        """Return the script's answer; `show` gets its text word by word, and other tasks run between the words."""
        answer = await self.complete(request)
        for word in re.findall(r"\s*+\S++\s*+|\s++", answer.text):
            show(word)
            await asyncio.sleep(0)
        return answer

    async def aclose(self) -> None:
        """Do nothing: there is nothing to release."""

    def _next(self, request: CompletionRequest) -> ScriptedAnswer:
        if callable(self._script):
            return self._script(request)
        index = len(self.requests) - 1
        if index >= len(self._script):
            raise InputError(
                f"call {index + 1} of a script of {len(self._script)} answers",
                "the script is at its end",
                "Add answers, or make the script a function of the request.",
            )
        return self._script[index]

    def _from_logprobs(self, request: CompletionRequest, answer: Mapping[str, float]) -> Completion:
        ranked = sorted((TokenLogprob(token, float(logprob)) for token, logprob in answer.items()), key=_rank)
        n_returned = min(request.top_logprobs, self._max_top_logprobs)
        alternatives = (tuple(ranked[:n_returned]),) if n_returned else ()
        best = ranked[0].token
        return Completion(best, self._name, _usage(request, best), "length", alternatives)


def _rank(alternative: TokenLogprob) -> tuple[float, str]:
    return (math.inf if math.isnan(alternative.logprob) else -alternative.logprob, alternative.token)


def _usage(request: CompletionRequest, answer: str) -> Usage:
    words = sum(len(message.content.split()) for message in request.messages)
    return Usage(calls=1, prompt_tokens=words, completion_tokens=len(answer.split()), cost_usd=0.0)
