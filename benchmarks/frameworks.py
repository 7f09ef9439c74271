"""The time that the integration of an agent framework adds to a call of the model, by mode, beside the bare framework.

Run: python benchmarks/frameworks.py [--steps 10000] [--tickets 200]   (in .venv-frameworks, or in .venv-litellm)

Each installed framework plays every ticket bare and with each mode, in a random order: a call of a tool, its result, a
text. The model is a script in the same process, so that nothing but the framework and the memory takes time; LiteLLM
makes up one answer a ticket. The memory, a file, holds N steps of judged episodes as those of `benchmarks/wrap.py`, and
each mode has a copy. A run's time is divided by its calls. The interval is of the median of the paired differences to
the bare framework (bootstrap over tickets). Recording goes on in the background, and is in the times of what it slows;
the processor's time is that of the whole process during the run. The target is 3 ms (p50) in the mode `observe`; what
`examples` finds in a memory takes as long as with `wrap`. Writes `benchmarks/results/frameworks.json`, or
`frameworks-litellm.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from workload import StateMaker, timed_s, write_result
from wrap import build

from seasoned import Memory

MODES = ("observe", "examples")
TARGET_S = 3e-3
LOOP = asyncio.Runner()  # one for all: LiteLLM binds its workers to it
Play = Callable[[str], None]


def restart_service(service: str) -> str:
    """Restart a service."""
    return "ok"


def langchain(memory: Memory | None, mode: str) -> Play:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from seasoned.integrations.frameworks import langchain_middleware

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    def answers() -> Any:
        while True:
            call = {"name": "restart_service", "args": {"service": "search"}, "id": "call_1"}
            yield AIMessage("", tool_calls=[call])
            yield AIMessage("Done.")

    own = [] if memory is None else [langchain_middleware(memory, mode=mode, task="oncall", timeout_s=5.0)]
    agent = create_agent(Scripted(messages=answers()), [restart_service], middleware=own)
    return lambda ticket: agent.invoke({"messages": [{"role": "user", "content": ticket}]})


def pydantic_ai(memory: Memory | None, mode: str) -> Play:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from seasoned.integrations.frameworks import pydantic_ai_capability

    def model(messages: Any, info: Any) -> Any:
        is_over = messages[-1].parts[-1].part_kind == "tool-return"
        return ModelResponse([TextPart("Done.") if is_over else ToolCallPart("restart_service", {"service": "search"})])

    own = [] if memory is None else [pydantic_ai_capability(memory, mode=mode, task="oncall", timeout_s=5.0)]
    agent = Agent(FunctionModel(model), tools=[restart_service], capabilities=own)
    return lambda ticket: LOOP.run(agent.run(ticket))


def openai_agents(memory: Memory | None, mode: str) -> Play:
    from agents.testing import ScriptedModel, assistant_message, function_call

    from agents import Agent, Runner, function_tool, set_tracing_disabled
    from seasoned.integrations.frameworks import openai_agents_provider

    set_tracing_disabled(True)
    provider = None if memory is None else openai_agents_provider(memory, mode=mode, task="oncall", timeout_s=5.0)
    tool = function_tool(restart_service)

    def play(ticket: str) -> None:
        call = function_call("restart_service", {"service": "search"}, call_id="call_1")
        model: Any = ScriptedModel([[call], [assistant_message("Done.")]])
        agent = Agent(name="oncall", tools=[tool], model=model if provider is None else provider.wrapped(model))
        LOOP.run(Runner.run(agent, ticket))

    return play


def litellm(memory: Memory | None, mode: str) -> Play:
    import litellm as package

    from seasoned.integrations.frameworks import litellm_logger

    own = [] if memory is None else [litellm_logger(memory, mode=mode, task="oncall", timeout_s=5.0)]

    def play(ticket: str) -> None:
        package.logging_callback_manager._reset_all_callbacks()
        package.callbacks = own
        messages = [{"role": "user", "content": ticket}]
        LOOP.run(package.acompletion(model="gpt-4o", messages=messages, mock_response="Done."))

    return play


FRAMEWORKS: dict[str, tuple[str, int, Callable[[Memory | None, str], Play]]] = {
    "langchain": ("langchain", 2, langchain),
    "pydantic-ai": ("pydantic-ai-slim", 2, pydantic_ai),
    "openai-agents": ("openai-agents", 2, openai_agents),
    "litellm": ("litellm", 1, litellm),
}


def version_of(package: str) -> str | None:
    """Return the installed version; None if there is none."""
    return next((one.version for one in importlib.metadata.distributions(name=package)), None)


def measure(name: str, families: list[list[int]], maker: StateMaker, folder: Path, n: int) -> dict[str, Any]:
    """Play the tickets with one framework; print and return the figures."""
    package, n_calls, start = FRAMEWORKS[name]
    memories = {mode: Memory.open(shutil.copy(folder / "built.db", folder / f"{name}-{mode}.db")) for mode in MODES}
    plays = {"bare": start(None, "observe"), **{mode: start(memories[mode], mode) for mode in MODES}}
    tickets = [maker.member(families[int(one)]) for one in maker.rng.integers(len(families), size=n + 5)]
    taken: dict[str, list[tuple[float, float]]] = {one: [] for one in plays}
    for at, ticket in enumerate(tickets):
        for one in maker.rng.permutation(list(plays)).tolist():
            began_s = time.process_time()
            spent_s, _ = timed_s(plays[one], ticket)
            if at >= 5:  # the first ones load modules
                taken[one].append((spent_s / n_calls, (time.process_time() - began_s) / n_calls))
    bare = np.asarray(taken["bare"])
    found: dict[str, Any] = {"version": version_of(package), "n": n, "bare_p50_s": float(np.median(bare[:, 0]))}
    for mode, memory in memories.items():
        added = np.asarray(taken[mode]) - bare
        drawn = [np.median(added[maker.rng.integers(n, size=n), 0]) for _ in range(1000)]
        low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
        p50, cpu = (float(np.median(added[:, column])) for column in (0, 1))
        p25, p75 = np.quantile(added[:, 0], [0.25, 0.75]).tolist()
        spread = {"added_p50_95_s": [low, high], "added_quartiles_s": [p25, p75]}
        found[mode] = {"added_p50_s": p50, **spread, "added_cpu_p50_s": cpu}
        print(
            f"{name:<14} {mode:<9} adds {1e3 * p50:.2f} ms [{1e3 * low:.2f}, {1e3 * high:.2f}] a call (p50, n = {n}; "
            f"quartiles {1e3 * p25:.2f} and {1e3 * p75:.2f}), of the processor {1e3 * cpu:.2f} ms"
        )
        memory.close()
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--tickets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    installed = [name for name, (package, _, _) in FRAMEWORKS.items() if version_of(package) is not None]
    if not installed:
        print("No agent framework is installed: run `make test-frameworks` first, and use .venv-frameworks.")
        return
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    maker, figures = StateMaker(options.seed), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Memory.open(folder / "built.db") as memory:
            families = build(memory, maker, options.steps)
        for one in installed:
            figures[one] = measure(one, families, maker, folder, options.tickets)
    command = " ".join(["python benchmarks/frameworks.py", *sys.argv[1:]])
    name = "frameworks-litellm" if installed == ["litellm"] else "frameworks"  # which has an environment of its own
    write_result(name, {"command": command, "steps": options.steps, "frameworks": figures})
    missed = [one for one in installed if figures[one]["observe"]["added_p50_s"] > TARGET_S]
    if missed:
        sys.exit(f"above the target (p50): {', '.join(missed)}")


if __name__ == "__main__":
    main()
