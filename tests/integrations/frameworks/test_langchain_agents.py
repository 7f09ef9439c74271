"""What is LangChain's own: threads with a checkpointer, and runs that a person interrupts."""

from __future__ import annotations

import pytest
from model_server import MODEL, Answer
from players import INSTRUCTIONS, LangChainPlayer, restart

if not LangChainPlayer.is_installed():
    pytest.skip("needs langchain", allow_module_level=True)

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from seasoned.integrations.frameworks import langchain_middleware

CALL, TEXT = Answer(calls=(("restart", {"service": "Checkout"}),)), Answer("Restarted; it is quiet again.")
THREAD = {"configurable": {"thread_id": "1"}}


def agent(memory, server, *more):
    model = ChatOpenAI(model=MODEL, base_url=f"{server.url}/v1", api_key="k", max_retries=0)
    middleware = [*more, langchain_middleware(memory, on_error="raise")]
    saver = InMemorySaver()
    return create_agent(model, [restart], middleware=middleware, system_prompt=INSTRUCTIONS, checkpointer=saver)


def ask(text):
    return {"messages": [{"role": "user", "content": text}]}


def test_each_message_of_a_thread_is_a_run(server, memory):
    server.script = [CALL, TEXT, Answer("The search team.")]
    one = agent(memory, server)
    for text in ("pool exhausted", "Who should look?"):
        memory.feedback(one.invoke(ask(text), THREAD)["messages"][-1].id, reward=1.0)
    first, second = memory.episodes()
    assert (len(first.steps), len(second.steps), second.task) == (2, 1, "Who should look?")


def test_interrupted_run_goes_on_as_the_same_episode(server, memory):
    server.script = [CALL, TEXT]
    one = agent(memory, server, HumanInTheLoopMiddleware(interrupt_on={"restart": True}))
    assert "__interrupt__" in one.invoke(ask("pool exhausted"), THREAD)
    memory.session.recorders[-1].settle()
    assert memory.episodes() == []
    result = one.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    memory.feedback(result["messages"][-1].id, reward=1.0)
    [episode] = memory.episodes()
    assert (len(episode.steps), episode.ending) == (2, "terminated")


def test_run_that_an_error_of_the_model_ends_is_aborted(server, memory):
    server.script = [CALL, Answer(status=500)]
    with pytest.raises(Exception, match="500"):
        agent(memory, server).invoke(ask("pool exhausted"), THREAD)
    memory.session.recorders[-1].close()
    assert [episode.ending for episode in memory.episodes()] == ["aborted"]
