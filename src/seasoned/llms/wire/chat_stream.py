"""Chunks of a streamed chat-completions answer, put together to the body of an answer that came in one piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from seasoned.errors import ModelAnswerError, ModelUnavailableError, excerpt

__all__ = ["ChunkSum", "streamed_items"]


async def streamed_items(stream: Any, total: ChunkSum, name: str) -> AsyncGenerator[Any, None]:
    """Yield the items of a client's stream, which is closed at the end.

    Args:
        stream: of the official clients.
        total: of the items so far.
        name: of the model.

    Raises:
        ModelUnavailableError: it broke off after the first piece; an earlier error is raised as it is.
    """
    items = aiter(stream)
    try:
        while True:
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
            except Exception as error:
                if not total.began:
                    raise
                seen = f"{name}: the answer broke off ({type(error).__name__}: {excerpt(str(error), 120)})"
                raise ModelUnavailableError(seen, "an answer comes to its end", "Ask again.") from error
            yield item
    finally:
        await stream.close()


class ChunkSum:
    """The sum of a stream's chunks; new text is passed on as it comes.

    Args:
        show: gets each new piece of text.
        max_chars: of text and arguments together; a stream that is longer is cut off, with the reason `length`.

    Attributes:
        began: whether a piece of text or of a call came.
        is_full: whether the limit is reached.

    Example:
        >>> answer = ChunkSum(print)
        >>> answer.add({"choices": [{"delta": {"content": "Rea"}}]})
        Rea
        >>> answer.add({"choices": [{"delta": {"content": "dy."}, "finish_reason": "stop"}]})
        dy.
        >>> answer.body()["choices"][0]["message"]["content"]
        'Ready.'
    """

    def __init__(self, show: Callable[[str], object], max_chars: int = 1 << 20) -> None:
        self._show = show
        self._room = max_chars
        self._texts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._usage: Mapping[str, Any] | None = None
        self._reason: str | None = None
        self.began = self.is_full = False

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add the next chunk.

        Raises:
            ModelAnswerError: it is no chunk, or an error of the server.
        """
        if not isinstance(chunk, Mapping) or chunk.get("error"):
            raise ModelAnswerError(f"the endpoint sent {excerpt(chunk, 200)}", "a stream has chunks", "Ask again.")
        if isinstance(usage := chunk.get("usage"), Mapping):
            self._usage = usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        delta = choice.get("delta")
        if isinstance(reason := choice.get("finish_reason"), str):
            self._reason = reason
        if not isinstance(delta, Mapping):
            return
        if isinstance(text := delta.get("content"), str) and text:
            self._add_text(text)
        for place, call in enumerate(delta.get("tool_calls") or ()):
            self._add_call(place, call)

    def _add_text(self, text: str) -> None:
        self.began = True
        text = self._within(text)
        self._texts.append(text)
        if text:
            self._show(text)

    def _add_call(self, place: int, call: object) -> None:
        if not isinstance(call, Mapping):
            return
        self.began = True
        at = call.get("index")
        kept = self._calls.setdefault(at if isinstance(at, int) else place, {"id": "", "name": "", "arguments": ""})
        kept["id"] = kept["id"] or str(call.get("id") or "")
        function = call.get("function")
        for field in ("name", "arguments"):
            part = function.get(field) if isinstance(function, Mapping) else None
            if isinstance(part, str):
                kept[field] += self._within(part)

    def _within(self, text: str) -> str:
        kept = text[: self._room]
        self._room -= len(kept)
        self.is_full = self.is_full or len(kept) < len(text)
        return kept

    def body(self) -> dict[str, Any]:
        """Return the answer as `read_completion` reads it; its usage is empty where the stream stated none."""
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
            for _, call in sorted(self._calls.items())
        ]
        message: dict[str, Any] = {"content": "".join(self._texts)}
        if calls:
            message["tool_calls"] = calls
        usage = self._usage or {"prompt_tokens": 0, "completion_tokens": 0}
        reason = "length" if self.is_full else self._reason
        return {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}

    @property
    def is_empty(self) -> bool:
        """Whether nothing came, and no reason for its end: it was no stream."""
        return not self.began and self._reason is None

    @property
    def has_usage(self) -> bool:
        """Whether the stream stated its token counts."""
        return self._usage is not None
