"""Settings of the command line: argument > environment > TOML > default.

`seasoned.toml` in the working folder (or the file that SEASONED_CONFIG names) holds a table per command and a key per
option; `SEASONED_RUN_MODEL` is the environment's name for `seasoned run --model`.

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
    """Return what the TOML file says; nothing where there is no file and none was named.

    Raises:
        ConfigError: the file that SEASONED_CONFIG names does not exist, or a file is not TOML.

    Example:
        >>> load_settings()
        {}
    """
    named = os.environ.get(f"{ENV_PREFIX}_CONFIG")
    path = Path(named or FILE_NAME)
    if not path.is_file():
        if named:
            raise ConfigError(f"{ENV_PREFIX}_CONFIG = {named!r}", "it names a TOML file", "Correct it, or unset it.")
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}", "settings are TOML", "Mend the file.") from error


def check_names(section: str, given: object, known: Collection[str]) -> None:
    """Refuse a setting that nothing reads: a misspelt one would be ignored in silence.

    Raises:
        ConfigError: `given` is no table, or has a name that is not among `known`.

    Example:
        >>> check_names("run", {"model": "local"}, ["model", "seed"])
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"{section} = {given!r} in the settings", f"{section} is a table", f"Write [{section}].")
    for name in given:
        if name not in known:
            raise ConfigError(
                f"{section}.{name} in the settings" if section else f"[{name}] in the settings",
                "every setting is a command's option",
                suggest(name, known),
            )
