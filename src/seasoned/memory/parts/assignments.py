"""Assignment of episodes to memory or to the control group, and the lift: a part of `Memory`."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence

from seasoned.checks import check_number, check_text, check_whole
from seasoned.core.lift.assignment import control_share, unit_number
from seasoned.errors import EpisodeConflictError, InputError, excerpt
from seasoned.memory.lift.episode_costs import CostLedger, KnownCost
from seasoned.memory.lift.estimate import control_shares, estimate_histories, estimate_lifts
from seasoned.memory.lift.ledger import AssignedUnit, FamilyUnits, LiftLedger
from seasoned.memory.parts.switch_log import SwitchLog
from seasoned.memory.session import Session
from seasoned.memory.values.derived_ids import ASSIGNMENT_PREFIX
from seasoned.memory.values.redacted import RedactedNote
from seasoned.memory.writing.note_records import read_notes
from seasoned.protocols.recorded_episode import RecordedEpisode, recorded_episode
from seasoned.types import Episode, Note
from seasoned.types.lift_records import Assignment, Lift, LiftHistory, UnitArm
from seasoned.types.notes import ASSIGNMENT

__all__ = ["Assignments", "advance_assignment_id"]

_CACHED_UNITS = 1 << 16
_SALT_BYTES = 16
_PAUSED_SHARE = 1.0 - 2.0**-53
"""The share of control of a paused family: every unit's."""

_log = logging.getLogger(__name__)


def advance_assignment_id(unit: str) -> str:
    """Return the id of the empty episode that holds the assignment of a unit whose episode is not recorded yet.

    Example:
        >>> advance_assignment_id("e1")
        'assignment:e1'
    """
    return f"{ASSIGNMENT_PREFIX}{unit}"


class Assignments:
    """Assigns units of one namespace, and estimates the lift.

    Args:
        session: the namespace.
        owner: the memory whose recorders are meant.
        add: stores an episode with notes.
        checked: checks and redacts a caller's note.
        switches: know the paused families.
    """

    def __init__(
        self,
        session: Session,
        owner: object,
        add: Callable[[Episode, Sequence[RedactedNote]], str],
        checked: Callable[[Note], RedactedNote],
        switches: SwitchLog,
    ) -> None:
        self._session = session
        self._owner = weakref.ref(owner)
        self._add = add
        self._checked = checked
        self._switches = switches
        self._lock = threading.RLock()
        self._ledger = LiftLedger(session.store, session.namespace_id)
        self._costs = CostLedger(session.store, session.namespace_id)
        self._shares: dict[tuple[str, str], float] = {}
        self._told: dict[tuple[str, str], int] = {}
        self._salt: str | None = None
        self._recorded: weakref.WeakKeyDictionary[RecordedEpisode, Assignment] = weakref.WeakKeyDictionary()
        self._named: OrderedDict[str, Assignment] = OrderedDict()

    def assign(
        self, *, family: str | None, epoch: str, bounds: tuple[float, float], unit: str | None = None
    ) -> Assignment:
        """Assign a unit, an episode, to memory or to the control group, and store that; again: the same assignment.

        The share of control is 0.5 at first, and falls to 0.1 with the number of rated units of the family and epoch
        (`seasoned.core.lift.assignment.control_share`); it is 0.95 where memory is harmful. A unit keeps its arm,
        whatever happens to the share, and in whichever process its next decision falls.

        The assignment of the episode that is being recorded is committed with it, as a note. That of a named unit is
        committed at once, as the note of an empty aborted episode `assignment:UNIT`, since its episode may never come.

        While the family is paused (`pause`), the answer is the control group, and nothing is stored.

        Args:
            family: of the lift; it may be None if the unit is assigned already.
            epoch: 16 hexadecimal digits; another one starts afresh.
            bounds: the lowest and the highest outcome of an episode, the sum of its rewards.
            unit: id of the episode; None: the one that this memory records in this context.

        Raises:
            InputError: no episode is being recorded, and no unit is named; or no family; or a value breaks a rule.
            StoreError: the store failed; nothing was written.
        """
        recorded = recorded_episode(self._owner())
        if unit is not None:
            check_text("unit", unit)
            if recorded is not None and recorded.id != unit:
                recorded = None
        elif recorded is None:
            raise InputError(
                "no unit",
                "the unit of a holdout is an episode, which its id names",
                "Decide inside `with memory.episode(task=...)`, or pass unit=, the id that the episode will have.",
            )
        name = recorded.id if unit is None and recorded is not None else str(unit)
        if family is not None and self._switches.pause_of(family) is not None:
            salt, namespace = self._salt or "none", self._session.namespace
            return Assignment(family, epoch, name, salt, namespace, 0.0, _PAUSED_SHARE, "control", *bounds)
        with self._lock:
            known = self._named.get(name) if recorded is None else self._recorded.get(recorded)
            if known is None:
                known = self._new(name, family, epoch, bounds, recorded)
            if recorded is None:
                self._named[name] = known
                self._named.move_to_end(name)
                if len(self._named) > _CACHED_UNITS:
                    self._named.popitem(last=False)
            else:
                self._recorded[recorded] = known
                recorded.is_compared = True
            return known

    def lift(self, *, alpha: float = 0.05) -> dict[str, Lift]:
        """Return the lift of each family that has an assignment, in the order of their names."""
        families, _, costs = self._refreshed()
        return estimate_lifts(families, costs, alpha=alpha)

    def lift_history(self, *, points: int = 24, alpha: float = 0.05) -> dict[str, LiftHistory]:
        """Return the lift of each family with its course in at most so many points, and with its epochs.

        Every point follows from the stored episodes: it is the lift after the first n ratings, with the feedback that
        counts now.

        Raises:
            InputError: `points` is no whole number from 1 to 1,000, or alpha is not in (0, 1).

        Example:
            >>> from seasoned import Holdout, JitRL, Memory
            >>> with Memory.open(":memory:") as memory:
            ...     policy = Holdout(JitRL(memory), memory)
            ...     for _ in range(8):
            ...         with memory.episode(task="checkout") as episode:
            ...             decision = policy.decide("page:cart", {"click(pay)": -0.3, "click(back)": -1.4})
            ...             episode.record("page:cart", decision, reward=1.0)
            ...     found = memory.lift_history(points=4)["checkout"]
            >>> [point.n_rated for point in found.points], found.epochs[0].n_assigned
            ([2, 4, 6, 8], 8)
        """
        check_whole("points", points, 1, 1000)
        families, units, costs = self._refreshed()
        return estimate_histories(families, units, costs, points=points, alpha=alpha)

    def _refreshed(self) -> tuple[dict[str, FamilyUnits], list[AssignedUnit], dict[str, KnownCost]]:
        """Return the units by family, in the order of the names, those of all epochs, and the costs of episodes."""

        def read() -> tuple[dict[str, FamilyUnits], dict[str, KnownCost]]:
            return self._refresh(), self._costs.refresh()

        with self._lock:
            families, costs = self._session.read(read)
            return dict(sorted(families.items())), self._ledger.units, costs

    def _new(
        self, unit: str, family: str | None, epoch: str, bounds: tuple[float, float], recorded: RecordedEpisode | None
    ) -> Assignment:
        low = check_number("lowest outcome", bounds[0])
        high = check_number("highest outcome", bounds[1], above=low)
        assigned = self._session.read(lambda: self._stored(unit))
        if assigned is None:
            if family is None:
                raise InputError("no family", "a lift is of a family of episodes", "Pass task=, or name a family.")
            family = self._session.redaction.query(check_text("family", family))
            salt = self._salt or secrets.token_hex(_SALT_BYTES)
            self._salt = salt
            u = unit_number(salt, self._session.namespace, unit)
            share = self._shares.get((family, epoch), control_share(0))
            arm: UnitArm = "control" if u < share else "treated"
            assigned = Assignment(family, epoch, unit, salt, self._session.namespace, u, share, arm, low, high)
            if recorded is None:
                return self._commit(assigned)
        if recorded is not None:
            recorded.note(ASSIGNMENT, assigned.record())
        return assigned

    def _stored(self, unit: str) -> Assignment | None:
        """Return the stored assignment of a unit, after a refresh of the shares if one is due."""
        if self._ledger.is_due():
            self._refresh()
        store, namespace_id = self._session.store, self._session.namespace_id
        for episode_id in (advance_assignment_id(unit), unit):
            for _, note in read_notes(store, namespace_id, kind=ASSIGNMENT, episode_id=episode_id, unrevoked=True):
                with contextlib.suppress(InputError):  # a malformed one, which `verify` lists
                    assignment = Assignment.from_record(note.body)
                    if assignment.unit == unit:
                        return assignment
        return None

    def _refresh(self) -> dict[str, FamilyUnits]:
        """Return the units by family as they are stored now, after which the next assignments are drawn.

        Whoever refreshes the ledger sets the shares too: it is due again only after more commits.
        """
        self._ledger.refresh()
        families = self._families()
        shares = control_shares(families)
        self._shares = {(name, family.epoch): shares[name] for name, family in families.items()}
        own = (one.salt for one in self._ledger.assignments if one.namespace == self._session.namespace)
        self._salt = next(own, self._salt)
        return families

    def _families(self) -> dict[str, FamilyUnits]:
        """Return the units by family, and tell the log of outcomes out of bounds when there are more of them."""
        families = dict(self._ledger.families)
        for name, family in families.items():
            n, key = len(family.out_of_bounds), (name, family.epoch)
            if n > self._told.get(key, 0):
                _log.warning("family %s: %s", excerpt(name), family.out_of_bounds_text)
            self._told[key] = n
        return families

    def _commit(self, assigned: Assignment) -> Assignment:
        """Store an assignment whose episode is not recorded here, or return the one that another process stored."""
        id_ = advance_assignment_id(assigned.unit)
        episode = Episode(assigned.family, [], id_, ending="aborted", arm=assigned.arm)
        note = self._checked(Note(f"{id_}/0", id_, None, ASSIGNMENT, assigned.record(), "agent", None, time.time()))
        try:
            self._add(episode, [note])
        except EpisodeConflictError:
            stored = self._session.read(lambda: self._stored(assigned.unit))
            if stored is None:
                raise
            return stored
        return assigned
