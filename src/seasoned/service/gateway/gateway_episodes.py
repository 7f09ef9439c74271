"""The episode of each forwarded call, by what its client says, and the ends of episodes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from seasoned.integrations.clients.call_recorder import CallRecorder
from seasoned.integrations.clients.conversations import CallContext, CallSession, Conversations, RecordedCall
from seasoned.integrations.clients.episode_scope import CurrentEpisode
from seasoned.integrations.clients.wires.wire_format import ModelAnswer
from seasoned.integrations.rewards.reward_rules import RewardRules
from seasoned.memory import Memory
from seasoned.service.gateway.client_ids import ClientIds, client_ids
from seasoned.service.gateway.forwarder import GatewayRequest
from seasoned.service.gateway.named_episode_ids import NamedEpisodeIds
from seasoned.service.gateway.side_calls import SideCalls
from seasoned.types import Ending

__all__ = ["IDLE_S", "CallPlace", "EpisodeRule", "GatewayEpisodes"]

EpisodeRule = Literal["task", "session", "call"]
"""What is one episode: `task`: from a user's message to the answer without calls; `session`: all calls of a session, or
what `task` says where a client names none; `call`: each call."""

IDLE_S = 1800.0
"""Seconds after which an episode without another call is over."""

_MOST_SUBJECTS = 10_000  # sessions whose subject is known
_MOST_NAMED = 10_000
_MAX_NAMED_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call belongs.

    Args:
        episode_id: the id of its episode.
        context: what is recorded of it.
        is_single: whether the call is the whole episode.
        name: that the client gave the episode; None: it gave none.
    """

    episode_id: str
    context: CallContext
    is_single: bool = False
    name: str | None = None


@dataclass(slots=True)
class _Running:
    """An episode that its client named, or a session that is one."""

    scope: CurrentEpisode
    used_at: float


class GatewayEpisodes:
    """The episodes of one memory's calls.

    `place` runs in the recorder's thread, the other methods in any. It is one of the memory's background recorders,
    before the `CallRecorder`: feedback on a running episode ends it.

    Args:
        memory: that stores the episodes.
        recorder: of the memory.
        rule: what is one episode.
        idle_s: seconds after which an episode without another call is over.
        rewards: rules that reward what tool results show; None: there are none.
        max_named_bytes: of the calls of the running episodes that have a name; beyond it the one without a call for the
            longest time ends, and where there is no other, that of the call.
    """

    def __init__(
        self,
        memory: Memory,
        recorder: CallRecorder,
        rule: EpisodeRule,
        *,
        idle_s: float = IDLE_S,
        rewards: RewardRules | None = None,
        max_named_bytes: int = _MAX_NAMED_BYTES,
    ) -> None:
        self._memory, self._recorder, self._rewards = memory, recorder, rewards
        self._rule, self._idle_s, self._max_named_bytes = rule, idle_s, max_named_bytes
        self._side_calls = SideCalls()
        self._running: OrderedDict[tuple[str | None, str], _Running] = OrderedDict()  # the longest unused first
        self._ending: list[str] = []  # ids of episodes that ended for want of room, and may not be stored yet
        self._subjects: OrderedDict[tuple[str | None, str], str] = OrderedDict()
        self._ids = NamedEpisodeIds(memory)
        self._lock = threading.Lock()
        memory.session.recorders.insert(0, self)

    def place(
        self,
        request: GatewayRequest,
        body: Mapping[str, Any],
        fresh_id: str,
        conversations: Conversations,
        *,
        restored_id: str | None = None,
    ) -> CallPlace:
        """Return where a call belongs.

        Args:
            request: the call.
            body: its parsed body.
            fresh_id: the id of its episode, if it begins one.
            conversations: that are open.
            restored_id: the id of its episode before this process began; None: the call is new.

        Raises:
            InputError: a message is of an unknown kind.
        """
        ids, owner = client_ids(request.session, request.header, body), request.holder.author
        session = None if ids.session is None else CallSession(ids.session, owner)
        context = CallContext(
            task=ids.task,
            policy="gateway:observe",
            session=session,
            owner=owner,
            rewards=self._rewards,
            subject=self._subject(ids, owner),
        )
        episode = ids.episode or (ids.session if self._rule == "session" else None)
        running = None if episode is None else self._running.get((owner, episode))
        if running is not None and context.subject not in (None, running.scope.subject):
            running = None
        if running is not None:
            context = replace(context, scope=running.scope, subject=running.scope.subject)
        call = RecordedCall(request.wire, body, ModelAnswer(()), context)
        known = conversations.episode_id(call)
        lineage = self._lineage(request, body, ids, call, conversations, begins=known is None)
        if lineage is not None:
            context = replace(context, scope=None, session=CallSession(ids.session or "", owner, lineage), is_side=True)
            known = conversations.episode_id(replace(call, context=context))
        elif episode is not None or self._rule == "call":
            self._end_oldest(conversations, before=(owner, episode))
            scope = self._scope(owner, episode, fresh_id, context, restored_id)
            context = replace(context, scope=scope, subject=scope.subject)
            return CallPlace(scope.id, context, is_single=episode is None, name=episode)
        begins = None if known is not None else restored_id or fresh_id
        return CallPlace(known or begins or fresh_id, replace(context, begins=begins))

    def reopened(self, place: CallPlace, context: CallContext) -> CallContext:
        """Return the context of a call that was answered: in the next episode of its name, if its own has ended."""
        if place.name is None or context.scope is None or not context.scope.is_stored:
            return context
        scope = self._scope(context.owner, place.name, "", context, None)
        return replace(context, scope=scope, subject=scope.subject)

    def _lineage(
        self,
        request: GatewayRequest,
        body: Mapping[str, Any],
        ids: ClientIds,
        call: RecordedCall,
        conversations: Conversations,
        *,
        begins: bool,
    ) -> str | None:
        """Return the name of the lineage of a call beside the main agent's work; None of any other."""
        if ids.is_subagent:
            return f"agent {ids.agent or ''}"
        owner = request.holder.author
        key = None if ids.session is None else (owner, ids.session)
        waiting = [] if ids.session is None else conversations.of_session(ids.session, owner)
        return self._side_calls.lineage(
            request.wire, body, key, begins=begins, is_waiting=any(one.is_waiting for one in waiting)
        )

    def _subject(self, ids: ClientIds, owner: str | None) -> str | None:
        """Return whom a call is about: as its client says, or said last in its session."""
        if ids.session is None:
            return ids.subject
        key = (owner, ids.session)
        if ids.subject is not None:
            self._subjects[key] = ids.subject
        if key in self._subjects:
            self._subjects.move_to_end(key)
        if len(self._subjects) > _MOST_SUBJECTS:
            self._subjects.popitem(last=False)
        return self._subjects.get(key)

    def _scope(
        self, owner: str | None, episode: str | None, fresh_id: str, context: CallContext, restored_id: str | None
    ) -> CurrentEpisode:
        """Return the running episode that a client names; without a name, one of this call alone.

        An episode has one subject, so that an erasure reaches all that was said about it: another one ends it.
        """
        task, subject = context.task, context.subject
        if episode is None:
            return CurrentEpisode(task, restored_id or fresh_id, subject, None, takes_free_id=True)
        ended: CurrentEpisode | None = None
        with self._lock:
            running = self._running.get((owner, episode))
            if running is not None and subject not in (None, running.scope.subject):
                ended, running = running.scope, None
            if running is None:
                id_ = restored_id or self._ids.take(episode, self._running_ids)
                scope = CurrentEpisode(task, id_, subject, None, takes_free_id=True)
                running = self._running[owner, episode] = _Running(scope, 0.0)
            running.used_at = time.time()
            self._running.move_to_end((owner, episode))
        if ended is not None:
            self._end_scope(ended, "terminated")
        return running.scope

    def _end_oldest(self, conversations: Conversations, before: tuple[str | None, str | None]) -> None:
        """End the named episodes that were not used for the longest time, as long as all are too many or too large.

        The last to end is the one that is used next, which then begins anew: it may be too large alone.
        """
        self._ending = [id_ for id_ in self._ending if conversations.block_bytes(id_)]
        n_bytes = conversations.block_bytes() - sum(map(conversations.block_bytes, self._ending))
        ended = []
        with self._lock:
            owner, name = before
            if name is not None and (owner, name) in self._running:
                self._running.move_to_end((owner, name))
            while self._running and (len(self._running) > _MOST_NAMED or n_bytes > self._max_named_bytes):
                _, oldest = self._running.popitem(last=False)
                n_bytes -= conversations.block_bytes(oldest.scope.id)
                ended.append(oldest.scope)
        for scope in ended:
            self._ending.append(scope.id)
            self._end_scope(scope, "truncated")

    @property
    def _running_ids(self) -> set[str]:
        return {one.scope.id for one in self._running.values()}

    def end_single(self, place: CallPlace) -> None:
        """End the episode of one call, which was submitted."""
        if place.is_single and place.context.scope is not None:
            self._end_scope(place.context.scope, "terminated")

    # ------------------------------------------------------------------------------------------------------- ends

    def end(self, id_: str, owner: str | None, ending: Ending | None = None) -> list[str]:
        """Store the running episode with this id, or those of this session; return their ids, or nothing.

        Args:
            id_: of an episode, a session, or a response.
            owner: whose session it is.
            ending: None: as its calls say.

        Raises:
            StoreError: the store failed, so that the episodes wait.
        """
        ended = self._end_named(id_, owner, ending or "terminated")
        ended += self._recorder.end(id_, owner, ending)
        if ended:
            self._recorder.settle()
        return ended

    def end_stale(self) -> None:
        """Store the episodes without another call in time."""
        with self._lock:
            before = time.time() - self._idle_s
            stale = [key for key, one in self._running.items() if one.used_at < before]
            scopes = [self._running.pop(key).scope for key in stale]
        for scope in scopes:
            self._end_scope(scope, "truncated")
        self._recorder.end_stale()

    def end_named(self, *, with_kept: bool = True) -> None:
        """Store the running episodes that have a name, with those whose calls are all kept on disk or without."""
        unkept = set() if with_kept else self._recorder.ask(lambda open_: open_.unkept_scope_ids()).result()
        with self._lock:
            named = [key for key, one in self._running.items() if with_kept or one.scope.id in unkept]
            scopes = [self._running.pop(key).scope for key in named]
        for scope in scopes:
            self._end_scope(scope, "truncated")

    def session_episode(self, id_: str, owner: str | None) -> str | None:
        """Return the id of the running episode that an owner named so; None: none runs."""
        with self._lock:
            running = self._running.get((owner, id_))
        return None if running is None or (owner is None and running.scope.id != id_) else running.scope.id

    def is_anothers(self, id_: str, owner: str) -> bool:
        """Return whether the running episode with this id has another owner; the recorder knows those of responses."""
        with self._lock:
            return any(one.scope.id == id_ and key[0] != owner for key, one in self._running.items())

    def settle(self, id_: str | None = None) -> None:
        """End the running episode with this id, or of this response: there is feedback on it."""
        if id_ is None or self._recorder.is_own_thread:
            return
        found = self._recorder.ask(lambda conversations: conversations.with_id(id_)).result()
        scope = None if found is None else found.last.context.scope
        self._end_named(id_ if scope is None else scope.id, None, "terminated")

    def close(self) -> None:
        """Leave what runs: the recorder stores it, or the spool keeps it."""
        self._ids.close()

    def _end_named(self, id_: str, owner: str | None, ending: Ending) -> list[str]:
        with self._lock:
            running = self._running.items()
            named = [key for key, one in running if one.scope.id == id_ and owner in (None, key[0])]
            named = named or [key for key in self._running if key == (owner, id_)]
            scopes = [self._running.pop(key).scope for key in named]
        for scope in scopes:
            self._end_scope(scope, ending)
        return [scope.id for scope in scopes]

    def _end_scope(self, scope: CurrentEpisode, ending: Ending) -> None:
        scope.is_over = True
        self._recorder.end_scope(scope, ending)
