"""Examples from one memory: found by several keys, judged by value, diverse, within a budget."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from seasoned.checks import check_number, check_text
from seasoned.core import check_gamma
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.policies.examples.curation import Curation
from seasoned.policies.examples.diversity import select_diverse
from seasoned.policies.examples.example import Example
from seasoned.policies.examples.example_source import ExampleSource, MomentSource
from seasoned.policies.examples.example_value import ExampleCandidate, rank_candidates
from seasoned.policies.examples.impression_effects import EpisodeTrust, ImpressionEffects
from seasoned.policies.examples.query import ExampleQuery, Purpose, check_weights
from seasoned.policies.examples.rendering import fit_to_budget
from seasoned.states.text_budget import estimated_tokens
from seasoned.types import ALTERNATIVE, Episode, Experience, Step, StepRef, normalize_action
from seasoned.types.recall import KEYS, Moment

__all__ = ["Examples"]

_REMEMBERED = 4096
_LEAST_POOL, _FEW_KEYS, _LEAST_OF_MANY, _WIDER = 12, 2, 8, 4
_ROUNDING = 1e-9


class Examples(Curation):
    """The best past steps for a prompt, from a memory.

    *Found*: a query's keys (goal, plan, observation, reasoning) are looked up each in an exact index of its own; a
    moment's similarity is the weighted mean over the query's keys, and a key that the moment lacks counts as 0
    (`similarity_of`). Exact among the moments that `Memory.recall` gives: a pool of 12 a key, or of 4 k (by three or
    four keys of 8, or of 3 k, for each names some); of four times as many where none of these is a model, though there
    are successes elsewhere. By itself it asks no model.

    *Judged*: what is worth imitating follows from values. Where several actions were tried at a moment's own distinct
    state, it is a success if its return is above the mean return there. Where one was, any return above 0 is, once the
    memory knows such returns (`min_value` puts another floor there). While it knows none, a success is above the mean
    return of the moments found, weighted by similarity; where these all earned the same, above the namespace's median;
    where that is the same too, above 0 (`baseline_of`). Failures enter the values, and are shown only when `avoid` asks
    for them.

    *Valued*: what a moment's action earned on average at its state, above that baseline, is one observation of its
    worth, and each episode that showed it, or what is the same state and action, another (`core.impression_value`): at
    the latest 256 such steps, the return less the mean return of the others at that step's distinct state. The value is
    the posterior mean; relevance is the fourth power of similarity times the posterior probability that the worth is
    above the baseline: a worse fit is no better model for having been shown less.
    All of it is read anew each time: feedback that comes late counts at once, and whoever opens the memory again finds
    the same.

    *Chosen*: one moment for each distinct state and action (of plans: for each course of them), at most `per_episode`
    of one episode and `per_task` of one task, by maximal marginal relevance with `diversity` = 1 - lambda; then as many
    as the budget holds.

    Never shown: what is aborted, quarantined or erased; as models neither what was retired (`prune`), with all that is
    the same state and action, nor what people or judges rejected (`rejecting.rejected`), nor an alternative (an answer
    that was not executed) unless its return is above 0. A model's window ends before what was rejected.

    An episode that `trusted` refuses, or of which none of `vouched_by` has said anything, does not count at all:
    neither its returns, in any value or baseline, nor what it says was shown in it. (It may still take a place in the
    pool.) Baselines where examples were shown are then of the 256 latest steps at a state, and no median or highest
    return of the namespace is asked.

    Args:
        memory: a `seasoned.Memory`.
        recall: finds the moments of this memory, such as `VectorRecall(memory, embedder)`; None: the memory does.
        k: at most so many to imitate, and as many to avoid.
        window: how many executed steps are shown before and after each, at most.
        budget_tokens: of all examples together, as `render` writes them.
        keys: how much each key counts, finite and at least 0; one that is not named does not count.
        min_value: the smallest return of what is to be imitated, in reward units; None: see above.
        avoid: whether to show what is to be avoided as well.
        exclude_task: nothing of this task: the leave-one-task-out guard.
        count: tokens of a text; `estimated_tokens` where no tokeniser is at hand.
        gamma: discount of the returns; None: the memory's own.
        diversity: weight of being unlike those chosen already, in [0, 1].
        per_episode, per_task: see above; None sets no limit per task.
        text_chars: of one text; longer ones lose their middle. Actions are shown whole, or their example is not.
        trusted: says of an episode whether it is believed; asked once of each.
        vouched_by: sources of feedback, such as `tests` or `human`: only episodes on which what they gave adds up to
            more than 0 are shown as models, whatever the episode says of itself.

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
        memory: ExampleSource,
        *,
        recall: MomentSource | None = None,
        k: int = 3,
        window: int = 1,
        budget_tokens: int = 800,
        keys: Mapping[str, float] | None = None,
        min_value: float | None = None,
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
        if not hasattr(memory, "experiences"):
            raise InputError(
                f"memory = {excerpt(memory)}",
                "examples are read from a seasoned.Memory, whichever way they are recalled",
                "Pass Examples(memory, recall=...).",
            )
        if recall is not None and not hasattr(recall, "recall"):
            raise InputError(
                f"recall = {excerpt(recall)}",
                "recall has a method recall()",
                "Leave it out, or pass VectorRecall(memory, embedder).",
            )
        self._recall = memory if recall is None else recall
        self._k = _whole("k", k, 1)
        self._window = _whole("window", window, 0)
        self.budget_tokens = _whole("budget_tokens", budget_tokens, 1)
        self._weights = check_weights(dict.fromkeys(KEYS, 1.0) if keys is None else keys)
        self._min_value = None if min_value is None else check_number("min_value", min_value)
        if not isinstance(avoid, bool):
            raise InputError(f"avoid = {excerpt(avoid)}", "it is True or False", "Choose one.")
        self._avoid = avoid
        self._exclude_task = None if exclude_task is None else check_text("task", exclude_task)
        if not callable(count):
            raise InputError(
                f"count = {excerpt(count)}",
                "it says how many tokens a text has",
                "Leave it out, or pass a tokeniser's.",
            )
        self.count = count
        self._diversity = check_number("diversity", diversity)
        if not 0.0 <= self._diversity <= 1.0:
            raise InputError(f"diversity = {diversity}", "it is in [0, 1]", "0 looks at relevance alone.")
        self._per_episode = _whole("per_episode", per_episode, 1)
        self._per_task = None if per_task is None else _whole("per_task", per_task, 1)
        self._text_chars = _whole("text_chars", text_chars, 40)
        if isinstance(vouched_by, str):
            raise InputError(f"vouched_by = {vouched_by!r}", "it is a collection of sources", "Pass {'human'}, say.")
        if trusted is not None and not callable(trusted):
            raise InputError(
                f"trusted = {excerpt(trusted)}",
                "it says of an episode whether it is believed",
                "Leave it out, or pass lambda episode: episode.model == 'ours', say.",
            )
        self._vouched_by = None if vouched_by is None else frozenset(check_text("source", one) for one in vouched_by)
        self._trust = EpisodeTrust(memory, trusted, self._vouched_by)
        self._features = functools.lru_cache(_REMEMBERED)(memory.encoder.features)
        gamma = memory.gamma if gamma is None else check_gamma(gamma)
        super().__init__(memory, gamma, ImpressionEffects(memory, gamma, self._trust))

    def retrieve(
        self,
        query: ExampleQuery,
        *,
        purpose: Purpose = "act",
        budget_tokens: int | None = None,
        exclude_task: str | None = None,
    ) -> tuple[Example, ...]:
        """Return the examples for a moment, the most wanted first; those to be avoided come last.

        A plan's examples are whole episodes, each by its first step: none on which feedback adds up to less than 0, and
        none whose first step was rejected, for that is shown; another step that was rejected bars no plan.

        `budget_tokens` and `exclude_task` go before those of the constructor.

        Raises:
            InputError: the query is no Query; a value breaks its rule; none of its keys counts; or the budget does not
                hold the heading.
        """
        if not isinstance(query, ExampleQuery):
            raise InputError(
                f"query = {excerpt(query)}", "examples are looked for by a ExampleQuery", "Pass ExampleQuery(goal=...)."
            )
        texts = {key: text for key, text in query.texts(purpose).items() if self._weights.get(key, 0.0) > 0.0}
        if not texts:
            raise InputError(
                f"a query to {purpose} by {', '.join(query.texts(purpose))}",
                f"what counts is {', '.join(key for key, weight in self._weights.items() if weight)}",
                "Give one of these, or weigh another key.",
            )
        budget = self.budget_tokens if budget_tokens is None else _whole("budget_tokens", budget_tokens, 1)
        about, whole = self._exclude_task if exclude_task is None else exclude_task, purpose == "plan"
        least = max(_LEAST_POOL, 4 * self._k) if len(texts) <= _FEW_KEYS else max(_LEAST_OF_MANY, 3 * self._k)
        candidates, more = self._candidates(texts, least, whole=whole, exclude_task=about)
        if more and not any(one.kind == "imitate" for one in candidates):
            candidates, _ = self._candidates(texts, _WIDER * least, whole=whole, exclude_task=about)
        chosen: list[ExampleCandidate] = []
        for kind in ("imitate", "avoid") if self._avoid else ("imitate",):
            chosen += select_diverse(
                [one for one in candidates if one.kind == kind],
                self._k,
                relevance=1.0 - self._diversity,
                per_episode=self._per_episode,
                per_task=self._per_task,
                done=self._done if whole else None,
            )
        return fit_to_budget(self._with_windows(chosen, query.goal), budget, self._text_chars, self.count)

    def _candidates(
        self, texts: Mapping[str, str], pool: int, *, whole: bool, exclude_task: str | None
    ) -> tuple[list[ExampleCandidate], bool]:
        """Return what is judged of a pool, and whether there are successes elsewhere."""
        found = self._recall.recall(
            texts,
            pool=pool,
            whole=whole,
            gamma=self._gamma,
            exclude_task=exclude_task,
            with_feedback_totals=self._vouched_by is not None,
        )
        moments, highest, median = found.moments, found.highest, self._median
        if self._trust:  # then the namespace's own figures, which are of all episodes, do not count either
            moments = tuple(
                one for one in moments if self._trust.counts(one.experience.episode_id, one.feedback_totals or {})
            )
            highest, median = max((one.experience.return_ for one in moments), default=None), lambda: None
        observed = functools.partial(self._showings.observed, alike=not whole, exclude_task=exclude_task)
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
            believed=not self._trust,
        )
        return candidates, found.highest is not None and found.highest > 0.0

    @property
    def guarded(self) -> bool:
        """Whether not every episode counts: `trusted` or `vouched_by` was given."""
        return bool(self._trust)

    def _neutral(self, highest: float | None) -> float | None:
        """The return that is enough where nothing else was tried; None where only comparing tells."""
        return (
            self._min_value if self._min_value is not None else 0.0 if highest is not None and highest > 0.0 else None
        )

    def _floor(self, highest: float | None) -> Callable[[float], bool]:
        """What has to hold of a return, other than being above the baseline."""
        least = self._min_value
        if least is not None:
            return lambda return_: return_ >= least
        return (lambda return_: return_ > 0.0) if highest is not None and highest > 0.0 else lambda _: True

    def _median(self) -> float | None:
        return self._memory.median_return(gamma=self._gamma)

    def _is_model(self, moment: Moment) -> bool:
        """Whether a success may be a model."""
        if moment.arm == ALTERNATIVE and moment.experience.return_ <= 0.0:
            return False
        credited = moment.feedback_totals or {}
        return self._vouched_by is None or sum(credited.get(source, 0.0) for source in self._vouched_by) > _ROUNDING

    def _done(self, one: ExampleCandidate) -> Hashable:
        """What was done in its whole episode, step by step; its own place if that was taken away since."""
        try:
            episode = self._memory.get(one.moment.experience.episode_id)
        except NotFoundError:
            return one.moment.place
        return tuple((self._features(step.state), normalize_action(step.action)) for step in episode.steps)

    def _with_windows(self, chosen: Sequence[ExampleCandidate], goal: str) -> list[Example]:
        around: dict[StepRef, list[StepRef]] = {}
        for one in chosen:
            episode_id, step = place = one.moment.place
            near = range(max(0, step - self._window), step + self._window + 1)
            around[place] = [(episode_id, index) for index in near]
        wanted = {place: None for places in around.values() for place in places}
        seen = self._memory.experiences(list(wanted), gamma=self._gamma)
        ends = self._showings.rejected(
            [
                seen[place]
                for one in chosen
                if one.kind == "imitate"
                for place in around[one.moment.place]
                if place in seen and place != one.moment.place
            ]
        )
        examples = []
        for one in chosen:
            own = one.moment.experience
            window = [seen[place] for place in around[one.moment.place] if place in seen]
            at = next((index for index, step in enumerate(window) if step.step == own.step), None)
            if at is None:  # it was taken away since
                continue
            if one.kind == "imitate":
                window, at = _between(window, at, ends)
            examples.append(
                Example(
                    own.episode_id,
                    own.step,
                    own.task,
                    tuple(Step(s.state, s.action, s.reward) for s in window),
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
                )
            )
        return examples


def _between(window: list[Experience], at: int, ends: Collection[StepRef]) -> tuple[list[Experience], int]:
    """Return a window's part around one step that holds none of the ends, and where the step is in it."""
    is_end = [(step.episode_id, step.step) in ends for step in window]
    first = max((index + 1 for index in range(at) if is_end[index]), default=0)
    last = next((index for index in range(at + 1, len(window)) if is_end[index]), len(window))
    return window[first:last], at - first


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(
            f"{name} = {excerpt(value)}", f"{name} is a whole number, at least {least}", f"Try {max(3, least)}."
        )
    return value
