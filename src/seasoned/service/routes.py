"""Routes of the service: each address with its handler. Handlers are synchronous; all but one run in a thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seasoned.actions import readable_action
from seasoned.checks import check_number, check_one_of, check_text
from seasoned.core import check_gamma
from seasoned.errors import InputError, excerpt
from seasoned.integrations.clients.call_recorder import CallRecorder
from seasoned.integrations.rewards.foreign_scores import ScoreScale
from seasoned.memory import Memory
from seasoned.service.answer_form import AnswerCandidate, QuestionAnswer
from seasoned.service.bearer_tokens import SCOPES, Scope, Token
from seasoned.service.decisions.feedback_caps import check_episode_rewards
from seasoned.service.decisions.outcome_feedback import add_any_feedback, revoke_any_feedback
from seasoned.service.feedback_json import record_to_json
from seasoned.service.json_documents import (
    add_with_shown,
    check_json_array,
    check_json_fields,
    dataclass_from_json,
    episode_from_json,
    episode_to_json,
    shown_from_json,
)
from seasoned.service.memory_pool import MemoryPool
from seasoned.service.operations.overview import Overview
from seasoned.service.permissions import authored
from seasoned.service.policy_view import answer_key, policy_to_json
from seasoned.service.questions import Question, Questions
from seasoned.service.responses import Listing
from seasoned.service.schemas import (
    ANSWER_SCHEMA,
    EPISODE_SCHEMA,
    ERROR_DESCRIPTIONS,
    FEEDBACK_ANSWER,
    ID_ANSWER,
    LIFT_ANSWER,
    PROBLEM_SCHEMA,
    QUESTION_SCHEMA,
    SEARCH_SCHEMA,
    feedback_schema,
)

__all__ = ["ROUTES", "Route", "ServiceRequest", "cursor_text", "limit_of", "place_of", "whole_text"]

MAX_NEIGHBORS = 1000
MAX_LISTED = 1000
LISTED_QUESTIONS = 20
MAX_NUMBER_CHARS = 40


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A request: the served memories, the parameters of its path, its query and its body, and the scales of scores."""

    pool: MemoryPool
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]
    max_answer_bytes: int
    holder: Token
    scores: Mapping[str, ScoreScale]

    @property
    def memory(self) -> Memory:
        """The memory of the request's namespace."""
        return self.pool.memory(self.query.get("namespace"))

    @property
    def overview(self) -> Overview:
        """What the operator's page shows of this namespace."""
        return self.pool.overview(self.query.get("namespace"))


@dataclass(frozen=True, slots=True)
class Route:
    """An address with its handler, its body's JSON Schema (or a function that returns it) and its query parameters.

    `answer` is the schema of what it returns, if that is documented.

    A request needs a token with `scope`; None: with any. An `immediate` handler runs in the event loop, and so does not
    wait for a thread.
    """

    method: str
    path: str
    handler: Callable[[ServiceRequest], Any]
    summary: str
    body: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None
    status: int = 200
    query: tuple[str, ...] = ("namespace",)
    scope: Scope | None = "read"
    immediate: bool = False
    answer: Mapping[str, Any] | None = None

    def openapi(self, *, secured: bool) -> dict[str, Any]:
        """Return the OpenAPI document without the summary: parameters, the body's schema, the token."""
        names = [part.strip("{}").removesuffix(":path") for part in self.path.split("/") if part.startswith("{")]
        text = {"type": "string"}
        parameters = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
        parameters += [{"name": name, "in": "query", "required": False, "schema": text} for name in self.query]
        document: dict[str, Any] = {"parameters": parameters}
        if self.body is not None:
            schema = self.body() if callable(self.body) else self.body
            document["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        if secured and self.path.startswith("/v1/"):
            document["security"] = [{"token": []}]
        return document

    def responses(self) -> dict[int | str, dict[str, Any]]:
        """Return the documented responses, for OpenAPI."""
        if not self.path.startswith("/v1/"):
            return {}
        statuses = set(ERROR_DESCRIPTIONS) if self.body is not None else set(ERROR_DESCRIPTIONS) - {409, 413, 415}
        content = {"application/json": {"schema": PROBLEM_SCHEMA}}
        found: dict[int | str, dict[str, Any]] = {
            status: {"description": ERROR_DESCRIPTIONS[status], "content": content} for status in sorted(statuses)
        }
        if self.answer is not None:
            found[self.status] = {"description": "Done.", "content": {"application/json": {"schema": self.answer}}}
        return found


def limit_of(request: ServiceRequest, default: int) -> int:
    """Return the number of items of a page, from the query."""
    return whole_text("limit", request.query.get("limit", str(default)), 1, MAX_LISTED)


def cursor_text(created_at: float, id_: str) -> str:
    """Return the cursor behind an item: its time and its id."""
    return f"{created_at!r}~{id_}"


def place_of(cursor: str | None) -> tuple[float, str] | None:
    """Return the time and the id in a cursor; None for the start of the list."""
    if cursor is None:
        return None
    created_at, sign, id_ = cursor.partition("~")
    try:
        place = check_number("cursor", float(created_at)), check_text("cursor", id_)
    except (ValueError, InputError):
        place = None
    if place is None or not sign or len(created_at) > MAX_NUMBER_CHARS:
        rule = "a cursor is `next` of the page before"
        raise InputError(f"cursor = {excerpt(cursor)}", rule, "Leave it out for the first page.")
    return place


def whole_text(name: str, text: object, low: int, high: int) -> int:
    """Return a whole number in a query. Raises: InputError: it is none, or out of range."""
    fits = isinstance(text, str) and len(text) <= len(str(high)) and text.isascii() and text.isdigit()
    if not isinstance(text, str) or not fits or not low <= int(text) <= high:
        raise InputError(f"{name} = {excerpt(text)}", f"a {name} is {low} to {high}", "Leave it out, or pass `next`.")
    return int(text)


def health(request: ServiceRequest) -> Any:
    """Report that the service runs."""
    del request
    return {"status": "ok"}


def namespaces(request: ServiceRequest) -> Any:
    """Return the served namespaces."""
    return {"namespaces": list(request.pool.names())}


def token(request: ServiceRequest) -> Any:
    """Return the author and the scopes of the request's token."""
    holder = request.holder
    scopes = [scope for scope in SCOPES if holder.may(scope)]
    return {"author": holder.author, "source": holder.source, "scopes": scopes}


def stats(request: ServiceRequest) -> Any:
    """Return a namespace's counts, without the store's path, and those of the calls that the gateway records."""
    counts = dataclasses.asdict(request.memory.stats())
    del counts["path"]
    for recorder in request.memory.session.recorders:
        if isinstance(recorder, CallRecorder):
            counts["calls"] = recorder.counts()
    return counts


def add_episode(request: ServiceRequest) -> Any:
    """Store an episode, with the examples that its prompts showed."""
    body, shown = shown_from_json(request.body)
    episode = episode_from_json(body)
    check_episode_rewards(request.memory, request.holder, episode)
    if not shown:
        return {"id": request.memory.add(episode)}
    rule: dict[str, Any] = {"arm": episode.arm, "awaits_feedback": episode.awaits_feedback}
    return {"id": add_with_shown(request.memory, episode, shown, **rule)}


def get_episode(request: ServiceRequest) -> Any:
    """Return an episode, as it was posted."""
    return episode_to_json(request.memory.get(request.path["id"]))


def search(request: ServiceRequest) -> Any:
    """Return the stored steps at similar states."""
    query = check_json_fields("search", request.body, SEARCH_SCHEMA["properties"], ["state"])
    k = query.get("k", 10)
    if isinstance(k, int) and k > MAX_NEIGHBORS:
        raise InputError(f"k = {k}", f"at most {MAX_NEIGHBORS} are returned at once", "Ask for fewer.")
    start = whole_text("cursor", query.get("cursor", "0"), 0, MAX_NEIGHBORS)
    gamma = query.get("gamma")
    if gamma is not None:
        check_gamma(gamma)
        known = sorted({request.memory.gamma, *request.memory.known_gammas()})
        if gamma not in known:  # a new discount would make every later write slower
            raise InputError(
                f"gamma = {gamma}",
                f"returns are served at the memory's known discounts: {', '.join(map(str, known))}",
                "Leave it out for the memory's own, or ask once in Python: memory.search(..., gamma=...).",
            )
    found = request.memory.search(
        query["state"],
        k,
        query.get("threshold", 0.0),
        gamma=gamma,
        exclude_task=query.get("exclude_task"),
        start=start,
        max_chars=request.max_answer_bytes,  # JSON has at least a byte for each character
    )
    neighbors = []
    for neighbor in found:
        experience = dataclasses.asdict(neighbor.experience)
        neighbors.append({"similarity": neighbor.similarity, "return": experience.pop("return_"), **experience})
    return Listing("neighbors", neighbors, start, more=False)


def add_feedback(request: ServiceRequest) -> Any:
    """Store feedback."""
    return add_any_feedback(request.memory, request.body, request.holder, request.scores)


def list_feedback(request: ServiceRequest) -> Any:
    """Return typed feedback, the oldest first."""
    limit, after = limit_of(request, MAX_LISTED), place_of(request.query.get("cursor"))
    records = request.memory.feedback_records(request.query.get("episode"), after=after, limit=limit + 1)
    cursors = [cursor_text(one.created_at, one.id) for one in records]
    listed = [record_to_json(one) for one in records[:limit]]
    return Listing("feedback", listed, 0, more=limit < len(records), cursors=cursors)


def revoke_feedback(request: ServiceRequest) -> Any:
    """Revoke feedback, and no other notes, such as questions."""
    revoke_any_feedback(request.memory, request.path["id"], request.holder)
    return {"revoked": request.path["id"]}


def lift(request: ServiceRequest) -> Any:
    """Return the lift of each family, or of one."""
    family, found = request.query.get("family"), request.overview.latest_lift.get()
    if family is None:
        listed = list(found.value.values())
    else:
        name = request.memory.redacted(check_text("family", family))
        listed = [found.value[name] if name in found.value else request.memory.lift(family)]
    return {"as_of": found.as_of, "families": [one.record() for one in listed]}


def ask_question(request: ServiceRequest) -> Any:
    """Add a question to the queue."""
    body = check_json_fields("question", request.body, QUESTION_SCHEMA["properties"], QUESTION_SCHEMA["required"])
    listed = check_json_array("candidates", body["candidates"], MAX_LISTED)
    candidates = [dataclass_from_json(AnswerCandidate, f"candidates[{i}]", one) for i, one in enumerate(listed)]
    question = dataclass_from_json(Question, "question", {**body, "candidates": candidates})
    return {"id": Questions(request.memory).add(question)}


def list_questions(request: ServiceRequest) -> Any:
    """Return the questions without an answer of an author: those with the fewest answers, or all in pages."""
    limit, order, author = limit_of(request, LISTED_QUESTIONS), request.query.get("order"), request.query.get("author")
    check_one_of("order", order, (None, "oldest"))
    if order is None:
        check_one_of("cursor", request.query.get("cursor"), (None,))  # those with the fewest answers change
        queue = Questions(request.memory).queue(author=author, limit=limit)
        listed = [{**_question(one), "answers": n} for one, n in queue.questions]
        return Listing("questions", listed, 0, more=False, fields={"open": queue.n_open, "total": queue.n_total})
    page = Questions(request.memory).page(author=author, after=place_of(request.query.get("cursor")), limit=limit)
    listed = [{**_question(one), "answers": n} for one, n in page.questions]
    return Listing("questions", listed, 0, more=page.more, cursors=[cursor_text(*place) for place in page.places])


def _question(question: Question) -> dict[str, Any]:
    """Return a question with the readable spelling of each candidate, `shown`."""
    document = dataclasses.asdict(question)
    document["candidates"] = [{**one, "shown": readable_action(one["text"])} for one in document["candidates"]]
    return document


def get_question(request: ServiceRequest) -> Any:
    """Return a question, its answers, and the present policy over its candidates."""
    questions = Questions(request.memory)
    question = questions.get(request.path["id"])
    return {
        **_question(question),
        "answers": [record_to_json(one) for one in questions.answers(question)],
        "policy": policy_to_json(questions.decide(question), request.memory),
    }


def answer_question(request: ServiceRequest) -> Any:
    """Store an answer, and return its effect on the policy."""
    body = check_json_fields("answer", request.body, ANSWER_SCHEMA["properties"], ANSWER_SCHEMA["required"])
    named = authored(request.holder, body)
    source = named.pop("source", "human")  # of the token: the body has no such field
    answer = dataclass_from_json(QuestionAnswer, "answer", named)
    effect = Questions(request.memory).answer(request.path["id"], answer, source=source)
    return {
        **record_to_json(effect.record),
        "key": answer_key(effect.record.feedback),
        "before": policy_to_json(effect.before, request.memory),
        "after": policy_to_json(effect.after, request.memory),
    }


def question_positions(request: ServiceRequest) -> Any:
    """Count chosen and edited candidates by their position in the displayed list."""
    return {"positions": Questions(request.memory).positions()}


ROUTES = (
    Route("GET", "/healthz", health, "Whether the service runs; needs no token.", query=(), scope=None, immediate=True),
    Route("GET", "/v1/token", token, "Author and scopes of the request's token.", query=(), scope=None),
    Route("GET", "/v1/namespaces", namespaces, "The namespaces that are served.", query=()),
    Route("GET", "/v1/stats", stats, "Counts of a namespace's content."),
    Route(
        "POST",
        "/v1/episodes",
        add_episode,
        "Store an episode; idempotent with an id.",
        EPISODE_SCHEMA,
        201,
        scope="write",
        answer=ID_ANSWER,
    ),
    Route("GET", "/v1/episodes/{id:path}", get_episode, "An episode, as it was posted."),
    Route("POST", "/v1/search", search, "Stored steps at states like this one.", SEARCH_SCHEMA),
    Route(
        "GET", "/v1/lift", lift, "Whether memory helps, by family.", query=("namespace", "family"), answer=LIFT_ANSWER
    ),
    Route(
        "POST",
        "/v1/feedback",
        add_feedback,
        "Store feedback on an episode or a decision.",
        feedback_schema,
        201,
        scope="feedback",
        answer=FEEDBACK_ANSWER,
    ),
    Route(
        "GET",
        "/v1/feedback",
        list_feedback,
        "Typed feedback, the oldest first.",
        query=("namespace", "episode", "limit", "cursor"),
    ),
    Route("DELETE", "/v1/feedback/{id:path}", revoke_feedback, "Revoke feedback; idempotent.", scope="feedback"),
    Route(
        "POST",
        "/v1/questions",
        ask_question,
        "Ask people; the same question is stored once.",
        QUESTION_SCHEMA,
        201,
        scope="write",
    ),
    Route(
        "GET",
        "/v1/questions",
        list_questions,
        "Questions without an answer of an author.",
        query=("namespace", "author", "order", "limit", "cursor"),
    ),
    Route("GET", "/v1/positions", question_positions, "Choices by position in the displayed list."),
    Route(
        "POST",
        "/v1/questions/{id:path}/answers",
        answer_question,
        "Answer; returns the effect.",
        ANSWER_SCHEMA,
        201,
        scope="feedback",
    ),
    Route("GET", "/v1/questions/{id:path}", get_question, "A question, its answers, and the policy now."),
)
"""Every address of the service."""
