"""`seasoned lab`: experiments and their reports."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

from seasoned.checks import suggest
from seasoned.cli.exit_codes import exit_code
from seasoned.cli.format import run_display
from seasoned.cli.format.output import json_option, present, printable, wants_json
from seasoned.cli.params import example
from seasoned.errors import InputError, SeasonedError
from seasoned.lab.analysis.experiment_comparison import compare_experiments
from seasoned.lab.analysis.findings import AuditedArms
from seasoned.lab.analysis.result_text import WIDTH, plural
from seasoned.lab.report.report import write_report
from seasoned.lab.results.run_results import ExperimentResults, load_results, planned_episodes
from seasoned.lab.runner.experiment import Experiment
from seasoned.lab.suites.suite import ExperimentBudget, Suite
from seasoned.lab.suites.suite_toml import MAX_SEEDS, load_suite, read_suite, suite_names
from seasoned.registry import load_extra

__all__ = ["lab"]

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group()
def lab() -> None:
    """Run experiments: arms, tasks and seeds, with a report.

    An experiment plays a suite of tasks and arms, and records the results in a folder. It can be interrupted at any
    moment, and continued by resume.
    """


@lab.command("list")
def list_suites() -> None:
    """List the built-in suites."""
    screen = _screen()
    for name in suite_names():
        suite = load_suite(name)
        screen.print(f"{name}: {suite.about}")
        sizes = [(len(suite.tasks), "task"), (len(suite.arms), "arm"), (len(suite.seeds), "seed")]
        episodes = sum(planned_episodes(suite, run) for run in suite.runs())
        size = ", ".join(plural(n, what) for n, what in sizes)
        screen.print(f"  {size}; {plural(episodes, 'episode')}, model {suite.model}")


def _workers(ctx: click.Context, parameter: click.Parameter, value: str) -> int | str:
    """Return a number of processes, or `ray`; a wrong value is refused before anything is printed or written."""
    if value == "ray":
        load_extra("ray", "ray")
        return value
    if not value.isdecimal() or not 1 <= int(value) <= 1024:
        raise InputError(f"--workers {value}", "it must be a number of processes, or ray", "Try 2.")
    return int(value)


_AUDIT = click.option(
    "--audit",
    default="ours",
    show_default=True,
    type=click.Choice(get_args(AuditedArms)),
    help="Arms whose flipped decisions are audited, by deciding every stored step again.",
)
_RUNNING = (
    click.option("--workers", default="1", show_default=True, callback=_workers, help="Number of processes, or ray."),
    click.option("--cache", type=click.Path(path_type=Path), help="Cache of model answers.  [default: OUT/answers.db]"),
    click.option("--max-calls", type=click.IntRange(1), help="Stop after this many model calls."),
    click.option("--max-tokens", type=click.IntRange(1), help="Stop after this many tokens."),
    click.option("--max-usd", type=click.FloatRange(0, min_open=True), help="Stop after this many dollars."),
    click.option(
        "--max-seconds", type=click.FloatRange(0, min_open=True), help="Stop after this many seconds of this call."
    ),
    click.option(
        "--max-episode-seconds",
        type=click.FloatRange(0, min_open=True),
        help="Fail a run if an episode takes more seconds.",
    ),
    _AUDIT,
)


def _running(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_RUNNING):
        command = option(command)
    return command


@lab.command(epilog=example("seasoned lab run quick --out lab/quick"))
@click.argument("suite")
@click.option("--out", type=_FOLDER, help="Folder of the experiment.  [default: lab/SUITE]")
@click.option("--seeds", type=click.IntRange(1, MAX_SEEDS), help="Play seeds 0 to SEEDS - 1 instead of the suite's.")
@click.option("--episodes", type=click.IntRange(1), help="Episodes per run instead of the suite's.")
@click.option("--arms", help="Only these arms, separated by commas.")
@click.option("--tasks", help="Only these tasks, separated by commas.")
@click.option("--model", help="Model to use instead of the suite's.")
@_running
def run(
    suite: str,
    out: Path | None,
    seeds: int | None,
    episodes: int | None,
    arms: str | None,
    tasks: str | None,
    model: str | None,
    **running: Any,
) -> None:
    """Play a suite, and write its report.

    SUITE is a name from `seasoned lab list`, or a TOML file. The same command resumes an interrupted experiment.
    """
    wanted = _narrow(load_suite(suite), seeds=seeds, episodes=episodes, arms=arms, tasks=tasks, model=model)
    experiment = Experiment.begin(out or Path("lab") / wanted.name, wanted)
    try:
        _run(experiment, **running)
    except SeasonedError:
        experiment.discard()  # a refused experiment leaves no folder
        raise


@lab.command(epilog=example("seasoned lab resume lab/quick --workers 2"))
@click.argument("folder", type=_FOLDER)
@_running
def resume(folder: Path, **running: Any) -> None:
    """Resume the experiment in FOLDER.

    Recorded episodes are not played again; failed runs are tried again.
    """
    _run(Experiment.find(folder), **running)


@lab.command(epilog=example("seasoned lab report lab/quick"))
@click.argument("folder", type=_FOLDER)
@click.option("--out", type=_FOLDER, help="Folder of the report.  [default: FOLDER]")
@_AUDIT
def report(folder: Path, out: Path | None, audit: AuditedArms) -> None:
    """Write the report of an experiment.

    The experiment in FOLDER may still be running.
    """
    _report(load_results(folder), out or folder, audit)


@lab.command(epilog=example("seasoned lab compare lab/before lab/after"))
@click.argument("one", type=_FOLDER)
@click.argument("other", type=_FOLDER)
@json_option
def compare(one: Path, other: Path) -> None:
    """Compare two experiments: OTHER less ONE.

    Runs are paired where task, arm and seed agree.
    """
    found = compare_experiments(load_results(one), load_results(other))
    if wants_json():
        present(found.to_json())
    else:
        _screen().print(printable(found.text(_width())))


def _run(
    experiment: Experiment,
    *,
    workers: int | str,
    cache: Path | None,
    max_calls: int | None,
    max_tokens: int | None,
    max_usd: float | None,
    max_seconds: float | None,
    max_episode_seconds: float | None,
    audit: AuditedArms,
) -> None:
    screen = _screen()
    suite = experiment.suite.budget
    budget = ExperimentBudget(
        max_calls or suite.calls,
        max_tokens or suite.tokens,
        max_usd or suite.usd,
        max_seconds or suite.seconds,
        max_episode_seconds or suite.episode_seconds,
    )
    before = load_results(experiment.folder)
    again = shlex.join(["seasoned", "lab", "resume", str(experiment.folder)])
    with contextlib.ExitStack() as display:
        advance: list[Callable[[str], None]] = []

        def begins() -> None:
            screen.print(
                f"{experiment.suite.name}: {printable(experiment.suite.about)}\n"
                f"{plural(len(before.runs), 'run')}, {plural(before.remaining_episodes, 'episode')} to play, "
                f"in {experiment.folder}"
            )
            advance.append(display.enter_context(run_display.progress(screen, before.remaining_episodes)))

        def report(line: str) -> None:
            advance[0](line)

        try:
            results = experiment.run(
                workers=workers,
                budget=budget,
                cache=cache,
                begins=begins,
                progress=report,
                command=shlex.join(["seasoned", *sys.argv[1:]]),
            )
        except KeyboardInterrupt as interrupt:
            display.close()
            left = load_results(experiment.folder).remaining_episodes
            screen.print(f"interrupted, {plural(left, 'episode')} left; resume with: {again}")
            raise click.exceptions.Exit(exit_code(interrupt)) from interrupt  # the command to copy stays the last line
    failed: dict[str, list[str]] = {}
    for each in results.runs:
        if each.error:
            failed.setdefault(each.error, []).append(str(each.key))
    for error, runs in failed.items():
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        screen.print(f"failed: {runs[0]}{more}: {printable(error)}")
    unfinished = sum(not each.done for each in results.runs)
    if unfinished:
        are = "is" if unfinished == 1 else "are"
        screen.print(f"{unfinished} of {plural(len(results.runs), 'run')} {are} not finished; resume with: {again}")
    _report(results, experiment.folder, audit)
    if failed:
        raise click.exceptions.Exit(1)


def _report(results: ExperimentResults, out: Path, audit: AuditedArms) -> None:
    screen = _screen()
    written = write_report(
        results,
        out,
        audited=audit,
        progress=lambda line: screen.print(printable(line), highlight=False),
        width=_width(),
    )
    screen.print(printable(written.summary))
    screen.print(f"report in {written.html}")


def _screen() -> run_display.Screen:
    """Return a console that wraps lines in a terminal only."""
    return run_display.Screen(markup=False, soft_wrap=not sys.stdout.isatty())


def _width() -> int | None:
    return WIDTH if sys.stdout.isatty() else None


def _narrow(
    suite: Suite, *, seeds: int | None, episodes: int | None, arms: str | None, tasks: str | None, model: str | None
) -> Suite:
    """Return the suite with the options of the command line in place of its own; every rule of a suite is checked."""
    data = suite.to_json()
    if seeds is not None:
        data["seeds"] = list(range(seeds))
    if model is not None:
        data["model"] = model
    for name, given in (("arms", arms), ("tasks", tasks)):
        if given is not None:
            known = {item["name"]: item for item in data[name]}
            wanted = [part.strip() for part in given.split(",") if part.strip()]
            if unknown := [part for part in wanted if part not in known]:
                raise InputError(
                    f"--{name} {unknown[0]}", "the suite has none of this name", suggest(unknown[0], known)
                )
            data[name] = [known[part] for part in dict.fromkeys(wanted)]
    task_names = {task["name"] for task in data["tasks"]}
    data["arms"] = [arm for arm in data["arms"] if not arm["tasks"] or task_names & set(arm["tasks"])]
    for arm in data["arms"]:
        arm["tasks"] = [task for task in arm["tasks"] if task in task_names]
    if episodes is not None:
        for task in data["tasks"]:
            task["episodes"] = episodes
    return read_suite(data, suite.name)
