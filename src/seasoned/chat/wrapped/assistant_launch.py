"""Launch of another assistant: its command and environment, so that its model calls go through a local gateway."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from seasoned.chat.wrapped.hook_server import claude_hooks, codex_hooks
from seasoned.errors import InputError, NotFoundError, excerpt

__all__ = ["AssistantLaunch", "ModelApi", "assistant_launch", "model_api", "upstream_of"]

ModelApi = Literal["anthropic", "openai"]
"""The vendor whose API an assistant calls."""

_SERVERS: Mapping[ModelApi, str] = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
_VARIABLES: Mapping[ModelApi, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_BASE_URL",),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
}
_KEYS: Mapping[ModelApi, str] = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_APIS: Mapping[str, ModelApi] = {"claude": "anthropic", "codex": "openai"}


@dataclass(frozen=True, slots=True)
class AssistantLaunch:
    """How an assistant is started.

    Args:
        command: the program and its arguments.
        environment: all its variables.
        has_hooks: whether the command has the hooks.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    has_hooks: bool = False


def model_api(command: Sequence[str], environment: Mapping[str, str]) -> ModelApi:
    """Return whose API an assistant calls: by its name, else by the only key in the environment, else OpenAI's.

    Example:
        >>> model_api(["claude"], {}), model_api(["aider"], {"ANTHROPIC_API_KEY": "k"}), model_api(["aider"], {})
        ('anthropic', 'anthropic', 'openai')
    """
    known = _APIS.get(Path(command[0]).name)
    if known is not None:
        return known
    keys = [api for api, name in _KEYS.items() if environment.get(name)]
    return "anthropic" if keys == ["anthropic"] else "openai"


def upstream_of(api: ModelApi, environment: Mapping[str, str]) -> str:
    """Return the server that the assistant would call: that of its base URL's variable, else the vendor's.

    Example:
        >>> upstream_of("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}), upstream_of("anthropic", {})
        ('http://127.0.0.1:8080', 'https://api.anthropic.com')
    """
    given = next((environment[name] for name in _VARIABLES[api] if environment.get(name)), None)
    return _SERVERS[api] if given is None else given.rstrip("/").removesuffix("/v1")


def assistant_launch(
    command: Sequence[str],
    api: ModelApi,
    base_url: str,
    session: str,
    environment: Mapping[str, str],
    *,
    hooks: Path | None = None,
) -> AssistantLaunch:
    """Return the launch of an assistant behind a gateway. It changes variables and arguments of one process, no file.

    Every program gets the base URL's variables. Codex reads its provider from arguments, opencode from a variable with
    a configuration. Claude Code and Codex take hooks as arguments; for the others there are none.

    Args:
        command: as the user wrote it.
        api: whose API it calls.
        base_url: of the gateway, without a path.
        session: names the calls.
        environment: of the user.
        hooks: the socket of their server; None: there are none.

    Raises:
        NotFoundError: there is no such program.
        InputError: the variable for opencode holds no JSON object.

    Example:
        >>> launch = assistant_launch(["true"], "openai", "http://127.0.0.1:9", "s1", {"PATH": "/bin:/usr/bin"})
        >>> launch.environment["OPENAI_BASE_URL"]
        'http://127.0.0.1:9/sessions/s1/v1'
    """
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        raise NotFoundError(f"program {excerpt(command[0])}", "it is not installed", "Install it, or check the PATH.")
    root = f"{base_url}/sessions/{quote(session, safe='')}"
    address = root if api == "anthropic" else f"{root}/v1"
    variables = dict(environment)
    variables.update(dict.fromkeys(_VARIABLES[api], address))
    for name in ("NO_PROXY", "no_proxy"):  # a proxy would look for this machine's port on its own machine
        variables[name] = ",".join(filter(None, [variables.get(name), "127.0.0.1"]))
    name, arguments = Path(command[0]).name, list(command[1:])
    has_hooks = False
    if name == "claude" and hooks is not None and not any(_sets(one, "--settings") for one in arguments):
        arguments, has_hooks = ["--settings", json.dumps({"hooks": claude_hooks(hooks)}), *arguments], True
    elif name == "codex":
        provider = {"name": "seasoned", "base_url": address, "env_key": _KEYS[api], "wire_api": "responses"}
        settings = {f"model_providers.seasoned.{key}": value for key, value in provider.items()}
        settings["model_provider"] = "seasoned"
        own_hooks = any("hooks." in one for one in arguments)
        has_hooks = hooks is not None and not own_hooks
        of_hooks = codex_hooks(hooks) if hooks is not None and has_hooks else ()
        of_model = (part for key, value in settings.items() for part in ("-c", f'{key}="{value}"'))
        arguments = [*of_model, *of_hooks, *arguments]
    elif name == "opencode":
        given = variables.get("OPENCODE_CONFIG_CONTENT")
        variables["OPENCODE_CONFIG_CONTENT"] = _opencode_configuration(given, api, f"{root}/v1")
    return AssistantLaunch((str(Path(program).absolute()), *arguments), variables, has_hooks)


def _sets(argument: str, option: str) -> bool:
    return argument == option or argument.startswith(f"{option}=")


def _opencode_configuration(given: str | None, api: ModelApi, address: str) -> str:
    """Return the user's configuration in the variable, with the address of one provider."""
    try:
        configuration = json.loads(given) if given else {}
        options = configuration.setdefault("provider", {}).setdefault(api, {}).setdefault("options", {})
        options["baseURL"] = address
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"OPENCODE_CONFIG_CONTENT = {excerpt(given)}", "it is a configuration, a JSON object", "Mend or unset it."
        ) from error
    return json.dumps(configuration)
