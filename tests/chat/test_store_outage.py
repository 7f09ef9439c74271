"""The store is down while an assistant works: its tool calls wait on disk, and the next session stores them once."""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3

from seasoned import Memory
from seasoned.chat.wrapped.command_guard import guard_namespace
from seasoned.chat.wrapped.session_guard import session_guard


@contextlib.contextmanager
def locked(path):
    """Hold the lock of the writers, as another process would."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()


def make_request(path, command):
    """Send the hooks of one request with one call that succeeds."""
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t"}
    events = [
        {"hook_event_name": "UserPromptSubmit", "prompt": f"please {command}"},
        {**call, "hook_event_name": "PreToolUse"},
        {**call, "hook_event_name": "PostToolUse", "tool_response": {"stdout": "1 passed", "stderr": ""}},
        {"hook_event_name": "Stop"},
    ]
    for event in events:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(json.dumps({"session_id": "s", **event}).encode())
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass


def tasks_of(path, root):
    with Memory.open(path, namespace=guard_namespace(root)) as memory:
        return [episode.task for episode in memory.episodes()]


def test_calls_of_a_session_that_ends_in_an_outage_are_stored_once_by_the_next_one(tmp_path):
    path, root = tmp_path / "chat.db", tmp_path / "repo"
    root.mkdir()
    with contextlib.ExitStack() as outage, session_guard(path, root, "s1", "deny", timeout_s=0.05) as (hooks, _):
        outage.enter_context(locked(path))
        make_request(hooks, "pytest")
        make_request(hooks, "ruff check")
    assert tasks_of(path, root) == []
    for session in ("s2", "s3"):
        with session_guard(path, root, session, "deny") as (hooks, _):
            make_request(hooks, f"echo {session}")
    assert sorted(tasks_of(path, root)) == ["please echo s2", "please echo s3", "please pytest", "please ruff check"]
