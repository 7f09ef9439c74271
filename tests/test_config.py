"""Settings: argument > environment > TOML > default; a misspelt one is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from seasoned import Episode, Memory, Step


@pytest.fixture
def folder(tmp_path):
    with Memory.open(tmp_path / "a.db") as memory:
        for number in range(4):
            memory.add(Episode("t", [Step(f"page {number}", "go", float(number))]))
    return tmp_path


def search_output(python, folder, *arguments, **env):
    main = "from seasoned.cli import main; main()"
    command = [*python, "-c", main, "memory", "search", "a.db", "page 1", "--threshold", "0", "--json"]
    environment = {**os.environ, **env}
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def count(python, folder, *arguments, **env):
    code, out, err = search_output(python, folder, *arguments, **env)
    assert code == 0, err
    answer = json.loads(out)
    return len(answer if isinstance(answer, list) else answer["neighbors"])


def test_argument_beats_environment_beats_toml_beats_default(warm_python, folder):
    assert count(warm_python, folder) == 4
    (folder / "seasoned.toml").write_text("[memory.search]\nk = 3\n")
    assert count(warm_python, folder) == 3
    assert count(warm_python, folder, SEASONED_MEMORY_SEARCH_K="2") == 2
    assert count(warm_python, folder, "-k", "1", SEASONED_MEMORY_SEARCH_K="2") == 1


def test_seasoned_config_selects_another_file(folder):
    (folder / "other.toml").write_text("[memory.search]\nk = 2\n")
    assert count([sys.executable], folder, SEASONED_CONFIG="other.toml") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[memory.serach]\nk = 3\n", "memory.serach"),
        ("[memory.search]\nkk = 3\n", "memory.search.kk"),
        ("[memroy]\n", "memroy"),
        ("memory = 3\n", "memory must be a table"),
        ("[memory", "settings must be in TOML"),
    ],
)
def test_unknown_settings_are_refused(warm_python, folder, text, message):
    (folder / "seasoned.toml").write_text(text)
    code, out, err = search_output(warm_python, folder)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_missing_settings_file_is_refused(warm_python, folder):
    code, _, err = search_output(warm_python, folder, SEASONED_CONFIG="nowhere.toml")
    assert code == 2
    assert "nowhere.toml" in err
