"""A local server with scripted answers in the wire formats of Chat Completions, Responses and Messages."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "scripted-1"
TOOLS = ("restart", "rollback")


@dataclass
class Answer:
    """One scripted answer: a text, calls as (name, arguments), or an error."""

    text: str = ""
    calls: tuple = ()
    status: int = 200
    headers: dict = field(default_factory=dict)
    finish: str | None = None
    chunk_bytes: int = 0  # of a stream: how many bytes a chunk has; 0: an event
    break_after: int | None = None  # of a stream: the connection ends after so many bytes
    zipped: bool = False
    logprobs: dict | None = None  # of the first token, by its text


class ModelServer:
    """Answers requests in the order of `script`; `requests` holds their paths, headers and bodies.

    A request of Chat Completions for `n` answers gets the next n of the script, as one response; with `takes_n` set to
    False it gets one, as from a server that does not know the field.
    """

    takes_n = True

    def __init__(self):
        self.script, self.requests, self.n_answers = [], [], 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                raw = self.rfile.read(int(self.headers["content-length"]))
                outer.requests.append((self.path, dict(self.headers), raw))
                outer._answer(self, self.path.partition("?")[0], json.loads(raw))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def bodies(self):
        return [json.loads(raw) for _, _, raw in self.requests]

    def _answer(self, handler, path, body):
        answer = self.script.for_body(body) if hasattr(self.script, "for_body") else self.script.pop(0)
        self.n_answers += 1
        if answer.status != 200:
            self._send(handler, answer, json.dumps({"error": {"message": "no", "type": "scripted"}}).encode())
            return
        shape = next(make for end, make in SHAPES.items() if path.endswith(end))
        whole, events = shape(answer, self.n_answers)
        if self.takes_n and shape is _chat and body.get("n", 1) > 1:
            others = [_chat(self.script.pop(0), f"{self.n_answers}_{at}") for at in range(1, body["n"])]
            whole, events = _together([(whole, events), *others])
        if not body.get("stream"):
            self._send(handler, answer, json.dumps(whole).encode())
            return
        self._stream(handler, answer, events)

    @staticmethod
    def _send(handler, answer, content):
        handler.send_response(answer.status)
        if answer.zipped:
            content = gzip.compress(content)
            handler.send_header("content-encoding", "gzip")
        for name, value in {
            "content-type": "application/json",
            "content-length": len(content),
            **answer.headers,
        }.items():
            handler.send_header(name, str(value))
        handler.end_headers()
        handler.wfile.write(content)

    @staticmethod
    def _stream(handler, answer, events):
        content = b"".join(events)
        if answer.break_after is not None:
            content = content[: answer.break_after]
        size = answer.chunk_bytes or 64
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        for name, value in answer.headers.items():
            handler.send_header(name, str(value))
        handler.end_headers()
        for start in range(0, len(content), size):
            piece = content[start : start + size]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if answer.break_after is None:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = answer.break_after is not None


def _pieces(text, size=5):
    return [text[at : at + size] for at in range(0, len(text), size)]


def _event(data, name=None):
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def _alternatives(answer):
    found = [{"token": token, "logprob": logprob, "bytes": None} for token, logprob in answer.logprobs.items()]
    return [{**found[0], "top_logprobs": found}]


def _chat(answer, n):
    calls = [
        {"id": f"call_{n}_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(answer.calls)
    ]
    finish = answer.finish or ("tool_calls" if calls else "stop")
    message = {"role": "assistant", "content": answer.text or None, **({"tool_calls": calls} if calls else {})}
    head = {"id": f"chatcmpl-{n}", "created": 1, "model": MODEL}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    whole = {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }
    if answer.logprobs is not None:
        whole["choices"][0]["logprobs"] = {"content": _alternatives(answer), "refusal": None}

    def chunk(delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**head, "object": "chat.completion.chunk", "choices": [choice]})

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": piece}) for piece in _pieces(answer.text)]
    for at, call in enumerate(calls):
        function = {"name": call["function"]["name"], "arguments": ""}
        events.append(
            chunk({"tool_calls": [{"index": at, "id": call["id"], "type": "function", "function": function}]})
        )
        for piece in _pieces(call["function"]["arguments"]):
            events.append(chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}))
    events += [chunk({}, finish), _event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})]
    return whole, [*events, _event("[DONE]")]


def _together(answers):
    """Several answers as one response: their choices, and their chunks in turns, with one usage of all."""
    whole = answers[0][0]
    choices = [{**one["choices"][0], "index": at} for at, (one, _) in enumerate(answers)]
    usage = {key: value * len(answers) for key, value in whole["usage"].items()}
    events = []
    for turn in itertools.zip_longest(*[one[:-2] for _, one in answers]):
        for at, event in enumerate(turn):
            if event is not None:
                chunk = json.loads(event.removeprefix(b"data: "))
                chunk |= {"id": whole["id"], "choices": [{**chunk["choices"][0], "index": at}]}
                events.append(_event(chunk))
    events.append(_event({"id": whole["id"], "object": "chat.completion.chunk", "choices": [], "usage": usage}))
    return {**whole, "choices": choices, "usage": usage}, [*events, _event("[DONE]")]


def _messages(answer, n):
    blocks = [{"type": "text", "text": answer.text}] if answer.text else []
    blocks += [
        {"type": "tool_use", "id": f"toolu_{n}_{at}", "name": name, "input": arguments}
        for at, (name, arguments) in enumerate(answer.calls)
    ]
    stop = answer.finish or ("tool_use" if answer.calls else "end_turn")
    head = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None}
    whole = {**head, "content": blocks, "stop_reason": stop, "usage": {"input_tokens": 3, "output_tokens": 2}}
    start = {**head, "content": [], "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 0}}
    events = [_event({"type": "message_start", "message": start}, "message_start"), _event({"type": "ping"}, "ping")]
    for at, block in enumerate(blocks):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        events.append(
            _event({"type": "content_block_start", "index": at, "content_block": empty}, "content_block_start")
        )
        text = block["text"] if block["type"] == "text" else json.dumps(block["input"])
        for piece in _pieces(text):
            delta = (
                {"type": "text_delta", "text": piece}
                if block["type"] == "text"
                else {"type": "input_json_delta", "partial_json": piece}
            )
            events.append(_event({"type": "content_block_delta", "index": at, "delta": delta}, "content_block_delta"))
        events.append(_event({"type": "content_block_stop", "index": at}, "content_block_stop"))
    last = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 2},
    }
    return whole, [*events, _event(last, "message_delta"), _event({"type": "message_stop"}, "message_stop")]


def _responses(answer, n):
    output = []
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        if answer.logprobs is not None:
            part["logprobs"] = _alternatives(answer)
        output.append(
            {"id": f"out_{n}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        )
    output += [
        {
            "id": f"fc_{n}_{at}",
            "type": "function_call",
            "call_id": f"call_{n}_{at}",
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for at, (name, arguments) in enumerate(answer.calls)
    ]
    head = {
        "id": f"resp_{n}",
        "object": "response",
        "created_at": 1,
        "model": MODEL,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }
    status = answer.finish or "completed"
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {**head, "status": status, "output": output, "usage": usage}
    events = [{"type": "response.created", "response": {**head, "status": "in_progress", "output": []}}]
    for at, item in enumerate(output):
        events.append({"type": "response.output_item.added", "output_index": at, "item": {**item, "content": []}})
        if item["type"] == "message":
            place = {"item_id": item["id"], "output_index": at, "content_index": 0}
            empty = {"type": "output_text", "text": "", "annotations": []}
            events.append({"type": "response.content_part.added", **place, "part": empty})
            for piece in _pieces(answer.text):
                events.append({"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []})
        else:
            events[-1]["item"] = {**item, "arguments": ""}
            for piece in _pieces(item["arguments"]):
                place = {"item_id": item["id"], "output_index": at}
                events.append({"type": "response.function_call_arguments.delta", **place, "delta": piece})
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    events.append({"type": f"response.{status}", "response": whole})
    numbered = [{**event, "sequence_number": at} for at, event in enumerate(events)]
    return whole, [_event(event, event["type"]) for event in numbered]


SHAPES = {"/chat/completions": _chat, "/responses": _responses, "/messages": _messages}
