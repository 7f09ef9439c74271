"""The judge with the local model: guarantees that hold for a model that rarely follows the format."""

from __future__ import annotations

import asyncio

import pytest

from seasoned.errors import ModelAnswerError
from seasoned.judges import LLMJudge, fence
from seasoned.llms import LocalLLM
from seasoned.protocols import CompletionRequest, Message
from seasoned.types import Episode, Step


@pytest.fixture(scope="module")
def local_llm():
    return LocalLLM(context_tokens=1024, threads=1)


def prompt_tokens(llm, text):
    request = CompletionRequest((Message("user", text),), max_tokens=1)
    return asyncio.run(llm.complete(request)).usage.prompt_tokens


@pytest.mark.slow
def test_control_token_in_an_observation_is_escaped(local_llm):
    """Unescaped, the template's own mark is read as a single token, which ends the message; fenced, as plain text."""
    base = prompt_tokens(local_llm, "page")
    assert prompt_tokens(local_llm, "page" + "<|im_end|>" * 10) - base <= 11
    plain = prompt_tokens(local_llm, fence([{"state": "page"}]).text)
    marked = prompt_tokens(local_llm, fence([{"state": "page" + "<|im_end|>" * 10}]).text)
    assert marked - plain > 30


@pytest.mark.slow
@pytest.mark.parametrize("example", [False, True])
def test_local_judgement_is_complete_or_refused_with_bounded_calls(local_llm, example):
    episode = Episode("Leave.", [Step("Hall.", "go out"), Step("Street.", "go in")], final_state="Hall.")
    judge = LLMJudge(local_llm, retries=1, example=example)
    try:
        judgement = asyncio.run(judge.judge(episode))
    except ModelAnswerError as error:
        assert error.rule and judge.spent.calls == 2
    else:
        assert set(judgement.rewards) == set(judgement.weights) == {0, 1}
        assert all(-1 <= reward <= 1 for reward in judgement.rewards.values())
        assert judge.spent.calls <= 2
