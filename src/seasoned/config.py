"""Settings of the command line: argument > environment > TOML > default.

`seasoned.toml` in the working folder, or the file named by SEASONED_CONFIG, has a table per command and a key per
option. In the environment, `seasoned run --model` is `SEASONED_RUN_MODEL`.

    [run]
    model = "openai:gpt-4o-mini"

    [memory.search]
    k = 5
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from seasoned.checks import suggest
from seasoned.errors import ConfigError

__all__ = ["ENV_PREFIX", "FILE_NAME", "check_names", "load_settings"]

ENV_PREFIX = "SEASONED"
FILE_NAME = "seasoned.toml"


def load_settings() -> dict[str, Any]:
    """Return the settings of the TOML file; an empty dict if there is no file and SEASONED_CONFIG is not set.

    Raises:
        ConfigError: the file named by SEASONED_CONFIG does not exist, or the file is not TOML.

    Example:
        >>> load_settings()
        {}
    """
    named = os.environ.get(f"{ENV_PREFIX}_CONFIG")
    path = Path(named or FILE_NAME)
    if not path.is_file():
        if named:
            seen = f"{ENV_PREFIX}_CONFIG = {named!r}"
            raise ConfigError(seen, f"{ENV_PREFIX}_CONFIG must name a TOML file", "Correct it, or unset it.")
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}", "settings must be in TOML", "Correct the file.") from error


def check_names(section: str, given: object, known: Collection[str]) -> None:
    """Check the names of settings, so that a misspelt name is not silently ignored.

    Raises:
        ConfigError: `given` is not a table, or has a name that is not among `known`.

    Example:
        >>> check_names("run", {"model": "local"}, ["model", "seed"])
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"{section} = {given!r} in the settings", f"{section} must be a table", f"Write [{section}].")
    for name in given:
        if name not in known:
            raise ConfigError(
                f"{section}.{name} in the settings" if section else f"[{name}] in the settings",
                "a setting must be an option of a command",
                suggest(name, known),
            )
