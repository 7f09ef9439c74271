"""`seasoned run`: play an environment for some episodes, learning or not."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from seasoned.agents import EpisodeResult, RunRecord, play_run
from seasoned.build import ALONE, METHODS, close_reader, make_policy, make_reader, open_env, open_memory
from seasoned.cli.format import run_display
from seasoned.envs.user_code import code_hashes
from seasoned.errors import ConfigError, NotFoundError, counted
from seasoned.llms import DEFAULT_VOTES, LLM_SPECIFICATIONS, MENUS, Menu
from seasoned.memory import Memory
from seasoned.policies import PRESETS
from seasoned.protocols import Chooser, Environment, PriorReader
from seasoned.states.encoder_names import named_encoder

__all__ = ["model_options", "model_settings", "run"]

_POLICIES = (ALONE, *sorted(PRESETS))
_MODEL_OPTIONS = (
    click.option("--base-url", metavar="URL", help="Of an OpenAI-compatible server, with its version path."),
    click.option(
        "--usd-per-million-prompt-tokens",
        type=float,
        metavar="USD",
        help="The model's price; with both, cost is known.",
    ),
    click.option("--usd-per-million-completion-tokens", type=float, metavar="USD", help="The model's other price."),
)


def model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say where its model is and what it costs; see `model_settings`."""
    for option in reversed(_MODEL_OPTIONS):
        command = option(command)
    return command


def model_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the options that were given: a kind of model that does not have one refuses it."""
    return {name: value for name, value in given.items() if value is not None}


@click.command(
    epilog="Example: seasoned run --env 'textworld:cooking?take=1&open=1&cut=1&seed=3&max_steps=20' --memory cook.db"
)
@click.option("--env", "spec", required=True, help="textworld:..., grid:..., bandit:... or python:MODULE:CALLABLE.")
@click.option("--model", default="local", show_default=True, help=f"{', '.join(LLM_SPECIFICATIONS)} or uniform.")
@click.option("--policy", default="default", show_default=True, type=click.Choice(_POLICIES), help="base: no memory.")
@click.option("--episodes", default=20, show_default=True, type=click.IntRange(1), help="How many in all.")
@click.option("--memory", "path", type=click.Path(), help="Memory file.  [default: OUT/memory.db]")
@click.option("--namespace", default=None, help="Namespace in the memory.  [default: the only one, or default]")
@click.option(
    "--encoder",
    "encoder_spec",
    metavar="ENCODER",
    help="How states are compared, in a memory that is made: words (the default); masked (numbers, ids and times "
    "hidden); or an identity, as `seasoned memory namespaces` prints it.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the run.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder of the run's record.  [default: runs/NAME]"
)
@click.option("--cache", type=click.Path(path_type=Path), help="File of model answers.  [default: OUT/answers.db]")
@click.option(
    "--reader",
    "method",
    default="auto",
    show_default=True,
    type=click.Choice(METHODS),
    help="How the model's own policy is read; auto: the best that it allows.",
)
@click.option("--calibrate/--no-calibrate", default=True, show_default=True, help="Divide out letter preference.")
@click.option(
    "--votes", "n_votes", default=DEFAULT_VOTES, show_default=True, type=click.IntRange(1), help="Samples a reading."
)
@click.option(
    "--menu",
    default="list",
    show_default=True,
    type=click.Choice(MENUS),
    help="How a model that is read by exact is shown the candidates.",
)
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
def run(
    spec: str,
    model: str,
    policy: str,
    episodes: int,
    path: str | None,
    namespace: str | None,
    encoder_spec: str | None,
    seed: int,
    out: Path | None,
    cache: Path | None,
    method: str,
    calibrate: bool,
    n_votes: int,
    menu: Menu,
    as_json: bool,
    **about_model: Any,
) -> None:
    """Play an environment, and learn from each finished episode.

    Every episode is scored before it is stored. The record (settings, versions, every score, what the model cost) goes
    to OUT. The same command again resumes a run that was broken off: what is recorded is not played again. With more
    --episodes it goes on. Other settings, another model, or a memory without the recorded episodes are refused. After
    Ctrl-C the episode in flight is kept in memory, marked aborted.
    """
    encoder = {} if encoder_spec is None else {"encoder": named_encoder(encoder_spec)}
    environment = open_env(spec)
    settings = {
        "env": environment.name,
        "model": model,
        "policy": policy,
        "seed": seed,
        "memory": path,
        "namespace": namespace,
        "calibrate": calibrate,
    }
    if (method, n_votes) != ("auto", DEFAULT_VOTES):  # a run from before there was a choice goes on
        settings |= {"reader": method, "votes": n_votes}
    if menu != "list":
        settings["menu"] = menu
    if encoder_spec is not None:
        settings["encoder"] = encoder_spec
    folder = out or Path("runs") / _name({**settings, "base_url": about_model["base_url"]})
    reader = make_reader(
        model,
        method=method,
        cache=cache or folder / "answers.db",
        calibrate=calibrate,
        n_votes=n_votes,
        menu=menu,
        **model_settings(about_model),
    )
    settings["model"] = reader.name  # which model it was, and where: `local` can be another one tomorrow
    console = run_display.Screen(stderr=as_json, markup=False)
    code = code_hashes([spec])
    known = RunRecord(folder, settings, code) if RunRecord.is_in(folder) else None
    folder.mkdir(parents=True, exist_ok=True)
    with _open_memory(path or str(folder / "memory.db"), namespace, known, encoder) as memory:
        record = known or RunRecord(folder, settings, code)
        if record.results:
            played = counted(len(record.results), "episode")
            console.print(f"{folder} holds this run, with {played}: shown as recorded, not played again")
        try:
            asyncio.run(_play(environment, reader, memory, policy, episodes, seed, record, console))
        except KeyboardInterrupt:
            console.print(f"interrupted after {counted(len(record.results), 'episode')}; the same command goes on")
            raise
    if as_json:
        click.echo(json.dumps({"settings": settings, "scores": record.scores, "folder": str(folder)}))
    else:
        _report(record, environment, console, folder)


def _open_memory(path: str, namespace: str | None, known: RunRecord | None, encoder: Mapping[str, Any]) -> Memory:
    """A run that has recorded episodes goes on with the memory that they are in: no empty one is made for it."""
    if known is None or not known.results:
        return open_memory(path, namespace=namespace, create=True, **encoder)
    try:
        return open_memory(path, namespace=namespace, **encoder)
    except NotFoundError as error:
        raise ConfigError(
            f"{error.seen} ({error.rule}), and {known.folder} has recorded {counted(len(known.results), 'episode')}",
            "a run goes on with the memory that its recorded episodes are in",
            "Bring that memory back, or choose another folder and begin anew.",
        ) from error


def _name(settings: Mapping[str, object]) -> str:
    """Names the run's folder: other settings, another name, whatever is cut off."""
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
    console.print(run_display.usage_line(record.usage, seconds) + f"; deciding took {decided:.1f} s of it")
    picture = run_display.save_plot({"score": [record.scores]}, "score", environment.max_score, folder / "scores.png")
    console.print(f"record in {folder}" + (f", plot in {picture}" if picture else ""))
