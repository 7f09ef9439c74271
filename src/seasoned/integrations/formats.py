"""Registry of foreign formats, and the reader of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from seasoned.errors import InputError
from seasoned.integrations.atif import read_atif, trajectories
from seasoned.integrations.json_input import (
    MAX_LINE_BYTES,
    Document,
    FileLine,
    ReadEpisode,
    ReadResult,
    Refusal,
    documents,
    reason,
)
from seasoned.integrations.openai_chat import read_chat
from seasoned.registry import Registry

__all__ = ["FORMATS", "read_atif_documents", "read_chat_documents", "read_episodes"]

FORMATS = Registry(
    "format",
    {
        "atif": "seasoned.integrations.formats:read_atif_documents",
        "openai": "seasoned.integrations.formats:read_chat_documents",
        "otel": "seasoned.integrations.otel:read_otel",
    },
)
"""Foreign formats by name; each is a function from JSON values to episodes and refusals."""


def read_episodes(
    format: str,  # noqa: A002
    lines: Iterable[bytes | FileLine | Refusal],
    *,
    evaluation: str | None = None,
    max_document_bytes: int = MAX_LINE_BYTES,
) -> Iterator[ReadResult]:
    """Yield the episodes of a foreign file, and a refusal with line and reason for each value that is no episode.

    The content of the file never raises an error: a bad value is refused, and reading continues. Reading a file again
    gives the same episode ids. A value may be on one line, or on several.

    Args:
        format: `atif`, `openai` or `otel`.
        lines: the file's lines as bytes; `bounded_lines(file)` limits their length in memory.
        evaluation: for `otel` only, the evaluation whose score is the reward, if there are several.
        max_document_bytes: limit of a JSON value.

    Raises:
        UnknownNameError: no format has this name.
        InputError: another argument breaks a rule.

    Example:
        >>> chat = b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}'
        >>> for read in read_episodes("openai", [chat, b"{"]):
        ...     print(read if isinstance(read, Refusal) else read.episode.steps[0].action)
        Hello
        line 2: not JSON: Expecting property name enclosed in double quotes at character 1
    """
    read = FORMATS.load(format)
    values = documents(lines, max_document_bytes)
    if evaluation is None:
        return read(values)  # type: ignore[no-any-return]
    if format != "otel":
        raise InputError(f"evaluation = {evaluation!r}", f"{format!r} has no evaluations", "Leave it out.")
    return read(values, evaluation=evaluation)  # type: ignore[no-any-return]


def read_atif_documents(values: Iterable[Document | Refusal]) -> Iterator[ReadResult]:
    """Yield the episodes of ATIF documents, including those of embedded sub-agents; see `atif.read_atif`."""
    split = (each for value in values for each in ([value] if isinstance(value, Refusal) else trajectories(value)))
    return _each(read_atif, split)


def read_chat_documents(values: Iterable[Document | Refusal]) -> Iterator[ReadResult]:
    """Yield the episodes of chat-completion transcripts; see `openai_chat.read_chat`."""
    return _each(read_chat, values)


def _each(
    read: Callable[[Document], Iterator[ReadEpisode]], values: Iterable[Document | Refusal]
) -> Iterator[ReadResult]:
    for value in values:
        if isinstance(value, Refusal):
            yield value
            continue
        try:
            yield from read(value)
        except (ValueError, OverflowError, RecursionError) as error:
            yield Refusal(value.line, reason(error))
