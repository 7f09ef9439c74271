"""What the service answers to: every address with its handler. A handler is synchronous, and runs in a thread."""

from __future__ import annotations

import dataclasses
from typing import Any

from seasoned.core import check_gamma
from seasoned.errors import InputError, excerpt
from seasoned.service.answer_form import Candidate, Reply
from seasoned.service.feedback_json import feedback_from, read_record, record_document
from seasoned.service.json_documents import build_from, check_fields, episode_document, episode_from
from seasoned.service.policy_view import answer_key, policy_document
from seasoned.service.questions import Question, Questions
from seasoned.service.route import Call, Route
from seasoned.service.schemas import ANSWER, EPISODE, FEEDBACK, QUESTION, SEARCH

__all__ = ["ROUTES"]

MAX_NEIGHBORS = 1000
MAX_LISTED = 1000


def health(call: Call) -> Any:
    """Say that the service runs; nothing about what it holds."""
    del call
    return {"status": "ok"}


def namespaces(call: Call) -> Any:
    """Name what is served."""
    return {"namespaces": list(call.opened.names())}


def stats(call: Call) -> Any:
    """Count what a namespace holds; where it is kept stays here."""
    found = dataclasses.asdict(call.memory.stats())
    del found["path"]
    return found


def add_episode(call: Call) -> Any:
    """Store an episode."""
    return {"id": call.memory.add(episode_from(call.body))}


def get_episode(call: Call) -> Any:
    """Return an episode, as it was posted."""
    return episode_document(call.memory.get(call.path["id"]))


def search(call: Call) -> Any:
    """Return the stored steps at states like the one given."""
    asked = check_fields("search", call.body, SEARCH["properties"], ["state"])
    k = asked.get("k", 10)
    if isinstance(k, int) and k > MAX_NEIGHBORS:
        raise InputError(f"k = {k}", f"at most {MAX_NEIGHBORS} are returned at once", "Ask for fewer.")
    gamma = asked.get("gamma")
    if gamma is not None:
        check_gamma(gamma)
        known = sorted({call.memory.gamma, *call.memory.known_gammas()})
        if gamma not in known:  # every write would keep it up from then on
            raise InputError(
                f"gamma = {gamma}",
                f"returns are served at discounts that the memory keeps: {', '.join(map(str, known))}",
                "Leave it out for the memory's own, or ask once in Python: memory.search(..., gamma=...).",
            )
    found = call.memory.search(
        asked["state"], k, asked.get("threshold", 0.0), gamma=gamma, exclude_task=asked.get("exclude_task")
    )
    neighbors = []
    for neighbor in found:
        seen = dataclasses.asdict(neighbor.experience)
        neighbors.append({"similarity": neighbor.similarity, "return": seen.pop("return_"), **seen})
    return {"neighbors": neighbors}


def add_feedback(call: Call) -> Any:
    """Store typed feedback."""
    feedback, target = feedback_from(call.body)
    return record_document(read_record(call.memory, call.memory.feedback(feedback=feedback, **target)))


def list_feedback(call: Call) -> Any:
    """Return typed feedback, the oldest first."""
    return {"feedback": [record_document(one) for one in call.memory.feedback_records(call.query.get("episode"))]}


def revoke_feedback(call: Call) -> Any:
    """Take feedback back, and nothing else: a question is a note too."""
    read_record(call.memory, call.path["id"])
    call.memory.revoke(call.path["id"])
    return {"revoked": call.path["id"]}


def ask_question(call: Call) -> Any:
    """Put a question into the queue."""
    asked = check_fields("question", call.body, QUESTION["properties"], QUESTION["required"])
    candidates = asked["candidates"]
    if not isinstance(candidates, list):
        raise InputError(f"candidates = {excerpt(candidates)}", "candidates are a JSON array", "Put them in [ ].")
    built = [build_from(Candidate, f"candidates[{i}]", one) for i, one in enumerate(candidates)]
    return {"id": Questions(call.memory).add(build_from(Question, "question", {**asked, "candidates": built}))}


def list_questions(call: Call) -> Any:
    """Return the questions that an author has not answered, those with the fewest answers first."""
    limit = call.query.get("limit", "20")
    short = len(limit) <= len(str(MAX_LISTED))  # Python refuses to read a number of thousands of digits
    if not (short and limit.isascii() and limit.isdigit() and 1 <= int(limit) <= MAX_LISTED):
        raise InputError(f"?limit={excerpt(limit)}", f"a limit is 1 to {MAX_LISTED}", "Leave it out for 20.")
    queue = Questions(call.memory).queue(author=call.query.get("author"), limit=int(limit))
    return {
        "open": queue.n_open,
        "total": queue.n_total,
        "questions": [{**dataclasses.asdict(one), "answers": n} for one, n in queue.questions],
    }


def get_question(call: Call) -> Any:
    """Return a question, its answers, and what the policy over its candidates is now."""
    questions = Questions(call.memory)
    question = questions.get(call.path["id"])
    return {
        **dataclasses.asdict(question),
        "answers": [record_document(one) for one in questions.answers(question)],
        "policy": policy_document(questions.decide(question), call.memory),
    }


def answer_question(call: Call) -> Any:
    """Store an answer, and return what was learned from it."""
    answered = check_fields("answer", call.body, ANSWER["properties"], ANSWER["required"])
    reply = build_from(Reply, "answer", dict(answered))
    learned = Questions(call.memory).answer(call.path["id"], reply)
    return {
        **record_document(learned.record),
        "key": answer_key(learned.record.feedback),
        "before": policy_document(learned.before, call.memory),
        "after": policy_document(learned.after, call.memory),
    }


def question_positions(call: Call) -> Any:
    """Count at which place of the list the chosen and edited candidates stood."""
    return {"positions": Questions(call.memory).positions()}


ROUTES = (
    Route("GET", "/healthz", health, "Whether the service runs; needs no token.", query=()),
    Route("GET", "/v1/namespaces", namespaces, "The namespaces that are served.", query=()),
    Route("GET", "/v1/stats", stats, "What a namespace holds."),
    Route("POST", "/v1/episodes", add_episode, "Store an episode; with an id, twice does no harm.", EPISODE, 201),
    Route("GET", "/v1/episodes/{id:path}", get_episode, "An episode, as it was posted."),
    Route("POST", "/v1/search", search, "Stored steps at states like this one.", SEARCH),
    Route("POST", "/v1/feedback", add_feedback, "Store typed feedback.", FEEDBACK, 201),
    Route("GET", "/v1/feedback", list_feedback, "What was given, in order.", query=("namespace", "episode")),
    Route("DELETE", "/v1/feedback/{id:path}", revoke_feedback, "Take feedback back; twice does no harm."),
    Route("POST", "/v1/questions", ask_question, "Ask people; the same question twice is one.", QUESTION, 201),
    Route(
        "GET",
        "/v1/questions",
        list_questions,
        "What an author has not answered yet.",
        query=("namespace", "author", "limit"),
    ),
    Route("GET", "/v1/positions", question_positions, "How often each place in the list was taken."),
    Route("POST", "/v1/questions/{id:path}/answers", answer_question, "Answer; returns what was learned.", ANSWER, 201),
    Route("GET", "/v1/questions/{id:path}", get_question, "A question, its answers, and the policy now."),
)
"""Every address of the service."""
