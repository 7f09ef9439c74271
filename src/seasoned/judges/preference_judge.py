"""A language model as a judge of two: which is better, asked in both orders."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seasoned.checks import check_text
from seasoned.errors import InputError, excerpt
from seasoned.judges.bradley_terry import bradley_terry
from seasoned.judges.episode_view import check_finished
from seasoned.judges.judge_replies import read_better
from seasoned.judges.llm_judge import DATA_RULE
from seasoned.judges.model_query import Meter, ModelQuery, check_whole, together
from seasoned.judges.prompt_fence import fence, shorten
from seasoned.judges.vote_pool import check_votes, pool
from seasoned.protocols import LLM, Usage
from seasoned.types import Episode

__all__ = ["Preference", "PreferenceJudge", "Ranking"]

_SYSTEM = (
    "You compare two candidates, and say which one does better what is wanted. Their order says nothing about them."
)
_REQUEST = (
    'Which candidate is better? Reply with one JSON object and nothing else: {"better": 1} for the first one, '
    '{"better": 2} for the second one, {"better": 0} if neither is.'
)
_MAX_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Preference:
    """Which of two is better.

    Args:
        value: in [-1, 1]: 1 is for the first, -1 for the second, 0 for neither.
        weight: in (0, 1], how far the votes agree.
        votes: 1, -1 or 0 each.
        usage: of the model.
    """

    value: float
    weight: float
    votes: tuple[float, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Ranking:
    """How much better each of N candidates is.

    Args:
        strengths: by candidate, in nats (log-odds), summing to 0; see `seasoned.judges.bradley_terry`.
        preferences: by the pair of candidates (i, j), i < j.
        usage: of the model.
    """

    strengths: tuple[float, ...]
    preferences: dict[tuple[int, int], Preference]
    usage: Usage


class PreferenceJudge:
    """Asks a model which of two answers, actions or episodes is better.

    Models prefer a place (often the first), so each vote asks twice, the other way round the second time, and counts
    only where both answers name the same candidate; otherwise it is a tie. A model that always names the first place
    prefers nothing (Zheng et al. 2023, arXiv 2306.05685, swap positions likewise). Votes are pooled as in
    `seasoned.judges.pool`. What is compared is fenced as data, and a reply that breaks a rule is refused, as for
    `LLMJudge`. A preference takes `2 * votes` calls, at most `1 + retries` times as many.

    Args:
        llm: the model.
        votes: how many votes; an odd number.
        temperature: None: 0 for one vote, 1 for several.
        text_chars: longer texts lose their middle.
        episode_steps: of longer episodes only the first and the last steps are shown, this many in all.
        retries: how often a refused reply is asked for again.
        seed: of the first vote.

    Raises:
        InputError: a value breaks a rule.

    Example:
        >>> from seasoned.llms import ScriptedLLM
        >>> from seasoned.sync import Sync
        >>> with Sync(PreferenceJudge(ScriptedLLM(['{"better": 1}', '{"better": 2}']))) as judge:
        ...     judge.compare("What is 2 + 2?", "4", "5").value
        1.0
        >>> with Sync(PreferenceJudge(ScriptedLLM(['{"better": 1}', '{"better": 1}']))) as judge:
        ...     judge.compare("What is 2 + 2?", "4", "5").value
        0.0
    """

    def __init__(
        self,
        llm: LLM,
        *,
        votes: int = 1,
        temperature: float | None = None,
        text_chars: int = 4000,
        episode_steps: int = 20,
        retries: int = 2,
        seed: int = 0,
    ) -> None:
        self._asker = ModelQuery(llm, check_votes(votes), temperature, retries, seed)
        self._text_chars = check_whole("text_chars", text_chars, 40)
        self._episode_steps = check_whole("episode_steps", episode_steps, 2)
        self._spent = Meter()

    @property
    def spent(self) -> Usage:
        """What all of this judge's calls have cost so far, those of refused comparisons too."""
        return self._spent.usage

    async def compare(self, wanted: str, first: str | Episode, second: str | Episode) -> Preference:
        """Return which of two is better.

        Args:
            wanted: what they should do: the question, or the state in which two actions could be taken.
            first, second: answers or actions as text, or finished episodes.

        Raises:
            InputError: a text is blank, or an episode was aborted.
            ModelAnswerError: the model did not obey, after all retries.
            ModelError: the model failed.
        """
        check_text("wanted", wanted)
        shown = [self._shown(first), self._shown(second)]
        meter = Meter()
        try:
            votes = await together(self._vote(wanted, shown, vote, meter) for vote in range(self._asker.votes))
        finally:
            self._spent.add(meter.usage)
        pooled = pool(votes)
        return Preference(pooled.reward, pooled.weight, tuple(votes), meter.usage)

    async def rank(self, wanted: str, candidates: Sequence[str | Episode]) -> Ranking:
        """Compare every two of N candidates, `N (N - 1) / 2` pairs, and return how much better each is.

        A preference counts as `weight * (1 + value) / 2` wins of the first and `weight * (1 - value) / 2` of the other.

        Raises:
            InputError: fewer than two candidates, or as for `compare`.
            ModelError: as for `compare`; then there is no ranking.
        """
        check_text("wanted", wanted)
        if isinstance(candidates, str) or not isinstance(candidates, Sequence) or len(candidates) < 2:
            raise InputError(f"candidates = {excerpt(candidates)}", "there are two or more", "Pass a list of them.")
        for candidate in candidates:  # all of them, before any is paid for
            self._shown(candidate)
        wins = np.zeros((len(candidates), len(candidates)))
        found: dict[tuple[int, int], Preference] = {}
        for i, j in itertools.combinations(range(len(candidates)), 2):
            preference = found[i, j] = await self.compare(wanted, candidates[i], candidates[j])
            wins[i, j] = preference.weight * (1 + preference.value) / 2
            wins[j, i] = preference.weight * (1 - preference.value) / 2
        usage = sum((preference.usage for preference in found.values()), Usage())
        return Ranking(tuple(bradley_terry(wins).tolist()), found, usage)

    async def _vote(self, wanted: str, shown: list[dict[str, object]], vote: int, meter: Meter) -> float:
        there = await self._ask(wanted, shown, vote, meter)
        back = await self._ask(wanted, shown[::-1], vote, meter)
        if {there, back} == {1, 2}:  # two places, one candidate
            return 1.0 if there == 1 else -1.0
        return 0.0

    async def _ask(self, wanted: str, shown: list[dict[str, object]], vote: int, meter: Meter) -> int:
        places = [{"candidate": place, **one} for place, one in enumerate(shown, start=1)]
        data = fence([{"wanted": self._cut(wanted)}, *places])
        rule = DATA_RULE.format(begin=data.begin, end=data.end)
        return await self._asker.ask(
            f"{_SYSTEM}\n\n{rule}",
            f"{data.text}\n\n{_REQUEST}",
            read_better,
            vote=vote,
            max_tokens=_MAX_TOKENS,
            meter=meter,
        )

    def _shown(self, candidate: str | Episode) -> dict[str, object]:
        if isinstance(candidate, str):
            return {"text": self._cut(check_text("candidate", candidate))}
        episode = check_finished(candidate)
        n_steps = len(episode.steps)
        head = min(n_steps, self._episode_steps // 2)
        tail = range(max(head, n_steps - (self._episode_steps - head)), n_steps)
        return {
            "task": self._cut(episode.task),
            "number_of_steps": n_steps,
            "steps": [
                {"step": i, "state": self._cut(episode.steps[i].state), "action": self._cut(episode.steps[i].action)}
                for i in [*range(head), *tail]
            ],
            "final_state": None if episode.final_state is None else self._cut(episode.final_state),
            "outcome": {"score": math.fsum(step.reward for step in episode.steps), "ending": episode.ending},
        }

    def _cut(self, text: str) -> str:
        return shorten(text, self._text_chars)
