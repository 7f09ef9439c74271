"""Checks of what memory does to decisions: nothing, too little, harm, or the same thing again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from seasoned.lab.diagnosis.check import Check, Number, finding_if, not_checked, share
from seasoned.lab.diagnosis.encoded_states import States
from seasoned.lab.diagnosis.flip_audit import Audit
from seasoned.lab.diagnosis.replay import ReplayedEpisode
from seasoned.types import Decision, Episode, normalize_action

__all__ = ["DecisionLog", "Shift", "check_flips", "check_loops"]

MIN_DECISIONS = 20
MAX_FLAT = 0.5
MAX_ABSTAINED = 0.5
MAX_LOOPED = 0.1
MIN_LOOPED = 10
LOOP = 3
ZERO = 1e-9
LOW_GAMMA = 0.5


@dataclass(frozen=True, slots=True)
class Shift:
    """What a check needs of one decision; the decision itself, with its neighbours, is let go."""

    mode: str
    candidates: int
    tried: int
    flat: bool
    alike: bool
    n_steps: int
    kl_nats: float
    strangers: int
    listed: int


@dataclass
class DecisionLog:
    """Looks at replayed episodes, one after the other."""

    shifts: list[Shift] = field(default_factory=list)

    def see(self, one: ReplayedEpisode) -> None:
        """Take in one episode."""
        self.shifts += [_shift(step.decision) for step in one.steps if step.decision is not None]

    def check_advantages(self, gamma: float, *, rewarded: bool, final_rewards: bool) -> Check:
        """Whether memory, where it speaks, tells actions apart; and if not, why."""
        name = "advantages"
        rule = f"at most {MAX_FLAT:.0%} of the decisions that memory speaks to have advantages that are all 0"
        spoken = [shift for shift in self.shifts if shift.mode == "memory" and shift.candidates > 1]
        flat = [shift for shift in spoken if shift.flat]
        causes = Counter(_cause(shift) for shift in flat)
        kl = float(np.median([shift.kl_nats for shift in spoken])) if spoken else None
        numbers: dict[str, Number] = {"decisions": len(spoken), "all_zero": len(flat), "median_kl_nats": kl, **causes}
        if len(spoken) < MIN_DECISIONS:
            seen = f"memory speaks to {len(spoken)} decisions between two actions or more"
            return not_checked(name, seen, f"{rule} (from {MIN_DECISIONS} on)", **numbers)
        seen = f"all 0 in {share(len(flat), len(spoken), 'decisions')}; memory spends {kl:.3f} nats in the middle"
        if flat:
            seen += f" (why: {', '.join(f'{count} {cause}' for cause, count in causes.most_common())})"
        main = causes.most_common(1)[0][0] if flat else EQUAL_RETURNS
        next_step = _ADVICE[main]
        if not rewarded:
            next_step = "No step was rewarded, so that no action can turn out better: see 'rewards'."
        elif main == EQUAL_RETURNS and final_rewards and gamma < LOW_GAMMA:
            next_step = (
                f"Rewards come at the end, and gamma {gamma:g} does not carry them back: raise it to 1 - 1/steps "
                "(seasoned.core.gamma_for_horizon)."
            )
        return finding_if(
            len(flat) > MAX_FLAT * len(spoken), name, seen, rule=rule, next_step=next_step, numbers=numbers
        )

    def check_abstention(self, *, recurs: bool, threshold: float) -> Check:
        """Whether memory abstains at most decisions, for want of neighbours, once it has been filled for a while."""
        name = "neighbours"
        rule = f"from the middle of the log on, memory abstains at most {MAX_ABSTAINED:.0%} of the decisions"
        late = self.shifts[len(self.shifts) // 2 :]
        silent = sum(shift.mode != "memory" for shift in late)
        middle = float(np.median([shift.n_steps for shift in late])) if late else None
        numbers: dict[str, Number] = {"decisions": len(late), "abstained": silent, "median_neighbors": middle}
        if len(late) < MIN_DECISIONS:
            return not_checked(name, f"{len(late)} decisions", f"{rule} (from {MIN_DECISIONS} on)", **numbers)
        next_step = (
            f"States come back, and still too few are similar: lower the threshold ({threshold:g}) or min_neighbors."
            if recurs
            else "States do not come back: see 'states that come back'."
        )
        return finding_if(
            silent > MAX_ABSTAINED * len(late),
            name,
            f"memory abstains at {share(silent, len(late), 'decisions')}; {middle:.0f} stored steps are near (median)",
            rule=rule,
            next_step=next_step,
            numbers=numbers,
        )

    def check_strangers(self) -> Check:
        """Whether what memory knows is about actions that are on offer."""
        name = "remembered actions on offer"
        rule = f"in the last third, at most {MAX_FLAT:.0%} of the nearest steps took an action not on offer now"
        recent = self.shifts[2 * len(self.shifts) // 3 :]
        listed, strangers = (sum(getattr(shift, of) for shift in recent) for of in ("listed", "strangers"))
        numbers: dict[str, Number] = {"steps": listed, "not_on_offer": strangers}
        if listed < MIN_DECISIONS:
            return not_checked(name, f"{listed} near steps", f"{rule} (from {MIN_DECISIONS} on)", **numbers)
        return finding_if(
            strangers > MAX_FLAT * listed,
            name,
            f"{share(strangers, listed, 'nearest steps')} took another action than those on offer",
            rule=rule,
            next_step="If actions changed, set the old episodes aside (seasoned memory quarantine --until TIME). If "
            "the model proposes few, let memory add what is possible: decide(..., admissible=...). If ids differ, name "
            "actions by what they do.",
            numbers=numbers,
        )


NO_CANDIDATE = "none of the candidates was ever taken"
ONE_ACTION = "only one of them was taken"
EQUAL_RETURNS = "what followed was all equal"
OTHER = "another reason"

_ADVICE = {
    NO_CANDIDATE: "What memory knows near these states is about other actions: name actions alike from run to run, or "
    "let memory add its own: decide(..., admissible=...).",
    ONE_ACTION: "One action alone cannot be compared: let the agent try others (an exploration setting), or lower the "
    "threshold so that more states are compared.",
    EQUAL_RETURNS: "No action turned out better than another there: reward what differs (progress, fewer steps), or "
    "raise gamma so that later rewards reach back.",
    OTHER: "See one: seasoned memory explain --episode ID --step N.",
}


def _shift(decision: Decision) -> Shift:
    values = [value for action, value in decision.values.items() if value is not None and decision.counts[action] > 0]
    offered = {normalize_action(action) for action in decision.probs}
    return Shift(
        mode=decision.mode,
        candidates=len(decision.probs),
        tried=sum(count > 0 for count in decision.counts.values()),
        flat=max(map(abs, decision.advantages.values())) <= ZERO,
        alike=len(values) >= 2 and max(values) - min(values) <= ZERO * max(1.0, *map(abs, values)),
        n_steps=decision.n_steps,
        kl_nats=decision.kl_nats,
        strangers=sum(normalize_action(near.experience.action) not in offered for near in decision.neighbors),
        listed=len(decision.neighbors),
    )


def _cause(shift: Shift) -> str:
    if shift.tried == 0:
        return NO_CANDIDATE
    if shift.tried == 1:
        return ONE_ACTION
    return EQUAL_RETURNS if shift.alike else OTHER


def check_flips(found: Audit) -> Check:
    """Whether following memory where it overruled the model turned out worse than not following it."""
    name = "flipped decisions"
    rule = "what followed memory's action is not worse than what followed the model's, by the 95 % interval"
    total = found.total
    numbers: dict[str, Number] = {
        "decisions": total.decisions,
        "flips": total.flips,
        "took_memory": total.took_memory,
        "took_base": total.took_base,
        "difference": None if total.difference is None else total.difference.mean,
        "low": None if total.difference is None else total.difference.low,
        "high": None if total.difference is None else total.difference.high,
    }
    seen = f"memory flips {share(total.flips, total.decisions, 'decisions')}"
    if total.difference is None:
        few = f"{seen}; its action was taken {total.took_memory} times, the model's {total.took_base} times"
        return not_checked(name, few, f"{rule} (from two episodes with each on)", **numbers)
    return finding_if(
        total.difference.high < 0.0,
        name,
        f"{seen}; return after memory's action less after the model's: {total.difference}",
        rule=rule,
        next_step="Ask for more evidence (min_neighbors, kappa) or a smaller shift (beta); seasoned memory audit shows "
        "at how many neighbours it goes wrong.",
        numbers=numbers,
    )


def check_loops(states: States, episodes: Sequence[Episode]) -> Check:
    """Whether the agent does the same thing in the same state again and again within an episode."""
    name = "loops"
    rule = (
        f"at most {MAX_LOOPED:.0%} of the steps repeat a state and action for the {LOOP}rd time or more in an episode"
    )
    looped: Counter[str] = Counter()
    steps = 0
    in_episodes = 0
    for features, episode in zip(states.features, episodes, strict=True):
        done: Counter[tuple[frozenset[str], str]] = Counter()
        before = looped.total()
        for feature, step in zip(features, episode.steps, strict=True):
            key = feature, normalize_action(step.action)
            done[key] += 1
            if done[key] >= LOOP:
                looped[step.action] += 1
        steps += len(episode.steps)
        in_episodes += looped.total() > before
    n = looped.total()
    worst, times = looped.most_common(1)[0] if looped else ("", 0)
    seen = f"{share(n, steps, 'steps')}, in {share(in_episodes, len(episodes), 'episodes')}"
    if worst:
        seen += f"; most often {worst[:60]!r}, {times} times"
    return finding_if(
        n >= MIN_LOOPED and n > MAX_LOOPED * steps,
        name,
        seen,
        rule=rule,
        next_step="Tell the state what was just done (seasoned.states.with_recent_actions), so that a second try looks "
        "different; let every step cost a little; end an episode that goes in circles as truncated.",
        numbers={
            "steps": steps,
            "looped": n,
            "episodes": len(episodes),
            "looped_episodes": in_episodes,
            "action": worst,
        },
    )
