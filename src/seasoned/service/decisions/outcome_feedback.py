"""Feedback on decisions: by the id of an inference and a question, and in the forms of other systems."""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from seasoned.checks import check_flag, check_reward, check_text
from seasoned.decisions.named_options import question_prefix, stored_action
from seasoned.errors import InputError, NotFoundError, SeasonedError, StoreError, excerpt
from seasoned.integrations.clients.call_recorder import CallRecorder
from seasoned.integrations.rewards.foreign_scores import (
    ScoreScale,
    declared_sources,
    foreign_scores,
    is_foreign_score,
    is_otlp_request,
    read_score,
)
from seasoned.integrations.rewards.stored_rewards import store_score
from seasoned.memory import Memory
from seasoned.service.bearer_tokens import Token
from seasoned.service.decisions.feedback_caps import check_reward_cap, named_feedback
from seasoned.service.decisions.request_questions import INFERENCE_PREFIX, episode_id
from seasoned.service.decisions.session_episodes import SessionEpisodes
from seasoned.service.feedback_json import feedback_from_json, read_record, record_to_json
from seasoned.service.json_documents import check_json_fields
from seasoned.service.permissions import ForbiddenError, authored, check_own
from seasoned.service.schemas import METRIC_FIELDS, feedback_schema
from seasoned.types import Feedback, Label, OwnAnswer, Step, Thumbs, feedback_record
from seasoned.types.notes import RESPONSE, response_note_id

__all__ = ["add_any_feedback", "revoke_any_feedback"]

_MOST_SCORES = 1000
_TARGET = ("source", "author", "weight", "id")
_NAMED_ONLY = ("inference_id", "question", "reward", "revoke", "right", "up", "comment", *_TARGET)


def add_any_feedback(
    memory: Memory, body: Mapping[str, Any], holder: Token, scores: Mapping[str, ScoreScale]
) -> dict[str, Any]:
    """Store feedback of one of these forms, and return it as JSON.

    - `{"kind": KIND, ..., "episode_id": ID}`: typed feedback on an episode, as everywhere;
    - `{"reward": NUMBER, "episode_id": ID, "step": NUMBER}`: a reward on a step of an episode, by default the last;
    - `{"inference_id": ID, "question": NAME}` with `reward`, `right`, `up`, a `kind` with its fields, or `revoke`;
    - `{"metric_name": NAME, "value": VALUE, "inference_id" or "episode_id": ID}`: TensorZero's form;
    - a score of Langfuse, feedback of Portkey, or OpenTelemetry's evaluation result: `foreign_scores.read_score`,
      with these scales; also an OTLP request with many results, in log records or in the events of spans.

    Raises:
        InputError: a field is missing or unknown, or breaks a rule.
        NotFoundError: no such decision, question or feedback.
        ForbiddenError: the token may not speak for this author, or would end the running episode of another one.
    """
    if "metric_name" in body:
        return _add_metric(memory, body, holder, declared_sources(scores))
    if is_otlp_request(body):
        return _add_scores(memory, body, holder, scores)
    if is_foreign_score(body):
        return _add_score(memory, body, holder, scores)
    if "reward" in body and "episode_id" in body and "inference_id" not in body:
        return _add_reward(memory, body, holder)
    if "inference_id" in body or "reward" in body or "revoke" in body:
        return _add_outcome(memory, body, holder)
    if "episode_id" not in body:
        check_json_fields("feedback", body, feedback_schema()["properties"])  # names a misspelt inference_id
    if "kind" not in body:
        raise InputError(
            f"a body with {', '.join(sorted(map(excerpt, body))) or 'no fields'}",
            "feedback names a decision by inference_id, or has a kind and an episode_id",
            'Send {"inference_id": ..., "right": "refunds"}, for example.',
        )
    feedback, target = feedback_from_json(body)
    target = authored(holder, target)
    if isinstance(target.get("episode_id"), str):
        target["episode_id"] = _running_id(memory, target["episode_id"], holder)
        _check_running(memory, target["episode_id"], None, holder, feedback, target.get("step"))
        _check_stored(memory, target["episode_id"], feedback, target.get("step"))
    if isinstance(feedback, Label) and isinstance(target.get("episode_id"), str):
        _ended(memory, target["episode_id"], None, holder, feedback)
        feedback = _label(memory, target["episode_id"], feedback, target.get("step"))
    return _as_json(memory, memory.feedback(feedback=feedback, **target), target.get("episode_id"), feedback)


def revoke_any_feedback(
    memory: Memory, feedback_id: str, holder: Token, *, of: tuple[str, int | None] | None = None
) -> None:
    """Revoke typed feedback or a reward.

    Args:
        memory: holds it.
        feedback_id: its id.
        holder: of the token.
        of: the episode that it must be on, and the step; None: any.

    Raises:
        NotFoundError: no feedback has this id; or it is on another episode or step than `of`.
        ForbiddenError: it is another author's.
    """
    events = memory.events(id=feedback_id)
    found: Any = (
        events[0] if events and not memory.feedback_records(id=feedback_id) else read_record(memory, feedback_id)
    )
    if of is not None and (found.episode_id != of[0] or of[1] not in (None, found.step)):
        raise NotFoundError(
            f"feedback {excerpt(feedback_id)}", "it is on another decision", "Name the decision that it is on."
        )
    check_own(holder, found)
    memory.revoke(feedback_id)


def _add_reward(memory: Memory, body: Mapping[str, Any], holder: Token) -> dict[str, Any]:
    """Store a reward on a step of an episode."""
    check_json_fields("a reward", body, ["reward", "episode_id", "step", *_TARGET])
    about = authored(holder, {name: body[name] for name in _TARGET if name in body})
    reward, step = _reward(memory, body, holder, about), body.get("step")
    _check_running(memory, body["episode_id"], None, holder, reward, step)
    target = _running_id(memory, check_text("episode_id", body["episode_id"]), holder)
    _check_stored(memory, target, reward, step)
    id_ = memory.feedback(target, reward, step, **about)
    return {"id": id_, "episode_id": target, "reward": body["reward"]}


def _reward(memory: Memory, body: Mapping[str, Any], holder: Token, about: Mapping[str, Any]) -> float:
    """Return the reward of a body, within the cap of its author."""
    if isinstance(body["reward"], bool):
        raise InputError("reward = true or false", "a reward is a number", 'Send "up" for a thumb.')
    reward = check_reward("reward", body["reward"])
    check_reward_cap(memory, holder, reward, about.get("weight", 1.0))
    return reward


def _add_outcome(memory: Memory, body: Mapping[str, Any], holder: Token) -> dict[str, Any]:
    """Store the outcome of a decision."""
    if "inference_id" not in body:
        raise InputError(
            f"a body with {', '.join(sorted(map(excerpt, body)))}",
            "a reward or a revocation names the decision by inference_id",
            "Add it: the id of the answer, or of its episode.",
        )
    kind = body.get("kind")
    if kind is None:
        check_json_fields("feedback on a decision", body, _NAMED_ONLY, ["inference_id"])
    named = [name for name in ("reward", "right", "up", "revoke") if name in body] if kind is None else ["kind"]
    if len(named) != 1 or (kind is not None and ("reward" in body or "revoke" in body)):
        raise InputError(
            f"feedback with {', '.join(named) or 'no outcome'}",
            "feedback on a decision has one of reward, right, up, kind and revoke",
            'Send {"inference_id": ..., "right": "refunds"}, for example.',
        )
    place = body["inference_id"], body.get("question"), holder
    if named == ["revoke"]:
        feedback_id = check_text("revoke", body["revoke"])
        target = _decision(memory, *place)
        revoke_any_feedback(memory, feedback_id, holder, of=memory.response_step(target) or (target, None))
        return {"revoked": feedback_id}
    about = authored(holder, {name: body[name] for name in _TARGET if name in body})
    if named == ["reward"]:
        if "comment" in body:
            raise InputError("a comment on a reward", "typed feedback has a comment", "Send a thumb or a label.")
        reward = _reward(memory, body, holder, about)
        target = _ended(memory, *place, reward)
        return {"id": _stored(memory, target, reward, about), "episode_id": target, "reward": body["reward"]}
    plain = {name: value for name, value in body.items() if name not in ("inference_id", "question", *_TARGET)}
    plain.setdefault("kind", "label" if "right" in body else "thumbs")
    feedback, _ = feedback_from_json(plain)
    target = _ended(memory, *place, feedback)
    if isinstance(feedback, Label):
        feedback = _label(memory, target, feedback)
    return _as_json(memory, _stored(memory, target, feedback, about), target, feedback)


def _add_metric(memory: Memory, body: Mapping[str, Any], holder: Token, declared: frozenset[str]) -> dict[str, Any]:
    """Store feedback in TensorZero's form, and return its id."""
    known = [*METRIC_FIELDS, "inference_id", "episode_id", "question", "id"]
    check_json_fields("a metric", body, known, ["metric_name", "value"])
    targets = [name for name in ("inference_id", "episode_id") if body.get(name) is not None]
    if len(targets) != 1:
        raise InputError(
            f"a metric with {' and '.join(targets) or 'no target'}",
            "a metric is on an inference or on an episode",
            "Send inference_id or episode_id, one of them.",
        )
    name, value = check_text("metric_name", body["metric_name"]), body["value"]
    tags = body.get("tags")
    if tags is not None and not (isinstance(tags, dict) and all(isinstance(one, str) for one in tags.values())):
        raise InputError(f"tags = {excerpt(tags)}", "tags map texts to texts", "Send an object of texts.")
    about = authored(holder, {"id": body["id"]} if "id" in body else {})
    if name != "demonstration" or holder.author is None:  # the author's label replaces one in another form
        about["source"] = name  # with the author it tells which earlier feedback this one replaces: that of its metric
    feedback = _metric_value(memory, name, value, holder)
    place = body[targets[0]], body.get("question"), holder
    if check_flag("dryrun", False if body.get("dryrun") is None else body["dryrun"]):
        if not _check_running(memory, *place, feedback) and not _is_recording(memory, body[targets[0]], holder):
            target = _decision(memory, *place)
            if memory.response_step(target) is None:
                memory.get(target)
        return {"feedback_id": uuid.uuid4().hex}
    target = _ended(memory, *place, feedback)
    if name == "demonstration":
        feedback = _demonstration(memory, target, value)
    if feedback is None:
        return {"feedback_id": _noted(memory, target, "comment", {"text": value}, **about)}
    try:
        with named_feedback(holder, name, declared) as cap:
            id_ = _stored(memory, target, feedback, {**about, "cap": cap})
    except NotFoundError:
        raise _unknown(target) from None
    if tags:
        note: dict[str, Any] = {"feedback_id": id_, "tags": tags}
        _noted(memory, target, "tags", note, source=about["source"], author=about.get("author"), id=f"{id_}/tags")
    return {"feedback_id": id_}


def _noted(memory: Memory, target: str, kind: str, body: Mapping[str, Any], **about: Any) -> str:
    """Store a note on an episode, or on the step of a decision in a session; return its id."""
    episode, step = memory.response_step(target) or (target, None)
    return memory.note(episode, kind, body, step=step, **about)


def _metric_value(memory: Memory, name: str, value: object, holder: Token) -> Feedback | float | None:
    """Return a metric's value as feedback; None for a comment."""
    if name in ("comment", "demonstration"):
        text = check_text("value", value)
        return None if name == "comment" else OwnAnswer(text)
    if isinstance(value, bool):
        return Thumbs(value)
    if not isinstance(value, int | float):
        raise InputError(f"value = {excerpt(value)}", "a metric is true, false or a number", "Send one.")
    reward = check_reward("value", value)
    check_reward_cap(memory, holder, reward)
    return reward


def _add_score(
    memory: Memory, body: Mapping[str, Any], holder: Token, scores: Mapping[str, ScoreScale]
) -> dict[str, Any]:
    """Store a score in the form of another system, and return its id; the same body again is stored once."""
    score = read_score(body, scores)
    score = replace(score, targets=tuple(_running_id(memory, one, holder) for one in score.targets))
    for target in score.targets:
        with contextlib.suppress(NotFoundError):  # then it is on another of them
            _check_running(memory, target, None, holder, score.feedback)
        _check_stored(memory, target, score.feedback)
    author = authored(holder, {"weight": min(score.weight, 1.0)}).get("author")  # a larger one is the operator's scale
    with named_feedback(holder, score.source, declared_sources(scores)) as cap:
        return {"feedback_id": store_score(memory, score, body, author=author, cap=cap)}


def _add_scores(
    memory: Memory, body: Mapping[str, Any], holder: Token, scores: Mapping[str, ScoreScale]
) -> dict[str, Any]:
    """Store the scores of an OTLP request, and return their ids and the errors of those that are refused.

    If all are refused, that is the first error. If the store fails, the same request again stores each once.
    """
    found = list(itertools.islice(foreign_scores(body), _MOST_SCORES + 1))
    if len(found) > _MOST_SCORES:
        raise InputError(
            f"more than {_MOST_SCORES} scores", f"a request has at most {_MOST_SCORES}", "Send smaller batches."
        )
    ids, refused = list[str](), list[SeasonedError]()
    for one in found:
        try:
            ids.append(_add_score(memory, one, holder, scores)["feedback_id"])
        except (InputError, NotFoundError) as error:
            refused.append(error)
    if refused and not ids:
        raise refused[0]
    return {"feedback_ids": ids, "refused": [str(error) for error in refused]}


def _stored(memory: Memory, target: str, feedback: Feedback | float, about: Mapping[str, Any]) -> str:
    """Store feedback on a decision, and return its id."""
    _check_alone(memory, target, feedback)
    try:
        return memory.feedback(target, feedback, **about)
    except NotFoundError:
        raise _unknown(target) from None


def _check_alone(memory: Memory, target: str, feedback: Feedback | float) -> None:
    """Refuse the outcome of one decision of a session of several.

    The return of a step is the sum of the rewards from it to the end, and a step without feedback has reward 0. So the
    outcome of one decision would count for the decisions before it, and make the unrated ones failures.
    """
    place = memory.response_step(target) if target.startswith(INFERENCE_PREFIX) else None
    about_one = place is not None or isinstance(feedback, Label | OwnAnswer)
    try:
        n_steps = len(memory.get(target if place is None else place[0]).steps) if about_one else 1
    except NotFoundError:  # spooled, or unknown: `Memory.feedback` says so
        return
    _check_one_of(n_steps)


def _check_stored(memory: Memory, id_: str, feedback: Feedback | float, step: int | None = None) -> None:
    """Refuse the outcome of one decision of a stored session of several; steps of other episodes may have outcomes."""
    try:
        place = memory.response_step(id_) if id_.startswith(INFERENCE_PREFIX) else None
        if place is None and step is None and not isinstance(feedback, Label | OwnAnswer):
            return
        notes = memory.notes(kind=RESPONSE, episode_id=id_ if place is None else place[0])
    except StoreError:
        if memory.spool_stats() is None:
            raise
        return
    _check_one_of(sum(note.id.startswith(response_note_id(INFERENCE_PREFIX)) for note in notes))


def _check_one_of(n_steps: int) -> None:
    if n_steps > 1:
        raise InputError(
            f"an outcome of one of the {n_steps} decisions of a session",
            "the outcome of a session is one of all its decisions",
            "Send a reward with the episode's id; or decide outside /sessions/, where each has its own.",
        )


def _unknown(decision_id: str) -> NotFoundError:
    return NotFoundError(
        f"decision {excerpt(decision_id)}",
        "no decision has this id; it may have been erased, or its request had several questions",
        "Name the question too, and check the id: that in the header x-seasoned-inference-id.",
    )


def _as_json(memory: Memory, id_: str, target: str | None, feedback: Feedback) -> dict[str, Any]:
    """Return stored feedback as JSON; of spooled feedback what is known before its delivery."""
    if memory.spool_stats() is not None and not memory.feedback_records(id=id_):
        return {"id": id_, "episode_id": target, "feedback": {"kind": feedback.kind, **feedback_record(feedback)}}
    return record_to_json(read_record(memory, id_))


def _running_id(memory: Memory, id_: str, holder: Token) -> str:
    """Return the id of the latest running episode of the holder's session, if the id is that of one; else the id."""
    running = (one.session_episode(id_, holder.author) for one in memory.session.recorders)
    return next((one for one in running if one is not None), id_)


def _is_recording(memory: Memory, id_: str, holder: Token) -> bool:
    """Return whether an id is that of a running episode of the gateway, or of a response in one."""
    recorders = memory.session.recorders
    return any(one.session_episode(id_, holder.author) is not None for one in recorders) or any(
        one.is_open(id_) for one in recorders if isinstance(one, CallRecorder)
    )


def _check_running(
    memory: Memory,
    inference_id: object,
    question: object,
    holder: Token,
    feedback: Feedback | float | None,
    step: int | None = None,
) -> bool:
    """Return whether feedback is on a running episode of a session, or on a decision of one.

    It ends the episode, so what would be refused then is refused here, and the session goes on.

    Raises:
        InputError: it is the outcome of one of several decisions, or of an option that the decision did not have.
        NotFoundError: the inference has no such question.
        ForbiddenError: the episode is another author's, and the token is no `admin`.
    """
    id_, name = _names(memory, inference_id, question, holder)
    _check_owner(memory, {id_, episode_id(id_, name)}, holder)
    sessions = [one for one in memory.session.recorders if isinstance(one, SessionEpisodes)]
    for named in dict.fromkeys((episode_id(id_, name), id_)):
        for judged in filter(None, (one.judged(named) for one in sessions)):
            if not judged.steps:
                raise _unknown(id_)
            of_steps = judged.steps if judged.at is None else judged.steps[judged.at : judged.at + 1]
            if named == id_ and name is not None and not _asks(judged.task, of_steps, name):
                raise _unasked(question, id_)
            about_one = judged.at is not None or step is not None or isinstance(feedback, Label | OwnAnswer)
            _check_one_of(len(judged.steps) if about_one and feedback is not None else 1)
            if isinstance(feedback, Label) and of_steps[0].prior is not None:
                stored_action(memory.redacted(feedback.right), of_steps[0].prior, judged.task)
            return True
    return False


def _check_owner(memory: Memory, ids: Collection[str], holder: Token) -> None:
    """Refuse feedback that would end another author's running episode, in the middle of its work."""
    author = holder.author
    if author is None or holder.may("admin"):
        return
    for id_ in ids:
        if any(one.is_anothers(id_, author) for one in memory.session.recorders):
            raise ForbiddenError(
                f"feedback on {excerpt(id_)}",
                "its episode is still running, and feedback of another author does not end it",
                "Send it again when it has ended, or end it with its author's token: POST /v1/episodes/ID/end.",
            )


def _ended(
    memory: Memory, inference_id: object, question: object, holder: Token, feedback: Feedback | float | None
) -> str:
    """Return the id of the episode of a decision that feedback is on; a running one ends, unless that is refused."""
    _check_running(memory, inference_id, question, holder, feedback)
    id_, name = _names(memory, inference_id, question, holder)
    for recorder in memory.session.recorders:
        for one in {id_, episode_id(id_, name)}:
            recorder.settle(one)
    return _decision(memory, id_, question, holder)


def _names(memory: Memory, inference_id: object, question: object, holder: Token) -> tuple[str, str | None]:
    """Return the id that feedback names, of the running episode if it is that of a session, and the question's name."""
    id_ = _running_id(memory, check_text("inference_id", inference_id), holder)
    return id_, None if question is None else memory.redacted(check_text("question", question))


def _decision(memory: Memory, inference_id: object, question: object, holder: Token) -> str:
    """Return the id of the stored episode of a decision.

    Raises:
        NotFoundError: the inference has no such question.
    """
    id_, name = _names(memory, inference_id, question, holder)
    of_session = episode_id(id_, name)
    for one in (id_, of_session):
        _check_unambiguous(memory, one)
    if name is None:
        return id_
    if memory.response_step(of_session) is not None:
        return of_session
    try:
        return str(memory.get(episode_id(id_, name)).id)
    except NotFoundError:
        pass
    try:
        alone = memory.get(id_)
    except NotFoundError:
        alone = None
    place = memory.response_step(id_) if alone is None else None
    if place is not None:
        in_session = memory.get(place[0])
        alone = replace(in_session, steps=in_session.steps[place[1] :][:1])
    if alone is not None and _asks(alone.task, alone.steps, name):
        return id_
    raise _unasked(question, id_)


def _check_unambiguous(memory: Memory, id_: str) -> None:
    """Refuse the id of an upstream's answer that several decisions have."""
    place = memory.response_step(id_)
    is_decision = place is not None and place[0].startswith(INFERENCE_PREFIX)
    if is_decision and memory.next_response_note_id(id_) != response_note_id(id_, 2):
        rule = "the upstream gave this id to several decisions"
        raise InputError(f"id {excerpt(id_)}", rule, "Name one by the header x-seasoned-inference-id.")


def _unasked(question: object, id_: str) -> NotFoundError:
    return NotFoundError(
        f"question {excerpt(question)} of {excerpt(id_)}",
        "no decision on such a question is stored under this id",
        "Name the question as the request did; one without a name is named by its index.",
    )


def _asks(task: str, steps: Sequence[Step], name: str) -> bool:
    """Return whether the only question of an inference has this name."""
    prefix = question_prefix(name)
    return task.startswith("question ") or any(step.action.startswith(prefix) for step in steps)


def _label(memory: Memory, target: str, label: Label, step: int | None = None) -> Label:
    """Return a label as the stored action of an option, if its step is a decision among options: by default the last.

    The right answer of a step among others may be none of what a model proposed there: such a label stays as it is.

    Raises:
        NotFoundError: there is no such decision.
        InputError: the decision had no such option.
    """
    place = memory.response_step(target)
    try:
        episode = memory.get(target if place is None else place[0])
    except NotFoundError:
        raise _unknown(target) from None
    at = step if place is None else place[1]
    steps = episode.steps[-1:] if at is None else episode.steps[at : at + 1]
    if not steps or steps[0].prior is None:
        return label
    try:
        right = stored_action(memory.redacted(label.right), steps[0].prior, episode.task)
    except InputError:
        if place is None and len(episode.steps) > 1:
            return label
        raise
    return Label(right, label.comment)


def _demonstration(memory: Memory, target: str, text: str) -> Feedback:
    """Return the feedback that a text would have been right."""
    try:
        label = _label(memory, target, Label(text))
    except InputError:
        return OwnAnswer(text)
    return label
