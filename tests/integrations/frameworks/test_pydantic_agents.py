"""What is Pydantic AI's own: requests without a prompt."""

from __future__ import annotations

import pytest
from players import PydanticPlayer

if not PydanticPlayer.is_installed():
    pytest.skip("needs pydantic-ai-slim", allow_module_level=True)

from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

from seasoned.integrations.frameworks import pydantic_ai_capability

EARLIER = [ModelRequest(parts=[UserPromptPart("hello there")]), ModelResponse([TextPart("fine")])]


@pytest.mark.parametrize("history", [None, EARLIER, [*EARLIER, ModelRequest(parts=[])]])
def test_request_without_a_part_goes_out_as_it_is(memory, history):
    capability = pydantic_ai_capability(memory, mode="examples", task="t", timeout_s=5.0)
    model = FunctionModel(lambda messages, info: ModelResponse([TextPart("fine")]))
    agent = Agent(model, instructions="be kind", capabilities=[capability])
    memory.feedback(agent.run_sync("hello there").run_id, reward=1.0)
    assert agent.run_sync(None, message_history=history).output == "fine"
