"""`seasoned memory fork`, `promote`, `roll-back` and `import-harbor`: whole memories, chosen by evidence and filled."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import click

from seasoned.cli.format.output import echo_fields, echo_json, echo_text, printable
from seasoned.cli.memory.common_options import example, json_option, memory_argument, namespace_option, reading, writing
from seasoned.errors import InputError, NotFoundError, counted, excerpt
from seasoned.sqlite_connection import IN_RAM

__all__ = ["fork", "import_harbor", "promote", "roll_back"]


def _record_of(candidate: str) -> Path:
    return Path(f"{candidate}.fork.json")


@click.command(epilog=example("seasoned memory fork agent.db tried.db"))
@memory_argument
@click.argument("candidate", metavar="FILE")
@click.option("--overwrite", is_flag=True, help="Replace the FILE.fork.json of another fork.")
@namespace_option
@json_option
def fork(path: str, candidate: str, overwrite: bool, namespace: str | None, as_json: bool) -> None:
    """Copy a memory into FILE, to be changed and perhaps promoted.

    All of it; the namespace is what is evaluated later. What was there is noted in FILE.fork.json; one that an earlier
    fork of another memory or namespace left there is refused. On a server, fork in Python: seasoned.lab.forks.fork.
    """
    from seasoned.lab.forks.fork import fork

    if Path(candidate).exists():
        raise InputError(f"{candidate} exists", "a fork must be a new file", "Choose another name for it.")
    name = _chosen(path, namespace)
    if not overwrite:
        _check_record(path, candidate, name)
    made = fork(path, candidate, namespace=name)
    _record_of(made.candidate).write_text(json.dumps(dataclasses.asdict(made), indent=1) + "\n", encoding="utf-8")
    told = {"live": made.live, "candidate": made.candidate, "namespace": made.namespace}
    echo_json(told) if as_json else echo_fields(told)


def _check_record(live: str, candidate: str, namespace: str) -> None:
    """Refuse to replace the record of a fork of something else: all that is known of what that one began with."""
    record = _record_of(os.path.realpath(candidate))
    if not record.exists():
        return
    found: Any = None
    with contextlib.suppress(ValueError, OSError):
        found = json.loads(record.read_text(encoding="utf-8"))
    known = (found.get("live"), found.get("namespace")) if isinstance(found, dict) else None
    if known != (os.path.realpath(live), namespace):
        told = f"of namespace {excerpt(known[1])} of {excerpt(known[0])}" if known else "there, and not a fork's record"
        raise InputError(
            f"{record} is {told}",
            "the record of another fork must not be replaced unasked",
            "Choose another name for the fork, or replace it: --overwrite.",
        )


@click.command(epilog=example("seasoned memory promote tried.db --scores scores.json"))
@click.argument("candidate", metavar="FILE")
@click.option(
    "--scores",
    "scores_path",
    metavar="JSON",
    type=click.Path(exists=True, dir_okay=False),
    help='Scores task by task, {"live": [...], "candidate": [...]}: paired, the same tasks and seeds. With "content", '
    "the hash that `memory verify FILE` printed when it was scored, a fork that changed since is refused.",
)
@click.option(
    "--force", metavar="REASON", help="Promote though no interval above zero says so; the reason is recorded."
)
@json_option
def promote(candidate: str, scores_path: str | None, force: str | None, as_json: bool) -> None:
    """Put a better fork in its memory's place.

    The interval for the difference of the scores must lie above zero. What the memory learned since the fork is carried
    along; what is replaced is kept beside it. Nobody may have it open meanwhile.
    """
    from seasoned.lab.forks.fork import Fork, compare_scores, promote

    made = Fork(
        **_read(
            _record_of(candidate),
            f"`seasoned memory fork` must have made {candidate}, and written this file",
            "Name the fork, not the memory that it came from.",
        )
    )
    if scores_path is None and force is None:
        raise InputError(
            "neither --scores nor --force",
            "a fork must be shown to be better",
            "Give --scores FILE with the scores of both, task by task; or --force REASON.",
        )
    comparison = None
    if scores_path is not None:
        given = _read(Path(scores_path), "scores must be in a file", "Check the path.")
        if set(given) - {"content"} != {"live", "candidate"}:
            raise InputError(
                f"{scores_path} has {sorted(given)}",
                "it must have live and candidate, and may have content",
                "Name both.",
            )
        comparison = compare_scores(made, given["live"], given["candidate"], content=given.get("content"))
        click.echo(f"candidate less live: {comparison.interval}", err=True)
    _echo_promotion(promote(made, comparison, force=force), as_json)


@click.command(
    "roll-back",
    epilog=example(
        "seasoned memory roll-back agent.db",
        "seasoned memory roll-back postgresql://host/db --journal promotions.jsonl",
    ),
)
@memory_argument
@click.option(
    "--journal",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Where promotions are recorded. Default: beside the memory, if that is a file.",
)
@click.option("--namespace", "-n", metavar="NAME", help="Which one; needed if several were promoted.")
@json_option
def roll_back(path: str, journal: str | None, namespace: str | None, as_json: bool) -> None:
    """Put back what a promotion replaced.

    With what was learned since.
    """
    from seasoned.lab.forks.fork import roll_back
    from seasoned.lab.forks.promotion_journal import PromotionJournal
    from seasoned.memory.stores.registry import is_file

    if namespace is None:
        live = os.path.realpath(path) if is_file(path) else path
        namespace = PromotionJournal.of(live, journal).namespace(live)
    _echo_promotion(roll_back(path, namespace=namespace, journal=journal), as_json)


def _chosen(path: str, namespace: str | None) -> str:
    """Return the namespace that is meant: the one named, or the only one there is."""
    return reading(path, None, lambda memory: memory.namespace) if namespace is None else namespace


def _echo_promotion(done: Any, as_json: bool) -> None:
    from seasoned.memory.stores.registry import display_path

    told = {**dataclasses.asdict(done), "live": display_path(done.live)}
    if as_json:
        echo_json(told)
        return
    echo_fields({"live": told["live"], "kept": done.retired, "carried": counted(done.carried, "episode")})


def _read(path: Path, rule: str, next_step: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFoundError(f"{path} is missing", rule, next_step) from None
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: {excerpt(str(error))}", "it must be JSON", "Write it anew.") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: {excerpt(found)}", "it must be one JSON object", "Write it anew.")
    return found


@click.command("import-harbor", epilog=example("seasoned memory import-harbor agent.db jobs/2026-01-31 --create"))
@memory_argument
@click.argument("job", metavar="FOLDER")
@click.option("--reward", "reward_key", metavar="NAME", help="Which of several rewards counts.")
@click.option("--create", is_flag=True, help="Make the memory if it does not exist.")
@click.option("--dry-run", is_flag=True, help="Say what would be imported; write nothing.")
@namespace_option
@json_option
def import_harbor(
    path: str, job: str, reward_key: str | None, create: bool, dry_run: bool, namespace: str | None, as_json: bool
) -> None:
    """Store the trials of a Harbor job.

    Each with its verifier's reward. Trials that ran in test mode, that have no verdict or that broke off are refused,
    each with its reason. Importing twice changes nothing.
    """
    from seasoned.build import known_namespaces, open_memory
    from seasoned.integrations.harbor import import_job, read_job

    trials = list(read_job(job, reward_key=reward_key))  # refused before a file is made
    if not create:
        opened = writing(path, namespace)
    elif dry_run and not known_namespaces(path):
        opened = open_memory(IN_RAM, namespace=namespace, create=True)
    else:
        opened = open_memory(path, namespace=namespace, create=True)
    with opened as memory:
        found = import_job(memory, job, reward_key=reward_key, dry_run=dry_run)
        name = memory.namespace
    if as_json:
        echo_json({"namespace": name, "read": found.read, "new": found.new, "refused": dict(found.refused)})
        return
    for trial, reason in found.refused.items():
        click.echo(printable(f"refused: {trial}: {reason}"), err=True)
    would = "would be" if dry_run else "are"
    echo_text(
        f"{counted(len(trials), 'trial')}, {len(found.refused)} refused; {found.new} {would} new in namespace {name!r}"
    )
