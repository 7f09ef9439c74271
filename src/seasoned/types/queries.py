"""Queries to a memory: one frozen object each for evidence and for recall, checked when it is made."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np

from seasoned.checks import check_flag, check_instance, check_number, check_one_of, check_text, check_whole
from seasoned.errors import InputError, excerpt
from seasoned.types.evidence import Backup
from seasoned.types.notes import check_step
from seasoned.types.recall import KEYS

__all__ = [
    "MAX_LISTED_NEIGHBORS",
    "MAX_SHOWN",
    "MOST_LISTED",
    "EvidenceQuery",
    "RecallQuery",
    "Similarity",
    "check_nearest",
    "check_similarity",
    "check_steps",
]

Similarity = Literal["jaccard", "rarity"]

MAX_SHOWN = 10_000
"""How many displayed steps one query may name."""

MAX_LISTED_NEIGHBORS = 50
"""How many steps an answer lists, unless the query says another number."""

MOST_LISTED = 1_024
"""How many steps a query may ask for as a list."""

MIN_FLOOR = 1e-6
"""The least floor of propensities: a step then weighs a million. The squares of much larger weights overflow."""


def check_nearest(k: object, threshold: object) -> tuple[int, float]:
    """Return `k` as an int that SQLite can hold, and the similarity threshold as a float.

    Raises:
        InputError: k is not a whole number from 1, or the threshold is not a number in [0, 1].

    Example:
        >>> check_nearest(10, 0.8)
        (10, 0.8)
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k = {excerpt(k)}", "k must be a whole number, at least 1", "Ask for one neighbour or more.")
    return min(int(k), sys.maxsize), check_number("threshold", threshold, 0.0, 1.0, next_step="0.8 is usual.")


def check_similarity(similarity: object) -> None:
    """Refuse a similarity of states that does not exist.

    Raises:
        InputError: it is not "jaccard" or "rarity".
    """
    check_one_of("similarity", similarity, get_args(Similarity))


def check_steps(name: str, steps: object) -> frozenset[tuple[str, int]]:
    """Return stored steps as (episode id, step), each once.

    Raises:
        InputError: they are something else, or more than 10,000.

    Example:
        >>> sorted(check_steps("shown_steps", [("e1", 0), ["e1", 2], ("e1", 0)]))
        [('e1', 0), ('e1', 2)]
    """
    if isinstance(steps, str | bytes) or not isinstance(steps, Collection):
        rule = f"{name} must be a collection of (episode id, step)"
        raise InputError(f"{name} = {excerpt(steps)}", rule, "Pass a list.")
    if len(steps) > MAX_SHOWN:
        raise InputError(f"{len(steps)} {name}", f"a query names at most {MAX_SHOWN}", "Show fewer.")
    found = set()
    for one in steps:
        if isinstance(one, str | bytes) or not isinstance(one, Collection) or len(one) != 2:
            raise InputError(f"{name}: {excerpt(one)}", "a step must be (episode id, step)", "Pass ('e1', 0), say.")
        episode_id, step = one
        found.add((check_text("episode id", episode_id), check_step(step)))
    return frozenset(found)


def _check_discount(gamma: float | None) -> float | None:
    """Return a discount in [0, 1], or None."""
    return None if gamma is None else check_number("gamma", gamma, 0.0, 1.0, next_step="Try 0.95, or 1 - 1/horizon.")


def _replace_fields(query: object, **values: Any) -> None:
    """Replace fields of a frozen query by their checked values."""
    for name, value in values.items():
        object.__setattr__(query, name, value)


@dataclass(frozen=True, slots=True)
class EvidenceQuery:
    """A query for the evidence at the states most similar to one state; see `Memory.evidence`.

    Args:
        state: the state.
        k: how many neighbours, at least 1.
        unit: `"steps"`: the k most similar stored steps. `"states"`: all steps at the k most similar distinct states.
        threshold: the least similarity, in [0, 1].
        gamma: discount of the returns, in [0, 1]; None: the memory's own.
        similarity_power: a step's weight is `similarity^similarity_power * decay^age_in_episodes`; at least 0.
        decay: in (0, 1]; see `similarity_power`.
        exclude_task: steps of episodes with this task are no neighbours.
        backup: values come from the graph of all stored steps instead of from the returns; needs gamma < 1.
        propensity_floor: a step weighs `1 / max(propensity, floor)` as well; in [1e-6, 1], with `unit="states"`.
        shown_steps: (episode id, step) of the steps displayed in the prompt, at most 10,000.
        similarity: `"jaccard"`, the share of common features, or `"rarity"`, the cosine of feature sets by their words
            and character 4-grams, of which rare ones weigh more (`Memory.evidence`); the latter with `unit="states"`.
        current_task: the task being played: `recent` returns are those of its steps, if it has enough.
        compare_choices: the evidence holds choices as such instead of as rewards of steps; with `unit="states"`, and
            neither `backup` nor `propensity_floor`.
        by_task: the evidence holds sums by task too; with `similarity="rarity"`.
        recent_returns: the evidence holds the `recent` returns, as it always does with `similarity="rarity"`.
        frontier: the evidence holds how near the frontier is (`seasoned.core.FrontierGraph`), while the current task is
            on a plateau: its latest four episodes (all, if it has fewer) earned nothing, or the same while an action
            at their states is untried, and the best of them reached no end that pays; and only at a state from
            which the task was never paid. `True`: the rewards are the environment's, and an episode without one earned
            nothing. `None`: only where the latest episodes were stored with `awaits_feedback=False`; and the same
            points are a plateau also where the namespace's rewards come from its environment.
        among: where k distinct states or more share at least half of their features with the state (Jaccard), only
            these are compared by rarity, at most so many, those with the largest share; where k / 2 do, those that
            share 0.3; at least k. None: all are, as where the state is less like any, or no more states are stored.
            With `similarity="rarity"`.
        labels: a label on a decision (`seasoned.types.Label`) is an observation of each of its options that no step
            took, with reward 0; with `unit="states"`, and neither `backup` nor `propensity_floor`.
        leads: the evidence holds by how much the model preferred the actions of the latest steps (`taken_leads`), and
            those at the neighbours; with `similarity="rarity"`.
        listed: the evidence lists at most so many steps as `neighbors`, up to 1,024.

    Raises:
        InputError: a value breaks its rule.

    Example:
        >>> EvidenceQuery("page:cart", k=3, unit="states", threshold=0.8).decay
        1.0
    """

    state: str
    _: KW_ONLY
    k: int
    unit: Literal["steps", "states"]
    threshold: float
    gamma: float | None = None
    similarity_power: float = 0.0
    decay: float = 1.0
    exclude_task: str | None = None
    backup: Backup | None = None
    propensity_floor: float | None = None
    shown_steps: Collection[tuple[str, int]] = ()
    similarity: Similarity = "jaccard"
    current_task: str | None = None
    compare_choices: bool = False
    by_task: bool = False
    recent_returns: bool = False
    frontier: bool | None = False
    among: int | None = None
    labels: bool = False
    leads: bool = False
    listed: int = MAX_LISTED_NEIGHBORS

    def __post_init__(self) -> None:
        check_text("state", self.state)
        for name in ("exclude_task", "current_task"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        check_one_of("unit", self.unit, ("steps", "states"))
        check_similarity(self.similarity)
        if self.similarity == "rarity" and self.unit != "states":
            raise InputError(
                "similarity = 'rarity', unit = 'steps'",
                "similarity by rarity is of distinct states",
                "Use unit='states'.",
            )
        check_flag("compare_choices", self.compare_choices)
        if check_flag("by_task", self.by_task) and self.similarity != "rarity":
            raise InputError(
                f"by_task = True, similarity = {self.similarity!r}",
                "sums by task are those of states compared by rarity",
                "Use similarity='rarity'.",
            )
        if check_flag("leads", self.leads) and self.similarity != "rarity":
            raise InputError(
                f"leads = True, similarity = {self.similarity!r}",
                "leads are read at states compared by rarity",
                "Use similarity='rarity'.",
            )
        if self.frontier is not None:
            check_flag("frontier", self.frontier)
        check_flag("recent_returns", self.recent_returns)
        check_flag("labels", self.labels)
        sums_plainly = self.unit == "states" and self.backup is None and self.propensity_floor is None
        if (self.compare_choices or self.labels) and not sums_plainly:
            raise InputError(
                f"{'compare_choices' if self.compare_choices else 'labels'} = True, unit = {self.unit!r}, "
                f"backup = {self.backup}, propensity_floor = {self.propensity_floor}",
                "choices and labels are told from rewards of steps only in the plain sums by distinct state",
                "Use unit='states', backup=None and propensity_floor=None.",
            )
        k, threshold = check_nearest(self.k, self.threshold)
        if self.among is not None and check_whole("among", self.among, k) and self.similarity != "rarity":
            raise InputError(
                f"among = {self.among}, similarity = {self.similarity!r}",
                "the states with the most common features are compared by rarity",
                "Use similarity='rarity'.",
            )
        check_whole("listed", self.listed, 0, MOST_LISTED)
        if self.backup is not None:
            check_instance("backup", self.backup, Backup, next_step="Pass Backup(beta=4.0), say.")
        floor = self.propensity_floor
        if floor is not None:
            next_step = "0.05 lets a step weigh 20 at most; None weighs all alike."
            floor = check_number("propensity_floor", floor, MIN_FLOOR, 1.0, next_step=next_step)
            if self.unit != "states":
                raise InputError(
                    f"propensity_floor = {floor}, unit = 'steps'",
                    "propensities weigh all steps at a state",
                    "Use unit='states'.",
                )
        _replace_fields(
            self,
            k=k,
            threshold=threshold,
            gamma=_check_discount(self.gamma),
            similarity_power=check_number(
                "similarity_power", self.similarity_power, 0.0, next_step="0 weighs all alike."
            ),
            decay=check_number("decay", self.decay, above=0.0, at_most=1.0, next_step="1 forgets nothing."),
            propensity_floor=floor,
            shown_steps=check_steps("shown_steps", self.shown_steps),
        )

    @property
    def counts_alike(self) -> bool:
        """Whether all steps count alike, by their returns."""
        weighed = self.similarity_power > 0.0 or self.decay < 1.0 or self.propensity_floor is not None
        return not weighed and self.backup is None


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A query for moments by several keys; see `Memory.recall`.

    Args:
        texts: by key: one or more of `goal`, `plan`, `observation`, `reasoning`.
        pool: how many of each kind, at least 1.
        whole: each episode is recalled by its first step.
        gamma: discount of the returns, in [0, 1]; None: the memory's own.
        exclude_task: no moment of episodes with this task is recalled.
        with_feedback_totals: sum up feedback on each episode by its source.

    Raises:
        InputError: no key, an unknown one, a text that is blank, or a pool below 1.

    Example:
        >>> RecallQuery({"goal": "buy a lamp"}).pool
        16
    """

    texts: Mapping[str, str]
    _: KW_ONLY
    pool: int = 16
    whole: bool = False
    gamma: float | None = None
    exclude_task: str | None = None
    with_feedback_totals: bool = False

    def __post_init__(self) -> None:
        texts = self.texts
        if not isinstance(texts, Mapping) or not texts or any(key not in KEYS for key in texts):
            raise InputError(
                f"keys = {excerpt(list(texts) if isinstance(texts, Mapping) else texts)}",
                f"moments are found by {', '.join(KEYS)}",
                "Give one of these.",
            )
        for key, text in texts.items():
            check_text(key, text)
        if self.exclude_task is not None:
            check_text("exclude_task", self.exclude_task)
        check_flag("whole", self.whole)
        check_flag("with_feedback_totals", self.with_feedback_totals)
        pool = check_whole("pool", self.pool, at_least=1, next_step="16 is usual.")
        _replace_fields(self, texts=dict(texts), pool=pool, gamma=_check_discount(self.gamma))
