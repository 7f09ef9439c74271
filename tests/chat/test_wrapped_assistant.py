"""`seasoned chat -- COMMAND`: the gateway, the environment, the report, the question, the exit code."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import stat
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from hooked_calls import requests
from json_server import JsonServer

from seasoned import Memory
from seasoned.chat import chat_memory
from seasoned.chat.wrapped.assistant_launch import assistant_launch, model_api, upstream_of
from seasoned.chat.wrapped.command_guard import CommandGuard, guard_namespace
from seasoned.chat.wrapped.session_gateway import session_gateway
from seasoned.cli.main import cli
from seasoned.errors import InputError

STAND_IN = Path(__file__).with_name("stand_in_assistant.py")


def text(words):
    return {"type": "text", "text": words}


def bash(command, id_="t1"):
    return {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": command}}


class Model(JsonServer):
    """Runs the commands, one after the other, in answer to each request of the user."""

    def __init__(self, *commands):
        self.bodies = []

        def respond(path, body):
            self.bodies.append(body)
            last = max(at for at, each in enumerate(body["messages"]) if isinstance(each["content"], str))
            done = sum(each["role"] == "assistant" for each in body["messages"][last:])
            content = [bash(commands[done], f"t{len(self.bodies)}")] if done < len(commands) else [text("Done.")]
            usage = {"input_tokens": 10, "output_tokens": 5}
            answer = {"id": f"msg_{len(self.bodies)}", "type": "message", "role": "assistant", "model": "m"}
            ending = "tool_use" if done < len(commands) else "end_turn"
            return 200, {}, {**answer, "content": content, "stop_reason": ending, "usage": usage}

        super().__init__(respond)

    @property
    def upstream(self):
        return self.url.removesuffix("/v1")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / "claude").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    (folder / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    return folder


def wrapped(folder, model, *command, options=()):
    fixed = ["chat", "-C", str(folder), "--memory", str(folder.parent / "chat.db"), "--upstream", model.upstream]
    done = CliRunner().invoke(cli, [*fixed, *options, "--", *command])
    seen = folder / "stand_in.json"
    return done, json.loads(seen.read_text()) if seen.exists() else None


def stored(memory):
    return [episode for episode in memory.episodes() if episode.ending != "aborted"]  # those note the assignments


def test_session_is_learned_from_without_a_secret_and_the_exit_code_is_the_assistants(repository):
    tests = "echo '2 passed in 0.1s'"
    (repository / "pytest").write_text(f"#!/bin/sh\n{tests}\n")
    (repository / "pytest").chmod(0o755)
    secret = "ann@example.com"
    with Model("false", "pytest", f"echo {secret}") as model:
        done, seen = wrapped(
            repository, model, "claude", "7", f"run the tests for {secret}", options=["--redact", "emails"]
        )
    assert done.exit_code == 7 and done.exception.code == 7
    assert seen["url"].startswith("http://127.0.0.1:") and "/sessions/" in seen["url"]
    assert "learned: 1 episode, 4 steps" in done.stderr
    assert '+1  rules:tests  Bash(command="pytest")' in done.stderr
    assert 'rules:errors  Bash(command="false")' in done.stderr
    assert "How did the last request go" not in done.stderr  # there is no terminal
    with chat_memory(repository.parent / "chat.db", repository) as memory:
        [episode] = stored(memory)
    assert episode.task == "run the tests for [email]" and episode.ending == "terminated"
    assert episode.arm in ("treated", "control")  # memory takes part
    assert not [each for each in repository.iterdir() if each.name.startswith(".claude")]
    with Memory.open(repository.parent / "chat.db", namespace=guard_namespace(repository)) as memory:
        assert memory.redacted(secret) == "[email]" and "echo [email]" in str(stored(memory)[0].steps[-1].action)
    left = [path for path in repository.parent.rglob("*") if path.is_file() and repository not in path.parents]
    assert [path.name for path in left if secret.encode() in path.read_bytes()] == []
    assert {stat.S_IMODE(path.stat().st_mode) for path in left} == {0o600}


def test_gateway_answers_nobody_without_its_key(repository):
    with Model() as model, session_gateway(repository.parent / "chat.db", repository, "s1", model.upstream) as url:
        host, key = url.removeprefix("http://").split("/")
        assert len(key) >= 32
        for path in ("/healthz", "/", "/v1/episodes", "/sessions/s1/v1/messages", f"/{key[:-1]}/healthz", f"/{key}x/"):
            connection = http.client.HTTPConnection(host)
            connection.request("GET", path)
            assert connection.getresponse().status == 404
            connection.close()
        with urllib.request.urlopen(f"{url}/healthz") as answer:
            assert answer.status == 200
    assert model.bodies == []


def test_command_that_failed_in_earlier_sessions_is_stopped(repository):
    with Memory.open(repository.parent / "chat.db", namespace=guard_namespace(repository), gamma=0.0) as memory:
        calls = ("make-it", "Exit code 127", ""), ("true make-it", None, "")
        requests(CommandGuard(memory, repository, None), *calls, cwd=str(repository))
    with Model("make-it") as model:  # 16 requests: in each the call is held out by a chance of a half at most
        done, seen = wrapped(repository, model, "claude", "0", *["run the tests"] * 16, options=["--guard", "deny"])
    stopped = [(command, reason) for command, verdict, reason in seen["calls"] if verdict == "deny"]
    assert stopped and stopped[0][0] == "make-it"
    assert re.fullmatch(r"make-it: failed (\d+) of \1 here; true make-it: passed 6 of 6", stopped[0][1])
    assert f"seasoned: guard: stopped {len(stopped)} call" in done.stderr
    assert {(stderr, code) for _, stderr, code, _ in seen["hooks"]} == {("", 0)}


def test_hooks_are_left_out_where_the_user_gives_settings(repository):
    with Model() as model:
        done, seen = wrapped(repository, model, "claude", "--settings", '{"hooks": {}}', "0", "say hello")
    assert seen["hooks"] == [] and "no guard: hooks are given to claude and codex alone" in done.stderr


def test_question_is_asked_for_one_key(repository):
    memory_path = repository.parent / "chat.db"
    with Model() as model:
        command = [sys.executable, "-m", "seasoned", "chat", "-C", str(repository), "--memory", str(memory_path)]
        command += ["--upstream", model.upstream, "--", "claude", "0", "say hello"]
        main, terminal = pty.openpty()
        with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as process:
            os.close(terminal)
            shown, ends = b"", time.monotonic() + 20
            while b"[g] good" not in shown and time.monotonic() < ends:
                shown += os.read(main, 4096)
            time.sleep(0.2)  # the terminal is read key by key from here on
            os.write(main, b"g")
            while b"thank you" not in shown and time.monotonic() < ends:
                shown += os.read(main, 4096)
            assert process.wait(10) == 0
        os.close(main)
    with chat_memory(memory_path, repository) as memory:
        [episode] = stored(memory)
        [event] = memory.events(episode.id)
    assert (event.source, event.reward) == ("user", 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--", "no-such-assistant"], "it is not installed"),
        (["--recall", "--", "claude"], "--recall: not for another assistant"),
        (["--upstream", "http://127.0.0.1/a/b", "--", "claude"], "error"),
    ],
)
def test_wrong_calls_are_refused(repository, arguments, words):
    done = CliRunner().invoke(
        cli, ["chat", "-C", str(repository), "--memory", str(repository.parent / "chat.db"), *arguments]
    )
    assert done.exit_code != 0 and words in f"error {done.stderr}{done.exception}"


def test_assistants_take_their_address_from_arguments_or_variables(tmp_path):
    for name in ("codex", "opencode", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    given = {"PATH": str(tmp_path), "OPENCODE_CONFIG_CONTENT": '{"theme": "x"}', "NO_PROXY": "corp"}

    def launch(name, api="openai"):
        return assistant_launch([name, "-x"], api, "http://127.0.0.1:9", "s 1", given)

    address = "http://127.0.0.1:9/sessions/s%201/v1"
    assert not launch("codex").has_hooks
    hooks = tmp_path / "socket"
    hooked = assistant_launch(["codex", "-x"], "openai", "http://127.0.0.1:9", "s", given, hooks=hooks)
    events = [each.partition("=")[0] for each in hooked.command if each.startswith("hooks.")]
    assert hooked.has_hooks and events == [
        *(f"hooks.{event}" for event in ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")),
        "hooks.state",
    ]
    for part in hooked.command:  # as Codex reads them
        if part.startswith("hooks."):
            assert tomllib.loads(part)
    own = assistant_launch(["codex", "-c", "hooks.Stop=[]"], "openai", "http://127.0.0.1:9", "s", given, hooks=hooks)
    assert not own.has_hooks
    assert f'model_providers.seasoned.base_url="{address}"' in launch("codex").command
    assert launch("codex").command[-1] == "-x"
    configuration = json.loads(launch("opencode").environment["OPENCODE_CONFIG_CONTENT"])
    assert configuration == {"theme": "x", "provider": {"openai": {"options": {"baseURL": address}}}}
    other = launch("other", "anthropic").environment
    assert other["ANTHROPIC_BASE_URL"] == address.removesuffix("/v1") and "OPENAI_BASE_URL" not in other
    assert other["NO_PROXY"] == "corp,127.0.0.1"
    given["OPENCODE_CONFIG_CONTENT"] = "[1]"
    with pytest.raises(InputError, match="it is a configuration"):
        launch("opencode")


def test_server_is_the_one_that_the_assistant_would_call():
    assert upstream_of(model_api(["codex"], {}), {}) == "https://api.openai.com"
    assert upstream_of("anthropic", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:4/"}) == "http://127.0.0.1:4"
