"""The model providers, and the one place that opens a specification such as `local` or `openai:gpt-4o-mini`.

To add a provider, add its class to `seasoned.llms.providers`, and its name and specifications here.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, NamedTuple

from seasoned.checks import check_text, suggest
from seasoned.errors import ConfigError, InputError, UnknownNameError, excerpt
from seasoned.llms.cache.completion_cache import CachedLLM
from seasoned.llms.wire.text_scores import TextScorer
from seasoned.protocols import LLM
from seasoned.registry import Registry

__all__ = [
    "LLMS",
    "LLM_SPECIFICATIONS",
    "SCORERS",
    "SCORER_SPECIFICATIONS",
    "check_model_kind",
    "open_llm",
    "open_scorer",
]


class _Provider(NamedTuple):
    """The class behind a kind of model, and the forms of its specifications."""

    path: str
    forms: tuple[str, ...]


_LLM_PROVIDERS = {
    "local": _Provider("seasoned.llms.providers.local:LocalLLM", ("local", "local:PATH.gguf")),
    "openai": _Provider("seasoned.llms.providers.openai:OpenAILLM", ("openai:MODEL",)),
    "anthropic": _Provider("seasoned.llms.providers.anthropic:AnthropicLLM", ("anthropic:MODEL",)),
    "litellm": _Provider("seasoned.llms.providers.litellm:LiteLLM", ("litellm:PROVIDER/MODEL",)),
}
_SCORER_PROVIDERS = {
    "local": _Provider("seasoned.llms.providers.local_scorer:LocalScorer", ("local", "local:PATH.gguf")),
    "transformers": _Provider("seasoned.llms.providers.transformers:TransformersModel", ("transformers:MODEL",)),
}

LLMS = Registry("model kind", {kind: provider.path for kind, provider in _LLM_PROVIDERS.items()})
"""The kinds of chat models; each class takes the text after the colon first."""

LLM_SPECIFICATIONS = tuple(form for provider in _LLM_PROVIDERS.values() for form in provider.forms)
"""The forms of a chat model's specification, for help texts."""

SCORERS = Registry("kind of model that scores texts", {kind: each.path for kind, each in _SCORER_PROVIDERS.items()})
"""The kinds of models that return the logprob of a whole text."""

SCORER_SPECIFICATIONS = tuple(form for provider in _SCORER_PROVIDERS.values() for form in provider.forms)
"""The forms of a text scorer's specification, for help texts."""


def open_llm(spec: str, cache_path: str | os.PathLike[str] | None = None, **settings: Any) -> LLM:
    """Return the model that `spec` names: a kind, then a colon and the model's name if the kind needs one.

    The model is neither loaded nor connected to before its first call.

    Args:
        spec: one of `LLM_SPECIFICATIONS`, such as `local`, `openai:MODEL` or `litellm:PROVIDER/MODEL`.
        cache_path: cache the completions in this file (see `CachedLLM`).
        settings: passed to the model's class.

    Raises:
        UnknownNameError: no kind has this name.
        ConfigError: the kind needs a model's name.
        InputError: the kind has no such setting.
        SeasonedError: an error of the model's class.

    Example:
        >>> from seasoned.errors import UnknownNameError
        >>> try:
        ...     open_llm("opnai:gpt-4o-mini")
        ... except UnknownNameError as error:
        ...     "openai" in str(error)
        True
    """
    llm: LLM = _open(LLMS, spec, settings)
    return llm if cache_path is None else CachedLLM(llm, cache_path)


def open_scorer(spec: str, **settings: Any) -> TextScorer:
    """Return the text scorer that `spec` names, for `ExactReader`: one of `SCORER_SPECIFICATIONS`.

    Raises:
        UnknownNameError: no kind has this name.
        ConfigError: the kind needs a model's name.
        InputError: the kind has no such setting.
        SeasonedError: an error of the model's class.
    """
    scorer: TextScorer = _open(SCORERS, spec, settings)
    return scorer


def check_model_kind(spec: str, kinds: Collection[str]) -> None:
    """Refuse a model specification of an unknown kind; a model's name alone, such as `gpt-4o-mini`, is one.

    Raises:
        UnknownNameError: no kind has this name.
    """
    kind, colon, _ = spec.partition(":")
    if kind in kinds:
        return
    next_step = suggest(kind, kinds)
    if not colon and "openai" in kinds and not next_step.startswith("Did you mean"):
        next_step = f"Write openai:{spec} for a model of an OpenAI-compatible endpoint. {next_step}"
    raise UnknownNameError(f"model {excerpt(spec)}", "no kind of model has this name", next_step)


def _open(kinds: Registry, spec: str, settings: dict[str, Any]) -> Any:
    kind, _, model = check_text("model specification", spec).partition(":")
    check_model_kind(spec, kinds.names())
    constructor = kinds.load(kind)
    if not model and kind not in (*LLM_SPECIFICATIONS, *SCORER_SPECIFICATIONS):
        raise ConfigError(f"model specification {spec!r}", f"{kind} needs a model's name", f"Write {kind}:MODEL.")
    try:
        return constructor(*([model] if model else []), **settings)
    except TypeError as error:
        raise InputError(
            f"settings {excerpt(settings)} ({error})",
            f"settings must be arguments of {constructor.__name__}",
            f"See {constructor.__name__}.",
        ) from error
