"""Turns of a chat: what is done, kept, learned and recalled."""

from __future__ import annotations

import asyncio
import subprocess

import pytest
from chat_scripts import TESTS, Answers, ask, calls, chat, rewards, run

from seasoned.chat import SlashCommands, TurnInterrupt, chat_memory
from seasoned.chat.prompt_window import unbroken_marks
from seasoned.errors import InputError, ModelUnavailableError, NotFoundError
from seasoned.llms import ScriptedLLM
from seasoned.types import Thumbs

UNITTEST = "python3 -m unittest -q tests.py"


def test_second_request_is_shown_what_worked_at_the_first(tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "tests.py").write_text(TESTS.format(2))

    def answer(request):
        last = request.messages[-1]
        if last.role == "user":
            return run(UNITTEST if UNITTEST in last.content else "false")
        return "Done." if "OK" in last.content else run(UNITTEST)

    with chat(tmp_path, answer) as assistant:
        first = ask(assistant, "run the tests")
        second = ask(assistant, "please run the tests")
    assert [each["call"] for each in first.calls] == ['run(command="false")', f'run(command="{UNITTEST}")']
    assert rewards(first) == [(0, "rules:errors", -0.1), (1, "rules:tests", 1.0)]
    assert [each["call"] for each in second.calls] == [f'run(command="{UNITTEST}")']
    assert UNITTEST in second.recalled[0].summary and "earned 1" in second.recalled[0].summary
    assert second.recalled[0].examples[0].episode_id in second.recalled[0].explain()


def test_memory_of_one_repository_is_not_in_the_prompts_of_another(tmp_path):
    prompts = []

    def answer(request):
        prompts.append("\n".join(message.content for message in request.messages))
        return run("false") if request.messages[-1].role == "user" else "The secret is plum."

    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        with chat(folder, answer, memory="../chat.db") as assistant:
            ask(assistant, "find the secret")
    assert len(prompts) == 4
    assert not any("plum" in prompt or "records of earlier" in prompt for prompt in prompts[2:])


def test_invalid_calls_are_answered_with_the_rule_and_end_the_turn_after_five(tmp_path):
    bad = [calls(("nope", {})), calls(("run", "{no json")), calls(("run", {"cmd": "ls"})), calls(("", {}))]
    bad += [calls(("read_file", {"path": 3}))]
    with chat(tmp_path, [*bad, "not reached"]) as assistant:
        report = ask(assistant, "go")
        texts = [message.content for message in assistant.log.turns[0].messages if message.role == "tool"]
    assert report.ended == "limit"
    assert [each["failed"] for each in report.calls] == [True] * 5
    assert (
        "there is no such tool" in texts[0]
        and "one JSON object" in texts[1]
        and "Did you mean" in texts[2]
        and "must be a text" in texts[4]
    )
    assert all(value == -0.2 for _, _, value in report.rewards)


def test_calls_that_a_model_writes_into_its_text_are_carried_out(tmp_path):
    text = 'I look.\n<tool_call>\n{"name": "run", "arguments": {"command": "echo hi"}}\n</tool_call>'
    with chat(tmp_path, [text, "Done."]) as assistant:
        report = ask(assistant, "go")
    assert [each["call"] for each in report.calls] == ['run(command="echo hi")']


def test_endless_calls_end_at_the_limit_and_the_session_goes_on(tmp_path):
    with chat(tmp_path, lambda _: run("true"), max_calls=3) as assistant:
        assert ask(assistant, "go").ended == "limit"
        assert len(ask(assistant, "go on").calls) == 3


def test_error_of_the_model_ends_the_turn_and_not_the_session(tmp_path):
    down = ModelUnavailableError("the endpoint", "it answers", "Try again.")
    screen = Answers()
    with chat(tmp_path, [run("true"), down, "Back again."], screen) as assistant:
        first, second = ask(assistant, "go"), ask(assistant, "go on")
        roles = [message.role for message in assistant.llm.requests[-1].messages]
        stored = [(each.task, each.ending) for each in assistant.memory.episodes()]
    assert (first.ended, first.error, second.answer) == ("error", down, "Back again.")
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert stored == [("go", "truncated"), ("go on", "terminated")]
    assert "Nothing is lost" in screen.text


def test_no_two_messages_of_the_user_follow_each_other_after_an_error(tmp_path):
    down = ModelUnavailableError("the endpoint", "it answers", "Try again.")
    with chat(tmp_path, [down, run("true"), down, "Back again."]) as assistant:
        for request in ("go", "go again", "go on"):
            ask(assistant, request)
        sent = assistant.llm.requests[-1].messages
    assert [each.role for each in sent] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert "without an answer" in sent[2].content


def test_closed_pipe_loses_nothing(tmp_path):
    class Closed(Answers):
        def write(self, text):
            raise BrokenPipeError

    with chat(tmp_path, [run("true"), "Done."], Closed()) as assistant:
        with pytest.raises(BrokenPipeError):
            ask(assistant, "go")
        assert [len(each.steps) for each in assistant.memory.episodes()] == [1]
        assert assistant.log.turns[0].is_ended and assistant.log.turns[0].is_stored


class Slow(ScriptedLLM):
    """A model that stops in the middle of its answer until it is cancelled."""

    async def stream(self, request, show):
        show("I begin")
        await asyncio.sleep(60)


def interrupted(assistant, request="go", after_s=0.05):
    async def go():
        task = asyncio.create_task(assistant.turn(request))
        asyncio.get_running_loop().call_later(after_s, task.cancel)
        return await task

    return asyncio.run(go())


def test_interrupt_keeps_what_was_said_and_the_user_steers(tmp_path):
    with chat(tmp_path, Slow([])) as assistant:
        report = interrupted(assistant)
        kept = assistant.log.turns[0].messages
        asyncio.run(assistant.use_model(ScriptedLLM(["As you like."])))
        again = ask(assistant, "rather that way")
        sent = assistant.llm.requests[0].messages
    assert report.ended == "interrupted"
    assert kept[1].content == "I begin\n[interrupted by the user]"
    assert [unbroken_marks(message.content) for message in sent[1:]] == ["go", kept[1].content, "rather that way"]
    assert again.answer == "As you like."


def test_interrupted_calls_are_in_the_cost_also_of_a_resumed_session(tmp_path):
    async def cost(assistant):
        await SlashCommands(assistant, ScriptedLLM).run("/cost")
        return assistant.screen.text

    with chat(tmp_path, Slow([]), Answers()) as assistant:
        report = interrupted(assistant)
        shown = asyncio.run(cost(assistant))
    assert "0 calls" in shown and "1 call broken off: about" in shown and "cost unknown" in shown
    assert report.unfinished.prompt_tokens > 50 and report.unfinished.completion_tokens > 0
    assert report.record()["usage"]["unfinished_calls"] == 1
    with chat(tmp_path, ["ok"], Answers(), session="latest") as assistant:
        assert "1 call broken off" in asyncio.run(cost(assistant))


def test_interrupt_kills_the_command_and_answers_every_open_call(tmp_path):
    with chat(tmp_path, [calls(("run", {"command": "sleep 50"}), ("run", {"command": "true"}))]) as assistant:
        report = interrupted(assistant, after_s=0.4)
        messages = assistant.log.turns[0].messages
    assert report.ended == "interrupted"
    assert [message.content for message in messages if message.role == "tool"] == ["[interrupted by the user]"] * 2


def test_interrupt_at_a_question_ends_the_turn(tmp_path):
    with chat(tmp_path, [run("make"), "no"], Answers(TurnInterrupt()), granted=()) as assistant:
        assert ask(assistant, "go").ended == "interrupted"


def test_resumed_session_goes_on_and_stores_what_a_killed_process_left(tmp_path):
    with chat(tmp_path, ["Hello."]) as assistant:
        ask(assistant, "hi")
        session = assistant.log.session
        turn = assistant.log.begin("fix it")  # and no end, as of a process that is killed
        assistant.log.add(turn, assistant._as_message(turn, run("true")))
        log = tmp_path / "chat.db.sessions" / assistant.memory.namespace / f"{session}.jsonl"
    with log.open("ab") as file:
        file.write(b'{"kind": "mess')
    with chat(tmp_path, ["Where were we?"], session="latest") as assistant:
        assert assistant.log.session == session
        assert [each.ending for each in assistant.memory.episodes()] == ["terminated", "truncated"]
        ask(assistant, "go on")
        sent = [message.role for message in assistant.llm.requests[0].messages]
    assert sent == ["system", "user", "assistant", "user", "assistant", "tool", "assistant", "user"]


def test_session_cannot_be_open_twice_but_two_chats_can(tmp_path):
    with chat(tmp_path, ["One."]) as one, chat(tmp_path, ["Two."]) as two:
        assert (ask(one, "a").answer, ask(two, "b").answer) == ("One.", "Two.")
        with pytest.raises(InputError, match="another chat has it open"), chat(tmp_path, [], session=one.log.session):
            pass
        assert len(list(one.memory.episodes())) == 2


def test_no_chat_writes_over_what_another_one_wrote(tmp_path):
    (tmp_path / "repo").mkdir()
    file = tmp_path / "repo" / "a.txt"
    file.write_text("one\n")

    class Meanwhile(Answers):
        async def choose(self, question, options, otherwise):
            file.write_text("of the other chat\n")
            return "y"

    edit = calls(("edit_file", {"path": "a.txt", "old": "one", "new": "two"}))
    with chat(tmp_path, [edit, "Done."], Meanwhile(), granted=()) as assistant:
        report = ask(assistant, "go")
    assert file.read_text() == "of the other chat\n"
    assert report.calls[0]["failed"] and assistant.ledger.last(assistant.log.session) is None


# ------------------------------------------------------------------------------------------ what users teach


def test_choice_between_two_answers_is_learned(tmp_path):
    screen = Answers("2")
    with chat(tmp_path, ["Short.", "Long and winding."], screen) as assistant:
        report = ask(assistant, "explain it", answers=2)
        step = assistant.memory.get(report.turn).steps[0]
    assert (report.answer, step.action) == ("Long and winding.", "Long and winding.")
    assert rewards(report) == [(0, "user:choice", 1.0)]
    assert [request.seed for request in assistant.llm.requests] == [0, 1]


def test_own_answer_in_place_of_two_is_learned(tmp_path):
    with chat(tmp_path, ["Short.", "Long."], Answers("w", "My own words.")) as assistant:
        report = ask(assistant, "explain it", answers=2)
        texts = {each.steps[0].action for each in assistant.memory.episodes()}
    assert report.answer == "My own words."
    assert rewards(report) == [(0, "user:choice", 1.0)]
    assert {"Short.", "Long.", "My own words."} <= texts


def test_denied_permission_is_learned_and_said_to_the_model(tmp_path):
    with chat(tmp_path, [run("make deploy"), "Fine."], Answers("use staging"), granted=()) as assistant:
        report = ask(assistant, "ship it")
        said = assistant.log.turns[0].messages[2].content
    assert rewards(report) == [(0, "user:permission", -0.5)]
    assert said == "denied by the user, who says: use staging"


def test_edit_before_writing_is_written_and_learned(tmp_path):
    write = calls(("write_file", {"path": "a.py", "content": "x=1\n"}))
    screen = Answers("e", lambda text: text.replace("=", " = "))
    with chat(tmp_path, [write, "Done."], screen, granted=()) as assistant:
        report = ask(assistant, "write it")
        [alternative] = [each for each in assistant.memory.episodes() if each.arm == "alternative"]
    assert (tmp_path / "repo" / "a.py").read_text() == "x = 1\n"
    assert report.rewards[0][1] == "user:edit" and 0.9 < report.rewards[0][2] < 1.0
    assert "x = 1" in alternative.steps[0].action
    assert "+x=1" in screen.text  # the diff was shown before the question


def test_undo_restores_the_file_and_is_learned(tmp_path):
    (tmp_path / "repo").mkdir()
    file = tmp_path / "repo" / "a.py"
    file.write_text("x = 1\r\n", newline="")
    edit = calls(("edit_file", {"path": "a.py", "old": "1", "new": "2"}))
    with chat(tmp_path, [edit, "Done."]) as assistant:
        report = ask(assistant, "go")
        assert file.read_bytes() == b"x = 2\r\n"
        assistant.undo()
        assert file.read_bytes() == b"x = 1\r\n"
        assert assistant.memory.feedback_totals([report.turn])[report.turn]["user:undo"] == -1.0
        with pytest.raises(NotFoundError):
            assistant.undo()


def test_undo_of_a_file_that_changed_since_does_nothing(tmp_path):
    write = calls(("write_file", {"path": "a.py", "content": "x = 1\n"}))
    with chat(tmp_path, [write, "Done."]) as assistant:
        ask(assistant, "go")
        (tmp_path / "repo" / "a.py").write_text("mine\n")
        with pytest.raises(InputError, match="changed since"):
            assistant.undo()
    assert (tmp_path / "repo" / "a.py").read_text() == "mine\n"


def test_undo_offers_to_skip_a_file_that_changed_since(tmp_path):
    writes = [calls(("write_file", {"path": f"{name}.py", "content": "x = 1\n"})) for name in "ab"]
    screen = Answers("n", "y")
    with chat(tmp_path, [*writes, "Done."], screen) as assistant:
        ask(assistant, "go")
        folder = tmp_path / "repo"
        (folder / "b.py").write_text("mine\n")
        commands = SlashCommands(assistant, ScriptedLLM)
        asyncio.run(commands.run("/undo"))
        assert (folder / "a.py").exists() and "b.py has changed since" in screen.questions[0][0]
        asyncio.run(commands.run("/undo"))
        assert not (folder / "a.py").exists() and (folder / "b.py").read_text() == "mine\n"
        asyncio.run(commands.run("/undo"))
        assert "no change that could be undone" in screen.text
        assert [entry.change.path for entry in assistant.ledger.entries()] == ["b.py"]


@pytest.mark.parametrize(
    ("now", "source", "reward"),
    [
        ("a\nb\nc\n", None, None),
        (None, "user:revert", -1.0),
        ("a\nb\nz\n", "user:edit", 1 / 3),
        ("", "user:edit", -1.0),
    ],
)
def test_later_edits_of_the_user_are_learned_once(tmp_path, now, source, reward):
    write = calls(("write_file", {"path": "a.txt", "content": "a\nb\nc\n"}))
    file = tmp_path / "repo" / "a.txt"
    with chat(tmp_path, [write, "Done.", "And?", "And?"]) as assistant:
        report = ask(assistant, "go")
        file.unlink() if now is None else file.write_text(now)
        ask(assistant, "next")
        ask(assistant, "next")
        totals = assistant.memory.feedback_totals([report.turn])[report.turn]
        told = assistant.log.turns[1].request
    assert totals == ({} if source is None else {source: pytest.approx(reward)})
    assert ("Meanwhile the user" in told) == (source is not None)


def test_formatter_that_the_chat_runs_is_no_edit_of_the_user(tmp_path):
    write = calls(("write_file", {"path": "a.txt", "content": "a\n"}))
    with chat(tmp_path, [write, run("printf 'b\\n' > a.txt"), "Done.", "And?"]) as assistant:
        report = ask(assistant, "go")
        ask(assistant, "next")
        assert assistant.memory.feedback_totals([report.turn]).get(report.turn, {}) == {}


def test_lines_that_commits_keep_are_learned(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()

    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "begin")
    write = calls(("write_file", {"path": "a.py", "content": "x = 1\ny = 2\n"}))
    with chat(tmp_path, [write, "Done.", "And?"]) as assistant:
        report = ask(assistant, "go")
        (repo / "a.py").write_text("x = 1\n")
        git("add", ".")
        git("commit", "-m", "half of it")
        ask(assistant, "next")
        totals = assistant.memory.feedback_totals([report.turn])[report.turn]
    assert totals == {"user:edit": pytest.approx(0.0), "git:survival": pytest.approx(0.0)}


def test_feedback_is_on_the_last_turn(tmp_path):
    with chat(tmp_path, ["Hello."]) as assistant:
        with pytest.raises(NotFoundError):
            assistant.feedback(Thumbs(True))
        report = ask(assistant, "hi")
        assert assistant.feedback(Thumbs(False, comment="too short")) == report.turn
        assert assistant.memory.feedback_totals([report.turn])[report.turn] == {"user": -1.0}


def test_feedback_after_an_error_of_the_model_is_on_the_turn_before(tmp_path):
    answers = iter(["Hello.", ModelUnavailableError("the server", "it answers", "Start it.")])

    def answer(_):
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    with chat(tmp_path, answer) as assistant:
        report = ask(assistant, "hi")
        assert ask(assistant, "and now?").ended == "error"
        assert assistant.feedback(Thumbs(True)) == report.turn


def test_old_turns_and_long_results_leave_room_for_the_newest(tmp_path):
    with chat(tmp_path, lambda _: "word " * 300, context_tokens=2000, max_tokens=100) as assistant:
        for number in range(6):
            ask(assistant, f"request {number}")
        sent = [message.content for message in assistant.llm.requests[-1].messages if message.role == "user"]
    assert sent[-1].startswith("request 5") and "request 0" not in sent


def test_folder_that_is_made_for_a_memory_is_the_users_alone(tmp_path):
    with chat_memory(tmp_path / "state" / "chat.db", tmp_path):
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
