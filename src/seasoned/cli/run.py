"""`seasoned run`: episodes of one environment, with learning from each."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from seasoned.agents import EpisodeResult, RunRecord, play_run
from seasoned.build import ALONE, METHODS, close_reader, make_policy, make_reader, open_env, open_memory
from seasoned.cli.format import run_display
from seasoned.cli.format.output import json_option, present, wants_json
from seasoned.cli.params import (
    encoder_option,
    env_option,
    example,
    model_option,
    model_settings,
    policy_option,
    seed_option,
    server_options,
)
from seasoned.envs.user_code import code_hashes
from seasoned.errors import ConfigError, NotFoundError, counted
from seasoned.llms import DEFAULT_VOTES, MENUS, Menu
from seasoned.memory import Memory
from seasoned.protocols import Chooser, Environment, PriorReader
from seasoned.states.encoder_names import named_encoder

__all__ = ["run"]


@click.command(
    epilog=example("seasoned run --env 'textworld:cooking?take=1&open=1&cut=1&seed=3&max_steps=20' --memory cook.db")
)
@env_option(required=True)
@model_option("uniform")
@policy_option(ALONE, text="Policy preset; base: the model alone, without memory.")
@click.option("--episodes", default=20, show_default=True, type=click.IntRange(1), help="Number of episodes in all.")
@click.option("--memory", type=click.Path(), help="Memory to use.  [default: OUT/memory.db]")
@click.option("--namespace", default=None, help="Namespace in the memory.  [default: the only one, or default]")
@encoder_option("For a new memory")
@seed_option
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder of the run's record.  [default: runs/NAME]"
)
@click.option(
    "--cache", type=click.Path(path_type=Path), help="File that caches model answers.  [default: OUT/answers.db]"
)
@click.option(
    "--reader",
    default="auto",
    show_default=True,
    type=click.Choice(METHODS),
    help="How the model's own policy is read; auto: the best way that its server allows.",
)
@click.option(
    "--calibrate/--no-calibrate",
    default=True,
    show_default=True,
    help="Correct for the model's preference for letters.",
)
@click.option(
    "--votes",
    default=DEFAULT_VOTES,
    show_default=True,
    type=click.IntRange(1),
    help="Samples for each reading by votes.",
)
@click.option(
    "--menu",
    default="list",
    show_default=True,
    type=click.Choice(MENUS),
    help="How the candidates are shown to a model that is read by exact.",
)
@server_options
@json_option
def run(
    env: str,
    model: str,
    policy: str,
    episodes: int,
    memory: str | None,
    namespace: str | None,
    encoder: str | None,
    seed: int,
    out: Path | None,
    cache: Path | None,
    reader: str,
    calibrate: bool,
    votes: int,
    menu: Menu,
    **model_options: Any,
) -> None:
    """Play an environment, and learn from each episode.

    Every episode is scored before it is stored. The record (settings, versions, every score, the model's cost) is
    written to OUT. The same command resumes an interrupted run: recorded episodes are not played again. A larger
    --episodes continues the run. Other settings, another model, or a memory without the recorded episodes are refused.
    After Ctrl-C the episode in flight is stored as aborted.
    """
    encoder_setting = {} if encoder is None else {"encoder": named_encoder(encoder)}
    environment = open_env(env)
    settings = {
        "env": environment.name,
        "model": model,
        "policy": policy,
        "seed": seed,
        "memory": memory,
        "namespace": namespace,
        "calibrate": calibrate,
    }
    if (reader, votes) != ("auto", DEFAULT_VOTES):  # a record made before these settings existed stays valid
        settings |= {"reader": reader, "votes": votes}
    if menu != "list":
        settings["menu"] = menu
    if encoder is not None:
        settings["encoder"] = encoder
    folder = out or Path("runs") / _name({**settings, "base_url": model_options["base_url"]})
    prior_reader = make_reader(
        model,
        method=reader,
        cache=cache or folder / "answers.db",
        calibrate=calibrate,
        n_votes=votes,
        menu=menu,
        **model_settings(model_options),
    )
    settings["model"] = prior_reader.name  # the exact model: `local` may be another one tomorrow
    console = run_display.Screen(stderr=wants_json(), markup=False)
    code = code_hashes([env])
    known = RunRecord(folder, settings, code) if RunRecord.is_in(folder) else None
    folder.mkdir(parents=True, exist_ok=True)
    with _open_memory(memory or str(folder / "memory.db"), namespace, known, encoder_setting) as learned:
        record = known or RunRecord(folder, settings, code)
        if record.results:
            played = counted(len(record.results), "episode")
            console.print(f"{folder} holds this run, with {played}: shown as recorded, not played again")
        try:
            asyncio.run(_play(environment, prior_reader, learned, policy, episodes, seed, record, console))
        except KeyboardInterrupt:
            console.print(f"interrupted after {counted(len(record.results), 'episode')}; the same command resumes")
            raise
    if wants_json():
        present({"settings": settings, "scores": record.scores, "folder": str(folder)})
    else:
        _report(record, environment, console, folder)


def _open_memory(path: str, namespace: str | None, known: RunRecord | None, encoder: Mapping[str, Any]) -> Memory:
    """Open the memory of a run; one with recorded episodes must exist already."""
    if known is None or not known.results:
        return open_memory(path, namespace=namespace, create=True, **encoder)
    try:
        return open_memory(path, namespace=namespace, **encoder)
    except NotFoundError as error:
        raise ConfigError(
            f"{error.seen} ({error.rule}), and {known.folder} has recorded {counted(len(known.results), 'episode')}",
            "a run resumes with the memory that holds its recorded episodes",
            "Restore that memory, or choose another folder to start again.",
        ) from error


def _name(settings: Mapping[str, object]) -> str:
    """Return a folder name for these settings, distinct by their hash."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    parts = (settings[key] for key in ("env", "model", "policy", "seed"))
    return re.sub(r"[^A-Za-z0-9.=-]+", "_", "-".join(map(str, parts)))[:100] + f"-{digest}"


async def _play(
    environment: Environment,
    reader: PriorReader | Chooser,
    memory: Memory,
    policy: str,
    episodes: int,
    seed: int,
    record: RunRecord,
    console: run_display.Screen,
) -> None:
    try:
        with run_display.progress(console, episodes) as advance:

            def report(number: int, result: EpisodeResult) -> None:
                played = f"{counted(result.steps, 'step')}, {counted(result.flips, 'flip')}"
                advance(f"episode {number + 1}: {result.score:g} points in {played}")

            await play_run(
                environment,
                make_policy(policy, memory),
                reader,
                memory=memory,
                episodes=episodes,
                seed=seed,
                record=record,
                arm=policy,
                progress=report,
            )
    finally:
        try:
            await environment.aclose()
        finally:
            await close_reader(reader)


def _report(record: RunRecord, environment: Environment, console: run_display.Screen, folder: Path) -> None:
    results = [record.results[number] for number in sorted(record.results)]
    top = f" of {environment.max_score:g}" if environment.max_score else ""
    console.print(run_display.learning_curve({"score": [record.scores]}))
    mean = sum(record.scores) / len(results)
    console.print(f"mean score {mean:.2f}{top} over {counted(len(results), 'episode')}; last {results[-1].score:g}")
    seconds = sum(result.seconds for result in results)
    decided = sum(result.decision_s for result in results)
    console.print(run_display.usage_text(record.usage, seconds) + f"; deciding took {decided:.1f} s of it")
    picture = run_display.save_plot({"score": [record.scores]}, "score", environment.max_score, folder / "scores.png")
    console.print(f"record in {folder}" + (f", plot in {picture}" if picture else ""))
