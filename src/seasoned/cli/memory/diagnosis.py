"""`seasoned memory doctor`, `evaluate`, `drift`: whether memory helps, and what to change."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import TYPE_CHECKING

import click

from seasoned.cli.format.output import PIPE_WIDTH, echo_fields, echo_json, echo_text, one_line
from seasoned.cli.memory.audit import audit
from seasoned.cli.memory.common_options import example, json_option, memory_argument, namespace_option, reading
from seasoned.cli.memory.replay_options import (
    as_read,
    bounds,
    echo_paragraph,
    last_option,
    policy_maker,
    preset_option,
    seed_option,
    set_option,
)
from seasoned.errors import counted
from seasoned.memory import Memory
from seasoned.policies import PRESETS

if TYPE_CHECKING:
    from seasoned.core import Interval
    from seasoned.lab.diagnosis.check_result import CheckResult
    from seasoned.lab.diagnosis.doctor import Diagnosis
    from seasoned.lab.diagnosis.drift import Drift
    from seasoned.lab.diagnosis.policy_evaluation import PolicyEvaluation

__all__ = ["audit", "doctor", "drift", "evaluate"]


# ---------------------------------------------------------------------------------------------- doctor


@click.command(epilog=example("seasoned memory doctor agent.db", "seasoned memory doctor agent.db --last 500 --json"))
@memory_argument
@preset_option
@last_option
@seed_option
@namespace_option
@json_option
def doctor(path: str, policy: str, last: int | None, seed: int, namespace: str | None, as_json: bool) -> None:
    """Diagnose a memory, and say what to change.

    Ends with 0 whether or not something was found; programs read --json. Nothing is written.
    """
    from seasoned.lab.diagnosis.doctor import diagnose

    def ask(memory: Memory) -> Diagnosis:
        return diagnose(memory, policy=policy, last=last, seed=seed)

    found = reading(path, namespace, ask, needs_encoder=True)
    if as_json:
        echo_json({"healthy": found.healthy, **dataclasses.asdict(found)})
        return
    n = len(found.findings)
    about = f"{counted(found.n_episodes, 'episode')}, as the policy {found.policy!r} uses them"
    echo_text(f"{'healthy' if found.healthy else counted(n, 'finding')}: {about}")
    for title, verdict in (("", "finding"), ("fine:", "fine"), ("too little to say:", "not checked")):
        checks = [check for check in found.checks if check.verdict == verdict]
        if checks and title:
            echo_text(f"\n{title}")
        for check in checks:
            _echo_check(check)


def _echo_check(check: CheckResult) -> None:
    if check.next_step is None:
        echo_paragraph(f"{check.name}: {check.seen}", "  ")
        return
    echo_text("")
    echo_paragraph(f"! {check.name}", "")
    for name, text in (("seen", check.seen), ("rule", check.rule), ("do", check.next_step)):
        lines = textwrap.wrap(text, PIPE_WIDTH - 9)
        for i, line in enumerate(lines):
            echo_text(f"  {name if i == 0 else '':<4}  {line}")


# ---------------------------------------------------------------------------------------------- evaluate


@click.command(
    epilog=example(
        "seasoned memory evaluate agent.db --policy seed",
        "seasoned memory evaluate agent.db --set beta=2 --set threshold=0.9 --one-step",
    )
)
@memory_argument
@click.option(
    "--policy",
    default="default",
    show_default=True,
    type=click.Choice(["base", *sorted(PRESETS)]),
    help="Whose value; `base` is the model alone.",
)
@set_option
@click.option("--one-step", is_flag=True, help="Change one decision at a time, then go on as before.")
@click.option("--gamma", type=float, default=1.0, show_default=True, help="Discount of the value; 1: total reward.")
@click.option("--min-effective", type=float, default=10.0, show_default=True, help="Least effective sample size.")
@last_option
@seed_option
@namespace_option
@json_option
def evaluate(
    path: str,
    policy: str,
    settings: tuple[str, ...],
    one_step: bool,
    gamma: float,
    min_effective: float,
    last: int | None,
    seed: int,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Estimate a setting from stored episodes.

    What it would have earned, by weighted importance sampling: every stored decision is made again on what was
    known before its episode, and weighed by the probability of its action now over the one at which it was taken.
    Refused (exit code 2) where the effective sample size is too small to say, or the mean ratio is off 1: the log
    then lacks what the setting would do.
    """
    from seasoned.lab.diagnosis.policy_evaluation import evaluate as run

    make = policy_maker(policy, settings)

    def ask(memory: Memory) -> PolicyEvaluation:
        return run(
            memory,
            make,
            estimator="one-step" if one_step else "sequence",
            last=last,
            gamma=gamma,
            min_effective=min_effective,
            seed=seed,
        )

    found = reading(path, namespace, ask, needs_encoder=True)
    if as_json:
        echo_json(dataclasses.asdict(found))
        return
    estimate = found.estimate
    of = counted(found.n_steps, "step") if one_step else counted(found.n_episodes, "episode")
    measured = "return from a step on, that decision alone changed" if one_step else "total reward per episode"
    echo_fields(
        {
            "policy": found.policy,
            "measured": f"{measured}, gamma {found.gamma:g}",
            "value": f"{as_read(estimate.value.mean)} {bounds(estimate.value)}",
            "as played": f"{as_read(estimate.behavior)}, of the episodes used",
            "difference": f"{as_read(estimate.difference.mean, '+.4g')} {bounds(estimate.difference)}",
            "from": f"{counted(found.n_episodes, 'episode')}, {counted(found.n_steps, 'step')}; worth "
            f"{estimate.effective:.3g} episodes (effective sample size)",
            "mean ratio": f"{found.mean_ratio:.3g} (1 if the log holds what the policy would do)",
            **(
                {"never taken": f"{found.untaken_share:.2%} of what it would do, over {of}; the intervals allow for it"}
                if found.untaken_share
                else {}
            ),
            **{f"left out, {why}": counted(n, "episode") for why, n in found.left_out.items()},
        }
    )
    echo_paragraph(
        f"Intervals at {estimate.value.level:.0%}, by bootstrap over episodes. The policy learns from the stored "
        "episodes; what its own would have taught is in no log.",
        "",
    )


# ---------------------------------------------------------------------------------------------- drift


@click.command(epilog=example("seasoned memory drift agent.db --recent 50"))
@memory_argument
@click.option("--recent", type=int, metavar="N", help="A task's last N are recent. Default: the last third.")
@click.option("--min-episodes", type=int, default=10, show_default=True, help="Least recent and least older ones.")
@seed_option
@namespace_option
@json_option
def drift(path: str, recent: int | None, min_episodes: int, seed: int, namespace: str | None, as_json: bool) -> None:
    """Compare recent returns with older ones.

    A test for each task, by permutation, adjusted for the number of tasks. Refused (exit code 2) where no task has
    enough episodes. Agents that learn rise; what falls no longer fits.
    """
    from seasoned.lab.diagnosis.drift import drift as run

    def ask(memory: Memory) -> Drift:
        return run(memory, recent=recent, min_episodes=min_episodes, seed=seed)

    found = reading(path, namespace, ask)
    if as_json:
        echo_json(dataclasses.asdict(found))
        return
    for one in found.tasks:
        if one.difference is None:
            continue
        echo_text(one_line(one.task, PIPE_WIDTH - 1))
        echo_text(f"  older   {_mean(one.older)} in {counted(one.n_older, 'episode')}")
        echo_text(f"  recent  {_mean(one.recent)} in {counted(one.n_recent, 'episode')}")
        change = f"{as_read(one.difference.mean, '+.4g')} {bounds(one.difference)}"
        echo_text(f"  {one.verdict}: {change}, adjusted p = {one.adjusted:.2g}\n")
    few = sum(one.difference is None for one in found.tasks)
    if few:
        echo_text(f"{counted(few, 'task')} not tested: too few episodes\n")
    echo_paragraph(
        "p by permutation, adjusted for the number of tasks (Holm); it fell or rose where p is at most "
        f"{found.level:g}. Tested from {found.min_episodes} episodes in each group on.",
        "",
    )


def _mean(interval: Interval | None) -> str:
    return "-" if interval is None else f"{as_read(interval.mean)} {bounds(interval)}"
