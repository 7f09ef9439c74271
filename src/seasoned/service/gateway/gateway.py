"""The gateway of a service: its addresses, and what records the calls of each memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import threading
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from seasoned.checks import check_flag, check_number, check_one_of, check_whole
from seasoned.errors import StoreError, excerpt
from seasoned.integrations.clients.call_recorder import recorder_of
from seasoned.integrations.rewards.reward_rules import RewardRules
from seasoned.memory import Memory
from seasoned.service.gateway.api_paths import FORWARDED
from seasoned.service.gateway.call_spool import CallSpool
from seasoned.service.gateway.call_taps import ID_WAIT_S, MODE_WAIT_S, CallChange, RecordedTap, restore_call
from seasoned.service.gateway.family_modes import N_ANSWERS, FamilyMode, FamilyModes, check_modes
from seasoned.service.gateway.forwarder import CallTap, Forwarder, GatewayRequest
from seasoned.service.gateway.gateway_episodes import IDLE_S, EpisodeRule, GatewayEpisodes
from seasoned.service.gateway.gateway_shares import ModeThreads
from seasoned.service.gateway.upstream_streams import SILENCE_S, UpstreamStreams
from seasoned.service.memory_pool import MemoryPool
from seasoned.types import Ending

__all__ = ["Gateway", "GatewaySettings"]

RESTORE_WAIT_S = 10.0
"""Seconds that the start waits for the calls of earlier processes."""

_TICK_S = 30.0
_METHODS = ["GET", "POST", "DELETE"]
_log = logging.getLogger("seasoned.service")


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """How calls are forwarded and recorded.

    Args:
        episode: what is one episode, see `EpisodeRule`.
        idle_s: seconds after which an episode without another call is over.
        silence_s: seconds without a byte of the upstream server before an answer is given up.
        spool: the folder for calls whose episode is not stored; None: a killed process loses these.
        modes: what memory does with calls, by task family, in each namespace (`FamilyModes`).
        holdout: whether a share of the episodes gets no memory, where a mode is on.
        mode_wait_s: seconds that our work may add to a call, over all steps of a mode; then the call goes on as its
            client made it.
        id_wait_s: seconds of these that an answer waits for the id of its episode; then its header is left out.
        n_answers: how many answers the mode `rerank` asks for, and `decide` where a server returns no logprobs.
        changes: other modes by namespace, which go before `modes`.
        restore_wait_s: seconds that the start waits for the calls of earlier processes to be recorded.

    Raises:
        InputError: a value breaks its rule.
    """

    episode: EpisodeRule = "task"
    idle_s: float = IDLE_S
    silence_s: float = SILENCE_S
    spool: Path | None = None
    modes: Mapping[str, FamilyMode] = field(default_factory=dict)
    holdout: bool = True
    mode_wait_s: float = MODE_WAIT_S
    id_wait_s: float = ID_WAIT_S
    n_answers: int = N_ANSWERS
    changes: Mapping[str, CallChange] = field(default_factory=dict)
    restore_wait_s: float = RESTORE_WAIT_S

    def __post_init__(self) -> None:
        check_one_of("episode", self.episode, get_args(EpisodeRule))
        check_number("idle_s", self.idle_s, above=0.0)
        check_number("mode_wait_s", self.mode_wait_s, above=0.0)
        check_number("id_wait_s", self.id_wait_s, above=0.0)
        check_modes(self.modes)
        check_flag("holdout", self.holdout)
        check_whole("n_answers", self.n_answers, 2)
        check_number("silence_s", self.silence_s, above=0.0)
        check_number("restore_wait_s", self.restore_wait_s, above=0.0)


class Gateway:
    """Forwards the calls of model APIs to an upstream server, and records them.

    Args:
        upstream: URL of the server.
        pool: of the served memories.
        settings: of the gateway.
        n_tokens: how many tokens the service has; 0: it has none.
        key: for the upstream server, sent where the client's own is not.
        rewards: rules that reward what tool results show; None: there are none.

    Raises:
        InputError: the URL is wrong.
        ConfigError: the folder for calls cannot be made.
    """

    def __init__(
        self,
        upstream: str,
        pool: MemoryPool,
        settings: GatewaySettings,
        *,
        n_tokens: int,
        key: str | None = None,
        rewards: RewardRules | None = None,
    ) -> None:
        self._pool, self._settings, self._rewards = pool, settings, rewards
        self._streams = UpstreamStreams(upstream, silence_s=settings.silence_s)
        self._forwarder = Forwarder(self._streams, self, name=uuid.uuid4().hex[:12], n_tokens=n_tokens, key=key)
        self._episodes = {
            name: GatewayEpisodes(
                pool.memory(name),
                recorder_of(pool.memory(name), idle_s=settings.idle_s),
                settings.episode,
                idle_s=settings.idle_s,
                rewards=rewards,
            )
            for name in pool.names()
        }
        self._changes: dict[str, CallChange] = {
            name: FamilyModes(
                pool.memory(name),
                settings.modes,
                holdout=settings.holdout,
                n_answers=settings.n_answers,
                wait_s=settings.mode_wait_s,
            )
            for name in (pool.names() if settings.modes else ())
        }
        self._changes.update(settings.changes)
        self._threads = ModeThreads()
        self._spool = None if settings.spool is None else CallSpool(settings.spool)

    def add_to(self, app: Any) -> None:
        """Add the forwarded addresses to an application."""
        from starlette.routing import Route as StarletteRoute

        for path in FORWARDED:
            for full in (path, f"{path}/{{rest:path}}"):
                app.router.routes.append(StarletteRoute(full, self._forwarder, methods=_METHODS))

    def end_calls(self, memory: Memory, id_: str, owner: str | None, ending: Ending | None) -> list[str]:
        """Store the running episode with this id, or those of this session; return their ids, or nothing.

        Raises:
            StoreError: the store failed, so that the episodes wait.
        """
        return self._episodes[memory.namespace].end(id_, owner, ending)

    def open(self, request: GatewayRequest) -> CallTap:
        """Return the tap of a call. InputError, NotFoundError: no such namespace."""
        memory = self._pool.memory(request.namespace)
        return RecordedTap(
            request,
            memory,
            recorder_of(memory),
            self._episodes[memory.namespace],
            threads=self._threads,
            spool=self._spool_of(memory),
            change=self._changes.get(memory.namespace),
            mode_wait_s=self._settings.mode_wait_s,
            id_wait_s=self._settings.id_wait_s,
        )

    def _spool_of(self, memory: Memory) -> CallSpool | None:
        """Return what keeps the calls of a memory: nothing where texts must be redacted before they are stored."""
        return None if memory.session.redaction.rewrites or memory.session.store.read_only else self._spool

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Record the calls of earlier processes first, and end idle episodes while this runs.

        Where there is no room for all of them in `restore_wait_s`, as while the store is down, the rest is recorded
        while the service answers.
        """
        self._warn_of_silence()
        is_stopping = threading.Event()
        restoring = asyncio.ensure_future(asyncio.to_thread(self._restore, is_stopping))
        await asyncio.wait((restoring,), timeout=self._settings.restore_wait_s)
        if restoring.done():
            restoring.result()
        else:
            _log.warning("Calls of earlier processes wait for room; they are recorded while the service answers.")
        ticks = asyncio.ensure_future(self._tick())
        try:
            yield
        finally:
            ticks.cancel()
            is_stopping.set()
            [error] = await asyncio.gather(restoring, return_exceptions=True)
            if error is not None:
                _log.error("Calls of earlier processes are left for the next one: %s", error)
            self._streams.close()
            self._threads.close()
            for name, episodes in self._episodes.items():
                is_spooled = self._spool_of(self._pool.memory(name)) is not None
                episodes.end_named(with_kept=not is_spooled)  # calls on disk go on in the next process
            if self._spool is not None:
                self._spool.close()

    def _warn_of_silence(self) -> None:
        """Warn where a lift is measured by rules, and episodes in which no rule finds anything are not rated."""
        if self._rewards is None or not self._settings.holdout or set(self._settings.modes.values()) <= {"observe"}:
            return
        for name in self._pool.names():
            memory = self._pool.memory(name)
            policy = memory.feedback_rule().policy
            if not memory.session.store.read_only and (policy is None or policy.deadline_s is None):
                _log.warning(
                    "The lift of memory in the namespace %s compares only episodes that a rule or a person has judged. "
                    "If rules find failures alone, these are the episodes that failed. If silence is good news, say "
                    "so: seasoned memory limits MEMORY --namespace %s --deadline 1h --silence 0",
                    excerpt(name),
                    shlex.quote(name),
                )

    def _restore(self, is_stopping: threading.Event) -> None:
        for spooled, kept in () if self._spool is None else self._spool.read():
            if is_stopping.is_set():  # the rest stays on disk for the next process
                return
            name = spooled.facts.get("namespace")
            if name not in self._episodes:
                continue
            memory = self._pool.memory(name)
            try:
                restore_call(spooled, kept, memory, recorder_of(memory), self._episodes[name], is_stopping)
            except StoreError as error:
                _log.error("The spooled call %s is not recorded: %s", kept.path.name, error)
            except Exception as error:
                kept.set_aside(error)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(min(_TICK_S, self._settings.idle_s))
            for episodes in self._episodes.values():
                episodes.end_stale()
