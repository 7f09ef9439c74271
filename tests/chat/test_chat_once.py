"""`seasoned chat --once` for scripts: its document, its exit codes, permissions without a user, closed pipes."""

from __future__ import annotations

import json

import pytest
from chat_server import ChatServer
from click.testing import CliRunner
from stream_chunks import chunks

from seasoned.cli.main import cli


def once(folder, url, *arguments, request="touch it"):
    (folder / ".git").mkdir(exist_ok=True)
    fixed = ["--model", "openai:m", "--base-url", url, "-C", str(folder), "--memory", str(folder / ".git" / "chat.db")]
    return CliRunner().invoke(cli, ["chat", "--once", request, *fixed, *arguments])


def touching(number, body):
    if body["messages"][-1]["role"] == "user":
        return chunks(calls=[("run", {"command": "touch made"})])
    return chunks("It ", "is ", "done.")


@pytest.mark.parametrize(("allow", "made"), [((), False), (("touch",), True), (("run",), True), (("rm",), False)])
def test_only_permitted_kinds_are_done_without_a_user(tmp_path, allow, made):
    with ChatServer(touching) as server:
        done = once(tmp_path, server.url, "--json", *(part for kind in allow for part in ("--allow", kind)))
    document = json.loads(done.stdout)
    assert done.exit_code == 0 and (tmp_path / "made").exists() == made
    assert document["answer"] == "It is done." and document["ended"] == "done"
    [call] = document["calls"]
    assert (call["call"], call["denied"]) == ('run(command="touch made")', [] if made else ["touch"])
    assert document["usage"]["prompt_tokens"] == 2000
    assert server.bodies[0]["stream"] is True


def test_text_goes_to_the_output_and_the_rest_to_the_errors(tmp_path):
    with ChatServer(touching) as server:
        done = once(tmp_path, server.url)
    assert done.stdout == "It is done.\n"
    assert "--allow 'touch' would" in done.stderr


def test_error_of_the_model_is_in_the_document_and_in_the_exit_code(tmp_path):
    with ChatServer(lambda number, body: (400, {}, {"error": {"message": "no"}})) as server:
        done = once(tmp_path, server.url, "--json")
    assert json.loads(done.stdout)["ended"] == "error" and done.exit_code == 5


def test_limit_of_calls_is_an_exit_code(tmp_path):
    with ChatServer(lambda number, body: chunks(calls=[("run", {"command": "ls"})])) as server:
        done = once(tmp_path, server.url, "--json", "--max-calls", "2")
    assert (json.loads(done.stdout)["ended"], done.exit_code) == ("limit", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json"], "--json is for --once"),
        (["--once", " "], "blank"),
        ([], "no terminal"),
        (["--model", "lokal", "--once", "x"], "local"),
    ],
)
def test_wrong_usage_is_refused(tmp_path, arguments, words):
    done = CliRunner().invoke(cli, ["chat", "-C", str(tmp_path), "--memory", str(tmp_path / "chat.db"), *arguments])
    assert done.exit_code == 2 and words in done.stderr


def test_settings_of_a_repository_permit_nothing(tmp_path, monkeypatch):
    (tmp_path / "seasoned.toml").write_text('[chat]\nallow = ["run"]\n')
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["chat", "--once", "x"])
    assert done.exit_code == 2 and "sets allow of chat" in done.stderr


def test_sessions_are_listed(tmp_path):
    with ChatServer(touching) as server:
        once(tmp_path, server.url)
    done = CliRunner().invoke(
        cli, ["chat", "-C", str(tmp_path), "--memory", str(tmp_path / ".git" / "chat.db"), "--sessions"]
    )
    assert done.stdout.endswith("  touch it\n")
