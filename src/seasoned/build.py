"""Objects from specifications: the one place that builds memories, models, policies and environments by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seasoned.agents import UniformReader
from seasoned.checks import check_text, suggest
from seasoned.envs import open_env
from seasoned.errors import InputError, ReadOnlyStoreError, UnknownNameError, excerpt
from seasoned.llms import (
    DEFAULT_VOTES,
    LLMS,
    READING_METHODS,
    SCORERS,
    BiasChooser,
    CachedLLM,
    open_llm,
    open_scorer,
    reader_for,
)
from seasoned.llms.cache.score_cache import CachedScorer
from seasoned.llms.priors.exact import ExactReader
from seasoned.llms.registry import check_model_kind
from seasoned.llms.wire.candidate_menu import Menu, check_menu
from seasoned.memory import Memory
from seasoned.memory.known_namespaces import known_namespaces
from seasoned.memory.stores.registry import display_path
from seasoned.policies import PRESETS, JitRL, ModelAlone
from seasoned.protocols import LLM, Chooser, EvidenceSource, Policy, PriorReader

__all__ = ["METHODS", "close_reader", "known_namespaces", "make_policy", "make_reader", "open_env", "open_memory"]

ALONE = "base"
METHODS = (*READING_METHODS, "bias")
"""The methods to decide with a model: reading its policy first, or sampling inside the server (`bias`)."""

_LISTED_NAMESPACES = 10


def make_policy(name: str, memory: EvidenceSource | None, **overrides: Any) -> Policy:
    """Return the policy with this name: `base` (the model alone), or a preset of `JitRL` over `memory`.

    Raises:
        UnknownNameError: there is no such policy.
        InputError: a preset without a memory, or settings for `base`.
    """
    if name == ALONE:
        if overrides:
            raise InputError(f"settings {sorted(overrides)}", "the policy 'base' has no settings", "Leave them out.")
        return ModelAlone()
    if name not in PRESETS:
        names = [ALONE, *PRESETS]
        raise UnknownNameError(f"policy {excerpt(name)}", "no policy has this name", suggest(name, names))
    if memory is None:
        raise InputError(f"policy {name!r} without a memory", "a preset needs a memory", "Name a memory file.")
    return JitRL.preset(name, memory, **overrides)


def make_reader(
    spec: str,
    *,
    method: str = "auto",
    cache: Path | None = None,
    calibrate: bool = True,
    n_votes: int = DEFAULT_VOTES,
    menu: Menu = "list",
    **settings: Any,
) -> PriorReader | Chooser:
    """Return a reader of a model's own policy: `uniform` (no model), or a model of `open_llm`.

    Args:
        spec: `uniform`, or a specification of `open_llm` (for `exact`: of `open_scorer`), such as `openai:MODEL`.
        method: `decisions`, `label`, `votes`, `verbalized`, or `auto`: the best of these that the endpoint supports,
            determined at the first reading; `bias`: sampled inside the server, with a shift by `logit_bias`; or
            `exact`, for models of `open_scorer`.
        cache: the file for the model's answers; its folder is made if it does not exist.
        calibrate: for `label`: divide by the model's preference for letters.
        n_votes: for `votes`: the number of samples per reading.
        menu: for `exact`: the form of the candidates in the prompt, see `ExactReader`.
        settings: of the model.

    Raises:
        UnknownNameError, ConfigError: there is no such model or method.
        InputError: the model has no such setting; the menu is unknown, or given for another method than `exact`; or the
            cache's folder cannot be made.
    """
    if check_menu(menu) != "list" and method != "exact":
        raise InputError(
            f"menu = {menu!r} with the method {method!r}",
            "only the method 'exact' has a menu",
            "Use the method 'exact', or leave the menu out.",
        )
    if method not in METHODS:
        raise UnknownNameError(f"method {excerpt(method)}", "no method has this name", suggest(method, METHODS))
    kinds = (SCORERS if method == "exact" else LLMS).names()
    check_model_kind(check_text("model specification", spec), (*kinds, UniformReader.name))
    if spec == UniformReader.name:
        if settings or method != "auto":
            raise InputError(
                f"settings {sorted(settings)}, method {method!r}",
                "the model 'uniform' has no settings and no method",
                "Leave them out.",
            )
        return UniformReader()
    # The model is opened first, so that a wrong specification leaves no folder behind.
    if method == "exact":
        scorer = open_scorer(spec, **settings)
        return ExactReader(scorer if cache is None else CachedScorer(scorer, _with_folder(cache)), menu)
    llm = open_llm(spec, **settings)
    if cache is not None:
        llm = CachedLLM(llm, _with_folder(cache))
    return BiasChooser(llm) if method == "bias" else reader_for(llm, method, calibrate=calibrate, n_votes=n_votes)


def _with_folder(cache: Path) -> Path:
    """Return the path of a cache, after making its folder."""
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{cache}: {error}", "the cache must be a file", "Choose another path.") from error
    return cache


async def close_reader(reader: PriorReader | Chooser) -> None:
    """Release the model behind a reader that `make_reader` made."""
    model = getattr(reader, "model", None) or getattr(reader, "llm", None)
    if isinstance(model, LLM | CachedScorer):
        await model.aclose()


def open_memory(
    path: str, *, namespace: str | None = None, create: bool = False, read_only: bool = False, **settings: Any
) -> Memory:
    """Open a memory; its namespace need not be named if there is only one.

    Args:
        path: its file, or the URL of a shared store.
        namespace: None: the only namespace, or `default` in a new store.
        create: make the memory if it does not exist.
        read_only: refuse every write.
        settings: of `Memory.open`.

    Raises:
        InputError: there are several namespaces, and `namespace` is None.
        NotFoundError: there is no such memory or namespace.

    Example:
        >>> with open_memory(":memory:", create=True) as memory:
        ...     memory.namespace
        'default'
    """
    try:
        known = known_namespaces(path, read_only=read_only or not create)
    except ReadOnlyStoreError:  # an older store, which opening for writing migrates
        if read_only:
            raise
        known = known_namespaces(path, read_only=False)
    if namespace is None:
        if len(known) > 1:
            listed = ", ".join(sorted(known)[:_LISTED_NAMESPACES])
            more = ", ..." if len(known) > _LISTED_NAMESPACES else ""
            raise InputError(
                f"{display_path(path)} has {len(known)} namespaces",
                "one namespace must be named",
                f"Name one with --namespace (in Python: namespace=): {listed}{more}.",
            )
        namespace = next(iter(known), "default")
    return Memory.open(path, namespace=namespace, create=create, read_only=read_only, **settings)
