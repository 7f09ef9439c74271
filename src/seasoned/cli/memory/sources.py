"""`seasoned memory sources` and `reweight`: the sources of feedback, and their weights."""

from __future__ import annotations

import dataclasses

import click

from seasoned.cli.format.output import echo_json, echo_table, echo_text, number, one_line
from seasoned.cli.format.signed_number import SignedNumber
from seasoned.cli.memory.common_options import example, json_option, memory_argument, namespace_option, reading, writing
from seasoned.errors import counted

__all__ = ["reweight", "sources"]


@click.command(epilog=example("seasoned memory sources agent.db"))
@memory_argument
@namespace_option
@json_option
def sources(path: str, namespace: str | None, as_json: bool) -> None:
    """List who gave feedback, and how it counts.

    What still stands, what it adds up to, and by which factor it was weighed.
    """
    found = reading(path, namespace, lambda memory: memory.sources())
    if as_json:
        echo_json({"sources": [{"source": name, **dataclasses.asdict(one)} for name, one in found.items()]})
        return
    if not found:
        echo_text("no feedback counts in this namespace")
        return
    rows = [
        [one_line(name, 40), str(one.events), number(one.total), ", ".join(map(number, one.factors))]
        for name, one in found.items()
    ]
    echo_table(["source", "events", "total", "factor"], rows, right=("events", "total", "factor"))


@click.command(
    epilog=example("seasoned memory reweight agent.db judge 0.5", "seasoned memory reweight agent.db judge 1"),
    context_settings={"ignore_unknown_options": True},  # so that -1 is a number, which is refused as one
)
@memory_argument
@click.argument("source")
@click.argument("factor", type=SignedNumber())
@namespace_option
@json_option
def reweight(path: str, source: str, factor: float, namespace: str | None, as_json: bool) -> None:
    """Weigh all that a source has said.

    It counts FACTOR times as much as when it was said. Factors replace each other; 1 takes it back. What SOURCE
    says afterwards is not weighed until this is called again. To silence a source for good, quarantine it.
    """
    with writing(path, namespace) as memory:
        n_events = memory.reweight_source(source, factor)
    if as_json:
        echo_json({"source": source, "factor": factor, "events": n_events})
    else:
        echo_text(f"{counted(n_events, 'feedback event')} weighed")
