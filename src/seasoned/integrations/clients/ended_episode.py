"""An episode of a wrapped client that has ended: its turns, read from its calls, and how it is stored."""

from __future__ import annotations

import contextlib
import itertools
import logging
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from seasoned.errors import EpisodeConflictError, NotFoundError, counted, excerpt
from seasoned.integrations.clients.conversations import CallContext, Conversation, KeptCall, RecordedCall
from seasoned.integrations.clients.prompt_block import without_blocks
from seasoned.integrations.clients.tool_evidence import prior_of_action
from seasoned.integrations.clients.wires.wire_format import WireItem
from seasoned.integrations.conversation import MAX_TASK_CHARS, AgentTurn, InputMessage, episode_of
from seasoned.integrations.rewards.reward_rules import RewardEvent
from seasoned.integrations.rewards.stored_rewards import store_rewards
from seasoned.integrations.step_results import StepResult, StepResults
from seasoned.memory import EpisodeRecorder, Memory
from seasoned.types import Ending, Episode, Step
from seasoned.types.episode_cost import EpisodeCost
from seasoned.types.notes import COST, RESPONSE, SHOWN, USAGE

__all__ = ["EndedEpisode", "RecordedTurn", "ended_episode", "kept_calls", "recorded_turns"]

_LOG = logging.getLogger("seasoned.clients")
_NOT_CHOSEN = CallContext()


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn of the agent: the steps of one state, the call that made it, and the results, with steps from 0."""

    steps: tuple[Step, ...]
    call: RecordedCall
    results: tuple[StepResult, ...] = ()


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is stored of a turn; without the call, which holds the whole conversation."""

    steps: tuple[Step, ...]
    context: CallContext
    response_id: str | None

    @property
    def restored_ids(self) -> frozenset[str]:
        """The ids that its episode may have in an earlier process; none: this process recorded its call."""
        return frozenset() if self.context.kept is None else self.context.kept.restored_ids


class EndedEpisode:
    """An episode, until the store has taken it: `store` may be called again after an error.

    Attributes:
        id: of the episode.
        size_chars: the length of its states and actions.
    """

    def __init__(
        self,
        id_: str,
        task: str,
        turns: Sequence[_Turn],
        ending: Ending,
        *,
        final_state: str | None,
        model: str | None,
        rewards: Sequence[RewardEvent] = (),
        kept: Sequence[KeptCall] = (),
        cost: EpisodeCost | None = None,
    ) -> None:
        self.id = id_
        self._kept, self._cost = kept, cost
        self.size_chars = sum(len(step.state) + len(step.action) for turn in turns for step in turn.steps)
        self._task, self._turns, self._ending = task, turns, ending
        self._final_state, self._model, self._rewards = final_state, model, rewards
        self._recorder: EpisodeRecorder | None = None
        self._note_id: str | None = None  # of its first response
        self._tried_id: str | None = None  # the latest one that a commit was tried with: it may be stored
        scope = turns[0].context.scope
        given = [] if scope is None else scope.feedback_given
        self._feedback = [(args, {"id": uuid.uuid4().hex, **kwargs}) for args, kwargs in given]  # again is a no-op

    def store(self, memory: Memory) -> None:
        """Store the episode, the rewards of rules, and the feedback that its block gave.

        Raises:
            EpisodeConflictError: an earlier block with the same id is stored.
            StoreError: the store failed.
        """
        if self._recorder is None:
            self._leave_out_stored(memory)
            if not self._turns:
                _LOG.warning("The episode %s is stored already.", self.id)
                release(self._kept)
                return
            self._recorder = self._recorded(memory)
        try:
            self._commit(self._recorder, memory)
        except EpisodeConflictError as error:
            lost = counted(len(self._recorder), "step")
            lost += f", {len(self._feedback)} feedback" if self._feedback else ""
            raise EpisodeConflictError(
                f"a second block with the id {excerpt(self.id)}",
                f"one id names one episode, so this block is not stored ({lost})",
                "Give each block an id of its own, or none.",
            ) from error
        if self._rewards:
            store_rewards(memory, {self._recorder.id: self._rewards})
        while self._feedback:
            args, kwargs = self._feedback[0]
            memory.feedback(self._recorder.id, *args, **kwargs)
            self._feedback.pop(0)
        release(self._kept)
        _LOG.debug("Stored the episode %s: %s.", self.id, counted(len(self._recorder), "step"))

    @property
    def is_kept(self) -> bool:
        """Whether calls of it are on disk, where the next process finds them."""
        return bool(self._kept)

    def set_aside(self, error: Exception) -> None:
        """Keep its calls where no process reads them again: the store refuses the episode for good."""
        for one in self._kept:
            one.set_aside(error)

    def _leave_out_stored(self, memory: Memory) -> None:
        """Leave out the turns that an earlier process has stored, which was killed before it released their calls.

        A turn whose response is not stored is new, though its steps are those of another run of the same name. If all
        of the episode is stored, its rewards may not be: they are stored now, which again is a no-op. Else they were
        stored before the first of its calls was released.
        """
        restored = [turn for turn in self._turns if turn.restored_ids]
        if not restored:
            return
        found = {turn.response_id: memory.response_step(turn.response_id) for turn in restored if turn.response_id}
        of_responses = dict.fromkeys(place[0] for place in found.values() if place is not None)
        ids = {self.id}.union(*(turn.restored_ids for turn in restored))
        episodes = _stored_episodes(memory, [*sorted(ids), *of_responses])
        own = [(step.state, step.action) for turn in self._turns for step in turn.steps]
        for id_ in reversed(list(of_responses if found else episodes)):  # the latest of equal ones
            if id_ in episodes and own == [(step.state, step.action) for step in episodes[id_].steps]:
                store_rewards(memory, {id_: self._rewards})
                break
        stored = Counter((step.state, step.action) for one in episodes.values() for step in one.steps)
        turns, places, at = list[_Turn](), dict[int | None, int](), 0
        for turn in self._turns:
            steps = Counter((step.state, step.action) for step in turn.steps)
            is_new = turn.response_id in found and found[turn.response_id] is None
            if turn.restored_ids and not is_new and steps <= stored:
                stored -= steps
            else:
                start = sum(len(one.steps) for one in turns)
                places |= {at + index: start + index for index in range(len(turn.steps))}
                turns.append(turn)
            at += len(turn.steps)
        self._turns = turns
        self._rewards = [replace(one, step=places[one.step]) for one in self._rewards if one.step in places]

    def _commit(self, recorder: EpisodeRecorder, memory: Memory) -> None:
        """Store the steps.

        Where another process has stored other steps under their id, kept calls, and the episode that a gateway's client
        named, are stored under another one, `ID~2`. Another run of such a name is another episode, of equal steps too.
        """
        scope = self._turns[0].context.scope
        is_named, n = scope is not None and scope.takes_free_id, 1
        while True:
            is_new, self._tried_id = is_named and recorder.id != self._tried_id, recorder.id
            try:
                recorder.commit(is_new=is_new)
                return
            except EpisodeConflictError:
                if not (self._kept or is_named):
                    raise
                if is_new and self._is_own(recorder.id, memory):  # a repeated attempt, of which the first was lost
                    return
            n += 1
            recorder.id = f"{self.id}~{n}"

    def _is_own(self, id_: str, memory: Memory) -> bool:
        """Return whether the episode that is stored under an id is this one, by the note of its first response."""
        notes = () if self._note_id is None else memory.notes(kind=RESPONSE, episode_id=id_)
        return any(note.id == self._note_id for note in notes)

    def _recorded(self, memory: Memory) -> EpisodeRecorder:
        context = self._turns[0].context
        scope = context.scope
        recorder = memory.episode(
            self._task,
            id=self.id,
            model=self._model,
            policy=context.policy,
            arm=next((turn.context.arm for turn in self._turns if turn.context.arm is not None), None),
            subject=scope.subject if scope else context.subject,
            awaits_feedback=_awaits_feedback(context),
        )
        latest = {turn.response_id: turn for turn in self._turns}  # a server may repeat the ids of its answers
        for turn in self._turns:
            at = len(recorder)
            for index, step in enumerate(turn.steps):
                chosen = turn.context if index == 0 else _NOT_CHOSEN
                prior = None if chosen.prior is None else prior_of_action(step.action, chosen.prior)
                probs = None if chosen.propensities is None else prior_of_action(step.action, chosen.propensities)
                propensity = None if prior is None or probs is None else probs[step.action]
                recorder.record(step.state, step.action, prior=prior, propensity=propensity)
            if turn.context.shown:
                recorder.note(SHOWN, {"examples": [list(place) for place in turn.context.shown]}, at)
            if turn.context.shadow is not None:
                recorder.note(*turn.context.shadow, at)
            if turn.context.usage is not None:
                usage = turn.context.usage
                cost = {name: getattr(usage, name) for name in ("calls", "prompt_tokens", "completion_tokens")}
                recorder.note(USAGE, cost, at)
            if turn.response_id and latest[turn.response_id] is turn:
                note_id = memory.next_response_note_id(turn.response_id)
                self._note_id = self._note_id or note_id
                recorder.note(RESPONSE, {}, len(recorder) - 1, id=note_id)
        session = context.session
        names_main = session is not None and session.lineage is None and not context.is_side
        if session is not None and names_main and session.id not in latest:  # its feedback finds the latest
            recorder.note(RESPONSE, {}, len(recorder) - 1, id=memory.next_response_note_id(session.id))
        if self._cost is not None:
            recorder.note(COST, self._cost.record())
        recorder.ending, recorder.final_state = self._ending, self._final_state
        return recorder


def _stored_episodes(memory: Memory, ids: Iterable[str]) -> dict[str, Episode]:
    """Return the episodes that are stored under some ids, with `ID~2` and the next ones, each once."""
    episodes = dict[str, Episode]()
    for id_ in ids:
        with contextlib.suppress(NotFoundError):
            for name in itertools.chain([id_], (f"{id_}~{n}" for n in itertools.count(2))):
                if name not in episodes:
                    episodes[name] = memory.get(name)
    return episodes


def release(kept: Sequence[KeptCall]) -> None:
    """Keep some calls no longer: the last one first, so that those that are left after a kill begin the episode."""
    for one in reversed(kept):
        one.release()


def kept_calls(conversations: Sequence[Conversation]) -> list[KeptCall]:
    """Return the calls that are kept on disk."""
    calls = [call for one in conversations for part in one.parts for call in part.calls]
    return [call.context.kept for call in calls if call.context.kept is not None]


def _awaits_feedback(context: CallContext) -> bool:
    stated = None if context.scope is None else context.scope.awaits_feedback
    return context.awaits_feedback if stated is None else stated


def ended_episode(conversations: Sequence[Conversation], ending: Ending) -> EndedEpisode | None:
    """Return the episode of some conversations, its turns in the order of their calls; None if nothing was done.

    Raises:
        InputError: a message is of an unknown kind.
    """
    kept = kept_calls(conversations)
    if any(one.has_tools for one in conversations):  # a title or a summary is no step of an agent with tools
        conversations = [one for one in conversations if one.has_tools]
    conversations = [part for one in conversations for part in one.parts]
    first = conversations[0]
    context = first.calls[0].context
    turns: list[RecordedTurn] = []
    task = final_state = None
    for one in conversations:
        found, task_said, final_state = recorded_turns(one)
        task = task or task_said
        turns += found
    turns.sort(key=lambda turn: turn.call.at)
    if not turns:
        _LOG.info("No action was recorded in the episode %s, so nothing is stored.", first.id)
        release(kept)
        return None
    scope = context.scope
    stored = [_Turn(turn.steps, turn.call.context, turn.call.answer.id) for turn in turns]
    arms = {turn.context.arm for turn in stored if turn.context.arm is not None}
    id_ = scope.id if scope else first.id
    if len(arms) > 1 and not scope:  # of two episodes that began with the same messages at once: neither is compared
        id_ = uuid.uuid4().hex
    rules = next((turn.context.rewards for turn in stored if turn.context.rewards is not None), None)
    return EndedEpisode(
        id_,
        (scope.task if scope else None) or context.task or task or "conversation",
        stored,
        ending,
        final_state=final_state,
        model=turns[-1].call.answer.model,
        rewards=() if rules is None else rules.episode_events(_episode_results(turns)),
        kept=kept,
        cost=_cost([call for one in conversations for call in one.calls]) if len(arms) == 1 else None,
    )


def _cost(calls: Sequence[RecordedCall]) -> EpisodeCost | None:
    """Return what the calls of an episode cost; None if their time is not known.

    Tokens are those of all calls, with the answers that were asked for a choice, or unknown.
    """
    seconds = [call.seconds for call in calls if call.seconds is not None]
    tokens = [_tokens(call) for call in calls]
    known = [n_tokens for n_tokens in tokens if n_tokens is not None]
    if len(seconds) < len(calls):
        return None
    return EpisodeCost(sum(known) if len(known) == len(calls) else None, None, sum(seconds))


def _tokens(call: RecordedCall) -> int | None:
    """Return the tokens of a call, and of the other answers that its choice took; None if one is not known."""
    own, usage = call.answer.tokens, call.context.usage
    if usage is None or own is None:
        return own
    return own + usage.tokens if usage.tokens else None


def _episode_results(turns: Sequence[RecordedTurn]) -> Iterator[StepResult]:
    """Yield the results of an episode's turns, with steps from its begin."""
    start = 0
    for turn in turns:
        for one in turn.results:
            yield replace(one, step=start + one.step)
        start += len(turn.steps)


def recorded_turns(conversation: Conversation) -> tuple[list[RecordedTurn], str, str | None]:
    """Return the turns of a conversation's own calls, the task as its user said it, and the final state.

    States and actions are those that `seasoned memory import` stores for the same messages.

    Raises:
        InputError: a message is of an unknown kind.
    """
    last = conversation.last
    units = without_blocks([*last.units, *last.answer.units])
    # The calls of an answer that broke off and never came back were not executed: they are no steps.
    end = last.n_units if last.answer.is_broken_off and last.answer.has_calls else len(units)
    own = {index for call in conversation.calls for index in _answer_places(call, units[:end])}
    recorded = [index in own for index in range(len(units))]
    items: list[InputMessage | AgentTurn] = []
    calls: list[RecordedCall] = []
    sizes: list[int] = []
    for index, item in last.wire.items(units, recorded):
        items.append(item)
        if isinstance(item, AgentTurn) and item.recorded and item.actions:
            calls.append(next(call for call in reversed(conversation.calls) if call.n_units <= index))
            sizes.append(len(item.actions))
    said = [index for index, unit in enumerate(units[: conversation.n_before]) if last.wire.is_user_message(unit)]
    results = StepResults()
    episode, _ = episode_of(items, ending="aborted", results=results)
    task = _task(last, units, said) or episode.task
    turns, start = [], 0
    for call, size in zip(calls, sizes, strict=True):
        in_turn = (replace(one, step=one.step - start) for one in results.found if start <= one.step < start + size)
        turns.append(RecordedTurn(tuple(episode.steps[start : start + size]), call, tuple(in_turn)))
        start += size
    return [turn for turn in turns if turn.steps], task, episode.final_state


def _answer_places(call: RecordedCall, units: Sequence[WireItem]) -> Iterator[int]:
    """Yield the places of a call's answer among the messages of its conversation."""
    for at in range(call.n_units, len(units)):
        if not call.wire.is_answer(units[at]):
            return
        yield at


def _task(call: RecordedCall, units: Sequence[WireItem], said: Sequence[int]) -> str | None:
    """Return what the user said last before the episode; None if nothing."""
    for index in reversed(said):
        for _, item in call.wire.items([units[index]], [False]):
            if isinstance(item, InputMessage) and item.text.strip():
                return item.text.strip()[:MAX_TASK_CHARS].rstrip()
    return None
