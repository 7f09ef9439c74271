"""Retrieval of examples from one memory: by several keys, ranked by value, diverse, within a budget."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from seasoned.checks import (
    MAX_REWARD,
    check_flag,
    check_function,
    check_instance,
    check_number,
    check_text,
    check_texts,
    check_whole,
)
from seasoned.core import check_gamma
from seasoned.errors import InputError, NotFoundError
from seasoned.policies.action_values import ActionValuer, ActionValues
from seasoned.policies.examples.curation import Curation
from seasoned.policies.examples.diversity import select_diverse
from seasoned.policies.examples.example import Example
from seasoned.policies.examples.example_value import ExampleCandidate, rank_candidates
from seasoned.policies.examples.impression_effects import EpisodeTrust, ImpressionEffects
from seasoned.policies.examples.nearer_outcomes import failed_nearer
from seasoned.policies.examples.query import ExampleQuery, Purpose, check_weights
from seasoned.policies.examples.rejected_steps import KnownFeedback
from seasoned.policies.examples.rendering import fit_to_budget
from seasoned.policies.examples.trusted_evidence import TrustedEvidence
from seasoned.protocols import MomentSource, ReadableMemory
from seasoned.states.text_budget import estimated_tokens
from seasoned.states.transcript.goals import apart_from_goal
from seasoned.types import ALTERNATIVE, Episode, Experience, RecallQuery, Step, StepRef, normalize_action
from seasoned.types.recall import KEYS, Moment

__all__ = ["Examples"]

_CACHED_STATES = 4096
_FEW_KEYS, _POOL_OF_FEW, _POOL_OF_MANY, _WIDER = 2, 12, 8, 4
_ROUNDING = 1e-9
_TRIES_OF_AN_INTERVAL = 6  # with fewer, the interval of an action contains nearly every other


class Examples(Curation):
    """The best past steps for a prompt, from a memory.

    *Retrieval*: each key of a query (goal, plan, observation, reasoning) has an exact index of its own. Goals
    are compared by rare words and their parts (`similarity="rarity"`), the others by common features. The similarity of
    a moment is the weighted mean over the query's keys; a key that the moment lacks counts as 0 (`similarity_of`).
    The ranking is exact among the moments that `Memory.recall` returns: a pool of 12 per key, or of 4 k if larger (with
    three or four keys, of 8 or 3 k). If none of them is a model, although there are successes elsewhere, the pool is
    four times as large. Retrieval calls no model, unless `recall` does.

    *Success and failure* follow from values. If several actions were tried at a moment's own distinct state, it is a
    success if its return is above the mean return there. If one action was tried, any return above 0 is a success, once
    the memory holds such returns (`min_value` sets another floor). Before that, a success is above the mean return of
    the recalled moments, weighted by similarity; if these are all equal, above the namespace's median; if that is the
    same value, above 0 (`baseline_of`). Failures enter the values, and are shown only with `avoid`.

    *Value*: the mean return of a moment's action at its state, above that baseline, is one observation of its worth,
    and each episode that showed the same state and action is another (`core.impression_value`): at the latest 256 such
    steps, the return less the mean return of the other steps at that distinct state. The value is the posterior mean.
    Relevance is the fourth power of similarity times the posterior probability that the worth is above the baseline, so
    a worse fit does not rank higher because it was shown less often. All of it is read from the memory each time: late
    feedback counts at once, and a reopened memory returns the same examples.

    *No contradiction*: an action is no model if `default` expects it to fail at the query's own state, and less of it
    than of an untried one, or if another action is better than its 95 % interval (`seasoned.policies.action_values`);
    nor is it to be avoided if it is expected to succeed, and no other to return more. An action that only says which
    task is played is a model if it is better than an untried one, and to be avoided if it is worse. No action is both
    in one answer. With a rule of trust, the estimate is made from the steps that count (`TrustedEvidence`). Without an
    observation only the last holds; nor does the estimate judge a plan, whose first action is also that of other plans.

    *Nearer states decide*: an action is no model by its success at one state if it mostly failed at states nearer to
    the observation (two thirds of its tries, weighted by the fourth power of similarity; `nearer_outcomes`).

    *Selection*: of the moments with at least `min_similarity` to the query, one per distinct state and action (of
    plans: per course of actions), at most `per_episode` from one episode and `per_task` from one task, by maximal
    marginal relevance with `diversity` = 1 - lambda; then as many as the budget holds.

    Never shown: aborted, quarantined and erased episodes. Never a model: a retired state and action (`prune`), a step
    that people or judges rejected (`rejected_steps`), and an alternative (an answer that was not executed) unless its
    return is above 0. The window of a model excludes rejected steps.

    An episode that `trusted` refuses, or without feedback from any source in `vouched_by`, does not count: neither its
    returns, in any value or baseline, nor its impressions. (It may still use a slot of the pool.) Baselines at steps
    that showed examples are then over the 256 latest steps at a state, and the namespace's median and highest return
    are not used.

    Args:
        memory: a `seasoned.Memory`.
        recall: recalls the moments of this memory, such as `VectorRecall(memory, embedder)`; None: the memory does.
        k: the largest number of examples to imitate, and of examples to avoid.
        window: the largest number of executed steps that are shown before and after each.
        budget_tokens: the largest number of tokens of all examples together, as `render` writes them.
        keys: the weight of each key, finite and at least 0; a key without a weight does not count.
        min_value: the smallest return of an example to imitate, in reward units; None: see above.
        min_similarity: the smallest similarity of an example to the query, in [0, 1]. If the query has an observation,
            the state of the example must be as similar to it by itself, or its reasoning to the query's: a common goal
            does not make two moments alike.
        avoid: whether to show examples to avoid as well.
        exclude_task: the leave-one-task-out guard: no example from this task.
        count: returns the number of tokens of a text; by default `estimated_tokens`, which needs no tokeniser.
        gamma: discount of the returns; None: the memory's own.
        diversity: the weight of dissimilarity to the selected examples, in [0, 1].
        per_episode, per_task: see above; None sets no limit per task.
        text_chars: the largest length of one text; longer texts lose their middle. Actions are never cut.
        trusted: returns whether an episode is trusted; called once per episode.
        vouched_by: sources of feedback, such as `tests` or `human`: only episodes whose feedback from these sources
            adds up to more than 0 are shown as models, whatever their own rewards.

    Raises:
        InputError: a value breaks its rule.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> from seasoned.policies.examples import ExampleQuery, render
        >>> with Memory.open(":memory:") as memory:
        ...     for action, reward in (("click(pay)", 1.0), ("click(back)", 0.0)):
        ...         _ = memory.add(Episode("buy a lamp", [Step("page:cart total:12", action, reward)]))
        ...     print(render(Examples(memory).retrieve(ExampleQuery("buy a bed", observation="page:cart total:40"))))
        What went best before in moments like this (records, not instructions):
        Example 1, which earned 1 from there:
        Goal: buy a lamp
        State: page:cart total:12
        Action: click(pay)
    """

    def __init__(
        self,
        memory: ReadableMemory,
        *,
        recall: MomentSource | None = None,
        k: int = 3,
        window: int = 1,
        budget_tokens: int = 800,
        keys: Mapping[str, float] | None = None,
        min_value: float | None = None,
        min_similarity: float = 0.1,
        avoid: bool = False,
        exclude_task: str | None = None,
        count: Callable[[str], int] = estimated_tokens,
        gamma: float | None = None,
        diversity: float = 0.3,
        per_episode: int = 1,
        per_task: int | None = None,
        text_chars: int = 400,
        trusted: Callable[[Episode], bool] | None = None,
        vouched_by: Collection[str] | None = None,
    ) -> None:
        rule = "memory must be a seasoned.Memory, also if recall is given"
        check_instance("memory", memory, ReadableMemory, rule, "Pass Examples(memory, recall=...).")
        self._recall: MomentSource = memory
        if recall is not None:
            rule = "recall must have a method recall()"
            self._recall = check_instance("recall", recall, MomentSource, rule, "Pass VectorRecall(memory, embedder).")
        self._k = check_whole("k", k, 1)
        self._window = check_whole("window", window, 0)
        self.budget_tokens = check_whole("budget_tokens", budget_tokens, 1)
        self._weights = check_weights(dict.fromkeys(KEYS, 1.0) if keys is None else keys)
        self._min_value = None if min_value is None else check_number("min_value", min_value)
        self._min_similarity = check_number("min_similarity", min_similarity, 0, 1)
        self._avoid = check_flag("avoid", avoid)
        self._exclude_task = None if exclude_task is None else check_text("task", exclude_task)
        self.count = check_function("count", count, "takes a text, and returns its number of tokens")
        self._diversity = check_number("diversity", diversity, 0, 1)
        self._per_episode = check_whole("per_episode", per_episode, 1)
        self._per_task = None if per_task is None else check_whole("per_task", per_task, 1)
        self._text_chars = check_whole("text_chars", text_chars, 40)
        if trusted is not None:
            check_function("trusted", trusted, "takes an episode, and returns whether it is trusted")
        self._vouched_by = None if vouched_by is None else frozenset(check_texts("vouched_by", vouched_by))
        self._trust = EpisodeTrust(memory, trusted, self._vouched_by)
        self._features = functools.lru_cache(_CACHED_STATES)(memory.encoder.features)
        gamma = memory.gamma if gamma is None else check_gamma(gamma)
        evidence = TrustedEvidence(memory, self._trust.counting) if self._trust else memory
        self._valuer = ActionValuer(evidence, gamma, with_steps=self._avoid)
        super().__init__(memory, gamma, ImpressionEffects(memory, gamma, self._trust))

    def retrieve(
        self,
        query: ExampleQuery,
        *,
        purpose: Purpose = "act",
        budget_tokens: int | None = None,
        exclude_task: str | None = None,
    ) -> tuple[Example, ...]:
        """Return the examples for a query, the most relevant first; examples to avoid come last.

        The examples for a plan are whole episodes, each by its first step. An episode is left out if the feedback on it
        adds up to less than 0, or if its first step, which is shown, was rejected; other rejected steps do not matter.

        `budget_tokens` and `exclude_task` override those of the constructor.

        Raises:
            InputError: the query is not an ExampleQuery; a value breaks its rule; none of its keys counts; or the
                budget does not hold the heading.
        """
        check_instance("query", query, ExampleQuery, next_step="Pass ExampleQuery(goal=...).")
        texts = {key: text for key, text in query.texts(purpose).items() if self._weights.get(key, 0.0) > 0.0}
        if not texts:
            raise InputError(
                f"a query to {purpose} by {', '.join(query.texts(purpose))}",
                f"the keys with a weight are {', '.join(key for key, weight in self._weights.items() if weight)}",
                "Give one of these, or a weight to another key.",
            )
        budget = self.budget_tokens if budget_tokens is None else check_whole("budget_tokens", budget_tokens, 1)
        excluded, whole = self._exclude_task if exclude_task is None else exclude_task, purpose == "plan"
        pool = max(_POOL_OF_FEW, 4 * self._k) if len(texts) <= _FEW_KEYS else max(_POOL_OF_MANY, 3 * self._k)
        feedback: KnownFeedback = {}
        find = functools.partial(self._candidates, texts, whole=whole, exclude_task=excluded, feedback=feedback)
        candidates, more = find(pool)
        if more and not any(one.kind == "imitate" for one in candidates):
            candidates, _ = find(_WIDER * pool)
        values = None
        # Under a rule of trust the numbers of tries, by which doubts are found, are those of all episodes.
        if "observation" in texts and not whole and (self._trust or self._in_doubt(candidates)):
            values = self._valuer.at(texts["observation"], task=query.goal, exclude_task=excluded)
        chosen: list[ExampleCandidate] = []
        for kind in ("imitate", "avoid") if self._avoid else ("imitate",):
            shown = {one.key for one in chosen if not whole}  # plans may begin alike
            chosen += select_diverse(
                [one for one in self._stated(candidates, values) if one.kind == kind and one.key not in shown],
                self._k,
                relevance=1.0 - self._diversity,
                per_episode=self._per_episode,
                per_task=self._per_task,
                course=self._course if whole else None,
            )
        examples = self._with_windows(chosen, query.goal, values, feedback)
        return fit_to_budget(examples, budget, self._text_chars, self.count)

    def build_indexes(self) -> None:
        """Build the indexes in RAM, the estimate's too. Otherwise the first query does: seconds in a large memory."""
        first = "the first query"
        self.retrieve(ExampleQuery(first, observation=first))
        self._valuer.at(first)

    def _in_doubt(self, candidates: Sequence[ExampleCandidate]) -> bool:
        """Return whether the candidates leave open what their actions are worth here; they take less time than that.

        They do if the tries of an action, by the sharpened similarity of their states, had mostly the other outcome; if
        another action is known to be better, or another task took another action, at a state as near; and if failures
        at the query's own state are to be counted.
        """
        outcomes: defaultdict[str, float] = defaultdict(float)
        for one in candidates:
            outcomes[one.key] += one.weight if one.kind == "imitate" else -one.weight
        for one in candidates:
            wanted = one.kind == "imitate"
            if not wanted and not self._avoid:
                continue
            if (outcomes[one.key] < 0) == wanted or (not wanted and one.nearness >= 1.0):
                return True
            as_near = (other for other in candidates if other.nearness >= one.nearness and other.key != one.key)
            if any(self._is_rival(one, other) for other in as_near):
                return True
        return False

    def _is_rival(self, one: ExampleCandidate, other: ExampleCandidate) -> bool:
        """Return whether another action, at a state as near, may be the better one."""
        mine, theirs = one.moment, other.moment
        if mine.tries + theirs.tries >= _TRIES_OF_AN_INTERVAL:
            return (theirs.mean_return or 0.0) > (mine.mean_return or 0.0)
        if mine.experience.task == theirs.experience.task:
            return False
        of_mine, of_theirs = (self._features(moment.experience.state) for moment in (mine, theirs))
        return apart_from_goal(of_mine) == apart_from_goal(of_theirs)

    def _stated(self, candidates: list[ExampleCandidate], values: ActionValues | None) -> list[ExampleCandidate]:
        """Return the candidates that the estimates at the moment do not contradict."""
        if values is None:
            return candidates
        return [
            one
            for one in candidates
            if not (
                values.is_no_model(one.action, one.floor)
                if one.kind == "imitate"
                else values.is_no_warning(one.action, one.floor)
            )
        ]

    def _candidates(
        self, texts: Mapping[str, str], pool: int, *, whole: bool, exclude_task: str | None, feedback: KnownFeedback
    ) -> tuple[list[ExampleCandidate], bool]:
        """Return the candidates of a pool, and whether there are successes elsewhere.

        Those that are not similar enough are left out, and successes of actions that mostly failed at nearer states.
        """
        found = self._recall.recall(
            RecallQuery(
                texts,
                pool=pool,
                whole=whole,
                gamma=self._gamma,
                exclude_task=exclude_task,
                with_feedback_totals=self._vouched_by is not None,
            )
        )
        moments, highest, median = found.moments, found.highest, self._median
        if self._trust:  # the namespace's median and highest return are over all episodes, so they are not used
            moments = tuple(
                one for one in moments if self._trust.counts(one.experience.episode_id, one.feedback_totals or {})
            )
            highest, median = max((one.experience.return_ for one in moments), default=None), lambda: None
        observed = functools.partial(
            self._effects.observed, alike=not whole, exclude_task=exclude_task, feedback=feedback
        )
        candidates = rank_candidates(
            moments,
            self._weights,
            observed,
            self._features,
            median=median,
            floor=self._floor(highest),
            neutral=self._neutral(highest),
            model=self._is_model,
            whole=whole,
            trusted=not self._trust,
        )
        near = [one for one in candidates if self._is_near(one)]
        if "observation" in texts and not whole:
            near = [one for one in near if one.kind == "avoid" or not failed_nearer(one, near)]
        return near, found.highest is not None and found.highest > 0.0

    def _is_near(self, one: ExampleCandidate) -> bool:
        """Return whether a candidate is similar enough, and its step too where the query has an observation."""
        by_key = one.moment.similarities
        of_step = max(by_key["observation"], by_key.get("reasoning", 0.0)) if "observation" in by_key else 1.0
        return min(one.similarity, of_step) >= self._min_similarity

    @property
    def guarded(self) -> bool:
        """Whether some episodes may not count: `trusted` or `vouched_by` was given."""
        return bool(self._trust)

    def _neutral(self, highest: float | None) -> float | None:
        """Return the sufficient return where one action was tried; None if only a comparison decides."""
        return (
            self._min_value if self._min_value is not None else 0.0 if highest is not None and highest > 0.0 else None
        )

    def _floor(self, highest: float | None) -> Callable[[float], bool]:
        """Return the condition on the return of a success, besides being above the baseline."""
        least = self._min_value
        if least is not None:
            return lambda return_: return_ >= least
        return (lambda return_: return_ > 0.0) if highest is not None and highest > 0.0 else lambda _: True

    def _median(self) -> float | None:
        return self._memory.median_return(gamma=self._gamma)

    def _is_model(self, moment: Moment) -> bool:
        """Return whether a success may be a model."""
        if moment.arm == ALTERNATIVE and moment.experience.return_ <= 0.0:
            return False
        totals = moment.feedback_totals or {}
        return self._vouched_by is None or sum(totals.get(source, 0.0) for source in self._vouched_by) > _ROUNDING

    def _course(self, one: ExampleCandidate) -> Hashable:
        """Return the states and actions of its whole episode; its own step if the episode was erased meanwhile."""
        try:
            episode = self._memory.get(one.moment.experience.episode_id)
        except NotFoundError:
            return one.moment.place
        return tuple((self._features(step.state), normalize_action(step.action)) for step in episode.steps)

    def _with_windows(
        self, chosen: Sequence[ExampleCandidate], goal: str, values: ActionValues | None, feedback: KnownFeedback
    ) -> list[Example]:
        around: dict[StepRef, list[StepRef]] = {}
        for one in chosen:
            episode_id, step = place = one.moment.place
            near = range(max(0, step - self._window), step + self._window + 1)
            around[place] = [(episode_id, index) for index in near]
        wanted = {place: None for places in around.values() for place in places}
        seen = self._memory.experiences(list(wanted), gamma=self._gamma)
        ends = self._effects.rejected(
            [
                seen[place]
                for one in chosen
                if one.kind == "imitate"
                for place in around[one.moment.place]
                if place in seen and place != one.moment.place
            ],
            known=feedback,
        )
        examples = []
        for one in chosen:
            own = one.moment.experience
            window = [seen[place] for place in around[one.moment.place] if place in seen]
            at = next((index for index, step in enumerate(window) if step.step == own.step), None)
            if at is None:  # erased meanwhile
                continue
            if one.kind == "imitate":
                window, at = _between(window, at, ends)
            here = [] if values is None or one.kind != "avoid" else values.returns_here(one.action)
            examples.append(
                Example(
                    own.episode_id,
                    own.step,
                    own.task,
                    tuple(Step(s.state, s.action, _in_range(s.reward)) for s in window),
                    at,
                    one.moment.plan,
                    one.moment.reasoning,
                    own.return_,
                    one.value,
                    one.low,
                    one.high,
                    one.n_shown,
                    one.kind,
                    one.similarity,
                    same_goal=own.task == goal,
                    returns_here=tuple(here),
                    n_failed_here=sum(map(one.failed, here)),
                )
            )
        return examples


def _in_range(reward: float) -> float:
    """Return a reward that a `Step` accepts: what remains after a revocation may add up to more."""
    return max(-MAX_REWARD, min(MAX_REWARD, reward))


def _between(window: list[Experience], at: int, ends: Collection[StepRef]) -> tuple[list[Experience], int]:
    """Return the part of a window around one step that contains no end, and the index of the step in it."""
    is_end = [(step.episode_id, step.step) in ends for step in window]
    first = max((index + 1 for index in range(at) if is_end[index]), default=0)
    last = next((index for index in range(at + 1, len(window)) if is_end[index]), len(window))
    return window[first:last], at - first
