"""Caveats of an arm's gain: its selection of actions, its use of the score, an unused memory."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from seasoned.errors import SeasonedError
from seasoned.lab.arms.preset_settings import preset_settings
from seasoned.lab.results.run_results import MEMORY_FILE, ExperimentResults
from seasoned.lab.suites.suite import ArmSpec, Suite
from seasoned.policies.jitrl_settings import JitRLSettings
from seasoned.policies.presets import preset

__all__ = ["SCORE_CHOOSES", "ArmCaveats", "SelectionMethod", "action_selection", "arm_caveats", "unused_memory_remark"]

SelectionMethod = Literal["samples", "greedy", "majority"]
"""The selection of an action: a draw from the policy, the likeliest one, or the most frequent of several answers."""

SCORE_CHOOSES = frozenset({"retries", "best-of-n"})
"""Kinds of arms that play an episode several times, and keep the attempt with the best score."""

_OF_THE_MODEL_ALONE = {
    "retries",
    "best-of-n",
    "full-context",
    "bm25",
    "top-k",
    "prompt",
    "reflexion",
    "workflows",
    "evolve",
}
"""Kinds whose decisions come from the model alone, which samples."""

_SHIFTED = frozenset({"jitrl", "placebo", "both"})
"""Kinds whose decisions memory shifts where it has similar states."""

_SHIFT = JitRLSettings.__dataclass_fields__
_SELECTION_PHRASES = {
    "samples": "samples",
    "greedy": "takes the likeliest action",
    "majority": "takes the majority's action",
}


@dataclass(frozen=True, slots=True)
class ArmCaveats:
    """The caveats of an arm.

    Args:
        arm, kind: the name and the kind of the arm.
        selects: its selection of actions; None: unknown.
        score_chooses: the environment's own score chooses among its attempts, so it is an upper bound.
        episodes: the largest number of episodes that it learns from at a task.
        remarks: sentences, without the full stop.
    """

    arm: str
    kind: str
    selects: SelectionMethod | None
    score_chooses: bool
    episodes: int
    remarks: tuple[str, ...]


def action_selection(arm: ArmSpec) -> SelectionMethod | None:
    """Return the selection of an arm's actions, by its kind and settings; None: unknown.

    Example:
        >>> action_selection(ArmSpec("released", "jitrl", {"preset": "released-games"}))
        'greedy'
        >>> action_selection(ArmSpec("alone", "alone")), action_selection(ArmSpec("vote", "self-consistency"))
        ('samples', 'majority')
    """
    if arm.kind == "self-consistency":
        return "majority"
    if arm.kind in _OF_THE_MODEL_ALONE:
        return "samples"
    if arm.kind == "alone":
        selection = arm.settings.get("selection", "sample")
    elif arm.kind in {"jitrl", "placebo", "both", "cascade"}:
        shift = {name: value for name, value in arm.settings.items() if name == "preset" or name in _SHIFT}
        try:
            name, overrides = preset_settings(shift)
        except SeasonedError:  # the preset belongs to another version of seasoned
            return None
        selection = preset(name, **overrides).selection
    else:
        return None
    known: dict[object, SelectionMethod] = {"sample": "samples", "argmax": "greedy"}
    return known.get(selection)


def arm_caveats(arm: ArmSpec, suite: Suite) -> ArmCaveats:
    """Return the caveats of an arm of a suite."""
    played = [task for task in suite.tasks if not arm.tasks or task.name in arm.tasks]
    episodes = [task.episodes if arm.episodes is None else min(arm.episodes, task.episodes) for task in played]
    selection, score_chooses = action_selection(arm), arm.kind in SCORE_CHOOSES
    remarks = ["upper bound: the score chooses"] if score_chooses else []
    if filled := arm.settings.get("fill_episodes") if arm.kind == "cascade" else None:
        remarks.append(f"the teacher plays the first {filled} episodes, which count in its score and its price")
    remarks += [] if (decoding := _decoding(arm, suite)) is None else [decoding]
    return ArmCaveats(arm.name, arm.kind, selection, score_chooses, max(episodes, default=0), tuple(remarks))


def unused_memory_remark(arm: ArmSpec, results: ExperimentResults) -> str | None:
    """Return a remark on an arm whose memory shifted no decision, without the full stop; else None."""
    done = [each for each in results.runs if each.key.arm == arm.name and each.done]
    steps = sum(episode.steps for each in done for episode in each.episodes)
    if arm.kind not in _SHIFTED or not steps:
        return None
    if any(episode.memory_steps for each in done for episode in each.episodes):
        return None
    command = shlex.join(["seasoned", "memory", "doctor", str(done[0].folder / MEMORY_FILE)])
    return f"memory shifted 0 of {steps:,} decisions: see `{command}`"


def _decoding(arm: ArmSpec, suite: Suite) -> str | None:
    """Return a remark if an arm and the reference arm select actions differently, which can change a score."""
    reference = next((each for each in suite.arms if each.name == suite.reference), None)
    if reference is None or reference.name == arm.name:
        return None
    ours, theirs = action_selection(arm), action_selection(reference)
    if ours is None or theirs is None or ours == theirs:
        return None
    alike = [
        each.name for each in suite.arms if each.kind == "alone" and action_selection(each) == ours and each != arm
    ]
    where = f"; compare it with {alike[0]}, which selects the same way, under Wins" if alike else ""
    alone = arm.kind == "alone" and reference.kind == "alone"
    part = "any difference is" if alone else "part of the difference can be"
    return (
        f"{part} decoding: {arm.name} {_SELECTION_PHRASES[ours]}, {reference.name} {_SELECTION_PHRASES[theirs]}{where}"
    )
