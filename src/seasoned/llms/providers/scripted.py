"""A model that follows a script: deterministic, in process, for tests and documentation.

It is public so that nobody has to patch a client: what it can be told to do covers a real endpoint's faults too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from seasoned.errors import InputError, SeasonedError, excerpt
from seasoned.llms.wire.action_parser import check_tool_call
from seasoned.llms.wire.chat_completions import check_request
from seasoned.protocols import Capabilities, Completion, CompletionRequest, TokenLogprob, Usage

__all__ = ["Answer", "Script", "ScriptedLLM"]

Answer = Completion | str | Mapping[str, float] | SeasonedError
"""A whole completion, its text, one token's top logprobs (nats) by token text, or an error to raise."""

Script = Callable[[CompletionRequest], Answer] | Sequence[Answer]
"""Answers by request, or in order."""


class ScriptedLLM:
    """Answers what its script says; the same script gives the same answers.

    Args:
        script: a function of the request, or a sequence of answers, given one a call. An answer is a `Completion`, a
            text, a mapping from token to logprob (the first new token's alternatives), or a SeasonedError to raise.
        name: part of the cache key; give two scripts two names.
        max_top_logprobs: how many alternatives it returns at most; 0 makes it an endpoint without logprobs.

    Raises:
        InputError: the script is neither, or `max_top_logprobs` is negative.

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
        if max_top_logprobs < 0:
            raise InputError(
                f"max_top_logprobs = {max_top_logprobs}", "it is at least 0", "Use 0 for an endpoint without logprobs."
            )
        self._script = script
        self._name = name
        self._max_top_logprobs = max_top_logprobs
        self.requests: list[CompletionRequest] = []

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self._name

    async def capabilities(self) -> Capabilities:
        """Return what it was made to be able to do; the script is not asked."""
        return Capabilities(self._max_top_logprobs > 0, self._max_top_logprobs)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the script's answer. The request is kept in `requests`.

        Raises:
            InputError: the request breaks a rule, the script is at its end, or its answer is not an answer: the
                script's fault, which nobody counts as a model's.
            SeasonedError: whatever error the script answers with.
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

    async def aclose(self) -> None:
        """Do nothing: it holds nothing."""

    def _next(self, request: CompletionRequest) -> Answer:
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
        shown = min(request.top_logprobs, self._max_top_logprobs)
        alternatives = (tuple(ranked[:shown]),) if shown else ()
        best = ranked[0].token
        return Completion(best, self._name, _usage(request, best), "length", alternatives)


def _rank(alternative: TokenLogprob) -> tuple[float, str]:
    return (math.inf if math.isnan(alternative.logprob) else -alternative.logprob, alternative.token)


def _usage(request: CompletionRequest, answer: str) -> Usage:
    words = sum(len(message.content.split()) for message in request.messages)
    return Usage(calls=1, prompt_tokens=words, completion_tokens=len(answer.split()), cost_usd=0.0)
