"""`seasoned demo`: the same frozen model plays the same game with and without memory."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seasoned.agents import EpisodeResult, compare_curves, play_run, provenance
from seasoned.build import close_reader, make_policy, make_reader, open_env
from seasoned.cli.format import run_display
from seasoned.cli.params import env_option, example, model_option, model_settings, policy_option, server_options
from seasoned.errors import InputError, ReadOnlyStoreError, counted, excerpt
from seasoned.memory import Memory
from seasoned.memory.namespace import names_in_file
from seasoned.policies import ShuffledReturns
from seasoned.protocols import Chooser, Environment, PriorReader, Usage

__all__ = ["DEMO_ENV", "demo"]

# Of TextWorld's cooking games with these options and seeds 11 to 20, this one needs the fewest model tokens: the fewest
# words over the situations that 60 episodes of random play reach. It was chosen before any model had played it.
DEMO_ENV = (
    "textworld:cooking?take=1&open=1&cut=1&seed=14&max_steps=20&exclude=close,drop,examine,insert,inventory,look,put"
)
MIN_SEEDS = 10
MIN_EPISODES = 20
CALIBRATE = True


@click.command(epilog=example("seasoned demo --placebo"))
@click.option("--placebo", is_flag=True, help="Shuffle the stored returns; the gain must vanish.")
@env_option(default=DEMO_ENV, show_default="a TextWorld game")
@model_option("uniform")
@policy_option()
@click.option(
    "--seeds", default=MIN_SEEDS, show_default=True, type=click.IntRange(2), help="Independent learning runs."
)
@click.option(
    "--episodes",
    default=40,
    show_default=True,
    type=click.IntRange(4),
    help="Episodes of each run; a multiple of four.",
)
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the results.",
)
@server_options
def demo(
    placebo: bool, env: str, model: str, policy: str, seeds: int, episodes: int, out: Path, **model_options: Any
) -> None:
    """Watch a frozen language model get better at a game.

    Plays a TextWorld game on several seeds, with memory and without; each episode is scored before it is stored. Prints
    mean scores by block of episodes with intervals over seeds, and writes OUT/result.json (OUT/placebo.json with
    --placebo), a plot, and the memory, which `seasoned memory explain` reads. The model's answers are cached in
    OUT/answers.db: a second run does not ask again. The memory of an earlier demo is replaced; any other memory is
    refused.
    """
    if episodes % 4:
        raise InputError(f"episodes = {episodes}", "episodes must divide into four equal blocks", "Try 40.")
    console = run_display.Screen(markup=False)
    kind = "placebo" if placebo else "memory"
    path = out / f"{kind}.db"
    environment = open_env(env)
    _check_replaceable(path)
    reader = make_reader(model, cache=out / "answers.db", calibrate=CALIBRATE, **model_settings(model_options))
    out.mkdir(parents=True, exist_ok=True)
    console.print(run_display.heading(f"model  {reader.name}\ngame   {environment.name}\ntask   {environment.task}"))
    start = time.perf_counter()
    scores, usage = asyncio.run(_play(environment, reader, console, policy, placebo, seeds, episodes, path))
    comparison = compare_curves(scores[kind], scores["alone"])
    console.print(run_display.comparison_table(comparison, kind, environment.max_score, episodes))
    console.print(run_display.learning_curve({kind: scores[kind], "alone": scores["alone"]}))
    console.print(run_display.usage_text(usage, time.perf_counter() - start))
    name = "placebo" if placebo else "result"
    result = {
        "model": reader.name,
        "env": environment.name,
        "policy": policy,
        "calibrate": CALIBRATE,
        "seeds": seeds,
        "episodes": episodes,
        "with_minus_without": run_display.interval_json(comparison.with_minus_without),
        "last_minus_first_quarter": run_display.interval_json(comparison.last_minus_first),
        "max_score": environment.max_score,
        "placebo": placebo,
        "scores": scores,
        "usage": dataclasses.asdict(usage),
        **provenance(),
    }
    (out / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    picture = run_display.save_plot(scores, kind, environment.max_score, out / f"{name}.png")
    console.print(f"wrote {out / f'{name}.json'}" + (f" and {picture}" if picture else ""))
    if not placebo:
        console.print(f"look inside: seasoned memory explain {out / 'memory.db'} --namespace seed-0")


def _check_replaceable(path: Path) -> None:
    """Refuse to replace a file that no demo wrote.

    Raises:
        InputError: it is another memory.
        StoreError: it is no memory.
    """
    if not path.exists():
        return
    try:
        names = list(Memory.namespaces(path))
    except ReadOnlyStoreError:  # of an earlier version: read without migrating it
        names = names_in_file(path)
    others = [name for name in names if not re.fullmatch(r"seed-\d+", name)]
    if others:
        raise InputError(
            f"{path} holds the namespace {excerpt(others[0])}",
            "only the memory of an earlier demo is replaced; its namespaces are seed-0, seed-1, ...",
            "Choose another --out; this file is unchanged.",
        )


async def _play(
    environment: Environment,
    reader: PriorReader | Chooser,
    console: run_display.Screen,
    policy: str,
    placebo: bool,
    seeds: int,
    episodes: int,
    path: Path,
) -> tuple[dict[str, list[list[float]]], Usage]:
    """Return scores by arm, seed and episode, and the usage. Each run starts with an empty namespace of one file."""
    kind = "placebo" if placebo else "memory"
    scores: dict[str, list[list[float]]] = {"alone": [], kind: []}
    usage = Usage()
    try:
        if path.exists():
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        with run_display.progress(console, 2 * seeds * episodes) as advance:
            for seed in range(seeds):
                for arm, table in scores.items():
                    with Memory.open(path, namespace=f"seed-{seed}") as memory:
                        source: Any = ShuffledReturns(memory, seed) if placebo else memory
                        results = await play_run(
                            environment,
                            make_policy("base" if arm == "alone" else policy, source),
                            reader,
                            memory=None if arm == "alone" else memory,
                            episodes=episodes,
                            seed=seed,
                            run_id=f"demo-{seed}",
                            arm=arm,
                            progress=_report(advance, arm, seed),
                        )
                    table.append([result.score for result in results])
                    usage = sum((result.usage for result in results), usage)
    finally:
        try:
            await environment.aclose()
        finally:
            await close_reader(reader)
    return scores, usage


def _report(advance: Callable[[str], None], arm: str, seed: int) -> Callable[[int, EpisodeResult], None]:
    def report(episode: int, result: EpisodeResult) -> None:
        advance(
            f"seed {seed}, {arm:<7} episode {episode + 1}: {result.score:g} points in {counted(result.steps, 'step')}"
        )

    return report
