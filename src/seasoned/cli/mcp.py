"""`seasoned mcp`: a memory for agents that speak the Model Context Protocol."""

from __future__ import annotations

from typing import get_args

import click

from seasoned.cli.params import encoder_option, example, holdout_option, namespace_option, redact_option
from seasoned.decisions.decider import OptionSelection
from seasoned.states.encoder_names import named_encoder
from seasoned.states.redactor_identity import named_redactor

__all__ = ["mcp"]


@click.command(
    epilog=example("seasoned mcp agent.db --create", "claude mcp add seasoned -- seasoned mcp ~/agent.db --create")
)
@click.argument("path", metavar="MEMORY")
@click.option("--create", is_flag=True, help="Create the memory if it does not exist.")
@encoder_option("With --create")
@redact_option
@click.option("--read-only", is_flag=True, help="Offer only the tools that read: advise, explain and lift.")
@holdout_option
@click.option(
    "--choose",
    type=click.Choice(get_args(OptionSelection)),
    default="sample",
    show_default=True,
    help="How decide takes an option: a draw, so that every option is tried, or the most probable.",
)
@click.option("--source", default="agent", show_default=True, metavar="NAME", help="Source of the feedback.")
@namespace_option
def mcp(
    path: str,
    create: bool,
    encoder: str | None,
    redact: str | None,
    read_only: bool,
    holdout: bool,
    choose: OptionSelection,
    source: str,
    namespace: str | None,
) -> None:
    """Serve a memory to one agent, as an MCP server on standard input and output.

    The agent gets the tools advise, decide, record, feedback, explain and lift. The server ends with its client.
    """
    if encoder is not None and not create:
        raise click.UsageError("--encoder is for a new memory; give --create too, or leave it out")
    from seasoned.build import open_memory
    from seasoned.integrations.mcp import MemoryTools, make_mcp_server
    from seasoned.integrations.mcp.mcp_server import load_sdk

    load_sdk()  # a missing one is told before a memory is created
    settings = {
        name: value
        for name, value in (
            ("encoder", None if encoder is None else named_encoder(encoder)),
            ("redact", None if redact is None else named_redactor(redact)),
        )
        if value is not None
    }
    with open_memory(path, namespace=namespace, create=create, read_only=read_only, **settings) as memory:
        tools = MemoryTools(memory, holdout=holdout, choose=choose, source=source)
        make_mcp_server(tools, read_only=read_only).run("stdio")
