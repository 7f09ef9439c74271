"""Finding out what an endpoint can do, by asking it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from seasoned.errors import ModelAnswerError, ModelError, NoLogprobsError, RateLimitError
from seasoned.protocols import LLM, Capabilities, Completion, CompletionRequest, Message, Usage

__all__ = ["probe", "probed_capabilities"]

_PROBED_TOP_LOGPROBS = (20, 5, 1)
_QUESTION = (Message("user", "Answer with one letter: A or B?"),)
_FORCED_TOKENS = 3
_FORCING_BIAS_NATS = 100.0
_FORCED_IDS = (1000, 2000)
_ANSWER_TOKENS = 16

_Complete = Callable[[CompletionRequest], Awaitable[Completion]]


async def probe(complete: _Complete) -> Capabilities:
    """Find out what an endpoint can do, with three tiny requests; more only where it refuses one.

    1. 20 top logprobs (then 5, then 1, where it refuses). 2. `logit_bias`: one token is given 100 nats, and three
    tokens are asked for. Where the bias is honoured the answer is
       that token three times, whatever it is, so no tokeniser is needed. If that token also leads the returned
       alternatives, the logprobs include the bias; otherwise they were taken before it. A token that is blank says
       nothing, and another is tried.
    3. An answer at temperature 1: some models accept no other temperature.

    `complete` raises ModelError when the endpoint refuses the request. Other failures (down, slow, rate limited, no
    key, nonsense) say nothing about what it can do: they pass through.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> llm = ScriptedLLM(lambda request: {"A": -0.1, "B": -2.4})
        >>> str(asyncio.run(probe(llm.complete)))
        'logprobs, top 2, no logit bias'
    """
    shown = await _top_logprobs(complete)
    found = await _logit_bias(complete, Capabilities(shown > 0, shown))
    request = CompletionRequest(_QUESTION, max_tokens=_ANSWER_TOKENS, temperature=1.0)
    if await _unless_refused(complete, request) is not None:
        return replace(found, samples=True)
    if not found.logprobs:  # nothing has been answered yet: say why
        await complete(replace(request, temperature=0.0))
    return replace(found, samples=False)


async def probed_capabilities(llm: LLM) -> tuple[Capabilities, Usage]:
    """Return what a model can do, and what finding out has cost just now: nothing where it was known.

    A model that had to be asked says what that cost in `probe_usage` (see `seasoned.llms.providers.endpoint.Endpoint`).

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> asyncio.run(probed_capabilities(ScriptedLLM([])))[1].calls
        0
    """
    known: Usage | None = getattr(llm, "probe_usage", None)
    can = await llm.capabilities()
    spent: Usage | None = getattr(llm, "probe_usage", None)
    return can, Usage() if spent is None or spent is known else spent


async def _top_logprobs(complete: _Complete) -> int:
    for asked in _PROBED_TOP_LOGPROBS:
        try:
            answer = await _unless_refused(complete, CompletionRequest(_QUESTION, max_tokens=1, top_logprobs=asked))
        except NoLogprobsError:
            return 0
        if answer is not None:
            return min(asked, len(answer.top_logprobs[0])) if answer.top_logprobs else 0
    return 0


async def _logit_bias(complete: _Complete, found: Capabilities) -> Capabilities:
    for token in _FORCED_IDS:
        request = CompletionRequest(
            _QUESTION,
            max_tokens=_FORCED_TOKENS,
            temperature=0.0 if found.logprobs else 1.0,
            top_logprobs=1 if found.logprobs else 0,
            logit_bias={token: _FORCING_BIAS_NATS},
        )
        try:
            answer = await _unless_refused(complete, request)
        except ModelAnswerError:  # what a forced token does to an answer's form says nothing
            continue
        if answer is None:
            return replace(found, logit_bias=False)
        if not answer.text.strip():
            continue
        piece = _repeated(answer.text, _FORCED_TOKENS)
        if piece is None:
            return replace(found, logit_bias=False)
        leading = answer.top_logprobs[0][0].token.strip() if answer.top_logprobs else None
        return replace(found, logit_bias=True, biased_logprobs=None if leading is None else leading == piece)
    return found


def _repeated(text: str, times: int) -> str | None:
    """The piece that makes up `text`, `times` over; the blank that some tokens begin with may be missing at an end."""
    for whole in (text, text.strip(), f" {text}", f"{text} "):
        piece = whole[: len(whole) // times]
        if piece * times == whole:
            return piece.strip()
    return None


async def _unless_refused(complete: _Complete, request: CompletionRequest) -> Completion | None:
    try:
        return await complete(request)
    except ModelError as error:
        if isinstance(error, RateLimitError) or type(error) is not ModelError:
            raise
        return None
