"""JSON documents of stored episodes, neighbours and decisions, as `--json` prints them; the keys are stable."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from typing import Any

from seasoned.memory.values.events import Event, EventReward, feedback_sum
from seasoned.types import Decision, Episode, Neighbor

__all__ = ["decision_record", "episode_detail", "episode_summary", "neighbor_record"]


Excluded = tuple[frozenset[str], frozenset[str]]
"""The ids of the quarantined episodes and of the quarantined events; see `Memory.excluded_ids`."""


def _feedback(episode: Episode, events: Sequence[Event], excluded: Excluded) -> list[float]:
    """Return for each step what the events that count add to its reward (`feedback_sum`)."""
    given: list[list[EventReward]] = [[] for _ in episode.steps]
    for event in events:
        if event.revoked_at is None and event.id not in excluded[1] and event.step < len(given):
            given[event.step].append(EventReward(event.step, event.reward, event.weight, event.kind))
    return [feedback_sum(of_step, alone=len(given) == 1) for of_step in given]


def episode_summary(
    episode: Episode, events: Sequence[Event], excluded: Excluded, awaiting: Collection[str] = ()
) -> dict[str, Any]:
    """Return an episode without its steps; `total_reward` is the environment's reward plus the feedback.

    `awaiting` are the ids of the episodes that await feedback.
    """
    reward = math.fsum(step.reward for step in episode.steps)
    feedback = math.fsum(_feedback(episode, events, excluded))
    return {
        "id": episode.id,
        "task": episode.task,
        "ending": episode.ending,
        "quarantined": episode.id in excluded[0],
        "awaits_feedback": episode.id in awaiting,
        "steps": len(episode.steps),
        "reward": reward,
        "feedback": feedback,
        "total_reward": reward + feedback,
        "model": episode.model,
        "policy": episode.policy,
        "arm": episode.arm,
        "subject": episode.subject,
    }


def episode_detail(
    episode: Episode, events: Sequence[Event], excluded: Excluded, awaiting: Collection[str] = ()
) -> dict[str, Any]:
    """Return an episode with every step and every feedback event."""
    feedback = _feedback(episode, events, excluded)
    steps = [
        {
            "step": index,
            "state": step.state,
            "action": step.action,
            "reward": step.reward,
            "feedback": feedback[index],
            "prior": None if step.prior is None else dict(step.prior),
            "propensity": step.propensity,
        }
        for index, step in enumerate(episode.steps)
    ]
    return {
        **episode_summary(episode, events, excluded, awaiting),
        "steps": steps,
        "final_state": episode.final_state,
        "events": [{**dataclasses.asdict(event), "quarantined": event.id in excluded[1]} for event in events],
    }


def neighbor_record(neighbor: Neighbor) -> dict[str, Any]:
    """Return a neighbour as one flat object."""
    fields = dataclasses.asdict(neighbor.experience)
    return {"similarity": neighbor.similarity, "return": fields.pop("return_"), **fields}


def decision_record(decision: Decision) -> dict[str, Any]:
    """Return a decision with all its numbers. `prior` says how it was read; None: it was given as plain numbers."""
    record = {field.name: getattr(decision, field.name) for field in dataclasses.fields(decision)}
    if (prior := decision.prior) is not None:
        record["prior"] = {field.name: getattr(prior, field.name) for field in dataclasses.fields(prior)}
    record["neighbors"] = [neighbor_record(neighbor) for neighbor in decision.neighbors]
    return {key: dict(value) if hasattr(value, "keys") else value for key, value in record.items()}
