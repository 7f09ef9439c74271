"""Transcript of a Codex session: the exit codes of its commands, which its hooks do not state."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["exit_codes"]

_MAX_BYTES = 64 << 20
_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE)


def exit_codes(path: Path) -> Mapping[str, int]:
    r"""Return the exit codes of commands by the ids of their calls; of a file that cannot be read, none.

    Example:
        >>> import tempfile
        >>> output = "Wall time: 0.7 seconds\nProcess exited with code 3\nOutput:\nProcess exited with code 0\n"
        >>> item = {"type": "function_call_output", "call_id": "call1", "output": output}
        >>> with tempfile.NamedTemporaryFile("w") as file:
        ...     _ = file.write(json.dumps({"type": "response_item", "payload": item}) + "\n")
        ...     file.flush()
        ...     exit_codes(Path(file.name))
        {'call1': 3}
    """
    found: dict[str, int] = {}
    if not path.is_file():  # a pipe would never end
        return found
    with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
        for line in file.read(_MAX_BYTES).split(b"\n"):
            if b"function_call_output" not in line:
                continue
            with contextlib.suppress(ValueError, RecursionError, AttributeError):
                item = json.loads(line).get("payload")
                output = item.get("output")
                text = output if isinstance(output, str) else json.dumps(output)
                head = text.partition("Output:\n")[0]  # what the command printed follows
                if item.get("type") == "function_call_output" and (code := _CODE.search(head)):
                    found[str(item.get("call_id"))] = int(code[1])
    return found
