"""Answers of a scripted server in chunks, as chat completions stream them."""

from __future__ import annotations

import json

USAGE = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}


def chunks(*texts, calls=(), usage=USAGE, ends=True):
    """The status, headers and payload of a stream: pieces of text, and calls as (name, arguments)."""
    base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [{"content": text} for text in texts]
    for at, (name, given) in enumerate(calls):
        text = json.dumps(given)
        begun = {"index": at, "id": f"c{at}", "type": "function", "function": {"name": name, "arguments": text[:3]}}
        deltas += [{"tool_calls": [begun]}, {"tool_calls": [{"index": at, "function": {"arguments": text[3:]}}]}]
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    if ends:
        choices.append([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}])
    lines = [{**base, "choices": choice} for choice in choices]
    lines += [{**base, "choices": [], "usage": usage}] if usage and ends else []
    text = "".join(f"data: {json.dumps(line)}\n\n" for line in lines)
    return 200, {"Content-Type": "text/event-stream"}, text + ("data: [DONE]\n\n" if ends else "data: {broken\n\n")
