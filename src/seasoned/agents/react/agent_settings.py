"""Everything that an agent can be told, refused together where it cannot work together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args, runtime_checkable

from seasoned.agents.baselines.token_checks import check_fraction, check_whole
from seasoned.agents.react.agent_result import Mode, Purpose
from seasoned.agents.react.prompt_evidence import AgentMemory, DiscountedEvidence
from seasoned.agents.react.prompt_templates import Templates
from seasoned.checks import suggest
from seasoned.errors import InputError, excerpt
from seasoned.policies import ModelAlone
from seasoned.policies.cascade import CascadeReader
from seasoned.protocols import LLM, Chooser, EvidenceSource, Policy, PriorReader, Proposer, Tool

__all__ = ["AgentSettings", "ExampleRetriever"]


@runtime_checkable
class ExampleRetriever(Protocol):
    """Finds past steps for a prompt, as `seasoned.policies.examples.Examples` does."""

    def retrieve(self, query: Any, *, purpose: Purpose, exclude_task: str | None) -> Sequence[Any]:
        """Return examples for this moment, within their budget."""
        ...


@dataclass(frozen=True)
class AgentSettings:
    """What `seasoned.agents.Agent` was told; its arguments are described there.

    Raises:
        InputError: a value breaks its rule, or two of them cannot work together.
    """

    llm: LLM
    memory: AgentMemory | None
    mode: Mode
    plan: bool
    reason: bool
    calls: int
    reader: PriorReader | Proposer | None
    policy: Callable[[EvidenceSource], Policy]
    examples: ExampleRetriever | None
    tools: tuple[Tool, ...]
    templates: Templates
    canonical: Callable[[str], str]
    history_tokens: int
    max_tokens: int
    max_steps: int | None
    temperature: float
    exclude_same_task: bool

    def __post_init__(self) -> None:
        self._check_values()
        self._check_together()
        if not isinstance(self.decides, Policy):
            raise InputError(
                f"policy = {excerpt(self.policy)}", "it returns a Policy over a memory", "Pass JitRL, say."
            )

    def _check_values(self) -> None:
        if not isinstance(self.llm, LLM):
            raise InputError(f"llm = {excerpt(self.llm)}", "an agent's model is an LLM", "Open one: open_llm(...).")
        if self.mode not in get_args(Mode):
            raise InputError(
                f"mode = {excerpt(self.mode)}",
                f"it is one of {', '.join(get_args(Mode))}",
                suggest(str(self.mode), get_args(Mode)),
            )
        for name in ("plan", "reason", "exclude_same_task"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} = {excerpt(getattr(self, name))}", "it is True or False", "Choose one.")
        if isinstance(self.calls, bool) or self.calls not in (1, 2):
            raise InputError(f"calls = {excerpt(self.calls)}", "a step is one call or two", "Pass 1 or 2.")
        check_whole("history_tokens", self.history_tokens, 0)
        check_whole("max_tokens", self.max_tokens)
        if self.max_steps is not None:
            check_whole("max_steps", self.max_steps)
        check_fraction("temperature", self.temperature)
        if not all(isinstance(tool, Tool) for tool in self.tools):
            raise InputError(f"tools = {excerpt(self.tools)}", "they are a tuple of Tools", "Pass (tool,) for one.")
        if not isinstance(self.templates, Templates):
            raise InputError(
                f"templates = {excerpt(self.templates)}", "they are Templates", "Pass Templates(act='...'), say."
            )
        if not callable(self.canonical) or not callable(self.policy):
            raise InputError(
                f"canonical = {excerpt(self.canonical)}, policy = {excerpt(self.policy)}",
                "canonical is a function of an action, policy one of a memory",
                "Pass policy=JitRL, or lambda memory: JitRL(memory, beta=2.0).",
            )

    def _check_together(self) -> None:
        reader: object = self.reader
        mode = self.mode
        if isinstance(reader, Chooser) and not isinstance(reader, PriorReader):
            raise InputError(
                f"reader = {type(reader).__name__}",
                "an agent's policy decides on a prior that was read, not inside the server",
                "Use play_episode with a Chooser, or give the agent a LabelReader or VotesReader.",
            )
        if reader is not None and not isinstance(reader, PriorReader):
            raise InputError(
                f"reader = {excerpt(reader)}", "it reads a policy over actions", "Pass LabelReader(llm), say."
            )
        if mode in ("logits", "both") and reader is None:
            raise InputError(
                f"mode = {mode!r}, reader = None",
                "a shift needs the model's own policy, and a reply that is parsed shows only one action of it",
                "Pass reader=LabelReader(llm), or VotesReader(llm) where there are no logprobs; or mode='prompt'.",
            )
        if mode in ("logits", "both") and not isinstance(self.memory, EvidenceSource):
            raise InputError(
                f"mode = {mode!r}, memory = {excerpt(self.memory)}", "a shift is by a memory's evidence", "Pass one."
            )
        if mode in ("prompt", "both") and self.memory is None and self.examples is None:
            raise InputError(
                f"mode = {mode!r}, memory = None", "examples come from a memory", "Pass one, or mode='none'."
            )
        if self.examples is not None and not isinstance(self.examples, ExampleRetriever):
            raise InputError(
                f"examples = {excerpt(self.examples)}", "they are found by retrieve()", "Pass Examples(memory, ...)."
            )
        if self.examples is not None and mode in ("none", "logits"):
            raise InputError(
                f"examples, and mode = {mode!r}", "this mode shows none", "Leave them out, or pass mode='both'."
            )
        if mode == "both" and getattr(self.examples, "guarded", False):
            raise InputError(
                "mode = 'both', and examples with trusted or vouched_by",
                "what must not be shown must not act either, and a shift asks the memory for all that it holds",
                "Quarantine what is not trusted, which guards both: memory.quarantine(Selection(...), reason); or pass "
                "mode='prompt'.",
            )
        if isinstance(reader, CascadeReader) and reader.min_evidence > 0.0 and reader.observation is None:
            raise InputError(
                f"a CascadeReader with min_evidence = {reader.min_evidence:g}, observation = None",
                "an agent shows its reader a whole prompt, which is like no stored state",
                "Pass it observation=current_state, of seasoned.agents.react.",
            )
        if reader is not None and self.tools:
            raise InputError(
                "tools, and a reader",
                "where a reader asks for the action, the tools go with its question",
                "Give them to it: VotesReader(llm, tools=...), and leave tools out here.",
            )
        if reader is not None and self.reason and self.calls == 1:
            raise InputError(
                "calls = 1, reason = True, and a reader",
                "what a reader asks for is the action alone: reasoning is a call of its own",
                "Pass calls=2 or reason=False.",
            )
        if self.calls == 2 and not self.reason:
            raise InputError("calls = 2, reason = False", "the first of two calls reasons", "Leave calls out.")

    @property
    def shows_examples(self) -> bool:
        """Whether past steps go into the prompt."""
        return self.mode in ("prompt", "both")

    @property
    def shifts(self) -> bool:
        """Whether the policy asks the memory."""
        return self.mode in ("logits", "both")

    @functools.cached_property
    def decides(self) -> Policy:
        """What decides among the actions of a prior: the policy over the memory, or the model alone."""
        return self.policy(self.memory) if self.shifts and self.memory is not None else ModelAlone()

    def decides_without(self, steps: Collection[tuple[str, int]]) -> Policy:
        """Return what decides where these steps are in the prompt already: they add no weight then."""
        if self.mode != "both" or not steps or self.memory is None:
            return self.decides
        return self.policy(DiscountedEvidence(self.memory, steps))

    @property
    def name(self) -> str:
        """How the agent acts, in a word or two: stored as the policy of episodes that no policy decided."""
        return f"agent-{self.mode}"
