"""The episode of a turn: its steps with what was recalled at each, and the rewards of rules and of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from seasoned.chat.chat_log import ChatTurn
from seasoned.chat.toolbox import ToolOutcome
from seasoned.errors import EpisodeConflictError
from seasoned.integrations.conversation import MAX_TASK_CHARS
from seasoned.integrations.step_results import StepResult, ToolResult
from seasoned.memory import Memory
from seasoned.protocols import Message
from seasoned.states.transcript.conversation_states import turn_actions
from seasoned.types import SHOWN, Choice, Feedback, ShownBody

if TYPE_CHECKING:
    from seasoned.integrations.rewards import RewardRules

__all__ = [
    "INTERRUPTION_MARK",
    "TurnEnding",
    "TurnOutcomes",
    "chat_rules",
    "chat_state",
    "reward_line",
    "step_of_call",
    "store_turn",
]

TurnEnding = Literal["done", "interrupted", "error", "limit"]
"""How a turn ended: by an answer, by the user, by an error of the model, or by the limit of calls."""

INTERRUPTION_MARK = "[interrupted by the user]"
"""What stands in the conversation where the user interrupted a text or a call."""

_DENIED_REWARD = -0.5
_ERROR_CHARS = 160
_CHECKS = (
    r"\b(ruff|black|isort|mypy|pyright|flake8|pylint|eslint|prettier|biome|tsc|gofmt|golangci-lint|clippy|rustfmt|"
    r"pre-commit|shellcheck|yamllint|hadolint)\b|\b(make|just|task|npm run|pnpm|yarn|cargo|go|tox -e|nox -s) "
    r"(lint|build|format|fmt|check|docs|vet|typecheck|types)\b"
)


@dataclass
class TurnOutcomes:
    """What a turn's calls came to, and what the user said of its answers.

    Args:
        of_calls: by the call's id.
        choices: by the step: the user's choice among answers.
    """

    of_calls: dict[str, ToolOutcome] = field(default_factory=dict)
    choices: dict[int, Choice] = field(default_factory=dict)


@cache
def chat_rules() -> RewardRules:
    """Return the rules of a chat's rewards: the shipped ones, and +0.5 for a build, linter or formatter that succeeds.

    Example:
        >>> [rule.name for rule in chat_rules().rules]
        ['tests', 'check-passed', 'tool-error', 'exit-code', 'http-status']
    """
    from seasoned.integrations.rewards import RewardRule, RewardRules, load_rules

    tests, *others = load_rules("default").rules
    passed = RewardRule(
        "check-passed", "exit_code", tools=("run",), action=_CHECKS, equals=0.0, reward=0.5, source="rules:checks"
    )
    return RewardRules([tests, passed, *others])


def step_of_call(messages: Sequence[Message], call_id: str | None) -> int:
    """Return the index of the step of a call, or that of the next step.

    Example:
        >>> step_of_call([Message("user", "Hi"), Message("assistant", "Hello")], None)
        1
    """
    step = 0
    for message in messages:
        if message.role == "assistant":
            ids = [call.id for call in message.tool_calls]
            if call_id in ids:
                return step + ids.index(call_id or "")
            step += len(turn_actions(message))
    return step


def chat_state(messages: Sequence[Message]) -> str:
    r"""Return the state in which the next answer of a turn is given: the request, and how the last calls ended.

    So the actions that were tried for one request, one after the other, are compared with each other, and what followed
    a failure is found by its error. The rest of the conversation is not part of it: a state that never comes back has
    nothing to teach.

    Example:
        >>> result = Message("tool", "No module named yaml\nexit code: 1", tool_call_id="c", name="run")
        >>> print(chat_state([Message("user", "run the tests"), Message("assistant", "I try."), result]))
        run the tests
        after run failed: No module named yaml
    """
    lines = [messages[0].content.strip()[:MAX_TASK_CHARS]]
    answered = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=0)
    lines += [
        f"after {each.name} {_ending_of(each.content)}" for each in messages[answered + 1 :] if each.role == "tool"
    ]
    return "\n".join(dict.fromkeys(lines))


def _ending_of(result: str) -> str:
    lines = [line.strip()[:_ERROR_CHARS] for line in result.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if first.startswith(("denied", "error:")):
        return first
    ended = next((line for line in reversed(lines[-2:]) if line.startswith("exit code: ")), None)
    if ended in (None, "exit code: 0"):
        return "ok"
    said = next((line for line in reversed(lines) if not line.startswith(("exit code: ", "stopped: "))), "")
    return f"failed: {said}" if said else "failed"


def _results(messages: Sequence[Message], actions: Sequence[str]) -> list[StepResult]:
    found = []
    for message in messages:
        step = step_of_call(messages, message.tool_call_id)
        if message.role == "tool" and step < len(actions):
            found.append(StepResult(step, actions[step], ToolResult(message.name or "", message.content)))
    return found


def store_turn(
    memory: Memory, turn: ChatTurn, ended: TurnEnding, outcomes: TurnOutcomes, *, model: str, session: str
) -> list[tuple[int, str, float]]:
    """Store a turn as an episode that awaits feedback, with its rewards; return the step, source and value of each.

    An episode that is stored already is not stored again, and neither are its rewards. A text that the user interrupted
    is no step. A turn without a step is not stored. The session is the episode's subject, so that an erasure finds it.

    Raises:
        StoreError: the store failed; call it again.
    """
    messages = [
        each for each in turn.messages if not (each.role == "assistant" and each.content.endswith(INTERRUPTION_MARK))
    ]
    if not any(turn_actions(each) for each in messages if each.role == "assistant"):
        return []
    task = turn.request.strip()[:MAX_TASK_CHARS].rstrip()
    recorder = memory.episode(task, id=turn.id, model=model, policy="chat", subject=session, awaits_feedback=True)
    recorder.ending, recorder.final_state = ("terminated" if ended == "done" else "truncated"), chat_state(messages)
    actions: list[str] = []
    for place, message in enumerate(messages):
        if message.role == "assistant":
            state = chat_state(messages[:place])
            for action in turn_actions(message):
                recorder.record(state, action)
                actions.append(action)
    for place, shown in turn.shown.items():
        at = step_of_call(turn.messages[:place], None)
        if at < len(actions):
            recorder.note(SHOWN, ShownBody(shown, "prompt").record(), at)
    try:
        recorder.commit()
    except EpisodeConflictError:  # an earlier attempt stored it; a resumed turn may have gone on
        return []
    from seasoned.integrations.rewards import store_rewards  # after the first call of the model, which does not wait

    events = chat_rules().episode_events(_results(messages, actions))
    store_rewards(memory, {turn.id: events})
    given = [(event.step or 0, event.source, event.reward) for event in events]
    for at, feedback, source in _user_feedback(messages, outcomes):
        if at < len(actions):
            memory.feedback(turn.id, feedback, at, source=source, id=f"{turn.id}:{source}:{at}")
            reward = feedback if isinstance(feedback, float) else feedback.rewards(actions[at]).executed
            given.append((at, source, reward or 0.0))
    return given


def _user_feedback(messages: Sequence[Message], outcomes: TurnOutcomes) -> list[tuple[int, Feedback | float, str]]:
    found: list[tuple[int, Feedback | float, str]] = []
    for call_id, outcome in outcomes.of_calls.items():
        step = step_of_call(messages, call_id)
        if outcome.denied:
            found.append((step, _DENIED_REWARD, "user:permission"))
        if outcome.feedback is not None:
            found.append((step, outcome.feedback, "user:edit"))
    return [*found, *((step, choice, "user:choice") for step, choice in outcomes.choices.items())]


def reward_line(rewards: Sequence[tuple[int, str, float]]) -> str:
    """Return the rewards of a turn in one line.

    Example:
        >>> reward_line([(2, "rules:tests", 1.0)])
        'rules:tests +1 (step 2)'
    """
    return ", ".join(f"{source} {value:+.2g} (step {step})" for step, source, value in rewards)
