"""Options of both agents on Harbor's command line (`--ak memory=agent.db --ak mode=train`), and their memory."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

from seasoned.build import open_memory
from seasoned.errors import NotFoundError
from seasoned.integrations.harbor.harbor_package import load_harbor
from seasoned.memory import Memory
from seasoned.policies.examples import Examples

__all__ = ["acting_options", "open_examples", "version", "wrapping_options"]


@cache
def _memory_options() -> Any:
    base: Any = load_harbor("harbor.agents.options").AgentOptions

    class MemoryOptions(base):  # type: ignore[misc]  # Harbor's are not known to the type checker
        """Options of the memory, of the mode, and of the examples in a prompt."""

        memory: str
        namespace: str | None = None
        mode: Literal["train", "test"] = "test"
        k: int = 3
        window: int = 1
        budget_tokens: int = 800

    return MemoryOptions


@cache
def acting_options() -> Any:
    """Return the class of the options of `ActingAgent`."""

    class SeasonedOptions(_memory_options()):  # type: ignore[misc]
        """Options of the model and its acting; see `seasoned.agents.Agent`."""

        llm: str | None = None
        plan: bool = True
        calls: Literal[1, 2] = 1
        max_steps: int = 50
        max_tokens: int = 1024
        command_timeout_s: int = 120

    return SeasonedOptions


@cache
def wrapping_options() -> Any:
    """Return the class of the options of `WrappedAgent`."""

    class ExampleOptions(_memory_options()):  # type: ignore[misc]
        """The wrapped agent, by its Harbor name or import path, and its own options."""

        window: int = 8
        agent: str
        agent_kwargs: dict[str, Any] | None = None

    return ExampleOptions


def open_examples(options: Any) -> tuple[Memory | None, Examples | None]:
    """Return the memory, opened read-only, and its examples; None for a memory that training has yet to create.

    Raises:
        NotFoundError: the memory does not exist, in test mode.
        StoreError, InputError: as for `Memory.open` and `Examples`.
    """
    path = options.memory if "://" in options.memory else str(Path(options.memory).expanduser())
    try:
        memory = open_memory(path, namespace=options.namespace, read_only=True)
    except NotFoundError:
        if options.mode == "test":
            raise
        return None, None
    try:
        examples = Examples(memory, k=options.k, window=options.window, budget_tokens=options.budget_tokens)
    except BaseException:
        memory.close()
        raise
    return memory, examples


def version() -> str:
    """Return the version of seasoned."""
    import seasoned

    return seasoned.__version__
