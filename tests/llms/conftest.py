import pytest


@pytest.fixture(scope="session")
def local_llm():
    from seasoned.llms import LocalLLM

    return LocalLLM(context_tokens=512, threads=1)  # more would wait for each other beside other tests
