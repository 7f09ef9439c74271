"""What a chat leaves on disk: nothing that redaction rewrites, for its user alone, and known to an erasure."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from chat_scripts import ask, calls, chat
from click.testing import CliRunner
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from seasoned import Episode, Memory, Step
from seasoned.chat import repository_namespace
from seasoned.cli.chat.terminal_screen import TerminalScreen
from seasoned.cli.main import cli
from seasoned.errors import NotFoundError, RedactionMismatchError
from seasoned.llms import ScriptedLLM
from seasoned.states import Redactor

SECRET = "ann@example.com"
EMAILS = Redactor(["emails"])


def answers(*more):
    write = calls(("write_file", {"path": "mail.txt", "content": f"to {SECRET}\n"}), text=f"I write to {SECRET}.")
    named = calls(
        ("write_file", {"path": f"{SECRET}.txt", "content": "hello\n"}), ("run", {"command": f"echo {SECRET}"})
    )
    return ScriptedLLM([write, named, f"Done for {SECRET}.", *more])


def left_on_disk(folder):
    """The files beside the repository."""
    return [path for path in folder.rglob("*") if path.is_file() and "repo" not in path.relative_to(folder).parts]


def holding(folder, text):
    return [path.name for path in left_on_disk(folder) if text.encode() in path.read_bytes()]


def test_nothing_that_redaction_rewrites_is_written(tmp_path):
    model = answers()
    with chat(tmp_path, model, redact=EMAILS) as assistant:
        report = ask(assistant, f"write to {SECRET}")
        assert report.changed == ["mail.txt", f"{SECRET}.txt"]
        assert holding(tmp_path, SECRET) == [] and "chat.db-wal" in holding(tmp_path, "[email]")
        assert SECRET in model.requests[-1].messages[-1].content  # the model reads what is there
        for name in (f"{SECRET}.txt", "mail.txt"):
            assert assistant.undo().change.path == name
            assert not (tmp_path / "repo" / name).exists()
        session = assistant.log.session
    model = ScriptedLLM(["Yes."])
    with chat(tmp_path, model, session=session) as assistant:  # the namespace records its redactor
        assert [turn.request for turn in assistant.log.turns] == ["write to [email]"]
        ask(assistant, f"and now {SECRET}?")
    assert holding(tmp_path, SECRET) == []
    sent = "".join(f"{message.content}{message.tool_calls}" for message in model.requests[0].messages)
    sent = sent.replace("\u2060", "").replace("\\u2060", "")  # it keeps brackets from being control tokens
    assert "write to [email]" in sent and "echo [email]" in sent


def test_text_that_redaction_leaves_alone_is_kept_for_the_next_chat(tmp_path):
    edit = calls(("write_file", {"path": "a.txt", "content": "one\n"}))
    with chat(tmp_path, [edit, "Done."], redact=EMAILS) as assistant:
        ask(assistant, "write it")
        session = assistant.log.session
    with chat(tmp_path, [], session=session) as assistant:
        assert assistant.undo().change.path == "a.txt"


def test_other_redactor_is_refused_where_texts_are_stored(tmp_path):
    with chat(tmp_path, ["Yes."]) as assistant:
        ask(assistant, "hello")
    with pytest.raises(RedactionMismatchError), chat(tmp_path, [], redact=EMAILS):
        pass
    options = ["-C", str(tmp_path / "repo"), "--memory", str(tmp_path / "chat.db"), "--redact", "emails"]
    done = CliRunner().invoke(cli, ["chat", *options, "--once", "hello"])
    assert done.exit_code != 0 and "texts of two redactors are never mixed" in f"{done.stderr}{done.exception}"


def test_files_are_for_their_user_alone(tmp_path):
    before = os.umask(0)
    try:
        with chat(tmp_path, answers(), memory="state/chat.db") as assistant:
            ask(assistant, "write it")
            left = left_on_disk(tmp_path)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in left if path.parent.name != "texts"}
            folders = {stat.S_IMODE(path.parent.stat().st_mode) for path in left}
    finally:
        os.umask(before)
    assert {"chat.db", "chat.db-wal", "changes.jsonl"} < set(modes)
    assert set(modes.values()) == {0o600} and folders == {0o700}


def test_earlier_requests_are_written_redacted_once_the_memory_is_open(tmp_path):
    path = tmp_path / "requests.txt"
    with create_pipe_input() as source:
        screen = TerminalScreen(path, source=source, target=DummyOutput())
        source.send_text(f"mail {SECRET}\nhello\n")
        assert asyncio.run(screen.request()) == f"mail {SECRET}"
        assert not path.exists()
        screen.keep_requests(EMAILS)
        asyncio.run(screen.request())
        lines = [line for line in path.read_text().splitlines() if line.startswith("+")]
        assert lines == ["+mail [email]", "+hello"] and stat.S_IMODE(path.stat().st_mode) == 0o600
        again = TerminalScreen(path, source=source, target=DummyOutput())
        source.send_text("\x1b[A\x1b[A\n")  # two up
        assert asyncio.run(again.request()) == "mail [email]"


def test_erasure_of_a_session_names_its_files(tmp_path):
    sessions = []
    for request in ("one", "two"):
        with chat(tmp_path, answers()) as assistant:
            ask(assistant, f"write {request}")
            sessions.append(assistant.log.session)
    namespace = repository_namespace(tmp_path / "repo")
    folder = Path(f"{tmp_path / 'chat.db'}.sessions", namespace)
    with Memory.open(tmp_path / "chat.db", namespace=namespace) as memory:
        erased = memory.erase(sessions[0])
        kept = list(memory.episodes())
        with pytest.raises(NotFoundError):
            memory.erase("../changes")
    assert len(erased.episodes) == 1 and [episode.subject for episode in kept] == [sessions[1]]
    named = [(copy.kind, Path(copy.path).relative_to(folder).as_posix()) for copy in erased.copies]
    assert named == [("sessions", name) for name in (f"{sessions[0]}.jsonl", "changes.jsonl", "texts")]


def test_erasure_names_the_folder_for_a_subject_without_a_log_and_no_other_folder(tmp_path):
    with chat(tmp_path, ["Yes."]) as assistant:
        ask(assistant, "hello")
        assistant.memory.feedback(assistant.last.turn, 1.0, 0, author="ann")
        erased = assistant.memory.erase("ann")
        folder = next(tmp_path.glob("chat.db.sessions/*"))
    assert [(copy.kind, copy.path) for copy in erased.copies] == [("sessions", str(folder))]
    with Memory.open(tmp_path / "chat.db", namespace="..") as memory:
        memory.add(Episode("t", [Step("s", "a")], subject="ann"))
        assert memory.erase("ann").copies == ()
