"""From an arm's specification to an arm: the one list of everything that is compared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from seasoned.agents import Arm, InformedReader, PromptMemory, UniformReader
from seasoned.agents.baselines import (
    Attempts,
    ByBM25,
    BySearch,
    Evolution,
    FullContext,
    Majority,
    PastSuccesses,
    Reflexion,
    SelfConsistency,
    Workflows,
)
from seasoned.agents.baselines.token_checks import check_whole
from seasoned.agents.react.displayed_steps import shown_arm
from seasoned.checks import suggest
from seasoned.errors import InputError, UnknownNameError, excerpt
from seasoned.lab.arms.cascade_arm import CASCADE, build_cascade
from seasoned.lab.arms.preset_settings import preset_settings
from seasoned.lab.suites.suite import ArmSpec, Suite
from seasoned.llms import ScriptedLLM, VotesReader, votes_prompt
from seasoned.memory import Memory
from seasoned.policies import PRESETS, JitRL, JitRLSettings, ModelAlone, ShuffledReturns
from seasoned.policies.examples import ExampleMemory, Examples
from seasoned.protocols import LLM, Chooser, EvidenceSource, PriorReader

__all__ = ["ARMS", "ArmKind", "Parts", "build_arm", "check_arm"]


@dataclass(frozen=True)
class Parts:
    """What an arm is built of.

    Args:
        settings: what the suite says, over the kind's defaults.
        memory: the run's; what it holds are this arm's own episodes.
        llm: the model; None for `uniform` and for models that only score.
        reader: reads the model's policy.
        seed: of the run.
        success: the score from which an episode is a pass; None: the best possible, if it is known.
        tokens: what an episode may take, where the arm has another's budget.
    """

    settings: Mapping[str, Any]
    memory: Memory
    llm: LLM | None
    reader: PriorReader | Chooser
    seed: int
    success: float | None
    tokens: float | None

    @property
    def prior_reader(self) -> PriorReader:
        """The reader, for arms that change what the model is asked."""
        return cast(PriorReader, self.reader)

    @property
    def model(self) -> LLM:
        """The model, for arms that ask it themselves."""
        return cast(LLM, self.llm)


@dataclass(frozen=True)
class ArmKind:
    """A kind of arm.

    Args:
        about: what it does, in a line.
        build: makes the arm.
        settings: what it can be told, with defaults.
        needs_model: it changes what a model is asked, or asks it itself.
        chooses: it also works where the model chooses inside the server.
        budget: the setting that another arm's budget takes the place of; None: it has no use for one.
    """

    about: str
    build: Callable[[Parts], Arm]
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs_model: bool = True
    chooses: bool = False
    budget: str | None = None


def build_arm(
    spec: ArmSpec,
    *,
    memory: Memory,
    llm: LLM | None,
    reader: PriorReader | Chooser,
    seed: int,
    success: float | None = None,
    tokens_per_episode: float | None = None,
) -> Arm:
    """Return the arm that a suite describes, ready for `seasoned.agents.play_run`.

    Args:
        spec: kind and settings.
        memory: the run's own.
        llm: the model behind `reader`; None: there is none that could be asked for text.
        reader: reads the model's policy, or has it choose.
        seed: of the run: the placebo's permutation.
        success: the score from which an episode is a success, where the task says so.
        tokens_per_episode: what the arm named in `budget_of` took an episode, learning included.

    Raises:
        UnknownNameError: no kind of arm has this name.
        InputError: a setting is unknown or breaks its rule, the arm needs a model and there is none, it cannot be
            played by a model that chooses inside the server, or its budget is missing.

    Example:
        >>> from seasoned.agents import UniformReader
        >>> from seasoned.memory import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     arm = build_arm(ArmSpec("ours", "jitrl"), memory=memory, llm=None, reader=UniformReader(), seed=0)
        >>> arm.policy.name
        'default'
    """
    kind = _kind(spec)
    if kind.needs_model and llm is None:
        raise InputError(
            f"arm {spec.name} ({spec.kind}) with the model {reader.name}",
            "this arm puts text into a model's prompt, or asks it for text",
            "Name a model, or leave the arm out.",
        )
    if not kind.chooses and isinstance(reader, Chooser) and not isinstance(reader, PriorReader):
        able = ", ".join(sorted(name for name, other in ARMS.items() if other.chooses))
        raise InputError(
            f"arm {spec.name} ({spec.kind}) with a model that chooses inside the server",
            f"only {able} are played that way",
            'Choose another reader: reader = "auto".',
        )
    if spec.budget_of is not None and tokens_per_episode is None:
        raise InputError(
            f"arm {spec.name}, budget_of = {spec.budget_of!r}, tokens_per_episode = None",
            "an arm with another's budget is told what that one took",
            "Run the other arm first.",
        )
    if spec.budget_of is not None and llm is None:
        raise InputError(
            f"arm {spec.name}, budget_of = {spec.budget_of!r} with the model {reader.name}",
            "without a model no tokens are spent, and no budget ends",
            f"Give {kind.budget} = 5, say, in place of budget_of.",
        )
    return kind.build(
        Parts(
            _settings(kind, spec),
            memory,
            llm,
            reader,
            seed,
            success,
            None if spec.budget_of is None else tokens_per_episode,
        )
    )


def check_arm(spec: ArmSpec) -> ArmKind:
    """Return the kind of an arm that can be built, before anything is played: it is built once, over nothing.

    Raises:
        UnknownNameError: no kind of arm has this name.
        InputError: a setting is unknown or breaks its rule, or the arm's budget is missing or of no use.

    Example:
        >>> check_arm(ArmSpec("full", "full-context", {"window_tokens": 400})).about
        'as many past transcripts in the prompt as the window holds'
    """
    kind = _kind(spec)
    with Memory.open(":memory:") as memory:
        tokens = None if spec.budget_of is None else 1.0
        kind.build(Parts(_settings(kind, spec), memory, ScriptedLLM([]), UniformReader(), 0, None, tokens))
    return kind


def _kind(spec: ArmSpec) -> ArmKind:
    """The kind, if it is known, has these settings, and is given one budget where it needs one."""
    if spec.kind not in ARMS:
        raise UnknownNameError(
            f"arm {spec.name}: kind {excerpt(spec.kind)}", "no kind of arm has this name", suggest(spec.kind, ARMS)
        )
    kind = ARMS[spec.kind]
    for name in spec.settings:
        if name not in kind.settings:
            raise InputError(
                f"arm {spec.name}: setting {excerpt(name)}",
                f"{spec.kind} has no such setting",
                "Write it beside settings, not in it."
                if name in ArmSpec.__dataclass_fields__
                else "It is an entry of the suite: write it at its top, above the first [[...]]."
                if name in Suite.__dataclass_fields__
                else suggest(name, kind.settings)
                if kind.settings
                else "It has none: leave it out.",
            )
    if spec.budget_of is not None and kind.budget is None:
        able = ", ".join(sorted(name for name, other in ARMS.items() if other.budget))
        raise InputError(
            f"arm {spec.name} ({spec.kind}): budget_of = {spec.budget_of!r}",
            f"only {able} spend a budget",
            "Leave it out.",
        )
    if kind.budget is not None and (spec.budget_of is None) == (spec.settings.get(kind.budget) is None):
        raise InputError(
            f"arm {spec.name} ({spec.kind}): budget_of = {spec.budget_of!r}, "
            f"{kind.budget} = {spec.settings.get(kind.budget)!r}",
            "one of them says how much it tries",
            f"Give budget_of, the arm whose tokens it may spend, or {kind.budget} = 5, say.",
        )
    return kind


def _settings(kind: ArmKind, spec: ArmSpec) -> dict[str, Any]:
    """What is given, over the defaults; `...` is no default: the preset has its own."""
    return {name: value for name, value in kind.settings.items() if value is not ...} | dict(spec.settings)


# ------------------------------------------------------------------------------------- with our memory


def _jitrl(parts: Parts) -> Arm:
    return Arm(_policy(parts.settings, parts.memory), parts.reader)


def _placebo(parts: Parts) -> Arm:
    policy = _policy(parts.settings, cast(EvidenceSource, ShuffledReturns(parts.memory, parts.seed)))
    policy.evidence("any")  # refuses, before anything is played, the settings that shuffled returns have no answer to
    return Arm(policy, parts.reader)


def _policy(settings: Mapping[str, Any], memory: EvidenceSource) -> JitRL:
    name, overrides = preset_settings(settings)
    return JitRL.preset(name, memory, **overrides)


# ------------------------------------------------------------------------------------ the model alone


def _alone(parts: Parts) -> Arm:
    return Arm(ModelAlone(parts.settings["selection"]), parts.reader)


def _retries(parts: Parts) -> Arm:
    play = Attempts(parts.settings["attempts"], parts.tokens, retries=True, stop_at=parts.success)
    return Arm(ModelAlone(), parts.reader, play)


def _best_of_n(parts: Parts) -> Arm:
    return Arm(ModelAlone(), parts.reader, Attempts(parts.settings["attempts"], parts.tokens))


def _self_consistency(parts: Parts) -> Arm:
    max_tokens = check_whole("max_tokens", parts.settings["max_tokens"])
    reader = SelfConsistency(
        parts.model,
        lambda llm, n, seed: VotesReader(llm, n=n, seed=seed, max_tokens=max_tokens),
        votes_prompt,
        samples=parts.settings["samples"],
        tokens=parts.tokens,
        steps=parts.settings["steps"],
    )
    return Arm(Majority(), reader, reader.play, None if parts.tokens is None else reader.learn)


# -------------------------------------------------------------------------- with the past in the prompt


def _informed(parts: Parts, memory: PromptMemory) -> Arm:
    return Arm(ModelAlone(), InformedReader(parts.prior_reader, memory), learn=memory.learn)


def _prompt(parts: Parts) -> Arm:
    return shown_arm(parts.prior_reader, _examples(parts.memory, parts.settings))


def _both(parts: Parts) -> Arm:
    shown = {name: value for name, value in parts.settings.items() if name in _EXAMPLES}
    shifts = {name: value for name, value in parts.settings.items() if name == "gamma" or name not in _EXAMPLES}
    knowledge = _examples(parts.memory, shown)
    return shown_arm(parts.prior_reader, knowledge, parts.memory, lambda memory: _policy(shifts, memory))


def _cascade(parts: Parts) -> Arm:
    return build_cascade(parts, _EXAMPLES)


def _examples(memory: Memory, settings: Mapping[str, Any]) -> ExampleMemory:
    given = dict(settings)
    return ExampleMemory(Examples(memory, budget_tokens=given.pop("window_tokens"), **given))


def _full_context(parts: Parts) -> Arm:
    return _informed(parts, FullContext(**parts.settings))


def _bm25(parts: Parts) -> Arm:
    settings = dict(parts.settings)
    finder = ByBM25(settings.pop("k1"), settings.pop("b"))
    return _informed(parts, PastSuccesses(finder, parts.success, **settings))


def _top_k(parts: Parts) -> Arm:
    finder = BySearch(lambda state, k: parts.memory.search(state, k, 0.0))
    return _informed(parts, PastSuccesses(finder, parts.success, **parts.settings))


def _reflexion(parts: Parts) -> Arm:
    return _informed(parts, Reflexion(parts.model, parts.success, **parts.settings))


def _workflows(parts: Parts) -> Arm:
    return _informed(parts, Workflows(parts.model, parts.success, **parts.settings))


def _evolve(parts: Parts) -> Arm:
    return _informed(parts, Evolution(parts.model, parts.success, **parts.settings))


def _settings_of(*made: Callable[..., Any]) -> dict[str, Any]:
    """The settings of a baseline, with its own defaults."""
    parameters = [p for each in made for p in inspect.signature(each).parameters.values()]
    skipped = ("llm", "success", "finder", "text_chars")
    return {p.name: p.default for p in parameters if p.name not in skipped}


_EXAMPLES = {
    "window_tokens": 800,
    "k": 3,
    "window": 0,
    "avoid": False,
    "diversity": 0.3,
    "per_episode": 1,
    "per_task": None,
    "text_chars": 400,
    "gamma": None,
}
_JITRL = {"preset": "default"} | dict.fromkeys(JitRLSettings.__dataclass_fields__, ...)

ARMS: dict[str, ArmKind] = {
    "alone": ArmKind("the model alone", _alone, {"selection": "sample"}, needs_model=False, chooses=True),
    "jitrl": ArmKind(
        f"the model shifted by its memory; presets {', '.join(PRESETS)}",
        _jitrl,
        _JITRL,
        needs_model=False,
        chooses=True,
    ),
    "placebo": ArmKind("the same with the stored returns shuffled", _placebo, _JITRL, needs_model=False, chooses=True),
    "prompt": ArmKind("the best past steps in the prompt, chosen by value", _prompt, _EXAMPLES),
    "both": ArmKind("the same, and the model shifted by the steps that were not shown", _both, _EXAMPLES | _JITRL),
    "cascade": ArmKind(
        "a teacher plays first; the model acts with that memory, and asks the teacher where it is unsure",
        _cascade,
        CASCADE | dict.fromkeys((*_EXAMPLES, *_JITRL), ...),
        needs_model=False,
    ),
    "retries": ArmKind(
        "the model alone tries again until it succeeds, within a budget",
        _retries,
        {"attempts": None},
        needs_model=False,
        budget="attempts",
    ),
    "best-of-n": ArmKind(
        "the model alone, the best of as many attempts as the budget holds",
        _best_of_n,
        {"attempts": None},
        needs_model=False,
        budget="attempts",
    ),
    "self-consistency": ArmKind(
        "the majority of several answers at every step",
        _self_consistency,
        {"samples": None, "steps": 20, "max_tokens": 64},
        budget="samples",
    ),
    "full-context": ArmKind(
        "as many past transcripts in the prompt as the window holds", _full_context, _settings_of(FullContext)
    ),
    "bm25": ArmKind("steps of past successes in the prompt, found by BM25", _bm25, _settings_of(PastSuccesses, ByBM25)),
    "top-k": ArmKind("steps of past successes in the prompt, found by our index", _top_k, _settings_of(PastSuccesses)),
    "reflexion": ArmKind("reflections on failures in the prompt", _reflexion, _settings_of(Reflexion)),
    "workflows": ArmKind("routines induced from successes in the prompt", _workflows, _settings_of(Workflows)),
    "evolve": ArmKind("a guide that is rewritten after every episode", _evolve, _settings_of(Evolution)),
}
"""Kind of arm to how it is made. A suite's `settings` are those listed; see docs/explanation/baselines.md."""
