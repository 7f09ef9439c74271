"""Events of hooks for the tests of the guard."""

from __future__ import annotations


def run(guard, command, error=None, output="", id_="t", cwd="/repo", tool="Bash", **more):
    """One call of a tool in the guard's eyes; return the answer of `PreToolUse`."""
    call = {"tool_name": tool, "tool_input": {"command": command, "description": "d"}, "tool_use_id": id_, "cwd": cwd}
    said = guard.handle({**call, "hook_event_name": "PreToolUse"})
    if said is None:
        event = "PostToolUse" if error is None else "PostToolUseFailure"
        given = {"tool_response": {"stdout": output, "stderr": ""}} if error is None else {"error": error}
        guard.handle({**call, "hook_event_name": event, **given, **more})
    return said and said["hookSpecificOutput"]


def requests(guard, *calls, times=6, cwd="/repo"):
    for _ in range(times):
        guard.handle({"hook_event_name": "UserPromptSubmit", "prompt": "run the tests"})
        for command, error, output in calls:
            run(guard, command, error, output, cwd=cwd)
        guard.handle({"hook_event_name": "Stop"})
