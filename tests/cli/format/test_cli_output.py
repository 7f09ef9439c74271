"""Output of commands: one JSON document, or tables, fields and text."""

from __future__ import annotations

import json
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from seasoned.cli.format.output import Table, echo_hint, json_option, present
from seasoned.cli.format.value_text import full_id
from seasoned.errors import InputError


@dataclass(frozen=True)
class Shop:
    name: str
    orders: int


@click.command()
@json_option
def shops():
    """Print two shops."""
    present(Shop("b\u00fccher", 3), "one shop:", {"name": "b\u00fccher"}, Table(["orders"], [["3"]], right=("orders",)))
    echo_hint("a hint\x1b")


def test_text_fields_and_table_are_printed_in_order():
    done = CliRunner().invoke(shops)
    assert done.stdout == "one shop:\nname  b\u00fccher\norders\n     3\n"
    assert done.stderr == "a hint\\x1b\n"


def test_json_is_one_ascii_document_without_hints():
    done = CliRunner().invoke(shops, ["--json"])
    assert json.loads(done.stdout) == {"name": "b\u00fccher", "orders": 3}
    assert done.stdout.isascii()
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("prefix", "expected"), [("run-1", "run-1"), ("run-10", "run-10"), ("log", "log-1"), ("x", None)]
)
def test_prefix_is_completed_to_the_only_id(prefix, expected):
    assert full_id("episode", prefix, ["run-1", "run-10", "log-1"]) == expected


def test_prefix_of_several_ids_is_refused():
    with pytest.raises(
        InputError, match=r"episode 'run': .* one episode, and 12 begin like this: run-0, .*run-9 and 2 more"
    ):
        full_id("episode", "run", [f"run-{number}" for number in range(12)])
