"""Server of a session's hooks: it answers the documents of hook processes on a socket of this user."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shlex
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from seasoned.actions.json_size import has_more_values

__all__ = ["HookAnswer", "claude_hooks", "codex_hook_digest", "codex_hooks", "hook_server"]

HookAnswer = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""Returns the answer to the document of an event; None: there is nothing to say."""

_CODEX_EVENTS = {
    "UserPromptSubmit": "user_prompt_submit",
    "PreToolUse": "pre_tool_use",
    "PostToolUse": "post_tool_use",
    "Stop": "stop",
}
"""The events of Codex, and their names in the keys of its trust."""
_EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")
_MAX_BYTES, _MAX_VALUES = 16 << 20, 200_000
_READ_S = 2.0
_HOOK_S = 5
_log = logging.getLogger("seasoned.chat")


def claude_hooks(path: Path) -> dict[str, object]:
    """Return the `hooks` of Claude Code's settings that pass every event to the server at a path.

    Example:
        >>> hooks = claude_hooks(Path("/run/s.sock"))
        >>> sorted(hooks), hooks["PreToolUse"][0]["matcher"]
        (['PostToolUse', 'PostToolUseFailure', 'PreToolUse', 'Stop', 'UserPromptSubmit'], '*')
    """
    hook = {"type": "command", "command": _hook_command(path), "timeout": _HOOK_S}
    return {event: [{**({"matcher": "*"} if "Tool" in event else {}), "hooks": [hook]}] for event in _EVENTS}


def codex_hooks(path: Path) -> tuple[str, ...]:
    """Return the arguments of Codex that pass every event to the server at a path.

    Codex runs no hook that is not trusted. So the arguments state the trust in these hooks too, by the digest of each
    as Codex 0.169 computes it; the trust in others stays as it is.

    Example:
        >>> codex_hooks(Path("/run/s.sock"))[1].partition("=")[0]
        'hooks.UserPromptSubmit'
    """
    command, arguments, trusted = _hook_command(path), [], []
    for event, key in _CODEX_EVENTS.items():
        trusted.append(f'"/<session-flags>/config.toml:{key}:0:0"={{trusted_hash="{codex_hook_digest(key, command)}"}}')
        given = 'matcher="*",' if key.endswith("_tool_use") else ""
        hooks = f'{{type="command",command={json.dumps(command)},timeout={_HOOK_S}}}'
        arguments += ["-c", f"hooks.{event}=[{{{given}hooks=[{hooks}]}}]"]
    return (*arguments, "-c", f"hooks.state={{{','.join(trusted)}}}")


def codex_hook_digest(key: str, command: str) -> str:
    """Return the digest by which Codex trusts a hook of ours.

    Args:
        key: of the event, such as `pre_tool_use`.
        command: of the hook.
    """
    hook = {"type": "command", "command": command, "timeout": _HOOK_S, "async": False}
    matcher = {"matcher": "*"} if key.endswith("_tool_use") else {}
    identity = {"event_name": key, **matcher, "hooks": [hook]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _hook_command(path: Path) -> str:
    client = Path(__file__).with_name("hook_client.py")
    return shlex.join([sys.executable, "-I", "-S", str(client), str(path)])


@contextlib.contextmanager
def hook_server(answer: HookAnswer) -> Iterator[Path]:
    """Answer hooks while the block runs; the path of the socket is yielded. An answer that fails is no answer.

    Example:
        >>> with hook_server(lambda document: {"seen": document["n"]}) as path:
        ...     with socket.socket(socket.AF_UNIX) as connection:
        ...         connection.connect(str(path))
        ...         connection.sendall(b'{"n": 7}')
        ...         connection.shutdown(socket.SHUT_WR)
        ...         connection.recv(100)
        b'{"seen": 7}'
    """
    lock = threading.Lock()  # parallel tool calls have parallel hooks

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(_READ_S)
            document = b""
            while (part := connection.recv(65536)) and len(document) <= _MAX_BYTES:
                document += part
            with lock:
                said = _answer(answer, document)
            connection.sendall(said)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=[connection], daemon=True).start()

    with tempfile.TemporaryDirectory(prefix="seasoned-") as folder:  # of this user alone
        path = Path(folder) / "hooks"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(str(path))
            listening.listen(16)
            threading.Thread(target=accept, name="hooks", daemon=True).start()
            try:
                yield path
            finally:
                with contextlib.suppress(OSError):
                    listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts


def _answer(answer: HookAnswer, document: bytes) -> bytes:
    """Return the answer as JSON; nothing where there is none, or where it fails: the assistant goes on."""
    try:
        if len(document) > _MAX_BYTES or has_more_values(document, _MAX_VALUES):
            return b""
        given = json.loads(document)
        said = answer(given) if isinstance(given, dict) else None
        return b"" if said is None else json.dumps(said).encode()
    except Exception:
        _log.exception("A hook was not answered.")
        return b""
