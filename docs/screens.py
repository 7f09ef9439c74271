"""Screens of `seasoned chat` for the pages: a session from an empty memory to a learned one, as SVG.

Run: python docs/screens.py

A real chat runs in tmux, in a repository whose tests run by `make check`. A scripted server takes the part of the
model: it tries `pytest -q` first, unless the records in its prompt show what worked. Writes
`docs/how-to/coding-assistant-empty.svg` and `docs/how-to/coding-assistant-learned.svg`; needs tmux, make and the extras
`chat` and `openai`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent / "how-to"
WIDTH, HEIGHT = 120, 30
WAIT_S = 60.0
MAKEFILE = "check:\n\t@python3 -m unittest -q tests.py\n"
TESTS = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(1 + 1, 2)\n"


def next_answer(messages: list[dict[str, Any]]) -> str | dict[str, str]:
    """Return the model's text, or the arguments of its call of `run`."""
    last = str(messages[-1]["content"])
    said, _, records = last.partition("[records of earlier episodes]")
    if "exit code: 0" in said:
        return "All is well: I ran the checks, and they pass."
    is_known = messages[-1]["role"] == "tool" or "make check" in records
    return {"command": "make check" if is_known else "pytest -q"}


class ScriptedServer(BaseHTTPRequestHandler):
    """Streams the answers of the scripted model as chat completions."""

    def do_POST(self) -> None:
        """Answer a request."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = next_answer(body["messages"])
        delta: dict[str, Any] = {"content": answer}
        if isinstance(answer, dict):
            function = {"name": "run", "arguments": json.dumps(answer)}
            delta = {"tool_calls": [{"index": 0, "id": "c0", "type": "function", "function": function}]}
        base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        ended = "tool_calls" if "tool_calls" in delta else "stop"
        choices = [{"index": 0, "delta": each, "finish_reason": end} for each, end in ((delta, None), ({}, ended))]
        lines = [json.dumps({**base, "choices": [choice]}) for choice in choices]
        text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


class Terminal:
    """A program in tmux."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux")]
        size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
        self._run("-f", os.devnull, "new-session", "-d", "-s", "screen", *size, "-c", str(folder / "shop"), *command)

    def _run(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], check=True, capture_output=True, text=True).stdout

    def enter(self, text: str, until: str) -> None:
        """Type a line, and wait until the screen shows a text below it."""
        self._run("send-keys", "-t", "screen", "-l", text)
        self._run("send-keys", "-t", "screen", "Enter")
        self.wait_for(until)

    def wait_for(self, text: str) -> None:
        """Wait until the screen shows a text."""
        end_s = time.monotonic() + WAIT_S
        while text not in (shown := self._run("capture-pane", "-p", "-t", "screen")):
            if time.monotonic() > end_s:
                raise SystemExit(f"{text!r} is not on the screen:\n{shown}")
            time.sleep(0.1)

    def save(self, path: Path, title: str) -> None:
        """Write the screen, without its empty last lines."""
        time.sleep(0.5)
        shown = self._run("capture-pane", "-e", "-p", "-t", "screen").rstrip()
        console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor", force_terminal=True)
        console.print(Text.from_ansi(shown), no_wrap=True, crop=True)  # as a whole: a style goes on in the next line
        svg = console.export_svg(title=title, unique_id=path.stem)
        path.write_text(
            re.sub(r" *@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)
        )  # no page loads a font from elsewhere

    def close(self) -> None:
        """End the program."""
        self._run("kill-server")


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Serve the scripted model while the block runs; its base URL is yielded."""
    with ThreadingHTTPServer(("127.0.0.1", 0), ScriptedServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def main() -> None:
    """Take both screens."""
    if not (shutil.which("tmux") and shutil.which("make")):
        raise SystemExit("tmux and make are needed: apt install tmux make")
    with tempfile.TemporaryDirectory() as name, served() as url:
        folder = Path(name)
        (folder / "shop" / ".git").mkdir(parents=True)
        (folder / "shop" / "Makefile").write_text(MAKEFILE)
        (folder / "shop" / "tests.py").write_text(TESTS)
        variables = ["PATH=/usr/bin:/bin", "OPENAI_API_KEY=none", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"]
        chat = [sys.executable, "-m", "seasoned", "chat", "--model", "openai:scripted", "--base-url", url]
        command = ["env", *variables, *chat, "--memory", str(folder / "chat.db")]
        for path, title in (("empty", "an empty memory"), ("learned", "the next session")):
            terminal = Terminal(command, folder)
            try:
                terminal.wait_for("\n>")
                if path == "empty":
                    terminal.enter("run the tests", "Run 'pytest -q'?")
                    terminal.enter("a", "Run 'make check'?")
                else:
                    terminal.enter("run the tests again", "Run 'make check'?")
                terminal.enter("a", "learned:")
                terminal.save(HERE / f"coding-assistant-{path}.svg", f"seasoned chat: {title}")
            finally:
                terminal.close()


if __name__ == "__main__":
    main()
