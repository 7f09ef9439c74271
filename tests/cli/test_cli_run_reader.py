"""`seasoned run --reader`: the way to read the model is checked and recorded."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from seasoned.cli.run import run
from seasoned.errors import InputError, UnknownNameError

GRID = "grid:S..../...../....G?max_steps=6"


def invoke(folder, *more, model="uniform"):
    fixed = ["--env", GRID, "--model", model, "--episodes", "1", "--out", str(folder / "run")]
    return CliRunner().invoke(run, [*fixed, *more])


def test_default_reader_adds_no_setting_to_the_record(tmp_path):
    done = invoke(tmp_path, "--json")
    assert done.exit_code == 0
    assert not {"reader", "votes"} & set(json.loads(done.stdout)["settings"])


@pytest.mark.parametrize(
    ("options", "model", "error"),
    [(["--reader", "votes"], "uniform", InputError), (["--reader", "exact"], "openai:m", UnknownNameError)],
)
def test_unsupported_reader_is_refused_before_anything_is_written(tmp_path, options, model, error):
    done = invoke(tmp_path, *options, model=model)
    assert isinstance(done.exception, error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [["--reader", "vote"], ["--reader", "votes", "--votes", "0"]])
def test_unknown_reader_option_is_refused(tmp_path, options):
    done = invoke(tmp_path, *options, model="local")
    assert done.exit_code == 2
    assert list(tmp_path.iterdir()) == []
