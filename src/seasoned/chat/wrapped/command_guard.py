"""Guard of tool calls: what a repository's memory knows of a call before it runs, and what came of it after."""

from __future__ import annotations

import json
import logging
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from seasoned.actions import ToolAction, readable_action
from seasoned.chat.prompt_window import broken_marks
from seasoned.chat.repository import repository_namespace
from seasoned.chat.wrapped.codex_transcript import exit_codes
from seasoned.errors import StoreError, counted
from seasoned.integrations.conversation import MAX_TASK_CHARS
from seasoned.integrations.rewards import ToolResult, load_rules
from seasoned.integrations.rewards.called_commands import called_command
from seasoned.memory import Memory
from seasoned.policies import Advisor, Holdout, ModelAlone
from seasoned.states.text_budget import one_line
from seasoned.types import Ending, Episode, Outcome, Step, normalize_action

__all__ = ["CommandGuard", "GuardAnswer", "GuardTally", "guard_namespace"]

GuardAnswer = Literal["ask", "deny"]
"""What a doomed call gets: a question to the user, or a refusal whose reason the model reads."""

_GAMMA = 0.0  # a call is judged by its own outcome, not by what came after it
_BOUNDS = (-1.0, 1.0)
_UNTOLD = ("description", "timeout", "run_in_background")  # they do not change what a call does
_MAX_ACTION_CHARS = 2000
_MOST_OPEN = 256
_MIN_FAILURES = 3
_SHOWN_CHARS = 100
_WORD = re.compile(r"[\w./-]{3,}")
_log = logging.getLogger("seasoned.chat")


def guard_namespace(root: Path) -> str:
    """Return the namespace of a repository's tool calls, apart from its conversations.

    Example:
        >>> guard_namespace(Path("/home/ada/shop"))
        'shop-ff0a01d53d83.calls'
    """
    return f"{repository_namespace(root)}.calls"


@dataclass
class GuardTally:
    """What a guard did.

    Args:
        n_stopped: calls that were asked for or denied.
        n_withheld: calls that it would have stopped, in requests of the control group.
        n_withheld_failed: of these, those that then failed.
    """

    n_stopped: int = 0
    n_withheld: int = 0
    n_withheld_failed: int = 0

    @property
    def line(self) -> str:
        """The tally in one line; empty for nothing.

        Example:
            >>> GuardTally(2, 3, 3).line
            'guard: stopped 2 calls; let 3 pass to compare, of which 3 failed'
        """
        parts = [f"stopped {counted(self.n_stopped, 'call')}"] if self.n_stopped else []
        if self.n_withheld:
            parts.append(f"let {self.n_withheld} pass to compare, of which {self.n_withheld_failed} failed")
        return f"guard: {'; '.join(parts)}" if parts else ""


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A call whose exit code is not known yet."""

    id: str
    name: str
    text: str
    was_withheld: bool


@dataclass
class _Request:
    """The tool calls of one request of the user."""

    task: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    steps: list[Step] = field(default_factory=list)
    open: dict[str, tuple[str, str, bool]] = field(default_factory=dict)  # state, action, whether it was withheld
    arm: str | None = None
    unknown: dict[int, _Unknown] = field(default_factory=dict)  # by their step
    transcript: str = ""


class CommandGuard:
    """Answers and records the tool calls of an assistant, by the documents of its hooks.

    A request of the user is an episode, and a call a step. Its state is the tool and the folder, so that all calls of a
    tool are compared with each other; its reward is that of the shipped rules, and what a call earned later is not its
    own (gamma 0). A test run whose tests fail tells of the code, and not of the command: its reward is 0 at least.

    A call is stopped if `Advisor` would advise against it, so if it was made at least 3 times at states like this and
    the 95 % interval of its advantage lies below 0, and if most of these calls failed, the latest 3 among them. From
    its first such call on, a request is in one arm of a holdout: in the control group nothing is stopped.

    Args:
        memory: in a namespace for tool calls.
        root: of the repository.
        answer: to a doomed call.
        subject: of the episodes.

    Example:
        >>> from seasoned import Memory
        >>> with Memory.open(":memory:", gamma=0.0) as memory:
        ...     guard = CommandGuard(memory, Path("/repo"), "deny")
        ...     call = {"tool_name": "Bash", "tool_input": {"command": "pytest"}, "tool_use_id": "t", "cwd": "/repo"}
        ...     for _ in range(6):
        ...         _ = guard.handle({**call, "hook_event_name": "PreToolUse"})
        ...         _ = guard.handle({**call, "hook_event_name": "PostToolUseFailure", "error": "not found"})
        ...         _ = guard.handle({"hook_event_name": "Stop"})
        ...     guard.reason("Bash in .", ToolAction("Bash", {"command": "pytest"}).text)
        'pytest: failed 6 of 6 here'
    """

    def __init__(
        self, memory: Memory, root: Path, answer: GuardAnswer | None = "ask", *, subject: str | None = None
    ) -> None:
        self._memory, self._root, self._stop, self._subject = memory, root, answer, subject
        self._advisor = Advisor(memory, gamma=_GAMMA, max_lines=1000, max_chars=1_000_000)
        self._holdout = Holdout(ModelAlone(), memory, bounds=_BOUNDS, family="guard", epoch=f"guard: {answer}")
        self._rules = load_rules("default")
        self._requests: dict[str, _Request] = {}
        self._read: dict[tuple[str, str], list[bool]] = {}
        self._n_read = -1
        self.tally = GuardTally()

    def handle(self, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Record what an event tells; return the answer to a call that must not simply run.

        Raises:
            StoreError: the store failed.
            InputError: a call has a value that no memory can hold.
        """
        event, session = document.get("hook_event_name"), str(document.get("session_id") or "")
        if event == "UserPromptSubmit":
            self._end(session, "truncated")
            self._begin(session, document.get("prompt"))
        elif event == "Stop":
            self._end(session, "terminated")
        elif event == "PreToolUse":
            return self._before(session, document)
        elif event in ("PostToolUse", "PostToolUseFailure"):
            self._after(session, document, failed=event == "PostToolUseFailure")
        return None

    def close(self) -> None:
        """Store the requests that have not ended.

        Raises:
            StoreError: the store failed.
        """
        for session in list(self._requests):
            self._end(session, "truncated")

    def reason(self, state: str, action: str) -> str | None:
        """Return why a call is doomed, with counts, and what worked instead; None if it is not known to be."""
        outcomes, key = self._outcomes(), normalize_action(action)
        own = outcomes.get((state, key), [])
        if len(own) < _MIN_FAILURES or not all(own[:_MIN_FAILURES]) or 2 * sum(own) <= len(own):
            return None
        advice = self._advisor.advise(state)
        if not any(normalize_action(each.action) == key and each.interval[1] < 0.0 for each in advice.avoid):
            return None
        reason, words = f"{_shown(action)}: failed {sum(own)} of {len(own)} here", set(_WORD.findall(_shown(action)))
        alike = []
        for each in advice.prefer:
            tried, shown = outcomes.get((state, normalize_action(each.action)), []), _shown(each.action)
            if n_words := len(words & set(_WORD.findall(shown))):
                alike.append((n_words, tried.count(False), shown, len(tried)))
        if not alike:
            return reason
        _, n_passed, shown, n_tried = max(alike)
        return f"{reason}; {shown}: passed {n_passed} of {n_tried}"

    def _outcomes(self) -> Mapping[tuple[str, str], list[bool]]:
        """Return whether each stored call failed, by state and action, the latest first; read again when it changed."""
        n_stored = len(self._memory)
        if n_stored != self._n_read:
            self._read = {}
            for step in self._memory.steps():
                self._read.setdefault((step.state, normalize_action(step.action)), []).append(step.reward < 0.0)
            self._n_read = n_stored
        return self._read

    # ------------------------------------------------------------------------------------------ calls

    def _before(self, session: str, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
        call = self._call(document)
        if call is None:
            return None
        state, action = call
        request = self._requests.get(session) or self._begin(session, None)
        reason = None
        try:
            reason = None if self._stop is None else self.reason(state, action)
            if reason is not None and request.arm is None:
                request.arm = self._holdout.assign(task=request.task, unit=request.id).arm
        except StoreError as error:  # the call is made, and recorded, as without a guard
            _log.warning("The guard knows nothing of a call: %s", error)
            reason = None
        is_withheld = reason is not None and request.arm == "control"
        if len(request.open) < _MOST_OPEN:
            request.open[str(document.get("tool_use_id"))] = (state, action, is_withheld)
        if reason is None or is_withheld:
            self.tally.n_withheld += is_withheld
            return None
        self.tally.n_stopped += 1
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": self._stop,
                "permissionDecisionReason": reason,
            }
        }

    def _after(self, session: str, document: Mapping[str, Any], *, failed: bool) -> None:
        request = self._requests.get(session)
        found = None if request is None else request.open.pop(str(document.get("tool_use_id")), None)
        if request is None or found is None or document.get("is_interrupt") is True:
            return
        state, action, was_withheld = found
        text = _result_text(document.get("error") if failed else document.get("tool_response"))
        if "turn_id" in document:  # Codex tells no exit code; its transcript has it once the model has been called
            place = _Unknown(str(document.get("tool_use_id")), str(document.get("tool_name")), text, was_withheld)
            request.unknown[len(request.steps)] = place
            request.transcript = str(document.get("transcript_path") or "")
            request.steps.append(Step(state, action))
            return
        reward = self._reward(action, str(document.get("tool_name")), text, failed=failed)
        self.tally.n_withheld_failed += was_withheld and reward < 0.0
        request.steps.append(Step(state, action, reward))

    def _reward(self, action: str, name: str, text: str, *, failed: bool) -> float:
        event = self._rules.event(action, ToolResult(name, text, failed))
        reward = 0.0 if event is None else event.reward
        if event is not None and isinstance(event.feedback, Outcome):
            reward = max(0.0, reward)
        return reward

    def _judge_unknown(self, request: _Request) -> None:
        """Give the calls of Codex their rewards, by the exit codes in its transcript; one without is left out."""
        codes = exit_codes(Path(request.transcript)) if request.unknown else {}
        for at, call in request.unknown.items():
            if (code := codes.get(call.id)) is not None:
                step = request.steps[at]
                text = f"Exit code {code}\n{call.text}" if code else call.text
                reward = self._reward(step.action, call.name, text, failed=code != 0)
                request.steps[at] = Step(step.state, step.action, reward)
                self.tally.n_withheld_failed += call.was_withheld and reward < 0.0
        left_out = {at for at, call in request.unknown.items() if call.id not in codes}
        request.steps = [step for at, step in enumerate(request.steps) if at not in left_out]

    def _call(self, document: Mapping[str, Any]) -> tuple[str, str] | None:
        """Return the state and the action of a call; None for one that is too long to come again."""
        name, given = document.get("tool_name"), document.get("tool_input")
        if not isinstance(name, str) or not isinstance(given, Mapping):
            return None
        action = ToolAction(name, {key: value for key, value in given.items() if key not in _UNTOLD}).text
        if len(action) > _MAX_ACTION_CHARS:
            return None
        folder = document.get("cwd")
        place = os.path.relpath(os.path.realpath(folder), self._root) if isinstance(folder, str) else "."
        return self._memory.redacted(f"{name} in {place}"), self._memory.redacted(action)  # as the stored ones are

    # ------------------------------------------------------------------------------------------ requests

    def _begin(self, session: str, prompt: object) -> _Request:
        task = prompt.strip()[:MAX_TASK_CHARS].rstrip() if isinstance(prompt, str) else ""
        request = self._requests[session] = _Request(task or "a request")
        return request

    def _end(self, session: str, ending: Ending) -> None:
        request = self._requests.get(session)
        if request is not None:
            self._judge_unknown(request)
        if request is not None and request.steps:
            self._memory.add(
                Episode(
                    request.task,
                    request.steps,
                    id=request.id,
                    ending=ending,
                    policy=f"guard:{self._stop or 'off'}",
                    arm=request.arm,
                    subject=self._subject,
                )
            )
        self._requests.pop(session, None)


def _shown(action: str) -> str:
    """Return a command, or another call in its readable form, in one line that controls no terminal and no model."""
    return broken_marks(one_line(called_command(action) or readable_action(action), _SHOWN_CHARS))


def _result_text(result: object) -> str:
    """Return the text of a tool's result: its outputs, or else the JSON of it."""
    if isinstance(result, str):
        return result
    if isinstance(result, Mapping) and isinstance(result.get("stdout"), str):
        return "\n".join(str(result[name]) for name in ("stdout", "stderr") if result.get(name))
    return json.dumps(result, default=str)
