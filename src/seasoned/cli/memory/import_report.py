"""Report of an import: what was recognised, read, passed over and refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

from seasoned.actions import readable_action, tool_name
from seasoned.cli.format.output import echo_hint, paragraph
from seasoned.cli.format.value_text import number
from seasoned.errors import counted, excerpt
from seasoned.integrations import ReadEpisode, Refusal
from seasoned.integrations.conversation import ANSWER
from seasoned.integrations.formats import format_titles
from seasoned.types import Episode

__all__ = ["ImportReport"]

_LISTED = 20
_LISTED_NAMES = 8
_SHOWN_CHARS = 300
_MANY_TASKS, _LEAST_EPISODES = 0.8, 10


@dataclass
class ImportReport:
    """Counts of one import; of the episodes only hashes are held."""

    files: dict[str, Counter[str]] = field(default_factory=dict)
    refused: list[tuple[str, Refusal]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    steps: int = 0
    rewarded: int = 0
    unstarted: int = 0
    positive: int = 0
    total_reward: float = 0.0
    sample: ReadEpisode | None = None
    reward_fields: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    ruled: int = 0
    await_feedback: bool = False
    _tasks: Counter[str] = field(default_factory=Counter)
    _seen: dict[bytes, tuple[bytes, str]] = field(default_factory=dict)

    def add_file(self, name: str) -> None:
        """Begin a file."""
        self.files.setdefault(name, Counter())

    def add(self, file: str, read: ReadEpisode) -> bool:
        """Count an episode, and return whether it is new in this import.

        An episode that was read before, as in a copy of a file, is counted as repeated; other content under the same id
        is refused.
        """
        episode = read.episode
        key = sha256((episode.id or "").encode()).digest()
        content, place = _content_hash(episode), f"{file} line {read.line}"
        if key in self._seen:
            known, where = self._seen[key]
            if known == content:
                self.skipped["repeated episodes"] += 1
            else:
                rule = f"its id {excerpt(episode.id, 60)} is that of another episode, of {where}; ids must be unique"
                self.refuse(file, Refusal(read.line, rule, read.format))
            return False
        self._seen[key] = content, place
        self._count(file, read, 1)
        if self.sample is None and episode.steps:
            self.sample = read
        return True

    def take_back(self, file: str, read: ReadEpisode) -> None:
        """Remove an episode from the counts, since the memory refused it."""
        self._count(file, read, -1)
        if self.sample is read:
            self.sample = None

    def refuse(self, file: str, refusal: Refusal) -> None:
        """Count a refusal."""
        self.refused.append((file, refusal))

    def _count(self, file: str, read: ReadEpisode, n: int) -> None:
        episode = read.episode
        self.episodes += n
        self.steps += n * len(episode.steps)
        tasks, tools = (
            [sha256(episode.task.encode()).hexdigest()[:16]],
            [tool_name(step.action) or ANSWER for step in episode.steps],
        )
        for counter, found in (
            (self.files[file], Counter([read.format])),
            (self.skipped, read.skipped),
            (self.endings, Counter([episode.ending])),
            (self.tools, Counter(tools)),
            (self.reward_fields, Counter(read.reward_fields)),
            (self._tasks, Counter(tasks)),
        ):
            for name, number_ in found.items():
                counter[name] += n * number_
                if not counter[name]:
                    del counter[name]
        if read.rewarded:
            total = sum(step.reward for step in episode.steps)
            self.rewarded += n
            self.positive += n * (total > 0)
            self.total_reward += n * total
        elif not episode.steps:
            self.unstarted += n

    @property
    def n_tasks(self) -> int:
        """Number of distinct tasks."""
        return len(self._tasks)

    def document(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "read": self.episodes,
            "steps": self.steps,
            "without_reward": self.episodes - self.rewarded,
            "mean_reward": self.total_reward / self.rewarded if self.rewarded else None,
            "files": {name: dict(formats) for name, formats in self.files.items()},
            "endings": dict(self.endings),
            "tasks": self.n_tasks,
            "tools": dict(self.tools.most_common()),
            "rules": dict(self.rules.most_common()),
            "skipped": dict(self.skipped),
            "refused": len(self.refused),
            "refusals": [
                {"file": file, "line": one.line, "format": one.format or None, "reason": one.reason}
                for file, one in self.refused
            ],
        }

    def recognised(self) -> list[str]:
        """Return a line for each file: its formats, and the number of their episodes."""
        titles = format_titles()
        lines = [
            f"{file}: "
            + (", ".join(f"{counted(n, 'episode')} of {titles[one]}" for one, n in formats.items()) or "none")
            for file, formats in list(self.files.items())[:_LISTED]
        ]
        more = len(self.files) - _LISTED
        return [*lines, f"... {counted(more, 'more file')}"] if more > 0 else lines

    def details(self) -> dict[str, str]:
        """Return the fields of a dry run."""
        fields = {"episodes": f"{self.episodes}, with {counted(self.steps, 'step')}", "rewards": self._rewards()}
        fields["endings"] = _counts(self.endings)
        fields["tasks"] = str(self.n_tasks)
        fields["actions"] = _counts(self.tools)
        fields["skipped"] = _counts(self.skipped) or "nothing"
        fields["refused"] = str(len(self.refused))
        if self.sample is not None:
            episode = self.sample.episode
            step = episode.steps[-1]
            fields["a step"] = ""
            fields["  task"] = excerpt(episode.task, _SHOWN_CHARS)
            fields["  state"] = excerpt(step.state, _SHOWN_CHARS)
            fields["  action"] = excerpt(readable_action(step.action), _SHOWN_CHARS)
            fields["  reward"] = number(step.reward)
        return fields

    def _rewards(self) -> str:
        if not self.rewarded:
            return "none; no episode has a step" if self._only_unstarted() else "none"
        mean = number(self.total_reward / self.rewarded)
        without = self.episodes - self.rewarded
        return f"{counted(self.rewarded, 'episode')}, mean {mean}, {self.positive} above 0" + (
            f"; {without} without" * bool(without)
        )

    def _only_unstarted(self) -> bool:
        """Return whether there are episodes without a reward, and none of them has a step."""
        return 0 < self.unstarted == self.episodes - self.rewarded

    def reward_candidates(self, lead: str) -> str:
        """Return a sentence with the fields of the files that may be a reward, most frequent first; "" without any."""
        names = [excerpt(name, 60) for name, _ in self.reward_fields.most_common(_LISTED_NAMES)]
        return f"{lead}{', '.join(names)}. " if names else ""

    def hint(self, task: str | None) -> None:
        """Print what a user should know before the memory is used."""
        if self.episodes >= _LEAST_EPISODES and self.n_tasks > _MANY_TASKS * self.episodes:
            named = "named by the first user message" if task is None else f"named by {task}"
            echo_hint(
                paragraph(
                    f"{self.n_tasks} tasks in {self.episodes} episodes, {named}: runs of one task cannot be compared. "
                    "Name tasks by a field, --task scenario, or a pattern for the first message, --task '/refund/'."
                )
            )
        without = self.episodes - self.rewarded
        if self.await_feedback and without:
            which = "Those without a reward" if without > 1 else "The one without a reward"
            verb = "await" if without > 1 else "awaits"
            echo_hint(
                paragraph(
                    f"{which} {verb} feedback and {'are' if without > 1 else 'is'} no evidence until then: seasoned "
                    "memory feedback. With --counts an episode without a reward earned 0."
                )
            )
        if not self.rewarded and self._only_unstarted():
            echo_hint(
                paragraph(
                    "No episode has a step: the runs ended before their first turn, so no reward was read. Leave them "
                    "out, or run them again."
                )
            )
        elif self.episodes and not self.rewarded and not self.ruled:
            path = self.reward_fields.most_common(1)[0][0] if self.reward_fields else "PATH"
            echo_hint(
                paragraph(
                    "No episode has a reward, so none is evidence for an action. "
                    f"{self.reward_candidates('Fields of the files that may be one: ')}"
                    f"Name its field, --reward {path}, or give feedback later: "
                    "seasoned memory feedback."
                )
            )


def _counts(counter: Counter[str]) -> str:
    listed = ", ".join(f"{name} {n}" for name, n in counter.most_common(_LISTED_NAMES))
    more = len(counter) - _LISTED_NAMES
    return listed + (f" and {more} more" if more > 0 else "")


def _content_hash(episode: Episode) -> bytes:
    """Return a hash of an episode for comparisons within one import."""
    values = [getattr(episode, one.name) for one in fields(episode) if one.name not in ("steps", "final_state")]
    values += [(step.reward, step.prior, step.propensity) for step in episode.steps]
    texts = [repr(values), episode.final_state or ""]
    texts += [text for step in episode.steps for text in (step.state, step.action)]
    return sha256("\0".join(texts).encode()).digest()  # no text of an episode has a NUL
