"""`seasoned serve`: a memory over HTTP, and the page for people who give feedback."""

from __future__ import annotations

import ipaddress
import logging
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import click

from seasoned.cli.format.output import echo_text
from seasoned.cli.params import encoder_option, example, holdout_option, redact_option
from seasoned.decisions.decider import OptionSelection
from seasoned.errors import ConfigError
from seasoned.integrations.rewards import load_rules
from seasoned.service import DecisionSettings, GatewaySettings, Token, make_app, parse_tokens
from seasoned.service.decisions.upstream import UPSTREAM_TIMEOUT_S
from seasoned.service.gateway.family_modes import ANY_FAMILY, FamilyMode, check_modes
from seasoned.service.gateway.gateway_episodes import EpisodeRule
from seasoned.service.server import listen
from seasoned.service.server import serve as answer_requests
from seasoned.states.encoder_names import named_encoder
from seasoned.states.redactor_identity import named_redactor

__all__ = ["serve"]

_STDIN = 0
_MAX_TOKEN_FILE_BYTES = 1024 * 1024


@click.command(
    epilog=example(
        "seasoned serve agent.db --namespace shop",
        "seasoned serve agent.db --upstream http://127.0.0.1:8000",
        "seasoned serve agent.db --host 0.0.0.0 --token-file token.txt",
    )
)
@click.argument("path", metavar="MEMORY")
@click.option(
    "--namespace", "-n", multiple=True, metavar="NAME", help="Namespace to serve; repeatable.  [default: the only one]"
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8710,
    show_default=True,
    help="Port to listen on; 0: any free port.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with the tokens, one of which requests must carry: a line with one, or TOML with their authors and "
    "scopes. Needed if other machines can reach the address.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Host name to answer to; repeatable.  [default: any with a token, else this machine's names]",
)
@click.option("--create", is_flag=True, help="Create the memory if it does not exist.")
@encoder_option("With --create")
@redact_option
@click.option("--read-only", is_flag=True, help="Refuse every write.")
@click.option(
    "--upstream",
    metavar="URL",
    help="Server of models, whose calls are forwarded and recorded, and whose decisions memory shifts: "
    "http://HOST:PORT, or https://HOST.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="Model that answers decision requests in place of an upstream server: local, openai:NAME or uniform.",
)
@holdout_option
@click.option(
    "--choose",
    type=click.Choice(get_args(OptionSelection)),
    default="argmax",
    show_default=True,
    help="The `choice` of a decision: the most probable option, or a draw.",
)
@click.option(
    "--bounds",
    nargs=2,
    type=float,
    default=(0.0, 1.0),
    show_default=True,
    metavar="LOW HIGH",
    help="The lowest and the highest outcome of a decision, or of all decisions of a session, that the lift compares.",
)
@click.option("--temperature", is_flag=True, help="Temper the probabilities before memory, as outcomes show.")
@click.option(
    "--upstream-timeout",
    type=click.FloatRange(0, 100, min_open=True),
    default=UPSTREAM_TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="Seconds for an answer of the upstream server.",
)
@click.option(
    "--episode",
    type=click.Choice(get_args(EpisodeRule)),
    default="task",
    show_default=True,
    help="What is one episode of calls: from a user's message to the answer without calls; a session; or a call.",
)
@click.option(
    "--spool",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder for what is written while the store is down; it is delivered when the store is back.",
)
@click.option(
    "--mode",
    multiple=True,
    metavar="[FAMILY=]MODE",
    help="What memory does with calls of models: observe, advise, examples, steer, rerank or decide, for a task "
    "family or all; repeatable.  [default: observe]",
)
@click.option(
    "--rewards",
    metavar="RULES",
    help="Rules in a TOML file, or `default`, that reward what tool results show, and read scores of other systems.",
)
@click.option("--quiet", is_flag=True, help="Do not log each request.")
@click.option(
    "--stop-with-stdin",
    is_flag=True,
    help="Stop at the end of standard input, so with the program that started the service.",
)
def serve(
    path: str,
    namespace: tuple[str, ...],
    host: str,
    port: int,
    token_file: Path | None,
    allow_host: tuple[str, ...],
    create: bool,
    encoder: str | None,
    redact: str | None,
    read_only: bool,
    upstream: str | None,
    model: str | None,
    holdout: bool,
    choose: OptionSelection,
    bounds: tuple[float, float],
    temperature: bool,
    upstream_timeout: float,
    episode: EpisodeRule,
    mode: tuple[str, ...],
    spool: Path | None,
    rewards: str | None,
    quiet: bool,
    stop_with_stdin: bool,
) -> None:
    """Serve a memory over HTTP, with a page for people.

    The API stores episodes, searches, and takes typed feedback; people give feedback on the page.

    With --upstream or --model it also answers decision requests, in the formats of POST /v1/systemone and POST
    /v1/decisions: the server's or the model's answers, shifted by what was learned from outcomes. A client's
    Authorization is passed on to the upstream server, unless there is a --token-file; else the key in
    SEASONED_UPSTREAM_KEY is sent.

    Behind --upstream the server's other addresses (chat completions, responses, messages) are forwarded as they are,
    and the calls are recorded as episodes. Calls whose episode is not stored yet are in the folder MEMORY.calls, so
    that none is lost if the service is killed; decisions of running sessions are in MEMORY.decisions.

    Ctrl-C stops the server after the running requests. The API is described at /openapi.json.
    """
    if encoder is not None and not create:
        raise click.UsageError("--encoder is for a new memory; give --create too, or leave it out")
    redactor = None if redact is None else named_redactor(redact)
    state_encoder = None if encoder is None else named_encoder(encoder)
    token = None if token_file is None else _read_tokens(token_file)
    modes = _modes(mode)
    rules = None if rewards is None else load_rules(rewards)
    settings = DecisionSettings(
        upstream,
        model,
        holdout,
        choose,
        upstream_timeout,
        temperature,
        bounds=bounds,
        sessions=_folder(path, spool, "decisions"),
    )
    _log_to_stderr(logging.WARNING if quiet else logging.INFO)
    listening = listen(host, port, secured=token is not None)
    try:
        app = make_app(
            path,
            namespace=namespace or None,
            token=token,
            hosts=allow_host or None,
            create=create,
            read_only=read_only,
            encoder=state_encoder,
            redact=redactor,
            decisions=settings,
            gateway=GatewaySettings(
                episode, spool=None if read_only else _folder(path, spool, "calls"), modes=modes, holdout=holdout
            ),
            spool=False if spool is None else spool,
            rewards=rules,
        )
    except BaseException:
        listening.close()
        raise
    name, bound = listening.getsockname()[:2]
    url = f"http://[{name}]:{bound}/" if ":" in name else f"http://{name}:{bound}/"
    if not ipaddress.ip_address(name.partition("%")[0]).is_loopback:
        click.echo("warning: the connection is not encrypted: put a proxy with TLS in front", err=True)
    access = "requests need a token" if token else "no token: this machine only"
    lines = [f"{url}  ({access}; Ctrl-C stops it)", f"{url}operations  lift, decisions and switches, for operators"]
    if upstream is not None or model is not None:
        by = "the upstream server" if model is None else f"the model {model}"
        held = "; some are made without memory, to measure its lift" if holdout and not read_only else ""
        lines.append(f"{url}v1/systemone  decisions by {by}, also at /v1/decisions{held}")
    lifeline = _STDIN if stop_with_stdin else None
    answer_requests(app, listening, ready=lambda: echo_text("\n".join(lines)), lifeline=lifeline)
    click.echo("stopped", err=True)


def _modes(given: tuple[str, ...]) -> Mapping[str, FamilyMode]:
    """Return the modes by family of `FAMILY=MODE` and of `MODE`, which is that of all others."""
    modes: dict[str, str] = {}
    for one in given:
        family, named, mode = one.rpartition("=")
        family = family if named else ANY_FAMILY
        if family in modes:
            raise click.UsageError(f"--mode names {'the mode of all' if not named else repr(family)} twice")
        modes[family] = mode
    return check_modes(modes)


def _folder(path: str, spool: Path | None, name: str) -> Path | None:
    """Return the folder for what belongs to running episodes; None for a memory without a place on this machine."""
    if spool is not None:
        return spool / name
    return None if path == ":memory:" or "://" in path else Path(f"{path}.{name}")


def _read_tokens(path: Path) -> tuple[Token, ...]:
    """Return the tokens in a file; warn about a file that others can read."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_TOKEN_FILE_BYTES).decode()
            mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: {error}", "it must be a readable file with the token", "Name another --token-file."
        ) from error
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        click.echo(f"warning: others on this machine can read {path}; chmod 600 it", err=True)
    return parse_tokens(text)


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for name in ("seasoned.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level if name == "seasoned.service" else logging.WARNING)
        logger.propagate = False
