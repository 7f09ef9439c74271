"""`seasoned memory fork`, `promote` and `roll-back`: a changed copy that replaces its memory if it is better."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import click

from seasoned.checks import check_file_name
from seasoned.cli.format.output import json_option, present
from seasoned.cli.memory.access import memory_command, read_memory
from seasoned.cli.params import example
from seasoned.errors import InputError, NotFoundError, counted, excerpt

__all__ = ["fork", "promote", "roll_back"]


def _record_of(candidate: str) -> Path:
    return Path(f"{candidate}.fork.json")


@memory_command("seasoned memory fork agent.db tried.db")
@click.argument("candidate", metavar="FILE")
@click.option("--overwrite", is_flag=True, help="Replace the FILE.fork.json of another fork.")
def fork(path: str, candidate: str, overwrite: bool, namespace: str | None) -> None:
    """Copy a memory into FILE, to change and promote.

    Copies all namespaces; --namespace is the one that is evaluated later. The state of the original is recorded in
    FILE.fork.json; such a record of another memory or namespace is not replaced. On a server, fork in Python:
    seasoned.lab.forks.fork.
    """
    from seasoned.lab.forks.fork import fork

    check_file_name(_record_of(candidate))
    if Path(candidate).exists():
        raise InputError(f"{candidate} exists", "a fork must be a new file", "Choose another name for it.")
    name = read_memory(path, None, lambda memory: memory.namespace) if namespace is None else namespace
    if not overwrite:
        _check_record(path, candidate, name)
    made = fork(path, candidate, namespace=name)
    _record_of(made.candidate).write_text(json.dumps(dataclasses.asdict(made), indent=1) + "\n", encoding="utf-8")
    fields = {"live": made.live, "candidate": made.candidate, "namespace": made.namespace}
    present(fields, fields)


def _check_record(live: str, candidate: str, namespace: str) -> None:
    """Refuse to replace the record of another fork: it is the only record of the state that the fork began with."""
    record = _record_of(os.path.realpath(candidate))
    if not record.exists():
        return
    content: Any = None
    with contextlib.suppress(ValueError, OSError):
        content = json.loads(record.read_text(encoding="utf-8"))
    origin = (content.get("live"), content.get("namespace")) if isinstance(content, dict) else None
    if origin != (os.path.realpath(live), namespace):
        text = f"of namespace {excerpt(origin[1])} of {excerpt(origin[0])}" if origin else "no record of a fork"
        raise InputError(
            f"{record} is {text}",
            "the record of another fork must not be replaced unasked",
            "Choose another name for the fork, or replace it: --overwrite.",
        )


@click.command(epilog=example("seasoned memory promote tried.db --scores scores.json"))
@click.argument("candidate", metavar="FILE")
@click.option(
    "--scores",
    metavar="JSON",
    type=click.Path(exists=True, dir_okay=False),
    help='File of scores task by task, {"live": [...], "candidate": [...]}: paired, the same tasks and seeds. With '
    '"content", the hash that `memory verify FILE` printed when it was scored, a fork that changed since is refused.',
)
@click.option("--force", metavar="REASON", help="Promote without an interval above zero; the reason is recorded.")
@json_option
def promote(candidate: str, scores: str | None, force: str | None) -> None:
    """Replace a memory by its better fork.

    The interval of the difference of the scores must lie above zero. Episodes that the memory learned since the fork
    are carried over. The replaced memory is kept next to it. No process may have either open meanwhile.
    """
    from seasoned.lab.forks.fork import Fork, compare_scores, promote

    made = Fork(
        **_read(
            _record_of(candidate),
            f"`seasoned memory fork` must have made {candidate}, and written this file",
            "Name the fork, not the memory that it came from.",
        )
    )
    if scores is None and force is None:
        raise InputError(
            "neither --scores nor --force",
            "a fork must be shown to be better",
            "Give --scores FILE with the scores of both, task by task; or --force REASON.",
        )
    comparison = None
    if scores is not None:
        content = _read(Path(scores), "scores must be in a file", "Check the path.")
        if set(content) - {"content"} != {"live", "candidate"}:
            raise InputError(
                f"{scores} has {sorted(content)}", "it must have live and candidate, and may have content", "Name both."
            )
        comparison = compare_scores(made, content["live"], content["candidate"], content=content.get("content"))
        click.echo(f"candidate less live: {comparison.interval}", err=True)
    _present_promotion(promote(made, comparison, force=force))


@memory_command(
    "seasoned memory roll-back agent.db",
    "seasoned memory roll-back postgresql://host/db --journal promotions.jsonl",
    name="roll-back",
)
@click.option(
    "--journal",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Record of promotions.  [default: the file next to the memory, if that is a file]",
)
def roll_back(path: str, journal: str | None, namespace: str | None) -> None:
    """Restore the memory that a promotion replaced.

    Episodes learned since the promotion are carried over.
    """
    from seasoned.lab.forks.fork import roll_back
    from seasoned.lab.forks.promotion_journal import PromotionJournal
    from seasoned.memory.stores.registry import is_file

    if namespace is None:
        live = os.path.realpath(path) if is_file(path) else path
        namespace = PromotionJournal.of(live, journal).namespace(live)
    _present_promotion(roll_back(path, namespace=namespace, journal=journal))


def _present_promotion(promotion: Any) -> None:
    from seasoned.memory.stores.registry import display_path

    document = {**dataclasses.asdict(promotion), "live": display_path(promotion.live)}
    carried = counted(promotion.carried, "episode")
    present(document, {"live": document["live"], "kept": promotion.retired, "carried": carried})


def _read(path: Path, rule: str, next_step: str) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        NotFoundError: there is no such file.
        InputError: it is not a JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFoundError(f"{path} is missing", rule, next_step) from None
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: {excerpt(str(error))}", "it must be JSON", "Write it again.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: {excerpt(content)}", "it must be one JSON object", "Write it again.")
    return content
