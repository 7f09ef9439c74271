"""Values that a tool's result shows: an error, an exit code, an HTTP status, a field, the lines of its output."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from seasoned.integrations.field_rules import MISSING, value_at
from seasoned.integrations.json_input import parse_strict_json
from seasoned.integrations.rewards.called_commands import shows_foreign_text
from seasoned.integrations.step_results import ToolResult

__all__ = ["MAX_TEXT_CHARS", "ShownResult"]

MAX_TEXT_CHARS = 65_536
"""Of a longer result the first quarter of this and the last three quarters are read, in whole lines."""

_HEAD_CHARS = MAX_TEXT_CHARS // 4
_MAX_DEPTH = 4
_EXIT_FIELDS = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_STATUS_FIELDS = ("status_code", "statusCode", "http_status", "httpStatus", "status")
_NESTED = ("metadata", "response", "result")
_EXIT = re.compile(
    r"[\[(<]?(?:error: )?(?:the )?(?:(?:process|command|script) )?(?:(?:completed|exited|failed|finished) )?(?:with )?"
    r"(?:(?:exit|return)[ _-]?(?:code|status)|(?<=with )code)(?:[:=>] ?| )?(-?\d{1,10})(?:</\w{1,20}>)?\.?[\])]?",
    re.IGNORECASE,
)
_STATUS = re.compile(r"\s{0,8}(?:< )?HTTP(?:/\d(?:\.\d)?)? (?:error )?([1-5]\d\d)(?!\d)", re.IGNORECASE)
_STATUS_CODE = re.compile(r"(?<!\w)status(?: code|_code)?[:=]? ([1-5]\d\d)(?!\d)", re.IGNORECASE)
_ERROR_STARTS = ("error:", "<tool_use_error>", "traceback (most recent call last):", "exception:", "tool error:")
_ERROR_WORDS = {"error", "failed", "failure"}
_MAX_LINE_CHARS = 400
_HEAD_LINES, _TAIL_LINES = 4, 2


class ShownResult:
    r"""A tool's result, read once for all rules.

    Of a call that does nothing but show a text (`cat error.log`), no error, code or status is read but the mark of the
    message: they are those of the text. A command's exit code goes before what its text says.

    Args:
        result: of a tool call.
        action: the call; empty: it is not known.

    Example:
        >>> shown = ShownResult(ToolResult("bash", "ls: no such file\nExit code: 2"))
        >>> shown.exit_code, shown.is_error, shown.http_status
        (2, False, None)
        >>> ShownResult(ToolResult("fetch", '{"status": 404, "error": "not found"}')).http_status
        404
    """

    def __init__(self, result: ToolResult, action: str = "") -> None:
        self._result, self._action = result, action

    @functools.cached_property
    def _is_foreign(self) -> bool:
        return shows_foreign_text(self._action, self._result.tool)

    @functools.cached_property
    def text(self) -> str:
        """The text, cut to `MAX_TEXT_CHARS`."""
        text = self._result.text
        if len(text) <= MAX_TEXT_CHARS:
            return text
        head, tail = text[:_HEAD_CHARS], text[_HEAD_CHARS - MAX_TEXT_CHARS :]
        return "\n".join([*head.split("\n")[:-1], *tail.split("\n")[1:]])

    @functools.cached_property
    def document(self) -> Any:
        """The JSON object or list that the whole text is; None if it is none, or longer than `MAX_TEXT_CHARS`."""
        text = self._result.text
        if len(text) > MAX_TEXT_CHARS or text.lstrip()[:1] not in ("{", "["):
            return None
        try:
            return parse_strict_json(text)
        except (ValueError, RecursionError):
            return None

    @functools.cached_property
    def output(self) -> str:
        """The lines that the tool printed: the texts of a JSON document, else the text."""
        if self.document is None:
            return self.text
        return "\n".join(_texts(self.document))

    def field(self, path: str) -> Any:
        """Return the value at a path of fields of a JSON document; `MISSING` without it."""
        return MISSING if self.document is None else value_at(self.document, path)

    @functools.cached_property
    def is_error(self) -> bool:
        """Whether the tool failed: the message's own mark, a field that says so, or a text that begins as errors do."""
        document = self.document
        if self._result.is_error:
            return True
        if self._is_foreign or self.exit_code == 0:
            return False
        if isinstance(document, dict):
            if any(document.get(name) is True for name in ("isError", "is_error")):
                return True
            if any(document.get(name) is False for name in ("ok", "success")):
                return True
            status = document.get("status")
            return bool(document.get("error")) or (isinstance(status, str) and status.lower() in _ERROR_WORDS)
        return self.text[:200].lstrip().lower().startswith(_ERROR_STARTS)

    @functools.cached_property
    def exit_code(self) -> int | None:
        """The exit code of a command: a field, else a line among the first four or the last two.

        Harnesses write it there. Of two such lines the command may have printed one: that which is not 0 counts.
        """
        if self._is_foreign:
            return None
        if (code := self._number(_EXIT_FIELDS)) is not None:
            return code
        lines = [line.strip() for line in self.output.split("\n") if line.strip()]
        lines = lines if len(lines) <= _HEAD_LINES + _TAIL_LINES else lines[:_HEAD_LINES] + lines[-_TAIL_LINES:]
        found = [_EXIT.fullmatch(line) for line in lines if len(line) <= _MAX_LINE_CHARS]
        codes = [int(one[1]) for one in found if one is not None]
        return next((code for code in codes if code != 0), next(iter(codes), None))

    @functools.cached_property
    def http_status(self) -> int | None:
        """The status of a response: a field, else that of the last status line (`HTTP/1.1 404 Not Found`).

        A status in a sentence (`failed with status code 404`) is read in the first and the last line.
        """
        if self._is_foreign:
            return None
        status = self._number(_STATUS_FIELDS)
        if status is not None:
            return status if 100 <= status <= 599 else None
        lines = [line for line in self.output.split("\n") if line.strip()]
        for line in reversed(lines):
            if len(line) <= _MAX_LINE_CHARS and (found := _STATUS.match(line)):
                return int(found[1])
        for line in (*lines[:1], *lines[-1:]):
            if len(line) <= _MAX_LINE_CHARS and (found := _STATUS_CODE.search(line)):
                return int(found[1])
        return None

    def _number(self, names: tuple[str, ...]) -> int | None:
        document = self.document
        if not isinstance(document, dict):
            return None
        for fields in (document, *(document.get(name) for name in _NESTED)):
            for name in names:
                value = fields.get(name) if isinstance(fields, dict) else None
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        return None


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts of a JSON document, in their order."""
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner, depth + 1)
