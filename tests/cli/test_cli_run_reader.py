"""`seasoned run --reader`: how the model is read is chosen, checked and recorded."""

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


def test_the_default_leaves_a_runs_settings_as_they_were_before_there_was_a_choice(tmp_path):
    done = invoke(tmp_path, "--json")
    assert done.exit_code == 0
    assert not {"reader", "votes"} & set(json.loads(done.stdout)["settings"])


@pytest.mark.parametrize(
    ("options", "model", "error"),
    [(["--reader", "votes"], "uniform", InputError), (["--reader", "exact"], "openai:m", UnknownNameError)],
)
def test_a_way_that_the_model_does_not_have_is_refused_before_anything_is_made(tmp_path, options, model, error):
    done = invoke(tmp_path, *options, model=model)
    assert isinstance(done.exception, error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [["--reader", "vote"], ["--reader", "votes", "--votes", "0"]])
def test_what_is_no_choice_is_refused(tmp_path, options):
    done = invoke(tmp_path, *options, model="local")
    assert done.exit_code == 2
    assert list(tmp_path.iterdir()) == []
