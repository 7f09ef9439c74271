"""The probe of an endpoint's capabilities by tiny requests."""

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
    """Return the capabilities of an endpoint, probed by three tiny requests; more if it refuses one.

    1. 20 top logprobs (then 5, then 1, if the endpoint refuses).
    2. `logit_bias`: one token gets 100 nats, and three tokens are requested. An endpoint that honours the bias returns
       that token three times, so no tokeniser is needed. If the token also leads the returned alternatives, the
       logprobs include the bias; otherwise they were computed before it. A blank token is inconclusive, and another
       one is tried.
    3. A completion at temperature 1: some models accept no other temperature.

    `complete` raises ModelError when the endpoint refuses the request. Other errors (unavailable, timeout, rate limit,
    missing key, malformed answer) are inconclusive and are raised.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> llm = ScriptedLLM(lambda request: {"A": -0.1, "B": -2.4})
        >>> str(asyncio.run(probe(llm.complete)))
        'logprobs, top 2, no logit bias'
    """
    n_logprobs = await _top_logprobs(complete)
    capabilities = await _logit_bias(complete, Capabilities(n_logprobs > 0, n_logprobs))
    request = CompletionRequest(_QUESTION, max_tokens=_ANSWER_TOKENS, temperature=1.0)
    if await _unless_refused(complete, request) is not None:
        return replace(capabilities, samples=True)
    if not capabilities.logprobs:  # every request was refused: raise the error of a plain one
        await complete(replace(request, temperature=0.0))
    return replace(capabilities, samples=False)


async def probed_capabilities(llm: LLM) -> tuple[Capabilities, Usage]:
    """Return a model's capabilities, and the usage of probing them; empty if they were known.

    The usage of a probe is the model's `probe_usage` (see `seasoned.llms.providers.endpoint.Endpoint`).

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> asyncio.run(probed_capabilities(ScriptedLLM([])))[1].calls
        0
    """
    before: Usage | None = getattr(llm, "probe_usage", None)
    capabilities = await llm.capabilities()
    after: Usage | None = getattr(llm, "probe_usage", None)
    return capabilities, Usage() if after is None or after is before else after


async def _top_logprobs(complete: _Complete) -> int:
    for n_requested in _PROBED_TOP_LOGPROBS:
        try:
            answer = await _unless_refused(
                complete, CompletionRequest(_QUESTION, max_tokens=1, top_logprobs=n_requested)
            )
        except NoLogprobsError:
            return 0
        if answer is not None:
            return min(n_requested, len(answer.top_logprobs[0])) if answer.top_logprobs else 0
    return 0


async def _logit_bias(complete: _Complete, capabilities: Capabilities) -> Capabilities:
    for token in _FORCED_IDS:
        request = CompletionRequest(
            _QUESTION,
            max_tokens=_FORCED_TOKENS,
            temperature=0.0 if capabilities.logprobs else 1.0,
            top_logprobs=1 if capabilities.logprobs else 0,
            logit_bias={token: _FORCING_BIAS_NATS},
        )
        try:
            answer = await _unless_refused(complete, request)
        except ModelAnswerError:  # a forced token may malform an answer: inconclusive
            continue
        if answer is None:
            return replace(capabilities, logit_bias=False)
        if not answer.text.strip():
            continue
        piece = _repeated(answer.text, _FORCED_TOKENS)
        if piece is None:
            return replace(capabilities, logit_bias=False)
        leading = answer.top_logprobs[0][0].token.strip() if answer.top_logprobs else None
        return replace(capabilities, logit_bias=True, biased_logprobs=None if leading is None else leading == piece)
    return capabilities


def _repeated(text: str, times: int) -> str | None:
    """Return the piece that `text` repeats, stripped; a leading blank of the piece may be missing at an end."""
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
