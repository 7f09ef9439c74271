"""Requests at random: no error of the server, none is served without the token, and the store stays whole."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from urllib.parse import quote

import pytest
from decision_upstream import decisions_answer, decisions_request, systemone_answer, upstream_server
from faults_rounds import attack_rounds
from hostile_values import hostile_text, mutated
from serving import TOKEN, serving

from seasoned import Memory
from seasoned.service import DecisionSettings, GatewaySettings

EPISODE = {
    "id": "e1",
    "task": "t",
    "steps": [{"state": "page one", "action": "go", "reward": 1.0, "prior": {"go": -0.1, "stop": -2.0}}],
    "subject": "ann",
}
QUESTION = {"task": "t", "state": "mail", "candidates": [{"text": "yes"}, {"text": "no"}]}
SEARCH = {"state": "page one", "k": 3, "threshold": 0.5}
FEEDBACK = [
    {"kind": "thumbs", "up": True, "episode_id": "e1", "author": "ann", "weight": 1.0},
    {"kind": "edit", "author": "eve", "text": "No.", "episode_id": "e1", "step": 0},
    {"kind": "own_answer", "author": "ann", "text": "Sorry.", "episode_id": "e1", "step": 0},
]
DECISION = {
    "model": "m",
    "state": "page one",
    "questions": {"desk": {"type": "choice", "instructions": "Whose?", "criteria": {"a": None, "b": None}}},
    "safety_identifier": "bob",
}
SWITCH = {"target": "family", "name": "t", "state": "paused", "reason": "r"}
OUTCOMES = [
    {"inference_id": "run", "question": "desk", "right": "refunds"},
    {"inference_id": "run", "reward": 0.5},
    {"metric_name": "solved", "value": 1.0, "episode_id": "run"},
    {"name": "solved", "value": 1.0, "traceId": "run", "dataType": "NUMERIC"},
]
END = {"ending": "truncated"}
SHOWN = [{"role": "user", "content": "page one"}, {"role": "assistant", "content": "go", "shown": [["e1", 0]]}]
RECALLS = [
    ("advice", {"state": "page one", "actions": ["go", "stop"], "task": "t", "step": 1}),
    ("examples", {"task": "t", "state": "page one", "purpose": "act", "budget_tokens": 200, "exclude_task": "u"}),
    ("decide", {"state": "page one", "options": ["go", "stop"], "probabilities": {"go": 0.5, "stop": 0.5}}),
    ("recall", {"messages": SHOWN[:1], "task": "t", "episode_id": "e9", "mode": "advise", "tools": ["go"]}),
    ("transcripts", {"messages": SHOWN, "task": "t", "id": "e8", "reward": 1.0, "subject": "ann"}),
]
TOOL = {"name": "run", "description": "runs", "parameters": {"type": "object", "properties": {"arg": {}}}}
NAMED = {"metadata": {"session_id": "run", "user_id": "ann", "task": "t"}, "safety_identifier": "bob"}
ARGUMENTS = json.dumps({"arg": [{"deep": "1.0"}]})
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": ARGUMENTS}}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "You run."},
        {"role": "user", "content": [{"type": "text", "text": "page one"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "5 passed"},
    ],
    "tools": [{"type": "function", "function": TOOL}],
    **NAMED,
}
MESSAGES = {
    "model": "m",
    "max_tokens": 9,
    "messages": [
        {"role": "user", "content": "page one"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "run", "input": {"arg": "1.0"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "5 passed"}]},
    ],
    "tools": [{"name": "run", "input_schema": {"type": "object"}}],
    **NAMED,
}
RESPONSES = {
    "model": "m",
    "input": [
        {"type": "message", "role": "user", "content": "page one"},
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": ARGUMENTS},
        {"type": "function_call_output", "call_id": "c1", "output": "5 passed"},
    ],
    "tools": [{"type": "function", **TOOL}],
    "previous_response_id": "r1",
    **NAMED,
}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "input_tokens": 1, "output_tokens": 1}
ANSWERS = {
    "/v1/chat/completions": {"id": "r1", "choices": [{"message": CHAT["messages"][2]}], "usage": USAGE},
    "/v1/messages": {"id": "r1", "role": "assistant", "content": MESSAGES["messages"][1]["content"], "usage": USAGE},
    "/v1/responses": {"id": "r1", "status": "completed", "output": [RESPONSES["input"][1]], "usage": USAGE},
    "/v1/systemone": systemone_answer(),
    "/v1/decisions": decisions_answer(),
    "/v1/models": {"object": "list", "data": []},
}
"""What the upstream server answers, by address."""

FORWARDED = [
    ("chat/completions", CHAT),
    ("messages", MESSAGES),
    ("responses", RESPONSES),
    ("systemone", DECISION),
    ("decisions", decisions_request()),
    ("completions", {"model": "m", "prompt": "page one", **NAMED}),
    ("embeddings", {"model": "m", "input": ["page one"]}),
    ("conversations", {"items": RESPONSES["input"], **NAMED}),
    ("models/m", {"name": "m"}),
]
ID_HEADERS = ["x-seasoned-session-id", "x-seasoned-episode-id", "x-seasoned-task", "x-seasoned-subject", "session_id"]
READS = ["stats", "namespaces", "token", "feedback", "questions", "positions", "episodes/e1", "questions/{id}", "lift"]
READS += [
    f"operations/{name}" for name in ("lift", "decisions", "flips", "growth", "sources", "quarantines", "switches")
]
OPEN = {"/", "/healthz", "/openapi.json"}


def upstream_answer(draw):
    """Return how the upstream server answers: mostly as its API says, at times an error or anything else."""

    def answer(handler):
        path = handler.path.partition("?")[0]
        body = json.dumps(ANSWERS.get(path, {})).encode()
        kind, status = "application/json", 200
        if draw.random() < 0.3:
            body = mutated(draw, ANSWERS.get(path, {"a": 1.0}))
        if draw.random() < 0.2:
            body = b"event: message\ndata: " + body + b"\n\ndata: [DONE]\n\n"
            kind = "text/event-stream"
        if draw.random() < 0.1:
            status = draw.choice([400, 404, 413, 429])
        handler.send_response(status)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def hostile_id(draw):
    """Return an id for an address, mostly of an episode or a session that is there."""
    return quote(draw.choice(["run", "run", "run", "e1", "a/b", hostile_text(draw), hostile_text(draw)]), safe="")


def forwarded_request(draw):
    """Return a request of a model or a decision, at times in a session or an episode that it names."""
    path, body = draw.choice(FORWARDED)
    prefix = draw.choice(["", f"/sessions/{hostile_id(draw)}", f"/episodes/{hostile_id(draw)}"])
    headers = {"Content-Type": "application/json"}
    if draw.random() < 0.5:
        headers[draw.choice(ID_HEADERS)] = draw.choice(["run", "t", "a" * 300, "a/b", "1e999", "'; DROP", "~2"])
    if draw.random() < 0.1:
        below = draw.choice(["/r1", "/r1/input_items", "/%2e%2e/stats", "//", "/../models", "/count_tokens", "/%00"])
        return draw.choice(["GET", "POST", "DELETE", "PUT"]), f"{prefix}/v1/{path}{below}", b"", headers
    query = f"?{draw.choice(['strict', 'namespace', 'beta'])}=1" if draw.random() < 0.1 else ""
    return "POST", f"{prefix}/v1/{path}{query}", mutated(draw, body), headers


def request(draw, question_id):
    """Return a method, a URL, a body and headers."""
    kind = draw.randrange(12)
    if kind < 5:
        path, body = draw.choice(
            [
                ("episodes", EPISODE),
                ("search", SEARCH),
                ("feedback", draw.choice(FEEDBACK)),
                ("feedback", draw.choice(OUTCOMES)),
                ("questions", QUESTION),
                (f"episodes/{hostile_id(draw)}/end", END),
                ("operations/switches", SWITCH),
                draw.choice(RECALLS),
                (f"questions/{question_id}/answers", {"kind": "choice", "author": "ann", "chosen": 0}),
            ]
        )
        return "POST", f"/v1/{path}", mutated(draw, body), {"Content-Type": "application/json"}
    if kind < 10:
        return forwarded_request(draw)
    if kind == 10:
        if draw.random() < 0.5:
            return draw.choice(["DELETE", "GET"]), f"/v1/feedback/{quote(hostile_text(draw), safe='')}", b"", {}
        query = "&".join(
            f"{name}={quote(hostile_text(draw), safe='')}"
            for name in draw.sample(["k", "author", "task", "episode_id", "namespace", "limit", "after", "cursor"], 2)
        )
        return "GET", f"/v1/{draw.choice(READS).format(id=question_id)}?{query}", b"", {}
    method = draw.choice(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
    headers = {
        "Content-Type": draw.choice(["text/plain", "application/json; charset=utf-7", "multipart/form-data", ""])
    }
    path = draw.choice(
        [
            *["/", "/v1", "/v1/", "/v1/episodes/../stats", "/v1//stats", "/%00", f"/{quote(hostile_text(draw))}"],
            *["/sessions/run/v1/stats", "/episodes/run/v1/feedback", "/sessions/run", "/sessions//v1/models"],
        ]
    )
    return method, path, draw.randbytes(draw.randrange(50)), headers


def attack(path, n_requests, seed):
    """Send requests, each again without the token; return the numbers of answers by status.

    What the upstream server has received is what was served: nothing without the token, and never our token.
    """
    draw, statuses = random.Random(seed), Counter()
    with upstream_server() as upstream:
        upstream.body = upstream_answer(random.Random(seed + 1))
        decisions = DecisionSettings(upstream=upstream.url, memory_timeout_s=20.0)
        gateway = GatewaySettings(modes={"t": "examples"}, mode_wait_s=20.0, spool=path.with_name("calls"))
        with serving(path, token=TOKEN, decisions=decisions, gateway=gateway) as client:
            client.post("/v1/episodes", json=EPISODE)
            question_id = client.post("/v1/questions", json=QUESTION).json()["id"]
            for _ in range(n_requests):
                method, url, body, headers = request(draw, question_id)
                n_served = len(upstream.received)
                without = client.request(method, url, content=body, headers={**headers, "Authorization": ""})
                refused = without.status_code in (400, 401, 403, 413, 415)
                assert refused or without.request.url.path in OPEN, (method, url, without.status_code)
                assert len(upstream.received) == n_served, (method, url)
                response = client.request(method, url, content=body, headers=headers)
                assert response.status_code < 500, (method, url, body[:300], response.text[:300])
                statuses[response.status_code] += 1
                statuses["forwarded"] += len(upstream.received) > n_served
            for read in READS:
                assert client.get(f"/v1/{read.format(id=question_id)}").status_code == 200, read
        assert TOKEN not in str(upstream.received)
    with Memory.open(path) as memory:
        assert memory.verify().malformed_notes == ()
        assert memory.get("e1").subject == "ann"
        statuses["recorded"] = sum(1 for _ in memory.episodes()) - 1
    return statuses


def line(statuses, n_rounds):
    counts = ", ".join(f"{statuses[status]} of {status}" for status in range(600) if statuses[status])
    return (
        f"requests: {n_rounds} at random, {counts}, none of 5xx; none served without the token; "
        f"{statuses['forwarded']} forwarded, {statuses['recorded']} episodes; verify clean"
    )


def test_requests_at_random_harm_nothing(tmp_path, report_line):
    statuses = attack(tmp_path / "agent.db", 60, 1)
    report_line(line(statuses, 60), rounds=60)
    assert statuses[201] and statuses[400] and statuses["forwarded"] and statuses["recorded"]


@pytest.mark.slow
def test_many_requests_at_random_harm_nothing(tmp_path, report_line):
    n_rounds = attack_rounds("requests")
    statuses = attack(tmp_path / "agent.db", n_rounds, 2)
    report_line(line(statuses, n_rounds), rounds=n_rounds)
    assert n_rounds < 100 or (statuses[201] and statuses[400])


def test_every_address_that_takes_a_body_is_attacked():
    draw = random.Random(0)
    called = {
        url.partition("?")[0] for method, url, *_ in (request(draw, "q") for _ in range(3000)) if method == "POST"
    }
    with upstream_server() as upstream, serving(decisions=DecisionSettings(upstream=upstream.url)) as client:
        paths = client.get("/openapi.json").json()["paths"]
    taking = {path for path, methods in paths.items() if "post" in methods and not path.startswith("/sessions/")}
    for path in taking:
        pattern = re.compile(".*" + re.sub(r"\\{\w+\\}", ".+", re.escape(path)))
        assert any(pattern.fullmatch(url) for url in called), path
