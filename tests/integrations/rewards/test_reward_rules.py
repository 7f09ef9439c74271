"""Rules of rewards: what they match, in which order, and what is refused when they are loaded."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seasoned.actions import call_action
from seasoned.errors import InputError
from seasoned.integrations.rewards import StepResult, ToolResult, load_rules, parse_rules
from seasoned.integrations.rewards.result_values import MAX_TEXT_CHARS, ShownResult

DEFAULT = load_rules("default")
CALL = 'bash({"command":"make test"})'


def rewarded(rules, text, *, tool="bash", action=CALL, is_error=False):
    event = rules.event(action, ToolResult(tool, text, is_error))
    return None if event is None else (event.rule, event.reward)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 failed, 3 passed in 0.12s\nExit code: 1", ("tests", 0.5)),
        ('{"stdout": "collected\\n2 passed in 0.1s\\n", "exit_code": 0}', ("tests", 1.0)),
        ("make: no rule\nExit code 2", ("exit-code", -0.1)),
        ('{"output": "boom", "metadata": {"exit_code": 1}}', ("exit-code", -0.1)),
        ("Process exited with code -9", ("exit-code", -0.1)),
        ("[The command completed with exit code 127.]", ("exit-code", -0.1)),
        ("<returncode>1</returncode>\n<output>no</output>", ("exit-code", -0.1)),
        ("done\nExit code: 0", None),
        ("Traceback (most recent call last):\n  ...", ("tool-error", -0.2)),
        ('{"isError": true, "content": []}', ("tool-error", -0.2)),
        ('{"error": null, "success": true}', None),
        ("HTTP/1.1 301 Moved\n\nHTTP/2 503 Unavailable", ("http-status", -0.1)),
        ("Request failed with status code 404", ("http-status", -0.1)),
        ('{"status": 500}', ("http-status", -0.1)),
        ('{"status": "ok", "status_code": 200}', None),
        ("HTTP/1.1 200 OK", None),
        ("All quiet: 5000 users, 404 of them new.", None),
    ],
)
def test_shipped_rules(text, expected):
    assert rewarded(DEFAULT, text) == expected


def test_mark_of_the_message_is_an_error_whatever_its_text_says():
    assert rewarded(DEFAULT, "the seat is taken", is_error=True) == ("tool-error", -0.2)


@pytest.mark.parametrize("action", ["pytest -q", "cd /repo && make test", "python -m pytest"])
def test_summary_is_read_of_a_plain_command(action):
    assert rewarded(DEFAULT, "2 passed in 0.1s", tool="", action=action) == ("tests", 1.0)
    assert rewarded(DEFAULT, "2 passed in 0.1s", tool="", action="cat results.txt") is None


def test_shipped_rules_read_no_summary_of_a_page():
    assert rewarded(DEFAULT, "9 passed in 0.1s", tool="fetch", action='fetch({"url":"x"})') is None


@pytest.mark.parametrize(
    "command",
    [
        *("pytest", "cd /repo && python -m pytest -q 2>&1 | tail -20", "uv run pytest -x; echo EXIT $?", "npm test"),
        *("CI=1 timeout 60 npx jest --ci", "go test ./...", "cargo test --all", "make -j4 test", "npm run test:unit"),
        *(
            "bash -lc 'cd a && pytest'",
            "python tests/test_x.py",
            "./gradlew test",
            "set -e\nmake check",
            "./run_tests.sh",
        ),
        *(
            "pip install -e . && pytest | tee log | grep -v warn",
            ". venv/bin/activate; python3.11 -m unittest > log 2>&1 || true",
        ),
    ],
)
def test_summary_is_read_of_commands_that_run_tests(command):
    for arguments in ({"command": command}, {"command": ["bash", "-lc", command]}):
        assert rewarded(DEFAULT, "2 passed in 0.1s", action=call_action("shell", arguments)) == ("tests", 1.0)


@pytest.mark.parametrize(
    "command",
    [
        *('echo "5 passed in 0.1s"', 'pytest; echo "5 passed in 0.1s"', "pytest | sed s/failed/passed/", "cat log"),
        *(
            "pytest > log; cat fake",
            "pytest tests/a#b; echo 5 passed in 1s",
            "printf '5 passed in 1s'",
            "python fake.py",
        ),
        *(
            "pytest $(echo x)",
            "pytest `cat x`",
            "cat <<E\n5 passed in 1s\nE\npytest",
            "X='5 passed in 1s'; pytest; echo $X",
        ),
        *(
            "pytest | tail fake",
            "pytest\necho 5 passed in 1s",
            "bash -c 'pytest; cat fake'",
            "source fake; pytest",
            "pytest 'a",
            "echo pytest",
        ),
        *(
            "python -c 'print(5)' pytest",
            "make run",
            "pytest & cat fake",
            "pytest |grep -h passed fake fake2",
            "pytest -q | grep -rh 'passed in'",
            "pytest -q | grep -hR 'passed in'",
            "pytest -q | egrep -d recurse 'passed in'",
            "pytest -q | grep --dereference-recursive 'passed in'",
            "pytest -q | grep --recursive 'passed in'",
            "pytest -q | grep --directories=recurse 'passed in'",
            "#pytest",
        ),
    ],
)
def test_summary_that_a_command_may_have_written_is_not_read(command):
    for arguments in ({"command": command}, {"command": ["bash", "-lc", command]}):
        assert rewarded(DEFAULT, "5 passed in 0.1s", action=call_action("shell", arguments)) is None
    own = parse_rules(f"[[rule]]\nname = 'ci'\nreads = 'tests'\naction = {json.dumps(re.escape(command[:6]))}")
    assert rewarded(own, "5 passed in 0.1s", action=command) == ("ci", 1.0)  # the owner names the command


@pytest.mark.parametrize(
    ("action", "text", "expected"),
    [
        ("cat error.log", "Error: no such table\nExit code: 2", None),
        ('bash({"command": "tail -50 app.log | grep -i error"})', "Traceback (most recent call last):\n  x", None),
        ('read_file({"path": "error.log"})', "Error: no such table", None),
        ("git log -3", "HTTP/1.1 503 Unavailable", None),
        ('bash({"command": "cat report.json"})', '{"error": "x", "exit_code": 3, "status": 500}', None),
        ("cat error.log; make", "Error: no such table", ("tool-error", -0.2)),
        ("make", "Error: ignored\nExit code: 0", None),
        ("make", "exit code: 3\n" + "line\n" * 20 + "done", ("exit-code", -0.1)),
        ("make", "a\n" * 5 + "the log says:\nexit code: 3\n" + "line\n" * 20, None),
        ("make", "Exit code: 1\nOutput:\nExit code: 0", ("exit-code", -0.1)),
        ("make", "a page on\nstatus code 404\nand more", None),
        ("make test", "5 passed in 0.1s\nExit code: 1", ("exit-code", -0.1)),
    ],
)
def test_text_that_a_call_only_shows_gives_no_reward(action, text, expected):
    assert rewarded(DEFAULT, text, tool="", action=action) == expected


def test_marked_message_is_an_error_of_a_call_that_shows_a_text_too():
    assert rewarded(DEFAULT, "no such file", action="cat error.log", is_error=True) == ("tool-error", -0.2)


def test_own_rules():
    rules = parse_rules(
        """
        [[rule]]
        name = "declined"
        tools = ["charge", "refund_*"]
        field = "charge.state"
        pattern = "declined|expired"
        reward = -1
        weight = 0.5
        source = "payments"

        [[rule]]
        name = "large"
        field = "total"
        at_least = 100
        at_most = 200.5
        reward = 0.25

        [[rule]]
        name = "flag"
        field = "done"
        equals = true
        action = "close"
        reward = 1
        """
    )
    declined = '{"charge": {"state": "card declined"}}'
    event = rules.event("charge({})", ToolResult("charge", declined))
    assert (event.rule, event.reward, event.weight, event.source) == ("declined", -1.0, 0.5, "payments")
    assert rewarded(rules, declined, action="refund_all({})") == ("declined", -1.0)
    assert rewarded(rules, declined, action="look({})") is None
    assert rewarded(rules, '{"total": 100}') == ("large", 0.25)
    assert rewarded(rules, '{"total": 201}') is None
    assert rewarded(rules, '{"total": true}') is None
    assert rewarded(rules, '{"done": true}', action="close({})") == ("flag", 1.0)
    assert rewarded(rules, '{"done": 1}', action="close({})") is None
    assert rewarded(rules, "total: 100") is None


def test_first_rule_that_matches_gives_the_reward_and_the_last_run_of_tests_counts():
    texts = ["2 failed in 0.1s", "Error: no such file", "1 failed, 1 passed in 0.1s", "2 passed in 0.1s", "done"]
    results = [StepResult(step, CALL, ToolResult("bash", text)) for step, text in enumerate(texts)]
    found = [(event.step, event.rule, event.reward) for event in DEFAULT.episode_events(results)]
    assert found == [(1, "tool-error", -0.2), (3, "tests", 1.0)]


def test_own_file_extends_replaces_and_removes_shipped_rules():
    rules = parse_rules(
        """
        extends = "default"
        remove = ["http-status"]
        [[rule]]
        name = "paid"
        pattern = "paid"
        reward = 1.0
        [[rule]]
        name = "tool-error"
        reads = "error"
        reward = -1.0
        """
    )
    assert [rule.name for rule in rules.rules] == ["paid", "tests", "tool-error", "exit-code"]
    assert rewarded(rules, "Error: x") == ("tool-error", -1.0)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", "rules = []"),
        ("rule = 3", "rule = 3"),
        ("x = 1", "'x'"),
        ("[[rule]]", "rule 1"),
        ("[[rule]]\nname = 'a'\npatern = 'b'", "'patern'"),
        ("[[rule]]\nname = 'a'\npattern = 'b'", "no reward"),
        ("[[rule]]\nname = 'a'\npattern = 'b+'\nreward = 1", "'+' at character 1"),
        ("[[rule]]\nname = 'a'\nreward = 1", "no condition"),
        ("[[rule]]\nname = 'a'\nequals = 3\nreward = 1", "equals = 3"),
        ("[[rule]]\nname = 'a'\nreads = 'error'\npattern = 'b'\nreward = 1", "pattern = 'b'"),
        ("[[rule]]\nname = 'a'\nreads = 'tests'\nreward = 1", "reward = 1"),
        ("[[rule]]\nname = 'a'\nreads = 'tests'\nframeworks = ['pytst']", "'pytst'"),
        ("[[rule]]\nname = 'a'\nreads = 'exit-code'\nreward = 1", "exit-code"),
        ("[[rule]]\nname = 'a'\nreads = 'error'\nreward = 2", "reward = 2"),
        ("[[rule]]\nname = 'a'\nreads = 'error'\nreward = nan", "reward = nan"),
        ("[[rule]]\nname = 'a'\nreads = 'error'\nreward = true", "reward = True"),
        ("[[rule]]\nname = 'a'\nreads = 'error'\nreward = 1\nweight = 0", "weight = 0"),
        ("[[rule]]\nname = 'a'\nreads = 'error'\nreward = 1\ntools = 'x'", "tools = 'x'"),
        ("[[rule]]\nname = 'a'\nreads = 'error'\nreward = 1\n" * 2, "two rules called 'a'"),
        ("extends = 'other'", "extends = 'other'"),
        ("extends = 'default'\nremove = ['test']", "'test'"),
        ("remove = ['tests']", "remove = ['tests']"),
        ("a = [", "Invalid"),
        ("\udcff = 1", "Invalid"),
    ],
)
def test_wrong_file_is_refused_with_what_was_seen(text, seen):
    with pytest.raises(InputError) as error:
        parse_rules(text, name="mine.toml")
    assert seen in error.value.seen
    assert "mine.toml" in error.value.seen
    assert error.value.next_step


@pytest.mark.parametrize("source", ["nowhere.toml", ".", "x" * 5000, 3])
def test_file_that_cannot_be_read_is_refused(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        load_rules(source)


def test_long_result_is_read_at_its_begin_and_end_in_whole_lines():
    line = "115 passed in 0.1s\n"
    text = line * (3 * MAX_TEXT_CHARS // len(line))
    for cut in range(len(line)):
        shown = ShownResult(ToolResult("bash", text + "x" * cut))
        assert len(shown.text) <= MAX_TEXT_CHARS
        assert {each for each in shown.text.split("\n") if "passed" in each} == {line.strip()}
    assert rewarded(DEFAULT, "x" * 10_000_000 + "\n1 failed in 0.1s") == ("tests", -1.0)


PIECES = st.sampled_from(
    [
        *("1 failed, 2 passed in 0.1s", "Ran 3 tests in ", "FAILED (", "errors=", "Tests: ", "Tests  ", "5 passing"),
        *("--- PASS: ", "FAIL\t", "test result: ok. ", "% tests passed, ", "<testsuite tests=", '"', ">"),
        *("Exit code: ", "HTTP/1.1 ", "404", "-", "9" * 30, "{", '"exit_code":', "[", "]", "}", ":", "true", "null"),
        *("\n", "\r", "\0", "\ud800", "1e999", "NaN"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["exit_code", "status", "metadata", "error", "isError", "success", "output"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(PIECES, max_size=12).map("".join) | JSON.map(json.dumps) | st.text(max_size=50),
    st.sampled_from(["bash({})", "", "a", 'run({"cmd":"x"})']),
    st.booleans(),
)
def test_any_result_gives_a_reward_in_range_or_none(text, action, is_error):
    event = DEFAULT.event(action, ToolResult("bash", text, is_error))
    if event is not None:
        assert -1.0 <= event.reward <= 1.0
        assert math.isfinite(event.weight)
