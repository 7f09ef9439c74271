"""Results of tau2 and logs of inspect_ai that are read run by run, so that no such file is held as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import BinaryIO

from seasoned.checks import check_json_size
from seasoned.integrations.json_input import FileLine, Refusal, too_long
from seasoned.integrations.json_stream import PART_BYTES, JsonStream

__all__ = ["begins_log", "log_on_line", "printed_log"]

_BEGIN = re.compile(
    rb'(?:\xef\xbb\xbf)?+\s*+\{\s*+(?:"(?:timestamp|version|status|invalidated|location)"\s*+:\s*+'
    rb'(?:"(?:[^"\\]++|\\.)*+"|[-+.\w]++)\s*+,\s*+)*+'
    rb'"(?:info"\s*+:\s*+\{\s*+"(?:git_commit|num_trials|user_info|agent_info|environment_info)'
    rb'|eval"\s*+:\s*+\{\s*+"(?:eval_set_id|eval_id|run_id|created|task|task_id|model))"'
)
_RUNS = {"info": "simulations", "eval": "samples"}
"""The list of runs by the key of what is said of all of them, which stands before it."""
_OF_EACH = {"info": {"agent_info"}, "eval": {"created", "model", "run_id", "solver", "task"}}
"""What the readers take from the header; `eval` also names all samples, and `info` has the tools and rules."""
_HEADER_BYTES = 16 * 1024 * 1024
_REPEATED_BYTES = 64 * 1024  # of a header, with each run
_Runs = Generator[FileLine | Refusal, None, bool | None]
"""Runs, each in a log of its own; the result is whether all of the text was read, None if it has no list of runs."""


def begins_log(data: bytes) -> bool:
    """Return whether a text begins as results of tau2 or a log of inspect_ai.

    Example:
        >>> begins_log(b'{"version": 2, "eval": {"run_id": "r"'), begins_log(b'{"info": {"reward": 1')
        (True, False)
    """
    return _BEGIN.match(data) is not None


def log_on_line(number: int, begin: bytes, file: BinaryIO, limit: int) -> Iterator[FileLine | Refusal] | None:
    """Return the runs of a log that is a long line, each as a line of this number; None if it is something else.

    Each is a log with this run alone. After a fault, the rest of the line is refused. A log without a list of runs is
    its line.

    Args:
        number: of the line.
        begin: what was read of it.
        file: the rest of it, and the lines after it; seekable.
        limit: of the bytes of a run.
    """
    return _on_line(number, begin, file, limit) if begins_log(begin) else None


def _on_line(number: int, begin: bytes, file: BinaryIO, limit: int) -> Iterator[FileLine | Refusal]:
    start, is_over = file.tell() - len(begin), False

    def read(n_bytes: int) -> bytes:
        nonlocal is_over
        part = b"" if is_over else file.readline(n_bytes)
        is_over = is_over or part.endswith(b"\n")
        return part.removesuffix(b"\n")

    stream = JsonStream(read, limit, number, begin)
    is_read = yield from _runs(stream)
    if is_read is None:
        file.seek(start)
        part = file.readline(limit + 2)
        line = part.removesuffix(b"\n")
        yield FileLine(number, line) if len(line) <= limit else Refusal(number, too_long(limit))
        while part and not part.endswith(b"\n"):
            part = file.readline(PART_BYTES)
    elif not is_read or stream.next_char():
        yield stream.rest("log")


def printed_log(file: BinaryIO, limit: int) -> Generator[FileLine | Refusal, None, int]:
    """Yield the runs of a log that is printed over several lines, and return the number of lines before its end.

    After a fault, the rest of the file is refused. A log without a list of runs is left to be read as it is.

    Args:
        file: at its start, and seekable; then behind the log.
        limit: of the bytes of a run.
    """
    stream = JsonStream(file.read, limit)
    is_read = yield from _runs(stream)
    if is_read is None:
        file.seek(0)
        return 0
    if not is_read:
        yield stream.rest("log")
        return stream.number
    file.seek(file.tell() - stream.n_unused)
    return stream.number - 1


def _runs(stream: JsonStream) -> _Runs:
    name, said, n_lists = "", b"", 0
    while stream.next_char() != "{":  # the mark of UTF-8 may come before it
        stream.skip()
    stream.skip()
    while (char := stream.next_char()) != "}":
        if char == ",":
            stream.skip()
            continue
        key = stream.value() if char == '"' else None
        if not isinstance(key, FileLine) or stream.next_char() != ":":
            return False if n_lists else None
        stream.skip()
        this, char = key.data.strip(b'"').decode(errors="replace"), stream.next_char()
        if not name and this in _RUNS:
            value = stream.value(limit=_HEADER_BYTES)
            if not isinstance(value, FileLine):
                return False
            try:
                name, said = this, _of_each(this, value.data)
            except (ValueError, RecursionError) as error:
                stream.fail(error)
                return False
        elif name and this == _RUNS[name] and char == "[":
            n_lists += 1
            opening = b'{"%s":%s,"%s":[' % (name.encode(), said, this.encode())
            is_read = yield from _of_list(stream, opening)
            if not is_read:
                return False
        elif char == "" or stream.value(wanted=False) is None:
            return False if n_lists else None
    stream.skip()
    return True if n_lists else None


def _of_each(name: str, header: bytes) -> bytes:
    """Return what is repeated with each run: a header grows with the runs, so all of it would make a log quadratic.

    Raises:
        ValueError: the header is no JSON, or what is needed of it is long.
    """
    fields = json.loads(check_json_size(header.decode()))
    said = json.dumps({key: value for key, value in fields.items() if key in _OF_EACH[name]}).encode()
    if len(said) > _REPEATED_BYTES:
        raise ValueError(
            f"{sorted(_OF_EACH[name])} of {name!r} take {len(said)} bytes, at most {_REPEATED_BYTES} may be"
        )
    return said


def _of_list(stream: JsonStream, opening: bytes) -> Generator[FileLine | Refusal, None, bool]:
    stream.skip()
    n_runs = 0
    while (char := stream.next_char()) != "]":
        if char == ",":
            stream.skip()
        elif char == "" or (run := stream.value()) is None:
            return False
        else:
            n_runs += 1
            yield run if isinstance(run, Refusal) else _with_run(run, opening)
    stream.skip()
    if not n_runs:
        yield FileLine(stream.number, opening + b"]}")
    return True


def _with_run(run: FileLine, opening: bytes) -> FileLine:
    return FileLine(run.number, opening + run.data.replace(b"\n", b" ") + b"]}")
