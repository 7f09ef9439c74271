"""Files of traces: plain, in folders, compressed by gzip, `.eval` archives of inspect_ai, events of OpenHands."""

from __future__ import annotations

import gzip
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from seasoned.checks import check_file_name
from seasoned.errors import InputError, NotFoundError
from seasoned.integrations.json_input import MAX_LINE_BYTES, FileLine, Refusal
from seasoned.integrations.list_lines import document_lines

__all__ = ["TRACE_SUFFIXES", "TraceFile", "open_lines", "trace_files"]

TRACE_SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".gz")
"""Suffixes of the files that are read in a folder; a file that is named itself may have any."""
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_EVENTS, _EVENT = "events", re.compile(r"\A(?:event-)?(\d{1,9})(?:-.*)?\.json\Z")
_HEADERS = ("header.json", "_journal/start.json")  # the second is all that a run has which did not end
_SAMPLES = "samples/"
_CONVERT = "convert the log: inspect log convert LOG --to json --output-dir FOLDER"


class TraceFile(NamedTuple):
    """A file of traces: its name, and a function that reads its lines from the start."""

    name: str
    lines: Callable[[], Iterator[FileLine | Refusal]]


def trace_files(sources: Sequence[str], max_line_bytes: int = MAX_LINE_BYTES) -> tuple[list[TraceFile], Counter[str]]:
    """Return the files of some paths, with those in folders by name, and what is passed over there, by suffix.

    Args:
        sources: files and folders.
        max_line_bytes: limit of a line, and of a file that is one.

    Raises:
        NotFoundError: a path does not exist.
        InputError: a folder has no file of traces, or a name is not allowed.
    """
    files: list[TraceFile] = []
    skipped: Counter[str] = Counter()
    for source in sources:
        check_file_name(source)
        if not Path(source).is_dir():
            files.append(_file(source, max_line_bytes))
            continue
        found = sorted(str(path) for path in Path(source).rglob("*") if path.is_file())
        inside = [path for path in found if path.lower().endswith(TRACE_SUFFIXES)]
        skipped.update(f"files {Path(path).suffix or 'without a suffix'}" for path in set(found) - set(inside))
        if not inside:
            raise InputError(
                f"{source} has no file of traces",
                f"a folder needs files {', '.join(TRACE_SUFFIXES)}",
                "Name the files.",
            )
        files += [_file(path, max_line_bytes) for path in inside]
    return _with_events_joined(files, max_line_bytes), skipped


def _with_events_joined(files: list[TraceFile], max_line_bytes: int) -> list[TraceFile]:
    """Return the files; those in a folder `events` with an event each, as OpenHands writes them, are one file."""
    folders: dict[Path, list[tuple[int, str]]] = {}
    for file in files:
        path = Path(file.name)
        if path.parent.name == _EVENTS and (match := _EVENT.fullmatch(path.name)):
            folders.setdefault(path.parent, []).append((int(match[1]), file.name))
    joined = {folder: [name for _, name in sorted(events)] for folder, events in folders.items() if len(events) > 1}
    several = {name: folder for folder, names in joined.items() for name in names}
    result: dict[str, TraceFile] = {}
    for file in files:
        folder = several.get(file.name)
        name = file.name if folder is None else str(folder)
        if name not in result:
            result[name] = file if folder is None else _joined(name, joined[folder], max_line_bytes)
    return list(result.values())


def _joined(name: str, paths: Sequence[str], max_line_bytes: int) -> TraceFile:
    """Return files as one, with each as a line."""

    def lines() -> Iterator[FileLine | Refusal]:
        for number, path in enumerate(paths, 1):
            joined = bytearray()
            for line in open_lines(path, max_line_bytes):
                if isinstance(line, Refusal):
                    yield Refusal(number, f"{Path(path).name}: {line.reason}")
                    break
                joined += (b" " if joined else b"") + line.data
                if len(joined) > max_line_bytes:
                    yield Refusal(number, f"{Path(path).name}: longer than {max_line_bytes} bytes")
                    break
            else:
                yield FileLine(number, bytes(joined))

    return TraceFile(name, lines)


def _file(path: str, max_line_bytes: int) -> TraceFile:
    if not Path(path).exists():
        raise NotFoundError(f"{path}", "this file does not exist", "Check the path; `-` reads stdin.")
    return TraceFile(path, lambda: open_lines(path, max_line_bytes))


def open_lines(path: str, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[FileLine | Refusal]:
    """Yield the lines of a file; what is damaged in an archive is a refusal.

    Of an `.eval` archive, the header is line 1, and the samples follow, one a line.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start.startswith(_GZIP):
                yield from _unpacked(file, max_line_bytes)
            elif start.startswith(_ZIP):
                yield from _members(file, max_line_bytes)
            else:
                yield from document_lines(cast("BinaryIO", file), max_line_bytes)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}", "it must be a file that can be read", "Name another one."
        ) from error


def _unpacked(file: IO[bytes], max_line_bytes: int) -> Iterator[FileLine | Refusal]:
    number = 0
    with gzip.open(file) as unpacked:
        lines = document_lines(cast("BinaryIO", unpacked), max_line_bytes)
        while True:
            try:
                line = next(lines, None)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                yield Refusal(number + 1, f"damaged gzip: {error}")
                return
            if line is None:
                return
            number = line.number if isinstance(line, FileLine) else line.line
            yield line


def _members(file: IO[bytes], max_line_bytes: int) -> Iterator[FileLine | Refusal]:
    try:
        archive = zipfile.ZipFile(file)
    except NotImplementedError as error:  # a zip of a version that Python does not read is not damaged
        yield Refusal(1, f"a zip that Python does not read: {error}; {_CONVERT}")
        return
    except (zipfile.BadZipFile, ValueError) as error:
        yield Refusal(1, f"damaged zip: {error}")
        return
    with archive:
        samples = sorted((one for one in archive.infolist() if _is_sample(one)), key=lambda one: one.filename)
        headers = [one for name in _HEADERS for one in archive.infolist() if one.filename == name]
        if not headers:
            yield Refusal(1, "a zip without header.json, so no inspect_ai log: unpack it, and import its files")
            return
        for number, member in enumerate([headers[0], *samples], 1):
            try:
                with archive.open(member) as opened:
                    data = opened.read(max_line_bytes + 1)
            except NotImplementedError:
                yield Refusal(
                    number, f"{member.filename[:80]!a}: compressed by a method that Python does not read; {_CONVERT}"
                )
                continue
            except (zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as error:
                yield Refusal(number, f"{member.filename[:80]!a}: damaged: {error}")
                continue
            if len(data) > max_line_bytes:
                yield Refusal(number, f"{member.filename[:80]!a}: longer than {max_line_bytes} bytes")
            else:
                yield FileLine(number, data.replace(b"\n", b" "))


def _is_sample(member: zipfile.ZipInfo) -> bool:
    return member.filename.startswith(_SAMPLES) and member.filename.endswith(".json")
