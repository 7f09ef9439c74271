"""An assistant for tests: it speaks Anthropic's Messages and Claude Code's hooks, as both are documented.

`python stand_in_assistant.py [--settings JSON] EXIT_CODE REQUEST...`: each request is sent with its tool; a call of the
model is passed to the hooks, run unless they stop it, and answered. What happened is written to stand_in.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

BASE_URL = os.environ["ANTHROPIC_BASE_URL"]
TOOLS = [{"name": "Bash", "description": "Run a command", "input_schema": {"type": "object", "properties": {}}}]


def ask(messages):
    body = {"model": "m", "max_tokens": 100, "messages": messages, "tools": TOOLS}
    headers = {"content-type": "application/json", "x-api-key": "passed-on", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(f"{BASE_URL}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)["content"], dict(answer.headers)


def run_hooks(hooks, event, **given):
    """Run the hooks of an event; return what they answer, and the seconds that they took."""
    document = {
        "session_id": "s",
        "transcript_path": "/nonexistent",
        "cwd": str(Path.cwd()),
        "permission_mode": "default",
        "hook_event_name": event,
        **given,
    }
    answers = []
    for matcher in hooks.get(event, []):
        for hook in matcher["hooks"]:
            assert hook["type"] == "command"
            began = time.perf_counter()
            done = subprocess.run(
                hook["command"], shell=True, input=json.dumps(document), capture_output=True, text=True, check=False
            )
            answers.append((done.stdout, done.stderr, done.returncode, time.perf_counter() - began))
    return answers


def decision(answers):
    for stdout, _, _, _ in answers:
        if stdout.strip():
            given = json.loads(stdout)["hookSpecificOutput"]
            return given["permissionDecision"], given["permissionDecisionReason"]
    return None, None


def main():
    arguments = sys.argv[1:]
    hooks = {}
    if arguments[:1] == ["--settings"]:
        hooks, arguments = json.loads(arguments[1])["hooks"], arguments[2:]
    code, *requests = arguments
    messages, seen, headers, hook_answers = [], [], {}, []
    for request in requests:
        messages.append({"role": "user", "content": request})
        hook_answers += run_hooks(hooks, "UserPromptSubmit", prompt=request)
        for _ in range(10):
            content, headers = ask(messages)
            messages.append({"role": "assistant", "content": content})
            results = []
            for call in [block for block in content if block["type"] == "tool_use"]:
                facts = {"tool_name": call["name"], "tool_input": call["input"], "tool_use_id": call["id"]}
                answers = run_hooks(hooks, "PreToolUse", **facts)
                hook_answers += answers
                verdict, reason = decision(answers)
                if verdict is not None:
                    text, is_error = reason, True
                else:
                    done = subprocess.run(
                        call["input"]["command"], shell=True, capture_output=True, text=True, check=False
                    )
                    text, is_error = done.stdout + done.stderr, done.returncode != 0
                    if is_error:
                        text = f"Exit code {done.returncode}\n{text}"
                        hook_answers += run_hooks(hooks, "PostToolUseFailure", **facts, error=text)
                    else:
                        response = {"stdout": done.stdout, "stderr": done.stderr, "interrupted": False}
                        hook_answers += run_hooks(hooks, "PostToolUse", **facts, tool_response=response)
                seen.append([call["input"]["command"], verdict, reason])
                results.append(
                    {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": is_error}
                )
            if not results:
                break
            messages.append({"role": "user", "content": results})
        hook_answers += run_hooks(hooks, "Stop", stop_hook_active=False)
    happened = {"calls": seen, "headers": headers, "hooks": hook_answers, "url": BASE_URL}
    Path("stand_in.json").write_text(json.dumps(happened))
    print("the assistant's own output")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
