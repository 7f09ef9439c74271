"""Root of the command line: names, lazy loading, and one exit code for every kind of error."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import seasoned
from seasoned import errors
from seasoned.cli.exit_codes import EXIT_CODES, exit_code
from seasoned.cli.lazy_group import LazyGroup
from seasoned.cli.main import HEADINGS, cli

# The documented table, written out once more: a program may depend on it.
DOCUMENTED = {
    errors.InputError: 2,
    errors.ConfigError: 2,
    errors.NotFoundError: 3,
    errors.StoreError: 4,
    errors.ModelError: 5,
    errors.EnvError: 6,
}
SEASONED_ERRORS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.SeasonedError) and kind is not errors.SeasonedError
]


def run(*args):
    return CliRunner().invoke(cli, list(args))


def fails_with(error):
    """Run a root group with one command, which raises."""

    @click.command()
    def fail():
        """Fail."""
        raise error

    group = LazyGroup("root", headings={})
    group.add_command(fail)
    return CliRunner().invoke(group, ["fail"])


@pytest.mark.parametrize("kind", SEASONED_ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_the_documented_exit_code(kind):
    [expected] = {DOCUMENTED[parent] for parent in kind.__mro__ if parent in DOCUMENTED}
    done = fails_with(kind("k = 0", "k is at least 1", "Ask for one."))
    assert done.exit_code == expected
    assert done.stderr == "error: k = 0: k is at least 1. Ask for one.\n"
    assert done.stdout == ""


def test_bug_prints_its_traceback():
    done = fails_with(ZeroDivisionError("division by zero"))
    assert done.exit_code == 1
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_interrupt_is_printed_and_ends_with_130(error):
    done = fails_with(error)
    assert done.exit_code == 130
    assert done.stderr.endswith("interrupted\n")


@pytest.mark.parametrize("error", [click.UsageError("no"), click.BadParameter("no"), click.ClickException("no")])
def test_wrong_usage_ends_with_2(error):
    done = fails_with(error)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")


def test_broken_pipe_other_than_stdout_is_an_error():
    assert fails_with(BrokenPipeError(32, "some socket")).exit_code == 1


def test_error_message_is_printed_without_escapes():
    done = fails_with(errors.InputError("state = \x1b[2J", "a rule", "A step."))
    assert "\x1b" not in done.stderr


def test_help_lists_the_implemented_exit_codes():
    text = run("--help").stdout
    listed = text.partition("Exit codes:\n")[2].splitlines()
    documented = {int(line.split()[0]): line.split(maxsplit=1)[1] for line in listed if line.strip()}
    assert documented == {code: meaning for code, meaning, _ in EXIT_CODES}
    assert set(documented) == {0, 1, 2, 3, 4, 5, 6, 130}
    for code, _, kinds in EXIT_CODES:
        for kind in kinds:
            if issubclass(kind, errors.SeasonedError):
                assert exit_code(kind("seen", "rule", "step")) == code == DOCUMENTED[kind]


def test_version_is_printed():
    done = run("--version")
    assert (done.exit_code, done.stdout) == (0, f"seasoned {seasoned.__version__}\n")


def test_unknown_command_gets_a_suggestion():
    done = run("memroy", "stats")
    assert done.exit_code == 2
    assert "Did you mean 'memory'?" in done.stderr
    assert "memory doctor." in run("doctor", "agent.db").stderr


@pytest.mark.parametrize("columns", [50, 100])
def test_help_lists_every_command_with_its_whole_summary(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = " ".join(run("--help").stdout.split())
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        assert command.name == name
        assert f" {name} {command.get_short_help_str(500)}" in text


def test_missing_command_module_breaks_no_other_command():
    group = LazyGroup("root", headings={**HEADINGS, "Other": {"absent": "seasoned.cli.no_such_module:absent"}})
    assert "absent" not in group.list_commands(click.Context(group))
    done = CliRunner().invoke(group, ["memory", "--help"])
    assert done.exit_code == 0
    assert CliRunner().invoke(group, ["absent"]).exit_code == 2


def test_command_module_is_imported_when_called():
    script = (
        "import sys; from seasoned.cli.main import cli\n"
        "assert not any(name in sys.modules for name in ('seasoned.cli.memory.group', 'seasoned.build', 'rich'))\n"
        "cli(['memory', '--help'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("group", [[], ["memory"], ["lab"]])
def test_group_without_a_command_prints_its_help_and_succeeds(group):
    bare, with_help = (CliRunner().invoke(cli, [*group, *more], prog_name="seasoned") for more in ([], ["--help"]))
    assert (bare.exit_code, bare.stdout, bare.stderr) == (0, with_help.stdout, "")


def options(command, path=()):
    """Yield the path and each option of every command."""
    context = click.Context(command)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield path, parameter
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from options(command.get_command(context, name), (*path, name))


def test_the_settings_key_of_every_option_is_its_name():
    """`[run] env = ...` and SEASONED_RUN_ENV are `seasoned run --env`."""
    named = [(path, option) for path, option in options(cli) if option.name != "help"]
    assert len(named) > 150
    for path, option in named:
        longest = max(option.opts, key=len)
        assert option.name == longest.lstrip("-").replace("-", "_"), (*path, longest)


def test_return_value_of_a_command_is_no_exit_code():
    @click.command()
    def seven():
        """Return a number."""
        return 7

    group = LazyGroup("root", headings={})
    group.add_command(seven)
    assert CliRunner().invoke(group, ["seven"]).exit_code == 0
