"""A specification to a model: `local`, `local:/path/model.gguf`, `openai:gpt-4o-mini`, `litellm:anthropic/...`."""

from __future__ import annotations

import os
from typing import Any

from seasoned.checks import check_text
from seasoned.errors import ConfigError, InputError, excerpt
from seasoned.llms.cache.completion_cache import CachedLLM
from seasoned.llms.wire.text_scores import TextScorer
from seasoned.protocols import LLM
from seasoned.registry import Registry

__all__ = ["LLMS", "SCORERS", "open_llm", "open_scorer"]

LLMS = Registry(
    "model kind",
    {
        "litellm": "seasoned.llms.providers.litellm:LiteLLM",
        "local": "seasoned.llms.providers.local:LocalLLM",
        "openai": "seasoned.llms.providers.openai:OpenAILLM",
    },
)
"""Model kinds that a specification can name; each takes the text after the colon first."""

SCORERS = Registry(
    "kind of model that scores texts",
    {
        "local": "seasoned.llms.providers.local_scorer:LocalScorer",
        "transformers": "seasoned.llms.providers.transformers:TransformersModel",
    },
)
"""Model kinds that can be asked for the logprob of a whole text, named in the same way."""


def open_llm(spec: str, cache_path: str | os.PathLike[str] | None = None, **settings: Any) -> LLM:
    """Return the model that `spec` names: a kind, then a colon and the model where the kind needs one.

    Nothing heavy happens before the first call: the local model is not loaded, no connection is made.

    Args:
        spec: `local`, `local:PATH.gguf`, `openai:MODEL`, or `litellm:PROVIDER/MODEL`.
        cache_path: keep answers in this file (see `CachedLLM`).
        settings: passed to the model's class.

    Raises:
        UnknownNameError: no such kind.
        ConfigError: the kind needs a model's name.
        InputError: a setting that the kind does not have.
        SeasonedError: what the model's class raises.
    """
    llm: LLM = _make(LLMS, spec, settings)
    return llm if cache_path is None else CachedLLM(llm, cache_path)


def open_scorer(spec: str, **settings: Any) -> TextScorer:
    """Return the model that `spec` names, for `ExactReader`: `local`, `local:PATH.gguf`, or `transformers:MODEL`.

    Raises:
        UnknownNameError: no such kind.
        ConfigError: the kind needs a model's name.
        InputError: a setting that the kind does not have.
        SeasonedError: what the model's class raises.
    """
    scorer: TextScorer = _make(SCORERS, spec, settings)
    return scorer


def _make(kinds: Registry, spec: str, settings: dict[str, Any]) -> Any:
    kind, _, model = check_text("model specification", spec).partition(":")
    make = kinds.load(kind)
    if not model and kind != "local":
        raise ConfigError(f"model specification {spec!r}", f"{kind} needs a model's name", f"Write {kind}:MODEL.")
    try:
        return make(*([model] if model else []), **settings)
    except TypeError as error:
        raise InputError(
            f"settings {excerpt(settings)} ({error})", f"they are settings of {kind}", f"See {make.__name__}."
        ) from error
