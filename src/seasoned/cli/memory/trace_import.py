"""Import of foreign traces: read, reported, and stored in batches."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import click

from seasoned.cli.format.output import present, printable
from seasoned.cli.memory.import_report import ImportReport
from seasoned.errors import EpisodeConflictError, InputError, counted, excerpt
from seasoned.integrations import ReadEpisode, Refusal, read_episodes
from seasoned.integrations.episode_spool import EpisodeSpool
from seasoned.integrations.formats import AUTO
from seasoned.integrations.rewards import RewardRules, store_rewards
from seasoned.integrations.trace_files import TraceFile
from seasoned.memory import FeedbackRule, Memory
from seasoned.types import Episode

__all__ = ["TraceImport"]

_BATCH_STEPS = 2000
_LISTED_REFUSALS = 20
_THRESHOLDS = (50_000, 20, 100)  # of `gc`
_NO_EPISODE = "Name fields with --messages, --reward and --task, or the --format; nothing was imported."


@dataclass(frozen=True)
class TraceImport:
    """An import of foreign files.

    Args:
        files: what is read.
        format: a name of `FORMATS`, or `auto`.
        rules: of `read_episodes`: evaluation, messages, reward, task.
        strict: import nothing if anything is refused.
        dry_run: report, and write nothing.
        open_target: opens the memory; it is called when the first episodes are there.
        awaits_feedback: what each episode says of itself, see `Episode`. None: a run without a reward awaits feedback
            where others have one, of this import or of the namespace, and a run with one counts; where no run has one,
            and where the owner set a policy for runs without, the rule of the namespace decides.
        rewards: rules whose rewards are stored as feedback on the episodes; None: there are none.
    """

    files: Sequence[TraceFile]
    format: str
    rules: dict[str, Any]
    strict: bool
    dry_run: bool
    open_target: Callable[[], Memory]
    awaits_feedback: bool | None = None
    rewards: RewardRules | None = None

    def run(self, report: ImportReport) -> dict[str, Any]:
        """Import, and return the result as JSON.

        Raises:
            InputError: there is no episode, or `strict` and something is refused.
            EpisodeConflictError: other content is stored under the ids of all episodes.
        """
        with _rare_collections():
            if self.strict or self.rules["evaluation"] is not None or self.rules["reward"] is not None:
                before = ImportReport()
                for _ in self._episodes(before):
                    pass
                self._check(before)
            return self._run(report)

    def _run(self, report: ImportReport) -> dict[str, Any]:
        episodes = self._episodes(report)
        first = next(episodes, None)
        if first is None:
            self._check(report)
        new = 0
        conflicts: list[EpisodeConflictError | InputError] = []
        with self.open_target() as memory:
            without_reward, episodes = self._awaiting(memory, chain([first] if first else [], episodes))
            for batch in self._batches(episodes):
                new += self._store(memory, batch, without_reward, report, conflicts)
            report.await_feedback = self.awaits_feedback is None and without_reward is True
            name = memory.namespace
        if conflicts and not report.episodes:
            raise conflicts[0]
        self._list(report)
        return {"namespace": name, "episodes": new, **report.document()}

    def _episodes(self, report: ImportReport) -> Iterator[tuple[str, ReadEpisode]]:
        for file in self.files:
            report.add_file(file.name)
            with_results = self.rewards is not None
            for read in read_episodes(self.format, file.lines(), **self.rules, file=file.name, results=with_results):
                if isinstance(read, Refusal):
                    report.refuse(file.name, read)
                elif report.add(file.name, read):
                    yield file.name, read

    def _awaiting(
        self, memory: Memory, episodes: Iterator[tuple[str, ReadEpisode]]
    ) -> tuple[bool | None, Iterator[tuple[str, ReadEpisode]]]:
        """Return what runs without a reward say of their feedback, and the episodes; they are read up to a reward."""
        rule = memory.feedback_rule()
        if self.awaits_feedback is not None or rule.policy is not None:
            return self.awaits_feedback, episodes
        if self.rewards is not None or rule.origin != "unknown":
            return True, episodes
        before = EpisodeSpool()
        for file, read in episodes:
            if read.rewarded:
                return True, chain(before.read(), [(file, read)], episodes)
            before.add(file, read)
        return None, before.read()

    def _timed(
        self, read: ReadEpisode, without_reward: bool | None, rule: FeedbackRule
    ) -> tuple[Episode, float | None]:
        """Return the episode with what it says of its feedback, and its time.

        A reward of 0 is a failure that somebody measured; where feedback is required it would await feedback.
        """
        episode, awaits = read.episode, without_reward
        if self.awaits_feedback is None and read.rewarded:
            is_paid = any(step.reward for step in episode.steps)
            awaits = None if is_paid or not rule.required else False
        if awaits != episode.awaits_feedback:
            episode = replace(episode, awaits_feedback=awaits)
        return episode, read.created_at

    def _batches(self, episodes: Iterator[tuple[str, ReadEpisode]]) -> Iterator[list[tuple[str, ReadEpisode]]]:
        batch: list[tuple[str, ReadEpisode]] = []
        steps = 0
        for one in episodes:
            if steps >= _BATCH_STEPS:
                yield batch
                batch, steps = [], 0
            batch.append(one)
            steps += len(one[1].episode.steps)
        if batch:
            yield batch

    def _store(
        self,
        memory: Memory,
        batch: list[tuple[str, ReadEpisode]],
        without_reward: bool | None,
        report: ImportReport,
        conflicts: list[EpisodeConflictError | InputError],
    ) -> int:
        """Store a batch; if one of it cannot be stored, the others one by one."""
        marked = functools.partial(self._timed, without_reward=without_reward, rule=memory.feedback_rule())
        try:
            new = memory.import_episodes([marked(one) for _, one in batch], dry_run=self.dry_run)
        except (EpisodeConflictError, InputError):
            new = 0
        else:
            self._reward(memory, [one for _, one in batch], report)
            return new
        for file, one in batch:
            try:
                new += memory.import_episodes([marked(one)], dry_run=self.dry_run)
                self._reward(memory, [one], report)
            except (EpisodeConflictError, InputError) as error:
                conflicts.append(_of_import(error))
                report.take_back(file, one)
                report.refuse(file, Refusal(one.line, str(conflicts[-1]), one.format))
        return new

    def _reward(self, memory: Memory, read: Sequence[ReadEpisode], report: ImportReport) -> None:
        """Store the rewards that the rules give for what results of episodes show, unless this is a dry run."""
        if self.rewards is None:
            return
        events = {str(one.episode.id): self.rewards.episode_events(one.results) for one in read}
        for found in events.values():
            report.rules.update(event.rule for event in found)
            report.ruled += bool(found)
        if not self.dry_run:
            store_rewards(memory, events)

    def _check(self, report: ImportReport) -> None:
        """Refuse an import without an episode, a strict one with refusals, and a reward or score that no file has."""
        seen = f"{counted(report.episodes, 'episode')} read, {counted(len(report.refused), 'line')} refused"
        if not report.episodes and len(report.refused) == 1:
            [(file, refusal)] = report.refused
            seen = f"{file}: " * (len(self.files) > 1) + str(refusal).rstrip(".")
            raise InputError(seen, "a file must hold an episode", _NO_EPISODE)
        if not report.episodes:
            self._list(report)
            names = sorted({one.format for _, one in report.refused if one.format})
            of = f" of {', '.join(names)}" if names else "" if self.format == AUTO else f" of {self.format}"
            raise InputError(seen + of, "a file must hold an episode", _NO_EPISODE)
        if self.strict and report.refused:
            self._list(report)
            raise InputError(
                seen,
                "with --strict, nothing may be refused",
                "Correct it, or leave --strict out; nothing was imported.",
            )
        for option, found in (("evaluation", "a score of it"), ("reward", "a reward there")):
            name = self.rules[option]
            if name is not None and not report.rewarded:
                candidates = report.reward_candidates("Such fields: ")
                raise InputError(
                    f"--{option} {excerpt(name)}",
                    f"it must be in the file, and none of {counted(report.episodes, 'episode')} has {found}",
                    f"{candidates}Check its name, or leave it out; nothing was imported.",
                )

    def _list(self, report: ImportReport) -> None:
        several = len(self.files) > 1
        for file, refusal in report.refused[:_LISTED_REFUSALS]:
            click.echo(printable(f"refused: {f'{file}: ' if several else ''}{refusal}"), err=True)
        if len(report.refused) > _LISTED_REFUSALS:
            click.echo(f"refused: {len(report.refused) - _LISTED_REFUSALS} more", err=True)

    def show(self, report: ImportReport, found: dict[str, Any]) -> None:
        """Print the result for people, or as JSON."""
        would = "would be" if self.dry_run else "is" if found["episodes"] == 1 else "are"
        summary = (
            f"{counted(report.episodes, 'episode')} with {counted(report.steps, 'step')} read, "
            f"{report.episodes - report.rewarded} without a reward, {counted(len(report.refused), 'line')} refused; "
            f"{counted(found['episodes'], 'episode')} {would} new in namespace {excerpt(found['namespace'])}"
        )
        if self.rewards is not None:
            by_rule = ", ".join(f"{name} {n}" for name, n in report.rules.most_common()) or "none"
            summary += f"; rewards of rules on {counted(report.ruled, 'episode')}: {by_rule}"
        parts: list[Any] = ["\n".join(report.recognised())]
        if self.dry_run:
            parts.append(report.details())
        present(found, *parts, summary)
        report.hint(self.rules["task"])


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage in cycles rarely: documents have none, and each collection walks the thousands that are held."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _of_import(error: EpisodeConflictError | InputError) -> EpisodeConflictError | InputError:
    """Return the refusal of an episode with a next step that an import has."""
    if isinstance(error, EpisodeConflictError):
        next_step = "Import into another --namespace, with the same --task and --messages as before, or erase it first."
    elif "max_text_bytes" in error.next_step:
        next_step = "Import with a larger --max-text-bytes."
    else:
        return error
    return type(error)(error.seen, error.rule, next_step)
