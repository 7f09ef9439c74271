"""Holdout of a wrapped client: which episodes memory takes part in, and which call belongs to which."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from seasoned.checks import check_flag
from seasoned.integrations.clients.call_decisions import CallDecisions, options_to_decide
from seasoned.integrations.clients.call_modes import CallMode, CallVotes, PromptText
from seasoned.integrations.clients.conversations import ShadowNote, message_digests
from seasoned.integrations.clients.episode_scope import CurrentEpisode
from seasoned.integrations.clients.prompt_block import without_blocks
from seasoned.integrations.clients.wires.wire_format import ModelAnswer, WireFormat, as_name
from seasoned.memory import Memory
from seasoned.policies.base_policy import ModelAlone
from seasoned.policies.holdout import Holdout
from seasoned.types.lift_records import ShadowPrompt, UnitArm
from seasoned.types.notes import SHADOW, SHADOW_PROMPT

__all__ = ["CallArms", "CallHoldout"]

_MOST_OPEN = 10_000
_FAMILY = "conversations"


@dataclass(frozen=True, slots=True)
class CallHoldout:
    """Settings of the holdout of a wrapped client, as of `seasoned.Holdout`.

    Args:
        bounds: the lowest and the highest outcome of an episode, the sum of its rewards.
        family: of the lift; None: the task that was passed to `wrap` or to the block, and where there is none
            `conversations`.
        epoch: what else must stay the same while outcomes are compared, such as the version of the prompt, or the
            options of an `Examples` or an `Advisor`. The mode, the model and a policy's settings are included.
        shadow: whether to note beside each step of the control group what memory would have done. It is asked in the
            background, after the answer, without a call of the model.

    Example:
        >>> CallHoldout(bounds=(-1.0, 1.0)).family
    """

    bounds: tuple[float, float] = (0.0, 1.0)
    family: str | None = None
    epoch: str | None = None
    shadow: bool = True


class CallArms:
    """Assigns the episodes of one wrapped client to memory or to the control group.

    The unit is the episode that the recorder opens: the block in which a call is made, or else what began with the last
    message of the user. A request that ends with this message opens one; the calls that follow are known by the digest
    of the messages up to it, or by the response that they continue.

    Args:
        settings: of the holdout.
        mode: of the client.
        memory: stores the assignments.
        client: the name of the kind of client, in the epoch and in the policy of the control group.

    Raises:
        InputError: a setting breaks its rule.
    """

    def __init__(self, settings: CallHoldout, mode: CallMode, memory: Memory, client: str = "wrap") -> None:
        check_flag("shadow", settings.shadow)
        self.control_policy = f"{client}:observe"
        self._shadow_mode = mode if settings.shadow else None
        policy = mode.policy if isinstance(mode, CallVotes | CallDecisions) else ModelAlone()
        detail = f"n={mode.n}" if isinstance(mode, CallVotes) else ""
        detail = f"{mode.method}, n={mode.n}" if isinstance(mode, CallDecisions) else detail
        parts = (f"{client}:{mode.name}", detail, settings.epoch or "")
        self._holdout = Holdout(
            policy, memory, bounds=settings.bounds, family=settings.family, epoch="; ".join(filter(None, parts))
        )
        self._lock = threading.Lock()
        self._units: OrderedDict[bytes | str, str] = OrderedDict()

    def unit(
        self,
        wire: WireFormat,
        body: Mapping[str, Any],
        scope: CurrentEpisode | None,
        settle: Callable[[], object] = lambda: None,
    ) -> str:
        """Return the id of the episode of a request.

        Args:
            wire: the API.
            body: the request.
            scope: the block in which it is made.
            settle: waits until the calls so far are read, among them the response that a request continues by its id.

        Raises:
            InputError: a message cannot be read.
        """
        if scope is not None:
            return scope.id
        units = without_blocks(wire.units(body))
        last = max((at for at, one in enumerate(units) if wire.is_user_message(one)), default=-1)
        continued = as_name(body.get("previous_response_id"))
        if last < 0 and continued is not None:
            with self._lock:
                known = self._units.get(continued)
            if known is None:
                settle()
            return self._kept(continued)
        if units and last == len(units) - 1:  # the first request of an episode
            return self._kept(message_digests(units)[-1], uuid.uuid4().hex)
        return self._kept(message_digests(units[: last + 1])[-1] if last >= 0 else b"")

    def arm(self, unit: str, task: str | None, model: str) -> UnitArm:
        """Return the arm of an episode, which is stored before this returns.

        Raises:
            StoreError: the store failed.
        """
        return self._holdout.assign(task=task or _FAMILY, unit=unit, model=model).arm

    def shadow(
        self, wire: WireFormat, body: Mapping[str, Any], answer: ModelAnswer, task: str | None
    ) -> ShadowNote | None:
        """Return what memory would have done with a request that the model answered alone.

        None: nothing, or it is not known. By votes the choice depends on answers that nobody asked for.

        Args:
            wire: the API.
            body: the request.
            answer: of the model.
            task: of the episode, if it is known.

        Raises:
            InputError: a message cannot be read.
            StoreError: the store failed.
        """
        mode, units = self._shadow_mode, without_blocks(wire.units(body))
        if mode is None or not units:
            return None
        moment = wire.moment(units)
        if isinstance(mode, PromptText):
            recalled = mode.recall(moment, task, partial(wire.can_call, body))
            prompt = ShadowPrompt(recalled.shown, recalled.prefer, recalled.avoid)
            return ShadowNote(SHADOW_PROMPT, prompt.record()) if recalled.text else None
        options, actions = options_to_decide(wire, body), wire.actions(answer.units)
        if not isinstance(mode, CallDecisions) or options is None or not actions:
            return None
        shadow = mode.shadow(actions[0], is_call=answer.has_calls, options=options, moment=moment, task=task)
        return None if shadow is None else ShadowNote(SHADOW, shadow.record())

    def answered(self, response_id: str, unit: str) -> None:
        """Note to which episode a response belongs, for requests that name it."""
        self._kept(response_id, unit)

    def _kept(self, key: bytes | str, unit: str | None = None) -> str:
        """Return the unit that this key names from now on; without one, that which it names, or a new one."""
        with self._lock:
            found = unit or self._units.get(key) or uuid.uuid4().hex
            self._units[key] = found
            self._units.move_to_end(key)
            while len(self._units) > _MOST_OPEN:
                self._units.popitem(last=False)
            return found
