"""CPU time and peak memory of `seasoned memory import`, by format and number of steps.

Run: python benchmarks/imports.py [--steps 10000 100000] [--formats tau-bench otel ...] [--folder DIR]

Runs of ten turns (a user's wish, nine calls with results of about 300 characters, an answer) are written in the shape
of each format: one document or event a line; for `tau-bench` also as one indented list and as a list on one line, and
for `otel` as one OTLP request on one line.
A file is imported by the command, in a process of its own, into a new memory. Its CPU time and its largest resident
memory are those that the system counts. Writes `benchmarks/results/imports.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workload import write_result

TURNS = 10
MAX_CPU_S = 30.0  # for 10^5 steps
WORDS = [f"word{n}" for n in range(2000)]


def messages(draw: random.Random, number: int) -> list[dict[str, Any]]:
    """Return the messages of one run, as chat completions."""
    listed: list[dict[str, Any]] = [
        {"role": "user", "content": f"Wish {number}: {' '.join(draw.choices(WORDS, k=12))}"}
    ]
    for turn in range(TURNS - 1):
        arguments = json.dumps({"order": draw.randrange(500), "field": draw.choice(WORDS)})
        function = {"name": f"tool_{draw.randrange(12)}", "arguments": arguments}
        calls = [{"id": f"c{turn}", "type": "function", "function": function}]
        listed.append({"role": "assistant", "content": None, "tool_calls": calls})
        listed.append({"role": "tool", "tool_call_id": f"c{turn}", "content": " ".join(draw.choices(WORDS, k=40))})
    return [*listed, {"role": "assistant", "content": "Done."}]


def chat(draw: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield a run as chat completions."""
    yield {"id": f"run-{number}", "messages": messages(draw, number), "reward": float(number % 2)}


def tau(draw: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield a run of tau-bench."""
    yield {"task_id": number % 50, "trial": number, "reward": 1.0, "info": {}, "traj": messages(draw, number)}


def anthropic(draw: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield a run as Anthropic messages."""
    listed = [_blocks(message) for message in messages(draw, number)]
    yield {"id": f"run-{number}", "system": "You help.", "messages": listed, "reward": 1.0}


def _blocks(message: dict[str, Any]) -> dict[str, Any]:
    if message.get("tool_calls"):
        [call] = message["tool_calls"]
        given = json.loads(call["function"]["arguments"])
        block = {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": given}
        return {"role": "assistant", "content": [block]}
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [block]}
    return message


def claude(draw: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield the events of a Claude Code session."""
    parent = None
    for index, message in enumerate(map(_blocks, messages(draw, number))):
        uuid = f"{number}-{index}"
        content = message["content"]
        if message["role"] == "assistant" and isinstance(content, str):
            message = {**message, "content": [{"type": "text", "text": content}]}  # noqa: PLW2901
        yield {
            "type": message["role"],
            "uuid": uuid,
            "parentUuid": parent,
            "sessionId": f"session-{number}",
            "isSidechain": False,
            "timestamp": "2026-01-02T10:00:00Z",
            "message": {**message, "id": uuid, "model": "m"},
        }
        parent = uuid


def otel(draw: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield the spans of a trace, a model call each, with all messages before it."""
    listed = messages(draw, number)
    for index, message in enumerate(listed):
        if message["role"] == "assistant":
            yield {
                "trace_id": f"{number:032x}",
                "span_id": f"{number * 100 + index:016x}",
                "name": "chat",
                "start_time": 1_760_000_000 + number * 100 + index,
                "attributes": {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.input.messages": json.dumps(listed[:index]),
                    "gen_ai.output.messages": json.dumps([message]),
                },
            }


def _otlp(span: dict[str, Any]) -> dict[str, Any]:
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in span["attributes"].items()]
    start = str(span["start_time"] * 10**9)
    ids = {"traceId": span["trace_id"], "spanId": span["span_id"]}
    return {**ids, "name": span["name"], "startTimeUnixNano": start, "attributes": pairs}


SHAPES: dict[str, Callable[[random.Random, int], Iterator[dict[str, Any]]]] = {
    "openai": chat,
    "tau-bench": tau,
    "anthropic": anthropic,
    "claude-code": claude,
    "otel": otel,
}
LAYOUTS = {"lines": "", "indented list": "tau-bench", "list on one line": "tau-bench", "one request": "otel"}


def write(path: Path, name: str, layout: str, steps: int) -> None:
    """Write the file of one measurement."""
    draw = random.Random(0)
    documents = (document for number in range(steps // TURNS) for document in SHAPES[name](draw, number))
    with path.open("w") as file:
        if layout == "lines":
            file.writelines(json.dumps(document) + "\n" for document in documents)
            return
        if layout == "one request":
            file.write('{"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": [')
            file.writelines("," * (index > 0) + json.dumps(_otlp(span)) for index, span in enumerate(documents))
            file.write("]}]}]}")
            return
        indent = 1 if layout == "indented list" else None
        file.write("[")
        for index, document in enumerate(documents):
            file.write("," * (index > 0) + "\n" * (indent is not None))
            text = json.dumps(document, indent=indent)
            file.write(text.replace("\n", "\n ") if indent is None else " " + text.replace("\n", "\n "))
        file.write("\n]\n" if indent is not None else "]")


def imported(path: Path, memory: Path) -> dict[str, Any]:
    """Import a file in a process of its own; return its figures. Linux only."""
    command = [sys.executable, "-m", "seasoned", "memory", "import", str(memory), str(path), "--create", "--json"]
    answer = memory.with_suffix(".out")
    with answer.open("wb") as output:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), 1)]
        process = os.posix_spawn(sys.executable, command, dict(os.environ), file_actions=actions)
        _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"the import of {path} ended with status {status}")
    found = json.loads(answer.read_text())
    cpu_s = usage.ru_utime + usage.ru_stime
    return {
        "steps": found["steps"],
        "refused": found["refused"],
        "file_bytes": path.stat().st_size,
        "cpu_s": cpu_s,
        "steps_per_cpu_s": found["steps"] / cpu_s,
        "peak_bytes": usage.ru_maxrss * 1024,
    }


def main() -> None:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--formats", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in options.formats:
            for layout, only in LAYOUTS.items():
                if only and only != name:
                    continue
                for steps in options.steps:
                    path, memory = Path(folder, "traces.json"), Path(folder, f"{len(rows)}.db")
                    write(path, name, layout, steps)
                    row = {"format": name, "layout": layout, **imported(path, memory)}
                    rows.append(row)
                    memory.unlink()
                    print(
                        f"{name:12} {layout:17} {row['steps']:7} steps  {row['file_bytes'] / 1e6:6.1f} MB  "
                        f"{row['cpu_s']:6.1f} s  {row['steps_per_cpu_s']:7.0f} steps/s  "
                        f"{row['peak_bytes'] / 2**20:6.0f} MiB",
                        flush=True,
                    )
    slow = [row for row in rows if row["cpu_s"] > MAX_CPU_S * max(1.0, row["steps"] / 100_000)]
    print(f"aim: 10^5 steps in {MAX_CPU_S:.0f} s of CPU: " + (f"missed by {len(slow)}" if slow else "reached"))
    write_result("imports", {"command": " ".join(["python", *sys.argv]), "rows": rows})


if __name__ == "__main__":
    main()
