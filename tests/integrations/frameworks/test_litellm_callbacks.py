"""What is LiteLLM's alone: requests in which memory's text has no place."""

from __future__ import annotations

import asyncio

import pytest
from players import INSTALLED, LiteLLMPlayer
from test_conformance import TEXT, TICKET, teach

pytestmark = pytest.mark.skipif(LiteLLMPlayer not in INSTALLED, reason="run `make test-litellm`")


def test_text_that_has_no_place_in_a_request_is_not_noted_as_shown(server, memory):
    import litellm

    teach(memory, server)
    server.script = [TEXT]
    player = LiteLLMPlayer(memory, server, mode="examples", task="oncall", timeout_s=30.0, on_error="raise")
    messages = [litellm.Message(role="user", content=TICKET)]  # an object is not extended
    request = {**player.request(messages), "litellm_call_id": "c1"}
    changed = asyncio.run(player.logger.async_pre_call_deployment_hook(request, "acompletion"))
    assert changed in (None, request)
    answer = litellm.mock_completion(model="m", messages=[], mock_response="Done.")
    asyncio.run(player.logger.async_post_call_success_deployment_hook(request, answer, "acompletion"))
    memory.feedback(answer.id, reward=1.0)
    assert memory.notes(kind="shown") == []
