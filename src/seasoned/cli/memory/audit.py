"""`seasoned memory audit`: the decisions that memory flips, and how they turned out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from seasoned.cli.format.output import echo_fields, echo_json, echo_table, echo_text, number, one_line
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

if TYPE_CHECKING:
    from seasoned.lab.diagnosis.flip_audit import AuditedGroup, Flip, FlipAudit, FlipOutcome

__all__ = ["audit"]


@click.command(
    epilog=example("seasoned memory audit agent.db", "seasoned memory audit agent.db --last 200 --set min_neighbors=5")
)
@memory_argument
@preset_option
@set_option
@last_option
@click.option(
    "--flips",
    "shown",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="List the last N; --json has all.",
)
@seed_option
@namespace_option
@json_option
def audit(
    path: str,
    policy: str,
    settings: tuple[str, ...],
    last: int | None,
    shown: int,
    seed: int,
    namespace: str | None,
    as_json: bool,
) -> None:
    """List what memory flipped, and the outcomes.

    Every stored step is decided again on what was known before its episode. A decision is flipped if its likeliest
    action is another one with memory than without. The outcome is what followed the action that was taken in fact.
    """
    from seasoned.lab.diagnosis.flip_audit import audit as run

    make = policy_maker(policy, settings)
    found = reading(path, namespace, lambda memory: run(memory, make, last=last, seed=seed), needs_encoder=True)
    if as_json:
        echo_json(dataclasses.asdict(found))
        return
    _echo_audit(found, shown)


def _echo_audit(found: FlipAudit, shown: int) -> None:
    echo_fields(
        {
            "policy": f"{found.policy}, returns at gamma {found.gamma:g}",
            "decided": f"{counted(found.n_decisions, 'step')} of {counted(found.n_episodes, 'episode')}, each on what "
            "was known before",
            **{f"left out, {why}": counted(n, "step") for why, n in found.undecided.items()},
            "flipped": counted(found.total.flips, "decision")
            + (f"; and {found.ties} ties of the model broken" if found.ties else ""),
        }
    )
    for flip in found.flips[len(found.flips) - min(shown, len(found.flips)) :]:
        _echo_flip(flip)
    echo_text("\nby number of neighbours (stored steps near the state):")
    groups = [*found.groups, found.total]
    names = [*map(_range, found.groups), "all"]
    columns = ["neighbours", "decisions", "flips", "took memory's", "model's", "another"]
    rows = [
        [name, *map(str, (g.decisions, g.flips, g.took_memory, g.took_base, g.took_other))]
        for name, g in zip(names, groups, strict=True)
    ]
    echo_table(columns, rows, right=columns)
    if not found.flips:
        return
    echo_text("\nmean return after a flip, where the action taken was:")
    outcomes = [row for name, g in zip(names, groups, strict=True) if g.flips for row in _outcome_rows(name, g)]
    columns = ["neighbours", "taken", "flips", "episodes", "mean", "95% interval"]
    echo_table(columns, outcomes, right=("neighbours", "flips", "episodes", "mean", "95% interval"))
    echo_paragraph(
        "Each episode counts once. States and times differ between the two as well, not only the action: "
        "seasoned memory evaluate weighs by propensities.",
        "",
    )


def _echo_flip(flip: Flip) -> None:
    took = {"memory": "memory's action", "base": "the model's action"}.get(
        flip.took, repr(one_line(flip.taken_action, 40))
    )
    echo_text(f"\n{one_line(flip.episode_id, 60)} step {flip.step}: taken was {took}")
    echo_text(f"  model's   {one_line(flip.base_action, 66)}\n  memory's  {one_line(flip.memory_action, 66)}")
    echo_text(
        f"  {counted(flip.n_neighbors, 'step')} near, A {flip.advantage:+.3f}, KL {flip.kl_nats:.3f} nats, "
        f"return {number(flip.return_)}"
    )


def _range(group: AuditedGroup) -> str:
    if group.most is None:
        return f"{group.least}+"
    return str(group.least) if group.least == group.most else f"{group.least}-{group.most}"


def _outcome_rows(name: str, group: AuditedGroup) -> list[list[str]]:
    def row(taken: str, outcome: FlipOutcome) -> list[str]:
        n = str(outcome.n_steps), str(outcome.n_episodes)
        return [name, taken, *n, "-" if outcome.mean is None else as_read(outcome.mean), bounds(outcome.interval)]

    rows = [row("memory's", group.after_memory), row("model's", group.after_base)]
    if group.difference is not None:
        rows.append([name, "difference", "", "", as_read(group.difference.mean, "+.4g"), bounds(group.difference)])
    return rows
