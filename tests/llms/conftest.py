import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def local_llm():
    from seasoned.llms import LocalLLM

    return LocalLLM(context_tokens=512)
