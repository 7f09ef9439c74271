"""EvoTest-style prompt evolution: a guide that is rewritten after every episode, chosen in a tree by its scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from seasoned.agents.baselines.reflection import LessonArm
from seasoned.agents.baselines.token_checks import check_fraction, one_line
from seasoned.agents.baselines.transcripts import check_finished, framed, score_of
from seasoned.protocols import LLM, Usage
from seasoned.types import Episode

__all__ = ["Evolution"]

_HEAD = "Follow this guide:"
_FIRST_GUIDE = "Explore, look at what is new, and do not repeat what did not help."
_LISTED = 5
_ACTION_CHARS = 120


@dataclass(slots=True)
class _Node:
    """A guide that was played once: what came of it, and how often it was rewritten."""

    guide: str
    depth: int
    score: float
    episode: Episode
    children: int = 0


@dataclass(slots=True)
class _Tree:
    """The guides of one task, and the one to be played next."""

    nodes: list[_Node] = field(default_factory=list)
    guide: str = _FIRST_GUIDE
    depth: int = 0


class Evolution(LessonArm):
    """Prompt evolution in the manner of EvoTest (arXiv 2510.13220): an evolver rewrites the guide after every episode.

    Each episode is a node: the guide that it was played with, its transcript, its score s. The node to evolve from is,
    as in the method's public code, the one with the greatest

        u(x) = (s(x) - lowest) / (highest - lowest) + exploration * decay^depth(x) * sqrt(log N / (1 + children(x))),

    N nodes (2 at least) in all; a task whose scores are all equal has the first term 0. The model is shown that node's
    guide and transcript, and what is known to fail, and writes the next guide. Once a score reached `success` the guide
    that reached it is played again, without a call, as long as it does. Beside the guide the prompt says what earned a
    reward in this very state before, and what changed nothing. Trees are kept by task; a task without one is shown the
    guide of the latest that was told of.

    Departures: of the paper's configuration (prompt, memory, hyperparameters, tool-use routines) only the prompt and
    the memory evolve: actions are chosen among those that are possible, so there are no tools to write, and decoding
    is the same for every arm. Its scores are raw points; they are scaled here, so that one `exploration` serves every
    task. Its return to the best guide after a great fall in score is left out.

    Args:
        llm: the evolver, one call an episode.
        success: see above; None: evolution never rests.
        exploration, depth_decay: of the rule above; at least 0, and in [0, 1].
        window_tokens: of all that is put before the state, by `estimated_tokens`.
        transcript_tokens, max_tokens: of the question's transcript, and of the answer.

    Raises:
        InputError: no model, or a number that is out of its range.

    Example:
        >>> import asyncio
        >>> from seasoned.llms import ScriptedLLM
        >>> from seasoned.types import Step
        >>> arm = Evolution(ScriptedLLM(["Confirm the payment."]))
        >>> steps = [Step("page:pay", "click(back)"), Step("page:pay", "click(ok)", 1.0)]
        >>> _ = asyncio.run(arm.learn(Episode("t", steps)))
        >>> print(arm.context("page:pay", "t"))
        Follow this guide:
        Confirm the payment.
        Here, click(ok) earned +1 before.
        Here, click(back) changed nothing before.
        Now:
    """

    def __init__(
        self,
        llm: LLM,
        success: float | None = None,
        exploration: float = 1.0,
        depth_decay: float = 0.8,
        window_tokens: int = 800,
        transcript_tokens: int = 600,
        max_tokens: int = 192,
    ) -> None:
        super().__init__(llm, success, window_tokens, transcript_tokens, max_tokens)
        self._exploration = check_fraction("exploration", exploration)
        self._decay = check_fraction("depth_decay", depth_decay, 1.0)
        self._trees: dict[str, _Tree] = {}
        self._latest = _Tree()
        self._earned: dict[str, dict[str, float]] = {}
        self._idle: dict[str, dict[str, None]] = {}

    def context(self, state: str, task: str) -> str:
        """Return the guide, and what is known of this very state."""
        guide = self._trees.get(task, self._latest).guide
        earned, idle = self._earned.get(state, {}), self._idle.get(state, {})
        best = sorted(earned, key=lambda action: -earned[action])[:_LISTED]
        lines = [f"Here, {one_line(action, _ACTION_CHARS)} earned {earned[action]:+g} before." for action in best]
        lines += [f"Here, {one_line(action, _ACTION_CHARS)} changed nothing before." for action in list(idle)[:_LISTED]]
        return framed(_HEAD, [guide, *lines], self._window_tokens)

    async def learn(self, episode: Episode) -> Usage:
        """Score the guide that was played, and have the next one written."""
        score = score_of(check_finished(episode))
        tree = self._latest = self._trees.setdefault(episode.task, _Tree())
        tree.nodes.append(_Node(tree.guide, tree.depth, score, episode))
        self._remember(episode)
        if self._successes.reached(score):
            return Usage()  # it won: play it again
        parent = max(tree.nodes, key=lambda node: self._upper(node, tree.nodes))
        lesson = await self._teller.tell(parent.episode, *self._question(parent))
        tree.guide, tree.depth = lesson.text or parent.guide, parent.depth + 1
        parent.children += 1
        return lesson.usage

    def _upper(self, node: _Node, nodes: list[_Node]) -> float:
        lowest, highest = min(n.score for n in nodes), max(n.score for n in nodes)
        scaled = (node.score - lowest) / (highest - lowest) if highest > lowest else 0.0
        width = math.sqrt(math.log(max(2, len(nodes))) / (1 + node.children))
        return scaled + self._exploration * self._decay**node.depth * width

    def _question(self, parent: _Node) -> tuple[str, str]:
        avoid = dict.fromkeys(
            one_line(step.action, _ACTION_CHARS)
            for step in parent.episode.steps
            if step.action in self._idle.get(step.state, {})
        )
        after = [
            "Write a better guide for the next attempt at this task: what to do, in what order, what earned points, "
            "what to avoid. At most eight short lines. Answer with the guide alone."
        ]
        if avoid:
            after.insert(0, f"These changed nothing where they were tried: {'; '.join(list(avoid)[:_LISTED])}.")
        return f"A player followed this guide:\n{parent.guide}\nThis is what happened:", "\n".join(after)

    def _remember(self, episode: Episode) -> None:
        """What earned, and what left the state as it was, by state."""
        following = [*(step.state for step in episode.steps[1:]), episode.final_state]
        for step, after in zip(episode.steps, following, strict=True):
            action = " ".join(step.action.split())
            if step.reward > 0.0:
                known = self._earned.setdefault(step.state, {})
                known[action] = max(known.get(action, step.reward), step.reward)
            elif after == step.state:
                self._idle.setdefault(step.state, {})[action] = None
