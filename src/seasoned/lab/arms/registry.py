"""The registry of arms: every kind of arm with its settings, and its construction."""

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
    LessonWriter,
    MajorityPolicy,
    PastSuccesses,
    Reflexion,
    SelfConsistency,
    Workflows,
)
from seasoned.agents.react.prompt_evidence import example_arm
from seasoned.checks import check_whole, suggest
from seasoned.errors import InputError, UnknownNameError, excerpt
from seasoned.lab.arms.arm_context import ArmContext
from seasoned.lab.arms.cascade_arm import CASCADE, build_cascade
from seasoned.lab.arms.preset_settings import preset_settings
from seasoned.lab.suites.suite import ArmSpec, Suite
from seasoned.llms import ScriptedLLM, VotesReader, votes_prompt
from seasoned.memory import Memory
from seasoned.policies import PRESETS, JitRL, JitRLSettings, ModelAlone, ShuffledReturns
from seasoned.policies.examples import ExampleMemory, Examples
from seasoned.protocols import LLM, Chooser, EvidenceSource, PriorReader

__all__ = ["ARMS", "ArmKind", "build_arm", "check_arm"]


@dataclass(frozen=True)
class ArmKind:
    """A kind of arm.

    Args:
        about: a description in one line.
        build: makes the arm.
        settings: its settings with defaults; `...` for a setting without a default.
        needs_model: it changes the prompt of a model, or sends requests of its own.
        chooses: it also works with a model that chooses inside the server.
        budget: the setting that another arm's budget replaces; None: it has no budget.
    """

    about: str
    build: Callable[[ArmContext], Arm]
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
    """Return the arm of a specification, ready for `seasoned.agents.play_run`.

    Args:
        spec: kind and settings.
        memory: the memory of the run.
        llm: the model behind `reader`; None: there is no model that generates text.
        reader: reads the model's policy, or lets the model choose.
        seed: of the run; it determines the placebo's permutation.
        success: the score from which an episode is a success, if the task has one.
        tokens_per_episode: mean tokens per episode of the arm named in `budget_of`, learning included.

    Raises:
        UnknownNameError: no kind of arm has this name.
        InputError: a setting is unknown or breaks its rule, the arm needs a model and there is none, it does not work
            with a model that chooses inside the server, or its budget is missing.

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
            "this arm adds text to a model's prompt, or asks it for text",
            "Name a model, or leave the arm out.",
        )
    if not kind.chooses and isinstance(reader, Chooser) and not isinstance(reader, PriorReader):
        able = ", ".join(sorted(name for name, other in ARMS.items() if other.chooses))
        raise InputError(
            f"arm {spec.name} ({spec.kind}) with a model that chooses inside the server",
            f"only {able} work with such a model",
            'Choose another reader: reader = "auto".',
        )
    if spec.budget_of is not None and tokens_per_episode is None:
        raise InputError(
            f"arm {spec.name}, budget_of = {spec.budget_of!r}, tokens_per_episode = None",
            "the budget is the tokens that the other arm used",
            "Run the other arm first.",
        )
    if spec.budget_of is not None and llm is None:
        raise InputError(
            f"arm {spec.name}, budget_of = {spec.budget_of!r} with the model {reader.name}",
            "a budget of tokens needs a model that uses tokens",
            f"Write {kind.budget} = 5, for example, instead of budget_of.",
        )
    return kind.build(
        ArmContext(
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
    """Build an arm once over an empty memory, before anything is played, and return its kind.

    Raises:
        UnknownNameError: no kind of arm has this name.
        InputError: a setting is unknown or breaks its rule, or the arm's budget is missing or has no effect.

    Example:
        >>> check_arm(ArmSpec("full", "full-context", {"window_tokens": 400})).about
        'as many past transcripts in the prompt as the window holds'
    """
    kind = _kind(spec)
    with Memory.open(":memory:") as memory:
        tokens = None if spec.budget_of is None else 1.0
        kind.build(ArmContext(_settings(kind, spec), memory, ScriptedLLM([]), UniformReader(), 0, None, tokens))
    return kind


def _kind(spec: ArmSpec) -> ArmKind:
    """Return the kind of an arm, after checks of its name, its settings and its budget."""
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
                "Write it next to settings, not inside."
                if name in ArmSpec.__dataclass_fields__
                else "It is an entry of the suite: write it at the top, above the first [[...]]."
                if name in Suite.__dataclass_fields__
                else suggest(name, kind.settings)
                if kind.settings
                else "It has no settings: leave it out.",
            )
    if spec.budget_of is not None and kind.budget is None:
        able = ", ".join(sorted(name for name, other in ARMS.items() if other.budget))
        raise InputError(
            f"arm {spec.name} ({spec.kind}): budget_of = {spec.budget_of!r}",
            f"only {able} have a budget",
            "Leave it out.",
        )
    if kind.budget is not None and (spec.budget_of is None) == (spec.settings.get(kind.budget) is None):
        raise InputError(
            f"arm {spec.name} ({spec.kind}): budget_of = {spec.budget_of!r}, "
            f"{kind.budget} = {spec.settings.get(kind.budget)!r}",
            "exactly one of them limits the arm",
            f"Write budget_of = the arm whose tokens it may spend, or {kind.budget} = 5, for example.",
        )
    return kind


def _settings(kind: ArmKind, spec: ArmSpec) -> dict[str, Any]:
    """Return the given settings merged over the defaults."""
    return {name: value for name, value in kind.settings.items() if value is not ...} | dict(spec.settings)


# ------------------------------------------------------------------------------------- with our memory


def _jitrl(context: ArmContext) -> Arm:
    return Arm(_policy(context.settings, context.memory), context.reader)


def _placebo(context: ArmContext) -> Arm:
    policy = _policy(context.settings, cast(EvidenceSource, ShuffledReturns(context.memory, context.seed)))
    policy.evidence("any")  # refuses settings that shuffled returns do not support, before anything is played
    return Arm(policy, context.reader)


def _policy(settings: Mapping[str, Any], memory: EvidenceSource) -> JitRL:
    name, overrides = preset_settings(settings)
    return JitRL.preset(name, memory, **overrides)


# ------------------------------------------------------------------------------------ the model alone


def _model_alone(context: ArmContext) -> Arm:
    return Arm(ModelAlone(context.settings["selection"]), context.reader)


def _retries(context: ArmContext) -> Arm:
    play = Attempts(context.settings["attempts"], context.tokens, retries=True, stop_at=context.success)
    return Arm(ModelAlone(), context.reader, play)


def _best_of_n(context: ArmContext) -> Arm:
    return Arm(ModelAlone(), context.reader, Attempts(context.settings["attempts"], context.tokens))


def _self_consistency(context: ArmContext) -> Arm:
    max_tokens = check_whole("max_tokens", context.settings["max_tokens"], 1)
    reader = SelfConsistency(
        context.model,
        lambda llm, n, seed: VotesReader(llm, n=n, seed=seed, max_tokens=max_tokens),
        votes_prompt,
        samples=context.settings["samples"],
        tokens=context.tokens,
        steps=context.settings["steps"],
    )
    return Arm(MajorityPolicy(), reader, reader.play, None if context.tokens is None else reader.learn)


# -------------------------------------------------------------------------- with the past in the prompt


def _informed_arm(context: ArmContext, memory: PromptMemory) -> Arm:
    return Arm(ModelAlone(), InformedReader(context.prior_reader, memory), learn=memory.learn)


def _prompt(context: ArmContext) -> Arm:
    return example_arm(context.prior_reader, _examples(context.memory, context.settings))


def _both(context: ArmContext) -> Arm:
    example_settings = {name: value for name, value in context.settings.items() if name in _EXAMPLES}
    shifts = {name: value for name, value in context.settings.items() if name == "gamma" or name not in _EXAMPLES}
    knowledge = _examples(context.memory, example_settings)
    return example_arm(context.prior_reader, knowledge, context.memory, lambda memory: _policy(shifts, memory))


def _cascade(context: ArmContext) -> Arm:
    return build_cascade(context, _EXAMPLES)


def _examples(memory: Memory, settings: Mapping[str, Any]) -> ExampleMemory:
    options = dict(settings)
    return ExampleMemory(Examples(memory, budget_tokens=options.pop("window_tokens"), **options))


def _full_context(context: ArmContext) -> Arm:
    return _informed_arm(context, FullContext(**context.settings))


def _bm25(context: ArmContext) -> Arm:
    settings = dict(context.settings)
    finder = ByBM25(settings.pop("k1"), settings.pop("b"))
    return _informed_arm(context, PastSuccesses(finder, context.success, **settings))


def _top_k(context: ArmContext) -> Arm:
    finder = BySearch(lambda state, k: context.memory.search(state, k, 0.0))
    return _informed_arm(context, PastSuccesses(finder, context.success, **context.settings))


def _lessons(memory: Callable[..., PromptMemory]) -> Callable[[ArmContext], Arm]:
    def build(context: ArmContext) -> Arm:
        settings = dict(context.settings)
        writer = LessonWriter(context.model, **{name: settings.pop(name) for name in _settings_of(LessonWriter)})
        return _informed_arm(context, memory(writer, context.success, **settings))

    return build


def _settings_of(*constructors: Callable[..., Any]) -> dict[str, Any]:
    """Return the settings of a baseline with the defaults of its constructor."""
    parameters = [p for each in constructors for p in inspect.signature(each).parameters.values()]
    skipped = ("llm", "writer", "success", "finder", "text_chars")
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
    "alone": ArmKind("the model alone", _model_alone, {"selection": "sample"}, needs_model=False, chooses=True),
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
    "reflexion": ArmKind(
        "reflections on failures in the prompt",
        _lessons(Reflexion),
        _settings_of(LessonWriter, Reflexion) | {"max_tokens": 128},
    ),
    "workflows": ArmKind(
        "routines induced from successes in the prompt", _lessons(Workflows), _settings_of(LessonWriter, Workflows)
    ),
    "evolve": ArmKind(
        "a guide that is rewritten after every episode", _lessons(Evolution), _settings_of(LessonWriter, Evolution)
    ),
}
"""The kinds of arms by name, with their settings; see docs/explanation/baselines.md."""
