"""One chat-completions dialect: requests checked and written, answers read and checked, for every endpoint alike."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_number, check_text
from seasoned.errors import InputError, ModelAnswerError, NoLogprobsError, excerpt
from seasoned.protocols import Completion, CompletionRequest, Message, TokenLogprob, Tool, ToolCall, Usage

__all__ = ["check_request", "read_completion", "request_digest", "request_json"]


def check_request(request: CompletionRequest) -> None:
    """Refuse a request that no endpoint could answer.

    Raises:
        InputError: no messages, an unknown role, text that UTF-8 cannot encode, a number outside its range, or
            something that is no message or tool.

    Example:
        >>> from seasoned.protocols import Message
        >>> check_request(CompletionRequest((Message("user", "Ready?"),)))
    """
    if not request.messages:
        raise InputError("messages = ()", "a request has at least one message", "Pass a user message.")
    _check_all("messages", request.messages, Message)
    for message in request.messages:
        if message.role not in ("system", "user", "assistant"):
            raise InputError(
                f"role = {excerpt(message.role)}", "a role is system, user or assistant", "Use 'user' for input."
            )
        check_text("message", message.content)
    if isinstance(request.max_tokens, bool) or not isinstance(request.max_tokens, int) or request.max_tokens < 1:
        raise InputError(f"max_tokens = {excerpt(request.max_tokens)}", "it is a whole number >= 1", "Use 1 or more.")
    if not isinstance(request.top_logprobs, int) or request.top_logprobs < 0:
        raise InputError(f"top_logprobs = {excerpt(request.top_logprobs)}", "it is a whole number >= 0", "Use 0.")
    if check_number("temperature", request.temperature) < 0:
        raise InputError(f"temperature = {request.temperature}", "a temperature is at least 0", "Use 0 for greedy.")
    for token, bias in request.logit_bias.items():
        check_number(f"logit_bias[{token}]", bias)
    _check_all("tools", request.tools, Tool)
    names = [check_text("tool name", tool.name) for tool in request.tools]
    if len(set(names)) < len(names):
        raise InputError(f"tools = {excerpt(names)}", "tools have different names", "Pass each tool once.")


def _check_all(name: str, values: object, kind: type) -> None:
    if not isinstance(values, list | tuple) or not all(isinstance(value, kind) for value in values):
        raise InputError(f"{name} = {excerpt(values)}", f"they are a tuple of {kind.__name__}s", "Pass (one,) for one.")


def request_digest(name: str, request: CompletionRequest) -> str:
    """Return the sha256 of a model's name and one exact request.

    Example:
        >>> from seasoned.protocols import Message
        >>> len(request_digest("m", CompletionRequest((Message("user", "Ready?"),))))
        64
    """
    fields = asdict(request)
    fields["logit_bias"] = {str(token): float(bias) for token, bias in request.logit_bias.items()}
    fields["temperature"] = float(request.temperature)
    if not request.tools:
        del fields["tools"]  # a request without tools has the digest that it always had
    return hashlib.sha256(canonical_json([name, fields]).encode()).hexdigest()


def request_json(request: CompletionRequest) -> dict[str, Any]:
    """Return the request in the chat-completions dialect, without the model and without the token limit.

    Example:
        >>> from seasoned.protocols import Message
        >>> request_json(CompletionRequest((Message("user", "Ready?"),), top_logprobs=2))["top_logprobs"]
        2
    """
    body: dict[str, Any] = {
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "temperature": request.temperature,
    }
    if request.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    if request.logit_bias:
        body["logit_bias"] = {str(token): bias for token, bias in request.logit_bias.items()}
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.tools:
        body["tools"] = [{"type": "function", "function": asdict(tool)} for tool in request.tools]
    return body


def read_completion(body: object, request: CompletionRequest, model: str) -> tuple[Completion, tuple[int, int]]:
    """Read a chat-completions answer: the completion (usage empty) and its prompt and completion tokens.

    Raises:
        ModelAnswerError: it is not an object, has no choice, neither text nor a tool call, no token counts, or logprobs
            that are missing where they were asked for, NaN, or above 0.

    Example:
        >>> from seasoned.protocols import Message
        >>> body = {"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
        >>> read_completion(body, CompletionRequest((Message("user", "Ready?"),)), "m")[0].text
        'yes'
    """
    if not isinstance(body, Mapping):
        raise _nonsense(body, "an answer is a JSON object")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise _nonsense(body, "an answer has at least one choice")
    message = choices[0].get("message")
    if not isinstance(message, Mapping):
        raise _nonsense(choices[0], "a choice has a message")
    called = message.get("tool_calls") or ()
    if not isinstance(called, list | tuple):
        raise _nonsense(message, "tool calls are a list")
    tool_calls = tuple(_read_tool_call(call) for call in called)
    text = message.get("content")
    if text is None and tool_calls:
        text = ""
    if not isinstance(text, str):
        raise _nonsense(choices[0], "a message has text, or calls a tool")
    reported = body.get("usage")
    if not isinstance(reported, Mapping):
        raise _nonsense(body, "an answer says how many tokens it used")
    tokens = (reported.get("prompt_tokens"), reported.get("completion_tokens"))
    if not all(isinstance(count, int) and count >= 0 for count in tokens):
        raise _nonsense(reported, "token counts are whole numbers >= 0")
    alternatives = _read_logprobs(choices[0], request) if request.top_logprobs else ()
    reason = choices[0].get("finish_reason")
    answer = Completion(text, model, Usage(), reason if isinstance(reason, str) else None, alternatives, tool_calls)
    return answer, (int(tokens[0] or 0), int(tokens[1] or 0))


def _read_tool_call(call: object) -> ToolCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not isinstance(arguments, str):
        raise _nonsense(call, "a tool call has a function with a name and the text of its arguments")
    return ToolCall(str(call.get("id") or "") if isinstance(call, Mapping) else "", name, arguments)


def _read_logprobs(choice: Mapping[str, Any], request: CompletionRequest) -> tuple[tuple[TokenLogprob, ...], ...]:
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(content, list) or not content:
        raise NoLogprobsError(*_nonsense(choice, "logprobs were asked for, and none came").args)
    positions = []
    for position in content:
        shown = position.get("top_logprobs") if isinstance(position, Mapping) else None
        if not isinstance(shown, list) or not shown:
            raise _nonsense(position, "every new token carries its top logprobs")
        positions.append(tuple(sorted((_read_token(entry) for entry in shown), key=lambda t: -t.logprob)))
    return tuple(positions)


def _read_token(entry: object) -> TokenLogprob:
    token = entry.get("token") if isinstance(entry, Mapping) else None
    logprob = entry.get("logprob") if isinstance(entry, Mapping) else None
    if not isinstance(token, str) or isinstance(logprob, bool) or not isinstance(logprob, int | float):
        raise _nonsense(entry, "an alternative has a token and a logprob")
    if not math.isfinite(logprob) or logprob > 1e-3:
        raise _nonsense(entry, "a logprob is finite and at most 0")
    return TokenLogprob(token, min(0.0, float(logprob)))


def _nonsense(seen: object, rule: str) -> ModelAnswerError:
    return ModelAnswerError(
        f"the endpoint answered {excerpt(seen, 200)}", rule, "Check the model name and that this is a chat endpoint."
    )
