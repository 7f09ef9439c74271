"""The token ids of a text: from the model's server, or from OpenAI's tokeniser."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

from seasoned.errors import ConfigError, ModelAnswerError, ModelUnavailableError, excerpt
from seasoned.registry import load_extra

__all__ = ["missing_token_ids", "server_token_ids", "tiktoken_ids"]

_TIKTOKEN_INSTALL = "pip install tiktoken"


def missing_token_ids(name: str) -> ConfigError:
    """Return the error of a model without token ids.

    Example:
        >>> print(missing_token_ids("m"))
        m: logit_bias names tokens by id, and the ids of this model are not available. Read it by label or votes.
    """
    return ConfigError(
        name, "logit_bias names tokens by id, and the ids of this model are not available", "Read it by label or votes."
    )


async def server_token_ids(server: str, text: str, *, model: str, key: str, timeout_s: float) -> tuple[int, ...]:
    """Return the tokens of `text` from the `/tokenize` of a llama.cpp or vLLM server, without begin or end tokens.

    Raises:
        ConfigError: the server has no `/tokenize`.
        ModelUnavailableError: the server does not answer.
        ModelAnswerError: the answer is not a list of token ids.
    """
    body = {"content": text, "add_special": False}  # llama.cpp
    body |= {"prompt": text, "model": model, "add_special_tokens": False}  # vLLM
    request = urllib.request.Request(  # noqa: S310
        f"{server}/tokenize",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    try:
        answer = await asyncio.to_thread(_load, request, timeout_s)
    except urllib.error.HTTPError as error:
        raise ConfigError(
            f"{request.full_url}: {error}",
            "token ids come from /tokenize, which llama.cpp and vLLM servers have",
            "Use such a server, or read the model by label.",
        ) from error
    except (OSError, ValueError) as error:
        raise ModelUnavailableError(
            f"{request.full_url}: {excerpt(str(error), 160)}",
            "the server returns the tokens of a text",
            "Check the server.",
        ) from error
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
        raise ModelAnswerError(
            f"{request.full_url}: {excerpt(answer)}", "the answer is a list of token ids", "Check the server."
        )
    return tuple(tokens)


def _load(request: urllib.request.Request, timeout_s: float) -> Any:
    with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310
        return json.load(response)


def tiktoken_ids(model: str, text: str) -> tuple[int, ...]:
    """Return the tokens of `text` for one of OpenAI's models; tiktoken downloads the vocabulary once and caches it.

    Raises:
        MissingExtraError: tiktoken is not installed.
        ConfigError: tiktoken does not support the model, or cannot download the vocabulary.
    """
    tiktoken = load_extra("tiktoken", "openai", _TIKTOKEN_INSTALL)
    try:
        return tuple(tiktoken.encoding_for_model(model).encode_ordinary(text))
    except KeyError as error:
        raise ConfigError(
            f"model {excerpt(model)} ({error})", "tiktoken supports the model", "Upgrade tiktoken."
        ) from error
    except Exception as error:  # errors of `requests`, which is not imported here
        raise ConfigError(
            f"tiktoken: {excerpt(str(error), 160)}",
            "tiktoken downloads a model's vocabulary once",
            "Allow it network access, or set TIKTOKEN_CACHE_DIR to the folder of the vocabulary.",
        ) from error
