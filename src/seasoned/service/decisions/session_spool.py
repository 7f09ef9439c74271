"""Spool of the running episodes of sessions: a file for each decision, so that a killed service loses none."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seasoned.errors import ConfigError, EpisodeConflictError, SeasonedError, StoreError
from seasoned.memory import EpisodeRecorder, Memory
from seasoned.service.gateway.call_spool import CallFile, CallSpool, SpooledCall
from seasoned.service.gateway.named_episode_ids import free_episode_id

__all__ = ["SessionSpool", "SpooledEpisode"]

_log = logging.getLogger("seasoned.service")


@dataclass(eq=False)
class SpooledEpisode:
    """The files of one running episode.

    Args:
        namespace: of its memory.
        task, subject: of the episode.
        key: names it in its files; its id may change.
        files: of its decisions.
        n_notes: the number of its notes that are in files.
    """

    namespace: str
    task: str
    subject: str | None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    files: list[CallFile] = field(default_factory=list)
    n_notes: int = 0

    def release(self) -> None:
        """Remove the files: the episode is stored."""
        for file in self.files:
            file.release()
        self.files.clear()


class SessionSpool:
    """Keeps the decisions of running episodes on disk, as `CallSpool` keeps calls. Its methods may run in any thread.

    A file is written before the client has the answer. The next process stores the episodes that a killed one left,
    with the decisions that were answered; their sessions go on in other episodes.

    Args:
        root: a folder for all processes with one memory; made with the first decision of a session.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._spool: CallSpool | None = None
        self._lock = threading.Lock()

    def _open(self) -> CallSpool:
        with self._lock:
            if self._spool is None:
                self._spool = CallSpool(self._root)
            return self._spool

    def write(self, episode: SpooledEpisode, recorder: EpisodeRecorder, response_id: str, **fields: str | None) -> None:
        """Write the last step of an episode, and the notes that are new.

        Args:
            episode: its files.
            recorder: of its steps.
            response_id: the id of the decision's answer.
            fields: the policy and the model, if they are known.
        """
        facts: dict[str, Any] = {"namespace": episode.namespace, "key": episode.key, "id": recorder.id, **fields}
        facts |= {"response": response_id, "task": episode.task, "subject": episode.subject}
        step, notes = recorder.steps[-1], recorder.noted(episode.n_notes)
        body = {
            "step": [step.state, step.action, None if step.prior is None else dict(step.prior), step.propensity],
            "notes": notes,
        }
        try:
            kept = self._open().write(facts, json.dumps(body).encode())
        except ConfigError as error:
            _log.error("LOST if this process is killed: decisions of sessions cannot be spooled (%s).", error)
            return
        if kept is not None:
            episode.files.append(kept)
        episode.n_notes += len(notes)

    def restore(self, memories: Mapping[str, Memory]) -> int:
        """Store the episodes that other processes have left, and return how many there were.

        Args:
            memories: by namespace; the episodes of others stay where they are.
        """
        if not self._root.is_dir():
            return 0
        found: dict[str, list[tuple[SpooledCall, CallFile]]] = {}
        for spooled, kept in self._open().read():
            if spooled.facts.get("namespace") in memories:
                found.setdefault(str(spooled.facts.get("key")), []).append((spooled, kept))
        for decisions in found.values():
            first = decisions[0][0].facts
            try:
                _restore(memories[first["namespace"]], [spooled for spooled, _ in decisions])
            except StoreError as error:
                _log.error("The spooled episode %s is not stored: %s", first.get("id"), error)
                continue
            except (SeasonedError, ValueError, KeyError, TypeError) as error:
                for _, kept in decisions:
                    kept.set_aside(error)
                continue
            for _, kept in decisions:
                kept.release()
        return len(found)

    def close(self) -> None:
        """Leave the files that are left for the next process."""
        with self._lock:
            if self._spool is not None:
                self._spool.close()


def _restore(memory: Memory, decisions: Sequence[SpooledCall]) -> None:
    """Store an episode, unless it was stored before its process ended."""
    first = decisions[0].facts
    if memory.response_step(first["response"]) is not None:
        return
    recorder = memory.episode(
        first["task"],
        id=first["id"],
        model=first.get("model"),
        policy=first.get("policy"),
        subject=first["subject"],
        awaits_feedback=True,
    )
    for decision in decisions:
        body: dict[str, Any] = json.loads(decision.body)
        state, action, prior, propensity = body["step"]
        recorder.record(state, action, prior=prior, propensity=propensity)
        for note in body["notes"]:
            recorder.note(**note)
    recorder.ending = "truncated"
    try:
        recorder.commit()
    except EpisodeConflictError:
        recorder.id = free_episode_id(memory, recorder.id, ())
        recorder.commit()
