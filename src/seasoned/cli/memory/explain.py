"""`seasoned memory explain`: the decision that memory would make now, with every number behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import click

from seasoned.cli.format.json_records import decision_record
from seasoned.cli.format.output import present, printable_line
from seasoned.cli.memory.access import find_episode, memory_command, read_memory, state_text
from seasoned.cli.params import policy_option, seed_option
from seasoned.errors import InputError, NotFoundError, counted, excerpt
from seasoned.memory import Memory
from seasoned.policies import JitRL
from seasoned.types import Decision, Episode, EvidenceQuery, Prior

__all__ = ["explain"]

_TASK_CHARS = 70


@dataclass(frozen=True)
class _Explanation:
    decision: Decision
    prior: Literal["given", "stored", "uniform"]
    episode: Episode | None = None
    step: int = 0


def _parse_candidates(pairs: tuple[str, ...]) -> dict[str, float]:
    candidates: dict[str, float] = {}
    for pair in pairs:
        action, sign, logprob = pair.rpartition("=")
        try:
            value = float(logprob) if sign else None
        except ValueError:
            value = None
        if value is None:
            raise InputError(
                f"candidate {excerpt(pair)}",
                "a candidate must be ACTION=LOGPROB, in nats",
                "For example: 'click(pay)=-0.3'.",
            )
        if action in candidates:
            raise InputError(f"candidate {excerpt(action)}", "each candidate must be given once", "Leave one out.")
        candidates[action] = value
    return candidates


def _uniform_prior(memory: Memory, policy: JitRL, state: str) -> dict[str, float]:
    """Return equal logprobs for the actions that were taken at the policy's neighbours of the state."""
    settings = policy.settings
    evidence = memory.evidence(
        EvidenceQuery(
            state,
            k=settings.k,
            unit=settings.unit,
            threshold=settings.threshold,
            gamma=settings.gamma,
            similarity_power=settings.similarity_power,
            decay=settings.decay,
            similarity=settings.similarity,
        )
    )
    if not evidence.actions:
        raise NotFoundError(
            f"state {excerpt(state)}",
            f"no stored state has a similarity of at least {settings.threshold:g}, so no action is known here",
            "Give the model's own: --candidates ACTION=LOGPROB.",
        )
    return dict.fromkeys(evidence.actions, -math.log(len(evidence.actions)))


def _decide(
    memory: Memory,
    policy: JitRL,
    state: str,
    candidates: Mapping[str, float],
    seed: int,
    episode: Episode | None,
    step: int,
) -> _Explanation:
    stored = None if episode is None else episode.steps[step].prior
    source: Literal["given", "stored", "uniform"] = "given" if candidates else "stored" if stored else "uniform"
    model = episode.model if episode is not None and source == "stored" else None
    prior = Prior(candidates or stored or _uniform_prior(memory, policy, state), source, model)
    task = None if episode is None else episode.task
    return _Explanation(policy.decide(state, prior, task=task, step=step, seed=seed), source, episode, step)


def _latest(memory: Memory) -> Episode:
    """Return the latest episode that is not aborted."""
    for last in (1, None):
        for episode in reversed(memory.episodes(last=last)):
            if episode.ending != "aborted":
                return episode
    raise NotFoundError(
        f"namespace {memory.namespace!r}", "it holds no finished episode to explain", "Give a STATE, or record one."
    )


def _most_shifted(
    memory: Memory, policy: JitRL, episode: Episode, candidates: Mapping[str, float], seed: int
) -> _Explanation:
    """Return the decision at the step where memory shifts the policy most."""
    explanations: list[_Explanation] = []
    no_action: NotFoundError | None = None
    for index, step in enumerate(episode.steps):
        try:
            explanations.append(_decide(memory, policy, step.state, candidates, seed, episode, index))
        except NotFoundError as error:  # no action is known in this state, so memory shifts nothing
            no_action = error
    if not explanations:
        raise no_action or NotFoundError(
            f"episode {excerpt(episode.id)}", "it has no steps", "Choose another: seasoned memory list"
        )
    return max(explanations, key=lambda one: one.decision.kl_nats)


def _origin(explanation: _Explanation, searched: bool) -> str:
    """Return which step is explained, and the source of its prior."""
    lines = []
    episode = explanation.episode
    if episode is not None:
        lines = [f"episode   step {explanation.step} of {len(episode.steps)} in episode {episode.id}"]
        if searched:
            lines.append("          where memory would shift the policy most")
        lines.append(f"task      {printable_line(episode.task, _TASK_CHARS)}")
        lines.append("          decided with today's memory, which includes this episode")
    prior = {
        "given": "the candidates on the command line",
        "stored": "stored with the step",
        "uniform": f"uniform over the {len(explanation.decision.probs)} actions in memory here; no model was asked",
    }
    return "\n".join([*lines, f"prior     {prior[explanation.prior]}"])


@memory_command(
    'seasoned memory explain agent.db "page:cart total:12" -c "click(pay)=-1.4" -c "click(back)=-0.3"',
    "seasoned memory explain agent.db --episode 4f2a --step 3",
)
@click.argument("state", required=False)
@click.option(
    "--candidates", "-c", multiple=True, metavar="ACTION=LOGPROB", help="A proposal of the model; repeatable."
)
@click.option("--episode", metavar="ID", help="Explain a step of this episode; the start of its id is enough.")
@click.option(
    "--step", type=int, metavar="N", help="Step, from 0.  [default: the one where memory shifts the policy most]"
)
@policy_option()
@seed_option
def explain(
    path: str,
    state: str | None,
    candidates: tuple[str, ...],
    episode: str | None,
    step: int | None,
    policy: str,
    seed: int,
    namespace: str | None,
) -> None:
    """Show the decision that memory would make now, and why.

    Decides in STATE (`-` reads stdin), or in a stored step. With neither, decides in the step of the latest finished
    episode where memory would shift the policy most. Without candidates, the prior is the one stored with the step. If
    there is none, it is uniform over the actions that memory has seen in similar states.
    """
    if state is not None and (episode is not None or step is not None):
        raise InputError("a STATE and an episode's step", "one state is explained at a time", "Leave one out.")
    given = _parse_candidates(candidates)
    text = None if state is None else state_text(state)

    def query(memory: Memory) -> _Explanation:
        jitrl = JitRL.preset(policy, memory)
        if text is not None:
            return _decide(memory, jitrl, text, given, seed, None, 0)
        chosen = _latest(memory) if episode is None else find_episode(memory, episode)
        if step is None:
            return _most_shifted(memory, jitrl, chosen, given, seed)
        if not 0 <= step < len(chosen.steps):
            raise NotFoundError(
                f"step {step} of episode {excerpt(chosen.id)}",
                f"it has {counted(len(chosen.steps), 'step')}",
                "Count from 0.",
            )
        return _decide(memory, jitrl, chosen.steps[step].state, given, seed, chosen, step)

    explanation = read_memory(path, namespace, query)
    record = decision_record(explanation.decision)
    if explanation.prior == "stored":  # a memory stores the logprobs of a prior, but not which of them were bounds
        record["prior"]["bounded"] = None
    present(
        {
            "episode_id": None if explanation.episode is None else explanation.episode.id,
            "step": None if explanation.episode is None else explanation.step,
            "prior": explanation.prior,
            "decision": record,
        },
        _origin(explanation, searched=explanation.episode is not None and step is None),
        replace(explanation.decision, prior=None).explain(),  # the lines above tell the source of the prior
    )
