"""Agents on small worlds, for the tests of agents."""

from __future__ import annotations

import asyncio
import math

from seasoned.agents import Agent, Templates
from seasoned.envs import Grid
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.protocols import Observation

COLOURS = {"red": {"left": 0.0, "right": 1.0}, "blue": {"left": 1.0, "right": 0.0}}
BARE = Templates(
    plan="PLAN {goal} EXAMPLES[{examples}]",
    reason="REASON {plan} EXAMPLES[{examples}] NOW[{observation}]",
    act="ACT {plan} EXAMPLES[{examples}] NOW[{observation}] {reasoning}",
    reason_act="BOTH {plan} EXAMPLES[{examples}] NOW[{observation}]",
    read="READ {plan} EXAMPLES[{examples}] NOW[{observation}] {reasoning}",
)


def prompt_of(request):
    return request.messages[-1].content


def shown_in(prompt):
    return prompt.partition("EXAMPLES[")[2].rpartition("] NOW[")[0]


def east(request):
    prompt = prompt_of(request)
    if prompt.startswith("PLAN"):
        return "Walk east."
    return "The goal is east." if prompt.startswith("REASON") else "Thought: east it is.\nAction: east"


def walker(memory=None, script=east, **options):
    return Agent(ScriptedLLM(script), memory, templates=BARE, **options)


def once(agent, environment=None, seed=0, learns=None):
    environment = environment or Grid(["S.G"])
    learns = agent.settings.memory is not None if learns is None else learns
    return asyncio.run((agent.train if learns else agent.run)(environment, seed))


def kinds(agent):
    return [prompt_of(request).split()[0] for request in agent.settings.llm.requests]


def follow(request):
    """Answer with the action of successful examples; else with one drawn by the request's seed."""
    prompt = prompt_of(request)
    examples, colour = shown_in(prompt), prompt.partition("NOW[")[2].split("]")[0]
    for side in ("left", "right"):
        if side in examples and colour in examples and ("right" in examples) != ("left" in examples):
            return f"Action: {side}"
    return f"Action: {('left', 'right')[(request.seed or 0) % 2]}"


def labels():
    """Return a reader of a model with equal logprobs for two actions."""
    return LabelReader(ScriptedLLM(lambda request: {"A": math.log(0.5), "B": math.log(0.5)}))


class Terminal:
    """An environment with free-text actions, which ends at an action with `stop`."""

    name, task, max_score = "terminal", "Say {goal}, then stop.", None

    def __init__(self, admissible=None):
        self.admissible, self.taken = admissible, []

    async def reset(self, *, seed=None):
        self.taken = []
        return Observation("$ {plan}", self.admissible)

    async def step(self, action):
        self.taken.append(action)
        reward = float("stop" in action)
        return Observation("ok", self.admissible, reward, terminated="stop" in action, score=reward)

    async def aclose(self):
        pass
