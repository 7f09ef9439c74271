"""Grouping of model calls into conversations: what belongs together, and when an episode is over.

A client sends its whole list of messages with each call. A call continues the conversation whose latest request is a
prefix of its own list, followed by its answer, which the client may have edited; but not by another answer: one whose
calls have other ids, or one in the place of an answer that broke off. The prefix is compared by a chain of digests,
without instructions (which change: dates, git states) and cache marks. Calls of another agent have another list, and so
they are conversations of their own. What the agent did is what its client sent back, not what the model answered: an
answer that the client dropped is no step unless it comes back. A turn whose call was not recorded here is no step
either, so that no turn is stored by two episodes.

A loop that trims its history sends a list that no earlier request begins. It continues the conversation whose calls its
last results answer, by the ids of the calls, if these name one conversation alone.

Several answers to one request: the one that comes back was executed. The others are *superseded*, and forgotten unless
they come back too, or feedback names them. A request that is repeated in the middle of an episode supersedes its answer
at once, since its messages name calls of this episode alone.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from seasoned.integrations.clients.episode_scope import CurrentEpisode
from seasoned.integrations.clients.wires.response_messages import ResponseMessages
from seasoned.integrations.clients.wires.wire_format import ModelAnswer, WireFormat, WireItem
from seasoned.integrations.rewards.reward_rules import RewardRules
from seasoned.protocols import Usage
from seasoned.types import Ending, StepRef
from seasoned.types.lift_records import UnitArm
from seasoned.types.notes import JSON

__all__ = [
    "VALUE_BYTES",
    "CallContext",
    "CallSession",
    "Conversation",
    "Conversations",
    "KeptCall",
    "RecordedCall",
    "ShadowNote",
    "message_digests",
]

_MAX_OPEN = 1000
_MAX_OPEN_BYTES = 256 * 1024 * 1024
_CALL_BYTES = 2048  # that are held of a call without its messages
VALUE_BYTES = 100
"""Bytes that a parsed value takes beyond its text."""

_NOT_COMPARED = {"cache_control", "id", "status"}


class ShadowNote(NamedTuple):
    """What memory would have done, at a call of the control group: the kind of a note and its body."""

    kind: str
    body: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class CallSession:
    """The session in which a client made a call, as far as it said so: calls of two sessions never continue each other.

    Args:
        id: that the client sent.
        owner: whose id it is; ids of two owners are two sessions.
        lineage: of an agent that is not the session's main one, or of its side calls; None: the main agent.
    """

    id: str
    owner: str | None = None
    lineage: str | None = None


class KeptCall(Protocol):
    """A call that is kept on disk until its episode is stored."""

    @property
    def restored_ids(self) -> frozenset[str]:
        """The ids that its episode may have in an earlier process, which may have stored it; none without one."""

    def release(self) -> None:
        """Keep it no longer."""

    def set_aside(self, reason: object) -> None:
        """Keep it where no process reads it again: it is refused for good."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """What is recorded of a call besides its request and answer.

    Args:
        scope: the block in which it was made.
        task: the task of its client; None: as the user said it.
        awaits_feedback: whether its episode is no evidence before someone has judged it.
        policy: the name stored as the episode's policy.
        shown: the stored steps that its request showed.
        prior, propensities: where a policy chose the first action: the model's own logprobs, and the probabilities of
            what the answer may be, over actions or over tools.
        usage: what other model calls cost that this choice took; None: there were none.
        session: in which it was made; None: the client said nothing.
        owner: whose call it is: calls of two owners never continue each other; None: there is one owner.
        begins: the id of its episode, if it begins one.
        is_side: whether it is no step of an agent's work: a title, a summary, a sub-agent. Its episode is stored as
            aborted, and nothing is learned from it.
        kept: what keeps it on disk; None: nothing does.
        unit, arm: the id that its episode has in a holdout, and its arm; None without one, and of an arm that could not
            be stored.
        shadow: in the control group, what memory would have done; None: nothing, or it is not known.
        rewards: rules that reward what the episode's tool results show; None: there are none.
        subject: of the gateway's calls, whom it is about: calls about two subjects never continue each other.
    """

    scope: CurrentEpisode | None = None
    task: str | None = None
    awaits_feedback: bool = True
    policy: str | None = None
    shown: tuple[StepRef, ...] = ()
    prior: Mapping[str, float] | None = None
    propensities: Mapping[str, float] | None = None
    usage: Usage | None = None
    session: CallSession | None = None
    owner: str | None = None
    begins: str | None = None
    is_side: bool = False
    kept: KeptCall | None = None
    unit: str | None = None
    arm: UnitArm | None = None
    shadow: ShadowNote | None = None
    rewards: RewardRules | None = None
    subject: str | None = None


@dataclass(slots=True)
class RecordedCall:
    """A request and its answer.

    Attributes:
        units: its messages, with those that a response id stands for.
        n_units: how many they are.
        digests: of the messages up to each.
        has_tools: whether tools were offered.
        seconds: from the request to the end of the answer; None: they are not known.
        n_bytes: of the request and the answer as they were sent; 0: not known. `Conversations` adds those that parsed
            messages take beyond their text, and keeps no other field of the body.
    """

    wire: WireFormat
    body: Mapping[str, Any]
    answer: ModelAnswer
    context: CallContext
    at: float = field(default_factory=time.time)
    units: list[WireItem] = field(default_factory=list)
    n_units: int = 0
    digests: list[bytes] = field(default_factory=list)
    has_tools: bool = False
    seconds: float | None = None
    n_bytes: int = 0

    def without_messages(self) -> RecordedCall:
        """Return what is needed of a call whose messages a later one sent again."""
        return replace(self, body={}, answer=replace(self.answer, units=()), units=[], digests=[])

    def release(self) -> None:
        """Keep it on disk no longer: it is no step."""
        if self.context.kept is not None:
            self.context.kept.release()

    @property
    def scope_id(self) -> str | None:
        """The id of the block in which it was made."""
        return None if self.context.scope is None else self.context.scope.id


@dataclass(slots=True)
class Conversation:
    """Calls that continue each other.

    Attributes:
        n_before: the number of messages before its first call: turns among them belong to earlier episodes.
        calls: its calls, without those that were repeated; only the last one with its messages.
        id: of its episode.
        earlier: its parts before the client trimmed its messages, the first one first.
        is_superseded: whether another answer to the same request came back, and this one did not.
    """

    n_before: int
    calls: list[RecordedCall]
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    earlier: list[Conversation] = field(default_factory=list)
    is_superseded: bool = False

    @property
    def parts(self) -> list[Conversation]:
        """All of its parts, in order, itself last."""
        return [*self.earlier, self]

    @property
    def last(self) -> RecordedCall:
        """The latest call, whose request holds all earlier ones."""
        return self.calls[-1]

    @property
    def has_tools(self) -> bool:
        """Whether tools were offered."""
        return any(call.has_tools for part in self.parts for call in part.calls)

    @property
    def n_bytes(self) -> int:
        """The bytes that are held: each part has the messages of its latest call."""
        return sum(part.last.n_bytes + _CALL_BYTES * len(part.calls) for part in self.parts)

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of the calls that wait for results."""
        return self.last.wire.call_ids(self.last.answer.units)

    @property
    def is_waiting(self) -> bool:
        """Whether the latest answer is not the end of an episode: it has calls, or is cut."""
        answer = self.last.answer
        return answer.has_calls or answer.is_cut

    @property
    def ending(self) -> Ending:
        """The ending of an episode that ends now."""
        answer = self.last.answer
        is_aborted = answer.is_refused or self.last.context.is_side
        return "aborted" if is_aborted else "truncated" if answer.is_cut or answer.has_calls else "terminated"


class _Match(NamedTuple):
    """The conversation that a request continues.

    Attributes:
        conversation: None: it continues none.
        n_known: the number of its messages that were sent before.
        is_trimmed: whether its client left out the first messages.
        answered: the conversation whose answer came back: another one with an equal request, or the same.
        superseded: those with an equal request; they are superseded once this one is answered, all but `conversation`.
    """

    conversation: Conversation | None = None
    n_known: int = 0
    is_trimmed: bool = False
    answered: Conversation | None = None
    superseded: Sequence[Conversation] = ()


class Conversations:
    """The conversations that go on, by their latest requests.

    Args:
        idle_s: a conversation that waits longer for its next call is over; one in a block goes on until its block ends.
        max_bytes: of those outside of blocks; beyond it the one that waits longest is over. As many bytes are held of
            responses that a request may continue by id.

    Not safe for threads: one thread adds the calls.
    """

    def __init__(self, idle_s: float, *, max_bytes: int = _MAX_OPEN_BYTES) -> None:
        self._idle_s, self._max_bytes = idle_s, max_bytes
        self._bytes: dict[str, int] = {}  # of each
        self._scope_bytes: Counter[str | None] = Counter()  # of those of a block; None: outside of blocks
        self._block_bytes = 0  # of those of all blocks
        self._open: dict[str, Conversation] = {}
        self._outside: OrderedDict[str, Conversation] = OrderedDict()  # of blocks; the least recently used first
        self._by_request: dict[_GroupKey[bytes], list[Conversation]] = {}
        self._by_call: dict[_GroupKey[str], list[Conversation]] = {}
        self._responses = ResponseMessages(max_bytes=max_bytes)

    def add(self, call: RecordedCall) -> list[Conversation]:
        """Add a call to the conversation that it continues, and return the conversations that are over.

        Outside of a block an answer without calls ends its conversation, and so does the next message of a user.
        """
        self._read(call)
        over = self.close_stale(call.at)
        match = self._continued(call)
        self._take(match)
        found, n_known, is_trimmed = match.conversation, match.n_known, match.is_trimmed
        before = None if found is None or is_trimmed else found.last
        if before is not None:  # what was sent before is held once
            call.units[:n_known] = before.units
        self._hold(call, before)
        if not call.answer.units or not call.units:
            call.release()
            return over
        in_block = call.context.scope is not None
        if found is not None and not in_block and any(map(call.wire.is_user_message, call.units[n_known:])):
            over.append(self.close(found))
            found = None
        if found is None:
            found, is_trimmed = self._repeated(call), False
        if found is None:
            found = Conversation(len(call.units), [call], call.context.begins or uuid.uuid4().hex)
            if call.context.unit is not None and call.wire.is_user_message(call.units[-1]):
                found.id = call.context.unit
        elif is_trimmed:
            self._forget(found)
            found = Conversation(len(call.units), [call], found.id, found.parts)
        elif found.last.digests[-1] == call.digests[-1]:
            self._forget(found)
            if found.last.answer.is_cut:  # another answer may still come back
                found.last.release()
            found.calls[-1] = call
        else:
            self._forget(found)
            found.calls[-1] = found.last.without_messages()
            found.calls.append(call)
        if not in_block and not found.is_waiting:
            over.append(found)
        else:
            self._remember(found)
        return over

    def close(self, conversation: Conversation) -> Conversation:
        """Forget a conversation, and return it."""
        self._forget(conversation)
        return conversation

    def close_all(self, scope_id: str | None = None) -> list[Conversation]:
        """Forget the conversations of a block, or all without one; return them without the superseded, in order."""
        found = [one for one in self._open.values() if scope_id is None or one.last.scope_id == scope_id]
        closed = [self.close(one) for one in sorted(found, key=lambda one: one.parts[0].calls[0].at)]
        if scope_id is not None:
            _release_superseded(closed)
        return [one for one in closed if not one.is_superseded]

    def with_id(self, id_: str, owner: str | None = None) -> Conversation | None:
        """Return the open conversation of an episode's or a response's id, or the latest of a session; or None.

        Without an owner, a session is one of no owner, and the others are anyone's.
        """
        own = [one for one in self._open.values() if owner in (None, one.last.context.owner)]
        found = next((one for one in own if one.id == id_), None) or next(
            (one for one in own if any(c.answer.id == id_ for part in one.parts for c in part.calls)), None
        )
        sessions = [one for one in self.of_session(id_, owner) if one.last.context.owner == owner]
        return found or next(iter(sessions), None)

    def of_session(self, id_: str, owner: str | None = None) -> list[Conversation]:
        """Return the open conversations of a session's main agent, the latest first; None: of any owner."""
        found = [
            one
            for one in self._open.values()
            if (session := one.last.context.session) is not None
            and not one.is_superseded
            and (session.id, session.lineage) == (id_, None)
            and owner in (None, session.owner)
        ]
        return sorted(found, key=lambda one: one.last.at, reverse=True)

    def episode_id(self, call: RecordedCall) -> str | None:
        """Return the id of the open episode to which a call belongs, by its request alone; None if it begins one."""
        self._read(call)
        if not call.units:
            return None
        match = self._continued(call)
        found, n_known = match.conversation, match.n_known
        in_block = call.context.scope is not None
        if found is not None and not in_block and any(map(call.wire.is_user_message, call.units[n_known:])):
            return None
        cut, going_on = self._repeatable(call)
        found = found or cut or going_on
        return None if found is None else found.id

    def _read(self, call: RecordedCall) -> None:
        """Read the messages of a call's request."""
        call.units = self._all_units(call)
        call.n_units = len(call.units)
        call.digests = message_digests(call.units)
        call.has_tools = call.wire.has_tools(call.body)

    def _all_units(self, call: RecordedCall) -> list[WireItem]:
        """Return the messages of a request, after those of the response that it continues by id."""
        return [*self._responses.before(call.context.owner, call.body), *call.wire.units(call.body)]

    def _hold(self, call: RecordedCall, before: RecordedCall | None) -> None:
        """Count what is held of a call, keep the messages of a response that may be named by its id, drop the rest.

        Args:
            call: its messages were read.
            before: the call whose messages it has sent again.
        """
        if call.n_bytes:
            call.n_bytes += VALUE_BYTES * _n_values([*call.wire.units(call.body), *call.answer.units])
        if call.wire.name == "responses":
            units = [*call.units, *call.answer.units]
            resent = (None, 0) if before is None else (before.answer.id, before.n_bytes)
            owner, id_ = call.context.owner, call.answer.id
            self._responses.keep(owner, id_, call.body, units, call.n_bytes, resent=resent)
        call.body = {}

    def _continued(self, call: RecordedCall) -> _Match:
        """Return the conversation that a request continues. Nothing changes by it: the request may yet be refused.

        It is the one whose latest request is the longest prefix of this one, or else the one whose calls it answers.
        """
        superseded: list[Conversation] = []
        for n_known in range(len(call.units) - 1, 0, -1):
            known = self._by_request.get(_key(call, call.digests[n_known - 1]), ())
            found = [one for one in known if not one.is_superseded or _came_back(one, call, n_known)]
            if not found or not call.wire.is_answer(call.units[n_known]):
                continue
            going_on = [one for one in found if _goes_on(one, call, n_known)]
            if going_on:
                chosen = next((one for one in reversed(going_on) if _came_back(one, call, n_known)), going_on[-1])
                # The answer that came back belongs to the one with a history, of which there is one.
                owner = next((one for one in found if len(one.calls) > 1), chosen)
                return _Match(owner, n_known, answered=chosen, superseded=[*superseded, *found])
            superseded += found
        at = next((at for at in range(len(call.units), 0, -1) if call.wire.is_answer(call.units[at - 1])), 0)
        results = call.wire.result_ids(call.units[at:])
        answered = {id(one): one for name in results for one in self._by_call.get(_key(call, name), ())}
        said = [unit for unit in call.units[:at] if call.wire.is_answer(unit)]
        fitting = [one for one in answered.values() if results <= set(one.call_ids) and _ends_with(said, one.last)]
        if len(fitting) != 1:
            return _Match(superseded=superseded)
        return _Match(fitting[0], at, is_trimmed=True, superseded=superseded)

    def _take(self, match: _Match) -> None:
        """Let a conversation go on with the answer that came back, and supersede the others."""
        found = match.conversation
        if found is not None and match.answered is not None and match.answered is not found:
            self._exchange(found, match.answered)
        for one in match.superseded:
            one.is_superseded = one is not found

    def _exchange(self, one: Conversation, other: Conversation) -> None:
        """Exchange the latest calls of two conversations with one request."""
        for each in (one, other):
            self._forget(each)
        one.calls[-1], other.calls[-1] = other.calls[-1], one.calls[-1]
        for each in (one, other):
            self._remember(each)

    def _repeated(self, call: RecordedCall) -> Conversation | None:
        """Return the conversation whose request this call repeats, if it takes the place of its latest answer.

        It does if that answer was cut, or if the request is in the middle of an episode: then that answer is
        superseded, until the client sends it back.
        """
        cut, going_on = self._repeatable(call)
        if cut is None and going_on is not None:
            self._remember(Conversation(len(call.units), [going_on.last], is_superseded=True))
        return cut or going_on

    def _repeatable(self, call: RecordedCall) -> tuple[Conversation | None, Conversation | None]:
        """Return the conversations whose request a call repeats: one with a cut answer, and one in mid-episode."""
        found = self._by_request.get(_key(call, call.digests[-1]), ())
        cut = next((one for one in reversed(found) if one.last.answer.is_cut), None)
        return cut, next((one for one in found if len(one.calls) > 1), None)

    def close_stale(self, now: float) -> list[Conversation]:
        """Forget the conversations outside of blocks that waited too long or are too many, and return them."""
        over = []
        while self._outside:
            oldest = next(iter(self._outside.values()))
            has_room = len(self._outside) <= _MAX_OPEN and self._scope_bytes[None] <= self._max_bytes
            if has_room and now - oldest.last.at <= self._idle_s:
                break
            over.append(self.close(oldest))
        _release_superseded(over)
        return [one for one in over if not one.is_superseded]

    def block_bytes(self, scope_id: str | None = None) -> int:
        """Return the bytes that are held of the calls of a block; None: of all blocks."""
        return self._block_bytes if scope_id is None else self._scope_bytes[scope_id]

    def unkept_scope_ids(self) -> set[str | None]:
        """Return the ids of the blocks with a call that is not kept on disk."""
        calls = [call for one in self._open.values() for part in one.parts for call in part.calls]
        return {call.scope_id for call in calls if call.context.kept is None}

    def _remember(self, conversation: Conversation) -> None:
        last = conversation.last
        self._open[conversation.id] = conversation
        self._count(conversation, conversation.n_bytes)
        if last.context.scope is None:
            self._outside.pop(conversation.id, None)
            self._outside[conversation.id] = conversation
        self._by_request.setdefault(_key(last, last.digests[-1]), []).append(conversation)
        for name in conversation.call_ids:
            self._by_call.setdefault(_key(last, name), []).append(conversation)

    def _forget(self, conversation: Conversation) -> None:
        if self._open.pop(conversation.id, None) is None:
            return
        last = conversation.last
        self._outside.pop(conversation.id, None)
        self._count(conversation, 0)
        _remove(self._by_request, _key(last, last.digests[-1]), conversation)
        for name in conversation.call_ids:
            _remove(self._by_call, _key(last, name), conversation)

    def _count(self, conversation: Conversation, n_bytes: int) -> None:
        """Count the bytes that are held of a conversation, in place of those before; 0: it is forgotten."""
        scope_id, n_more = conversation.last.scope_id, n_bytes - self._bytes.pop(conversation.id, 0)
        if n_bytes:
            self._bytes[conversation.id] = n_bytes
        self._scope_bytes[scope_id] += n_more
        if scope_id is not None:
            self._block_bytes += n_more
            if not self._scope_bytes[scope_id]:
                del self._scope_bytes[scope_id]


_Key = TypeVar("_Key")
_Name = TypeVar("_Name", bytes, str)


_GroupKey: TypeAlias = tuple[str | None, CallSession | None, str | None, str | None, str, _Name]


def _key(call: RecordedCall, name: _Name) -> _GroupKey[_Name]:
    context = call.context
    return call.scope_id, context.session, context.owner, context.subject, call.wire.name, name


def _release_superseded(closed: Sequence[Conversation]) -> None:
    """Keep the answers no longer that did not come back."""
    for one in closed:
        if one.is_superseded:
            one.last.release()


def _remove(index: dict[_Key, list[Conversation]], key: _Key, conversation: Conversation) -> None:
    index[key] = [one for one in index[key] if one is not conversation]
    if not index[key]:
        del index[key]


def _came_back(one: Conversation, call: RecordedCall, n_known: int) -> bool:
    """Return whether the messages of a request from an index on begin with the latest answer of a conversation."""
    answer = one.last.answer.units
    return call.wire.actions(call.units[n_known : n_known + len(answer)]) == call.wire.actions(answer)


def _goes_on(one: Conversation, call: RecordedCall, n_known: int) -> bool:
    """Return whether a request that begins with the latest one of a conversation has its answer too, or ends it."""
    said = call.units[n_known:]
    if _came_back(one, call, n_known) or any(map(call.wire.is_user_message, said)):
        return True
    n_answered = next((at for at, unit in enumerate(said) if not call.wire.is_answer(unit)), len(said))
    others = call.wire.call_ids(said[:n_answered])
    return not one.last.answer.is_broken_off and (not one.call_ids or not others or bool(one.call_ids & others))


def _ends_with(said: Sequence[WireItem], call: RecordedCall) -> bool:
    """Return whether the last answers in a list of messages have the actions of a call's answer."""
    n_units = len(call.answer.units)
    return call.wire.actions(said[-n_units:]) == call.wire.actions(call.answer.units)


def _n_values(value: object) -> int:
    """Return the number of values in parsed JSON."""
    n_values, left = 0, [value]
    while left:
        one = left.pop()
        n_values += 1
        if isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
    return n_values


def message_digests(units: Sequence[WireItem]) -> list[bytes]:
    """Return the digest of the messages up to each."""
    chain = hashlib.blake2b(digest_size=16)
    digests = []
    for unit in units:
        chain.update(json.dumps(_compared(unit), sort_keys=True, separators=(",", ":")).encode())
        chain.update(b"\n")
        digests.append(chain.digest())
    return digests


def _compared(value: object, *, top: bool = True) -> object:
    """Return a message without what may change while it is the same: cache marks, and ids of items."""
    if isinstance(value, dict):
        left_out = _NOT_COMPARED if top else {"cache_control"}
        return {key: _compared(one, top=False) for key, one in value.items() if key not in left_out}
    return [_compared(one, top=False) for one in value] if isinstance(value, list) else value
