"""`seasoned memory spool`: what waits on this host for stores that were down, and its delivery."""

from __future__ import annotations

import dataclasses
import shlex
import time
from pathlib import Path

import click

from seasoned.checks import check_file_name
from seasoned.cli.format.output import Table, echo_hint, json_option, present, printable_line
from seasoned.cli.params import example, namespace_option
from seasoned.errors import NotFoundError, counted
from seasoned.memory import Memory

__all__ = ["hint_of_spool", "spool", "spool_option"]

_DELIVERY_TIMEOUT_S = 30.0


@click.command(
    epilog=example(
        "seasoned memory spool /var/lib/agent/spool",
        "seasoned memory spool /var/lib/agent/spool --deliver agent.db -n shop",
    )
)
@click.argument("folder", required=False)
@click.option("--deliver", metavar="MEMORY", help="Deliver what waits for this memory now.")
@namespace_option
@json_option
def spool(folder: str | None, deliver: str | None, namespace: str | None) -> None:
    """Show what waits in the spools of FOLDER, or deliver it.

    A memory that was opened with `spool=` puts episodes, feedback and notes there while its store is down, and delivers
    them when it is back. FOLDER is by default $XDG_STATE_HOME/seasoned/spool. Files of processes that are alive are
    theirs to deliver.
    """
    from seasoned.memory.outage.spool import default_folder, spools_in

    root = default_folder() if folder is None else Path(folder)
    check_file_name(root)
    if deliver is not None:
        name = "default" if namespace is None else namespace
        with Memory.open(deliver, namespace=name, create=False, timeout_s=_DELIVERY_TIMEOUT_S, spool=root) as memory:
            memory.deliver_spool()
    else:
        _existing(root)
    found = spools_in(root)
    now = time.time()
    rows = [
        [
            printable_line(one.store, 60),
            printable_line(one.namespace, 30),
            str(one.entries),
            str(one.size_bytes),
            "" if one.oldest_at is None else f"{(now - one.oldest_at) / 60.0:.0f} min",
            str(one.refused),
        ]
        for one in found
    ]
    present(
        {"folder": str(root), "spools": [dataclasses.asdict(one) for one in found]},
        Table(["store", "namespace", "entries", "bytes", "oldest", "refused"], rows),
    )
    for one in found:
        if one.refused:
            echo_hint(f"refused entries, each with its reason: {shlex.quote(f'{one.folder}/refused.jsonl')}")


spool_option = click.option(
    "--spool", metavar="FOLDER", help="Look for waiting writes in this folder of Memory.open(spool=...) as well."
)


def hint_of_spool(path: str, namespace: str | None, folder: str | None = None) -> None:
    """Print a hint if writes to a memory wait on this host, or calls and decisions that it refused.

    Args:
        path: the memory.
        namespace: None: any of its namespaces.
        folder: of a spool, beside the default one.

    Raises:
        NotFoundError: there is no such folder.
    """
    from seasoned.memory.outage.spool import default_folder, spool_target, spools_in
    from seasoned.service.gateway.call_spool import spooled_calls

    named = [] if folder is None else [_existing(Path(folder))]
    found = [(root, one) for root in (default_folder(), *named) for one in spools_in(root)]
    for place, one in found:
        is_this = one.store == spool_target(path) and namespace in (None, one.namespace)
        if is_this and one.entries + one.refused:
            shown = f"{shlex.quote(str(place))} " if place in named else ""
            echo_hint(
                f"{counted(one.entries, 'write')} of this host to this memory are not in it, and {one.refused} were "
                f"refused: seasoned memory spool {shown}--deliver {shlex.quote(path)} -n {shlex.quote(one.namespace)}"
            )
    for name in ("calls", "decisions"):
        places = [Path(f"{path}.{name}"), *(place / name for place in named)]
        for place, (waiting, refused) in ((place, spooled_calls(place)) for place in places):
            if refused:
                echo_hint(
                    f"the memory refused {counted(refused, 'file')} of {name} that the service recorded, for good: "
                    f"{shlex.quote(str(place / 'refused'))} ({waiting} wait for the service)"
                )


def _existing(root: Path) -> Path:
    check_file_name(root)
    if not root.is_dir():
        raise NotFoundError(str(root), "this spool does not exist", "Name the folder that Memory.open(spool=...) has.")
    return root
