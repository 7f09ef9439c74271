"""`seasoned memory explain`: the decision that memory would make now, with every number that led to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import click

from seasoned.cli.format.json_records import decision_record
from seasoned.cli.format.output import echo_json, echo_text, one_line
from seasoned.cli.memory.common_options import (
    example,
    find_episode,
    json_option,
    memory_argument,
    namespace_option,
    reading,
    state_text,
)
from seasoned.errors import InputError, NotFoundError, counted, excerpt
from seasoned.memory import Memory
from seasoned.policies import PRESETS, JitRL
from seasoned.types import Decision, Episode, Prior

__all__ = ["explain"]

_TASK_CHARS = 70


@dataclass(frozen=True)
class _Explained:
    decision: Decision
    prior: Literal["given", "stored", "uniform"]
    episode: Episode | None = None
    step: int = 0


def _parse_candidates(pairs: tuple[str, ...]) -> dict[str, float]:
    candidates: dict[str, float] = {}
    for pair in pairs:
        action, found, logprob = pair.rpartition("=")
        try:
            value = float(logprob) if found else None
        except ValueError:
            value = None
        if value is None:
            raise InputError(
                f"candidate {excerpt(pair)}",
                "a candidate must be ACTION=LOGPROB, in nats",
                "For example: 'click(pay)=-0.3'.",
            )
        if action in candidates:
            raise InputError(f"candidate {excerpt(action)}", "each candidate must be given once", "Merge them.")
        candidates[action] = value
    return candidates


def _remembered(memory: Memory, policy: JitRL, state: str) -> dict[str, float]:
    """A uniform policy over the actions that were taken at the policy's neighbours of the state."""
    ask = policy.settings
    known = memory.evidence(
        state,
        k=ask.k,
        unit=ask.unit,
        threshold=ask.threshold,
        gamma=ask.gamma,
        similarity_power=ask.similarity_power,
        decay=ask.decay,
    )
    if not known.actions:
        raise NotFoundError(
            f"state {excerpt(state)}",
            f"no stored state is at least {ask.threshold:g} similar, so no action is known here",
            "Give the model's own: --candidates ACTION=LOGPROB.",
        )
    return dict.fromkeys(known.actions, -math.log(len(known.actions)))


def _decide(
    memory: Memory, policy: JitRL, state: str, given: Mapping[str, float], seed: int, episode: Episode | None, step: int
) -> _Explained:
    stored = None if episode is None else episode.steps[step].prior
    how: Literal["given", "stored", "uniform"] = "given" if given else "stored" if stored else "uniform"
    model = episode.model if episode is not None and how == "stored" else None
    prior = Prior(given or stored or _remembered(memory, policy, state), how, model)
    task = None if episode is None else episode.task
    return _Explained(policy.decide(state, prior, task=task, step=step, seed=seed), how, episode, step)


def _latest(memory: Memory) -> Episode:
    for last in (1, None):
        for episode in reversed(memory.episodes(last=last)):
            if episode.ending != "aborted":
                return episode
    raise NotFoundError(
        f"namespace {memory.namespace!r}", "it holds no finished episode to explain", "Give a STATE, or record one."
    )


def _most_shifted(memory: Memory, policy: JitRL, episode: Episode, given: Mapping[str, float], seed: int) -> _Explained:
    explained: list[_Explained] = []
    nothing_known: NotFoundError | None = None
    for index, step in enumerate(episode.steps):
        try:
            explained.append(_decide(memory, policy, step.state, given, seed, episode, index))
        except NotFoundError as error:  # where nothing is known, nothing is shifted
            nothing_known = error
    if not explained:
        raise nothing_known or NotFoundError(
            f"episode {excerpt(episode.id)}", "it has no steps", "Choose another: seasoned memory list"
        )
    return max(explained, key=lambda one: one.decision.kl_nats)


def _note(found: _Explained, searched: bool) -> str:
    lines = []
    if found.episode is not None:
        lines = [f"episode   step {found.step} of {len(found.episode.steps)} in episode {found.episode.id}"]
        if searched:
            lines.append("          where memory would shift the policy most")
        lines.append(f"task      {one_line(found.episode.task, _TASK_CHARS)}")
        lines.append("          decided by memory as it is now, with what came of this episode")
    said = {
        "given": "the candidates on the command line",
        "stored": "as it was stored with the step",
        "uniform": f"uniform over the {len(found.decision.probs)} actions memory has seen here; no model was asked",
    }
    return "\n".join([*lines, f"prior     {said[found.prior]}"])


@click.command(
    epilog=example(
        'seasoned memory explain agent.db "page:cart total:12" -c "click(pay)=-1.4" -c "click(back)=-0.3"',
        "seasoned memory explain agent.db --episode 4f2a --step 3",
    )
)
@memory_argument
@click.argument("state", required=False)
@click.option(
    "--candidates", "-c", multiple=True, metavar="ACTION=LOGPROB", help="A proposal of the model; repeatable."
)
@click.option("--episode", metavar="ID", help="Explain a step of this episode; the start of its id is enough.")
@click.option("--step", type=int, metavar="N", help="Which step, from 0. Default: where memory shifts the policy most.")
@click.option("--policy", "preset", default="default", show_default=True, type=click.Choice(sorted(PRESETS)))
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw among the actions.")
@namespace_option
@json_option
def explain(
    path: str,
    state: str | None,
    candidates: tuple[str, ...],
    episode: str | None,
    step: int | None,
    preset: str,
    seed: int,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Show the decision that memory would make now, and why.

    In STATE (`-` reads it from stdin), in a stored step, or, with neither, in the step of the latest episode where
    memory would shift the policy most. Without candidates the prior is the one stored with the step; where there is
    none, it is uniform over the actions that memory has seen in such states.
    """
    if state is not None and (episode is not None or step is not None):
        raise InputError("a STATE and an episode's step", "one state is explained at a time", "Leave one out.")
    given = _parse_candidates(candidates)
    text = None if state is None else state_text(state)

    def ask(memory: Memory) -> _Explained:
        policy = JitRL.preset(preset, memory)
        if text is not None:
            return _decide(memory, policy, text, given, seed, None, 0)
        chosen = _latest(memory) if episode is None else find_episode(memory, episode)
        if step is None:
            return _most_shifted(memory, policy, chosen, given, seed)
        if not 0 <= step < len(chosen.steps):
            raise NotFoundError(
                f"step {step} of episode {excerpt(chosen.id)}",
                f"it has {counted(len(chosen.steps), 'step')}",
                "Count from 0.",
            )
        return _decide(memory, policy, chosen.steps[step].state, given, seed, chosen, step)

    found = reading(path, namespace, ask)
    if as_json:
        record = decision_record(found.decision)
        if found.prior == "stored":  # a memory keeps a prior's logprobs, not which of them were only bounds
            record["prior"]["bounded"] = None
        document: dict[str, Any] = {
            "episode_id": None if found.episode is None else found.episode.id,
            "step": None if found.episode is None else found.step,
            "prior": found.prior,
            "decision": record,
        }
        echo_json(document)
        return
    echo_text(_note(found, searched=found.episode is not None and step is None))
    echo_text(replace(found.decision, prior=None).explain())  # the note has said where it came from
