"""Modes of a gateway by task family: memory's text in a request, a demanded tool, or a choice among answers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from seasoned.checks import check_mapping, check_one_of, check_text
from seasoned.errors import excerpt
from seasoned.integrations.clients.call_decisions import CallDecisions, options_to_decide
from seasoned.integrations.clients.call_holdout import CallArms, CallHoldout
from seasoned.integrations.clients.call_modes import AdviceText, CallMode, CallVotes, ExampleText, warm_up
from seasoned.integrations.clients.call_recorder import recorder_of
from seasoned.integrations.clients.conversations import CallContext, ShadowNote
from seasoned.integrations.clients.observed_call import CallGuard
from seasoned.integrations.clients.planned_call import WrappedCall
from seasoned.integrations.clients.prompt_block import framed_block, without_blocks
from seasoned.integrations.clients.tool_evidence import TEXT_ANSWER, prior_of_action, tool_of
from seasoned.integrations.clients.wires.wire_format import ModelAnswer, RequestMoment, WireFormat, WireItem
from seasoned.memory import Memory
from seasoned.policies.advice import Advisor
from seasoned.policies.examples.retrieval import Examples
from seasoned.policies.jitrl import JitRL
from seasoned.service.gateway.call_taps import MODE_WAIT_S, ChangedCall, ParsedCall
from seasoned.types.lift_records import Shadow
from seasoned.types.notes import SHADOW

__all__ = ["ANY_FAMILY", "N_ANSWERS", "FamilyMode", "FamilyModes", "check_modes"]

FamilyMode = Literal["observe", "advise", "examples", "steer", "rerank", "decide"]
"""What memory does with the calls of a family: `observe`: nothing; `advise`: lines about what was clearly better or
worse; `examples`: the best past steps; `steer`: the tool that was clearly better is demanded; `rerank`: one of several
answers is chosen; `decide`: the model is asked for its policy over the tools, and a draw from the shifted one is
demanded."""

ANY_FAMILY = "*"
"""Stands for the families that have no mode of their own."""

N_ANSWERS = 4
"""Answers among which one is chosen, as for a wrapped client."""

_UNNAMED = "conversations"
_BOUNDS = (-1.0, 1.0)


def check_modes(modes: object) -> Mapping[str, FamilyMode]:
    """Return modes by family if they are.

    Raises:
        InputError: a family is blank, or a mode unknown.

    Example:
        >>> check_modes({"oncall": "examples", "*": "observe"})["oncall"]
        'examples'
    """
    checked = check_mapping("modes", modes, "each family to its mode")
    for family, mode in checked.items():
        check_one_of(f"mode of the family {check_text('family', family)!r}", mode, get_args(FamilyMode))
    return checked


class FamilyModes:
    """Lets memory take part in calls: a text at the end of the last message of a user or a tool, or a demanded tool.

    The family of a call is the task that its client names (`metadata.task`, `X-Seasoned-Task`), else `conversations`.
    The system prompt stays as it is, so that prompt caches live, and the text is not stored. `steer` demands a tool
    where the client leaves the choice to the model, and one is clearly better (`CallDecisions.clear_choice`); none is
    demanded again before the user's next message, so that no loop goes on for ever. `rerank` and `decide` ask the model
    several times, as `CallVotes` and `CallDecisions` of a wrapped client do. Under a holdout an episode is
    assigned, and its arm stored, before its first call; where memory is harmful to a family it is off there.
    While a family is paused (`Memory.pause`) its calls are left as they are, and nothing is assigned.

    Args:
        memory: what is recalled.
        modes: by family; `ANY_FAMILY` stands for all others. A family without one is observed.
        holdout: whether a share of the episodes gets no memory. Outcomes are in [-1, 1].
        n_answers: how many answers `rerank` asks for, and `decide` where a server returns no logprobs.
        wait_s: seconds that a choice among answers may take.

    Raises:
        InputError: a mode is unknown, or a number breaks its rule.
    """

    def __init__(
        self,
        memory: Memory,
        modes: Mapping[str, FamilyMode],
        *,
        holdout: bool = True,
        n_answers: int = N_ANSWERS,
        wait_s: float = MODE_WAIT_S,
    ) -> None:
        self._modes = check_modes(modes)
        made: Mapping[FamilyMode, CallMode] = {
            "advise": AdviceText(Advisor(memory)),
            "examples": ExampleText(Examples(memory)),
            "steer": CallDecisions(JitRL(memory)),
            "rerank": CallVotes(JitRL(memory), n_answers),
            "decide": CallDecisions(JitRL(memory), n=n_answers),
        }
        self._recorder = recorder_of(memory)
        self._guard = CallGuard(self._recorder, wait_s, raises=False)
        self._parts = {name: part for name, part in made.items() if name in self._modes.values()}
        self._arms: dict[FamilyMode, CallArms] = {}
        for name, part in self._parts.items():
            warm_up(part, memory)
            if holdout:
                self._arms[name] = CallArms(CallHoldout(bounds=_BOUNDS, epoch=f"gateway:{name}"), part, memory)

    def mode_of(self, context: CallContext) -> FamilyMode | None:
        """Return the mode of a call's family; None if it is `observe`."""
        mode = self._modes.get(context.task or _UNNAMED, self._modes.get(ANY_FAMILY, "observe"))
        return mode if mode in self._parts else None

    def __call__(self, call: ParsedCall) -> ChangedCall:
        """Return what becomes of a call; see `CallChange`.

        Raises:
            InputError: a message is of an unknown kind.
            StoreError: the store failed.
        """
        context = call.place.context
        family = context.task or _UNNAMED
        mode = self.mode_of(context)
        if mode is None:
            return ChangedCall(None, context, "observe")
        if (pause := call.memory.pause_of(family)) is not None:
            reason = f"memory is paused for the family {excerpt(family)} by {excerpt(pause.who)}"
            return ChangedCall(None, context, "base", reason)
        arms = self._arms.get(mode)
        if arms is not None:
            unit = call.place.episode_id
            arm = arms.arm(unit, context.task, str(call.body.get("model") or "model"))
            context = replace(context, unit=unit, arm=arm)
            if arm != "treated":
                shadow = functools.partial(self._shadow, mode, call) if arm == "control" else None
                return ChangedCall(None, context, "holdout", shadow=shadow)
        return self._with_memory(call, replace(context, policy=f"gateway:{mode}"), mode)

    def _shadow(self, mode: FamilyMode, call: ParsedCall, answer: ModelAnswer) -> ShadowNote | None:
        """Return what memory would have done with a call that the model answered alone; None: nothing."""
        context = call.place.context
        if mode != "steer":
            return self._arms[mode].shadow(call.wire, call.body, answer, context.task)
        probs = self._with_memory(call, context, mode).context.propensities
        actions = call.wire.actions(answer.units)
        if probs is None or not actions:
            return None
        made = actions[0] if answer.has_calls else TEXT_ANSWER
        [chosen] = prior_of_action(made, probs) or probs
        return ShadowNote(SHADOW, Shadow.of(chosen, {chosen: 1.0}, "memory").record())

    def _with_memory(self, call: ParsedCall, context: CallContext, mode: FamilyMode) -> ChangedCall:
        """Return a call with what memory says about its moment."""
        part = self._parts[mode]
        units = without_blocks(call.wire.units(call.body))
        if not units:
            return ChangedCall(None, context, "base", "the request has no message")
        if isinstance(part, CallVotes) or mode == "decide":
            return self._asking(call, context, part)
        moment = call.wire.moment(units)
        if isinstance(part, CallDecisions):
            return _steered(call, context, part, moment, units)
        recalled = part.recall(moment, context.task, functools.partial(call.wire.can_call, call.body))
        body = call.wire.extended(call.body, framed_block(recalled.text)) if recalled.text else None
        if body is None:
            return ChangedCall(None, context, "base", "memory has nothing to say here")
        return ChangedCall(body, replace(context, shown=recalled.shown), "memory")

    def _asking(self, call: ParsedCall, context: CallContext, part: CallMode) -> ChangedCall:
        """Return a call for which the model is asked several times, unless its client does, or its answers are one."""
        if call.body.get("n") not in (None, 1):
            return ChangedCall(None, context, "base", "the client asks for several answers itself")
        if not call.wire.has_tools(call.body):
            return ChangedCall(None, context, "base", "the request offers no tool, and all texts are one answer here")
        if isinstance(part, CallVotes) and call.body.get("temperature") == 0:
            return ChangedCall(None, context, "base", "at temperature 0 all answers are one")
        asking = WrappedCall(self._guard, self._recorder, part, None, call.wire, call.content, context)
        return ChangedCall(
            None, context, "base", "memory knows too little here, or the request leaves no choice", asking=asking
        )


def _steered(
    call: ParsedCall, context: CallContext, decisions: CallDecisions, moment: RequestMoment, units: Sequence[WireItem]
) -> ChangedCall:
    """Return a call with the tool demanded that is clearly better at its moment."""
    options, called = options_to_decide(call.wire, call.body), _called_tools(call.wire, units)
    if options is None or called is None:
        return ChangedCall(None, context, "base", "the request leaves no choice of a tool to memory")
    choice = decisions.clear_choice(options, moment, context.task)
    if choice is None:
        return ChangedCall(None, context, "base", "no tool is known to be clearly better here")
    if choice.tool in called:
        return ChangedCall(None, context, "base", "the tool that is clearly better was called since the user's message")
    tool = None if choice.tool == TEXT_ANSWER else choice.tool
    recorded = replace(context, prior=choice.prior, propensities=choice.propensities)
    return ChangedCall(call.wire.with_choice(call.body, tool), recorded, "memory")


def _called_tools(wire: WireFormat, units: Sequence[WireItem]) -> set[str] | None:
    """Return the tools that were called since the last message of a user; None if a request has no such message."""
    last = max((at for at, one in enumerate(units) if wire.is_user_message(one)), default=None)
    return None if last is None else {tool_of(action) for action in wire.actions(units[last + 1 :])}
