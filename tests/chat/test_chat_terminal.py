"""The chat in a terminal: a conversation through prompt_toolkit's pipe, and the real program in a pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from chat_scripts import ask, chat, run
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from seasoned.chat import SlashCommands
from seasoned.cli.chat.chat_command import interruptible
from seasoned.cli.chat.terminal_screen import TerminalScreen
from seasoned.llms import ScriptedLLM


def converse(folder, script, keys, capsys, **settings):
    """Type the keys into a chat; return its assistant's report and what the terminal showed."""
    with create_pipe_input() as source:
        screen = TerminalScreen(source=source, target=DummyOutput())
        with chat(folder, script, screen, **settings) as assistant:
            commands = SlashCommands(assistant, lambda spec: ScriptedLLM(["From the other model."], spec))

            async def go():
                while True:
                    try:
                        line = await screen.request()
                    except EOFError:
                        return
                    if not line.startswith("/"):
                        await interruptible(assistant.turn(line))
                    elif not await commands.run(line):
                        return

            source.send_text(keys)
            asyncio.run(asyncio.wait_for(go(), 20))
            return assistant.last, capsys.readouterr().out


def test_conversation_with_permission_and_commands(tmp_path, capsys):
    keys = "make it\na\n/explain\n/memory\n/cost\n/feedback good nice\n/permissions\n/nope\n/model other\nhi\n/quit\n"
    script = [run("touch made"), "Made \x1b[31mit\x1b]0;evil\x07."]
    report, shown = converse(tmp_path, script, keys, capsys, granted=())
    assert (tmp_path / "repo" / "made").exists()
    assert report.answer == "From the other model."
    for words in (
        "[a] always: touch",
        "Made it.",
        "1 episode, 2 steps",
        "2 calls, ",
        "learned: thank you",
        "granted: touch",
        "there is no such command",
    ):
        assert words in shown, words
    assert "\x1b]0" not in shown


@pytest.mark.parametrize(("answer", "made", "granted"), [("yes", 1, 0), ("Always", 1, 1), ("NO", 0, 0), ("n", 0, 0)])
def test_word_of_an_option_is_its_key(tmp_path, capsys, answer, made, granted):
    keys = f"make it\n{answer}\n/permissions\n/quit\n"
    _, shown = converse(tmp_path, [run("touch made"), "So."], keys, capsys, granted=())
    assert (tmp_path / "repo" / "made").exists() == bool(made)
    assert ("granted: touch" in shown) == bool(granted)
    assert "who says" not in shown


def test_ctrl_c_at_a_question_stops_the_turn_and_the_next_line_steers(tmp_path, capsys):
    report, _ = converse(tmp_path, [run("make"), "Then not."], "go\n\x03rather not\n\x04", capsys, granted=())
    assert report.answer == "Then not."


def test_ctrl_c_at_the_prompt_loses_nothing(tmp_path, capsys):
    report, shown = converse(tmp_path, ["Hello."], "half a wo\x03hi\n\x04", capsys)
    assert report.answer == "Hello." and "Ctrl-D or /quit ends the chat" in shown


def test_two_answers_are_asked_for_by_a_command(tmp_path, capsys):
    report, shown = converse(tmp_path, ["One.", "Two."], "/two say it\n2\n/quit\n", capsys)
    assert report.answer == "Two." and "--- answer 1 ---" in shown


def test_undo_by_a_command(tmp_path, capsys):
    from chat_scripts import calls

    write = calls(("write_file", {"path": "a.txt", "content": "x\n"}))
    _, shown = converse(tmp_path, [write, "Done."], "go\ny\n/undo\n/undo\n/quit\n", capsys, granted=())
    assert "+x" in shown and "undone: a.txt" in shown and "no change that could be undone" in shown
    assert not (tmp_path / "repo" / "a.txt").exists()


def test_episodes_show_in_memory_of_the_next_chat(tmp_path, capsys):
    with chat(tmp_path, ["Hello."]) as assistant:
        ask(assistant, "hi")
    _, shown = converse(tmp_path, [], "/memory\n/quit\n", capsys)
    assert "hi: 1 step (awaits feedback)" in shown


# ------------------------------------------------------------------------------------------ the program


class Terminal:
    """The program in a pseudo-terminal."""

    def __init__(self, folder, *arguments):
        self._master, slave = pty.openpty()
        command = [sys.executable, "-m", "seasoned", "chat", "-C", str(folder), "--memory", str(folder / "chat.db")]
        env = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.process = subprocess.Popen(
            [*command, *arguments], stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)
        self.shown = ""

    def type(self, text):
        os.write(self._master, text.encode())

    def wait_for(self, words, timeout_s=60.0):
        end = time.monotonic() + timeout_s
        while words not in self.shown:
            assert time.monotonic() < end, f"{words!r} is not in {self.shown!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self._master, 1 << 16).decode(errors="replace")
                except OSError:
                    break
        assert words in self.shown, self.shown

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.mark.slow
def test_real_chat_with_the_local_model_is_interrupted_and_goes_on(tmp_path):
    (tmp_path / ".git").mkdir()
    terminal = Terminal(tmp_path, "--max-tokens", "400")
    try:
        terminal.wait_for("Ctrl-D ends.")
        terminal.wait_for("\x1b[?2004h")  # the prompt reads keys
        terminal.type("Count from 1 to 200, one number a line.\r")
        terminal.wait_for("known; session")
        time.sleep(8)
        terminal.process.send_signal(signal.SIGINT)
        time.sleep(1)
        terminal.type("/cost\r")
        terminal.wait_for("tokens,")
        terminal.type("Say yes.\r/quit\r")
        assert terminal.process.wait(120) == 0
    finally:
        terminal.close()
    assert "Traceback" not in terminal.shown
