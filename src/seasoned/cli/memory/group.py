"""`seasoned memory`: look into a memory, and tell it how things turned out."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Any

import click

from seasoned.cli.format.encoder_text import encoder_shown
from seasoned.cli.format.json_records import episode_detail, episode_summary, neighbor_record
from seasoned.cli.format.output import echo_fields, echo_json, echo_table, echo_text, number, one_line
from seasoned.cli.format.suggestions import none_like
from seasoned.cli.memory.common_options import (
    example,
    find_episode,
    json_option,
    memory_argument,
    namespace_option,
    reading,
    state_text,
)
from seasoned.cli.memory.diagnosis import audit, doctor, drift, evaluate
from seasoned.cli.memory.explain import explain
from seasoned.cli.memory.export import export
from seasoned.cli.memory.feedback import feedback, notes, revoke
from seasoned.cli.memory.forks import fork, import_harbor, promote, roll_back
from seasoned.cli.memory.import_ import import_
from seasoned.cli.memory.judge import judge
from seasoned.cli.memory.migrate import migrate
from seasoned.cli.memory.retention import erase, prune, quarantine, quarantines, release
from seasoned.cli.memory.sources import reweight, sources
from seasoned.cli.memory.whole_store import backup, compact, diff, merge, restore
from seasoned.errors import counted
from seasoned.memory import Memory
from seasoned.memory.values.events import Event
from seasoned.memory.verify import Verification

__all__ = ["memory"]


@click.group(epilog=example("seasoned memory stats agent.db"))
def memory() -> None:
    """Look into a memory, and tell it how things turned out.

    MEMORY is a file, or postgresql://... for a shared store. An episode is named by its id or by the start of it.
    Nothing is made by a misspelt name.
    """


for command in (
    audit,
    backup,
    compact,
    diff,
    doctor,
    drift,
    erase,
    evaluate,
    explain,
    export,
    feedback,
    fork,
    import_,
    import_harbor,
    judge,
    merge,
    migrate,
    notes,
    promote,
    prune,
    quarantine,
    quarantines,
    release,
    restore,
    revoke,
    reweight,
    roll_back,
    sources,
):
    memory.add_command(command)


@memory.command(epilog=example("seasoned memory stats agent.db --json"))
@memory_argument
@namespace_option
@json_option
def stats(path: str, namespace: str | None, as_json: bool) -> None:
    """Show what a namespace holds.

    The mean reward is over the episodes that are evidence: none that is aborted, quarantined or still waiting.
    """
    found = dataclasses.asdict(reading(path, namespace, lambda memory: memory.stats()))
    if as_json:
        echo_json(found)
        return
    n = counted(found.pop("mean_over_episodes"), "episode")
    shown = {name: number(value) if isinstance(value, float) else value for name, value in found.items()}
    shown["encoder"] = encoder_shown(found["encoder"])
    if found["mean_episode_reward"] is not None:
        shown["mean_episode_reward"] = f"{number(found['mean_episode_reward'])}, over {n} (see --help)"
    echo_fields(shown)


@memory.command(epilog=example("seasoned memory namespaces agent.db"))
@memory_argument
@json_option
def namespaces(path: str, as_json: bool) -> None:
    """List the namespaces of a file, each with its encoder."""
    found = Memory.namespaces(path)
    if as_json:
        echo_json({"namespaces": [{"namespace": name, "encoder": encoder} for name, encoder in found.items()]})
        return
    echo_table(["namespace", "encoder"], [[one_line(name), encoder_shown(encoder)] for name, encoder in found.items()])


@memory.command("list", epilog=example("seasoned memory list agent.db --task checkout --last 20"))
@memory_argument
@click.option("--task", metavar="TASK", help="Only episodes of this task.")
@click.option("--last", type=int, metavar="N", help="Only the last N.")
@namespace_option
@json_option
def list_(path: str, task: str | None, last: int | None, namespace: str | None, as_json: bool) -> None:
    """List episodes, the oldest first.

    The reward is in total, feedback included.
    """

    def ask(memory: Memory) -> list[dict[str, Any]] | str:
        said: defaultdict[str, list[Event]] = defaultdict(list)
        for event in memory.events():
            said[event.episode_id].append(event)
        aside = memory.excluded_ids()
        found = [episode_summary(e, said[str(e.id)], aside) for e in memory.episodes(task=task, last=last)]
        return found if found or task is None or as_json else none_like(memory, "task", task)

    found = reading(path, namespace, ask)
    if as_json:
        echo_json({"episodes": found})
        return
    if isinstance(found, str):
        echo_text(found)
        return
    rows = [
        [
            e["id"],
            one_line(e["task"], 40),
            "quarantined" if e["quarantined"] else e["ending"],
            str(e["steps"]),
            number(e["total_reward"]),
            e["model"] or "-",
            e["policy"] or "-",
        ]
        for e in found
    ]
    echo_table(["id", "task", "ending", "steps", "reward", "model", "policy"], rows, right=("steps", "reward"))


@memory.command(epilog=example("seasoned memory show agent.db 4f2a"))
@memory_argument
@click.argument("episode_id")
@namespace_option
@json_option
def show(path: str, episode_id: str, namespace: str | None, as_json: bool) -> None:
    """Show an episode: its steps, rewards and feedback.

    States are cut to a line; --json has them whole.
    """

    def ask(memory: Memory) -> dict[str, Any]:
        episode = find_episode(memory, episode_id)
        return episode_detail(episode, memory.events(episode.id), memory.excluded_ids())

    found = reading(path, namespace, ask)
    if as_json:
        echo_json(found)
        return
    fields = {name: found[name] for name in ("id", "task", "ending", "model", "policy", "arm", "subject")}
    rewards = {name.replace("_", " "): number(found[name]) for name in ("reward", "feedback", "total_reward")}
    aside = {"quarantined": "yes: it is not found, and counts as no evidence"} if found["quarantined"] else {}
    echo_fields({name: value for name, value in fields.items() if value is not None} | aside | rewards)
    echo_text("")
    steps = [
        [str(s["step"]), one_line(s["action"], 40), number(s["reward"]), number(s["feedback"]), one_line(s["state"])]
        for s in found["steps"]
    ]
    echo_table(["step", "action", "reward", "feedback", "state"], steps, right=("step", "reward", "feedback"))
    if found["final_state"] is not None:
        echo_text(f"\nfinal state  {one_line(found['final_state'])}")
    if found["events"]:
        echo_text("")
        events = [
            [
                str(e["step"]),
                number(e["reward"]),
                number(e["weight"]),
                one_line(e["source"], 20),
                one_line(e["author"] or "-", 20),
                _standing(e),
                e["id"],
            ]
            for e in found["events"]
        ]
        columns = ["step", "reward", "weight", "source", "author", "standing", "event"]
        echo_table(columns, events, right=("step", "reward", "weight"))


def _standing(event: dict[str, Any]) -> str:
    if event["quarantined"]:
        return "quarantined"
    if event["revoked_at"] is None:
        return "counts"
    return "revoked" if event["superseded_by"] is None else "superseded"


@memory.command(epilog=example('seasoned memory search agent.db "page:cart total:12" -k 5 --threshold 0.5'))
@memory_argument
@click.argument("state")
@click.option("-k", type=int, default=10, show_default=True, help="At most this many stored steps.")
@click.option("--threshold", type=float, default=0.8, show_default=True, help="Least similarity (Jaccard), in [0, 1].")
@click.option("--gamma", type=float, help="Discount of the returns, in [0, 1]. Default: the memory's own.")
@namespace_option
@json_option
def search(
    path: str, state: str, k: int, threshold: float, gamma: float | None, namespace: str | None, as_json: bool
) -> None:
    """Find the stored steps most like STATE.

    Best first. STATE `-` reads it from stdin.
    """
    text = state_text(state)

    def ask(memory: Memory) -> dict[str, Any]:
        found = memory.search(text, k, threshold, gamma=gamma)
        return {
            "state": text,
            "gamma": memory.gamma if gamma is None else gamma,
            "neighbors": [neighbor_record(neighbor) for neighbor in found],
        }

    found = reading(path, namespace, ask)
    if as_json:
        echo_json(found)
        return
    if not found["neighbors"]:
        echo_text(f"no stored step is at least {threshold:g} similar; a lower --threshold finds more")
        return
    rows = [
        [
            format(n["similarity"], ".3f"),
            number(n["return"]),
            one_line(n["action"], 40),
            n["episode_id"],
            str(n["step"]),
            one_line(n["state"]),
        ]
        for n in found["neighbors"]
    ]
    columns = ["similarity", "return", "action", "episode", "step", "state"]
    echo_table(columns, rows, right=("similarity", "return", "step"))


@memory.command(epilog=example("seasoned memory verify agent.db"))
@memory_argument
@namespace_option
@json_option
def verify(path: str, namespace: str | None, as_json: bool) -> None:
    """Check that the file is whole.

    What is derived is derived again, what is raw is hashed: equal content has equal hashes, in any file. All
    namespaces, unless one is named.
    """
    names = list(Memory.namespaces(path)) if namespace is None else [namespace]

    def ask(memory: Memory) -> Verification:
        return memory.verify()

    found = [reading(path, name, ask, needs_encoder=True) for name in names]
    if as_json:
        echo_json({"namespaces": [dataclasses.asdict(one) for one in found]})
        return
    columns = ["namespace", "episodes", "steps", "states", "feedback"]
    rows = [[one_line(v.namespace, 40), str(v.episodes), str(v.steps), str(v.states), str(v.feedback)] for v in found]
    echo_table(columns, rows, right=("episodes", "steps", "states", "feedback"))
    for v in found:
        echo_text(f"{v.hash}  {one_line(v.namespace, 40)}")
    echo_text("the memory is whole" if found else "there are no namespaces")
