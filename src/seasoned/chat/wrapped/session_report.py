"""Report of a session of another assistant: the episodes that were stored, their rewards, and the user's verdict."""

from __future__ import annotations

from dataclasses import dataclass

from seasoned.actions import readable_action
from seasoned.errors import counted
from seasoned.memory import Memory
from seasoned.states.text_budget import one_line
from seasoned.types import Correction, Episode, Thumbs

__all__ = ["SessionReport", "give_verdict", "session_report"]

_MAX_LINES = 12
_CHARS = 70


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What a session has taught a memory.

    Args:
        episodes: in their order, without those of sub-agents and side calls.
        rewards: of rules: the episode's id, the step, the source, the reward.
    """

    episodes: tuple[Episode, ...]
    rewards: tuple[tuple[str, int, str, float], ...]

    def lines(self) -> list[str]:
        """Return the report in lines: the episodes by arm, and each reward with its action, the latest last."""
        if not self.episodes:
            return ["nothing was learned: no call of a model was recorded"]
        n_control = sum(episode.arm == "control" for episode in self.episodes)
        n_steps = sum(len(episode.steps) for episode in self.episodes)
        head = f"learned: {counted(len(self.episodes), 'episode')}, {counted(n_steps, 'step')}"
        lines = [f"{head}, {n_control} of them without memory, to compare" if n_control else head]
        actions = {(each.id, at): step.action for each in self.episodes for at, step in enumerate(each.steps)}
        shown = self.rewards[-_MAX_LINES:]
        lines += [
            f"  {reward:+5.2g}  {source}  {one_line(readable_action(actions.get((id_, step), '')), _CHARS)}"
            for id_, step, source, reward in shown
        ]
        if len(shown) < len(self.rewards):
            lines.insert(1, f"  ... and {counted(len(self.rewards) - len(shown), 'earlier reward')}")
        if not self.rewards:
            lines.append("  no reward yet: no tests ran, and nothing failed")
        return lines

    @property
    def last(self) -> str | None:
        """The id of the last episode, which the user's verdict is on; None if there is none."""
        return self.episodes[-1].id if self.episodes else None


def session_report(memory: Memory, session: str) -> SessionReport:
    r"""Return what a session has taught a memory.

    Raises:
        StoreError: the store failed.

    Example:
        >>> from seasoned import Episode, Step
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add(Episode("run the tests", [Step("run the tests", "make check")], id="e", subject="s1"))
        ...     _ = memory.feedback("e", 1.0, 0, source="rules:tests")
        ...     print("\n".join(session_report(memory, "s1").lines()))
        learned: 1 episode, 1 step
             +1  rules:tests  make check
    """
    episodes = tuple(
        episode for episode in memory.iter_episodes() if episode.subject == session and episode.ending != "aborted"
    )
    rewards = [
        (str(episode.id), event.step, event.source, event.reward * event.weight)
        for episode in episodes
        for event in memory.events(str(episode.id))
        if event.revoked_at is None
    ]
    return SessionReport(episodes, tuple(rewards))


def give_verdict(memory: Memory, episode_id: str, verdict: str, words: str | None = None) -> None:
    """Store the user's verdict on an episode: `good`, `bad`, or `correct` with what would have been right.

    Raises:
        StoreError: the store failed.
    """
    feedback = Correction(words) if verdict == "correct" and words else Thumbs(verdict == "good", comment=words)
    memory.feedback(episode_id, feedback, source="user")
