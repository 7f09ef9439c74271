"""The score cache: a repeated request returns equal scores without a call."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from seasoned.errors import ForeignStoreError, InputError, IntegrityError, ModelUnavailableError
from seasoned.llms import CachedLLM, CachedScorer, ExactReader, ScriptedLLM, TextScorer, TextScores
from seasoned.protocols import CompletionRequest, Message, Usage

QUESTION = (Message("user", "Which action is best?"),)


class Scorer:
    """Scores a text by its length, and counts its calls."""

    def __init__(self, name="m", fails=0):
        self.name, self.calls, self.fails = name, 0, fails

    async def score(self, messages, texts):
        self.calls += 1
        await asyncio.sleep(0)
        if self.calls <= self.fails:
            raise ModelUnavailableError("no answer", "it answers", "Ask again.")
        tokens = tuple((len(text), 7) for text in texts)
        logprobs = tuple((-0.1 * len(text), -1 / 3, -0.5) for text in texts)
        return TextScores(
            self.name, tuple(texts), tokens, logprobs, (1, 2), (0,), Usage(len(texts), 0, 90, 4, 1.5, 0.2)
        )


def ask(scorer, messages=QUESTION, texts=("go", "wait a while")):
    return asyncio.run(scorer.score(messages, texts))


def test_scores_are_read_back_exactly_at_no_cost(tmp_path):
    first = CachedScorer(Scorer(), tmp_path / "answers.db")
    fresh, cached = ask(first), ask(first)
    again = Scorer(fails=1)
    reopened = ask(CachedScorer(again, tmp_path / "answers.db"))
    assert again.calls == 0 and isinstance(first, TextScorer)
    for scores in (cached, reopened):
        assert scores.usage == Usage(cached_calls=2, cached_tokens=94, cached_usd=0.2)
        assert {name: getattr(scores, name) for name in scores.__dataclass_fields__ if name != "usage"} == {
            name: getattr(fresh, name) for name in fresh.__dataclass_fields__ if name != "usage"
        }


def test_other_models_questions_and_orders_are_scored(tmp_path):
    model = Scorer()
    cached = CachedScorer(model, tmp_path / "answers.db")
    ask(cached)
    ask(cached, texts=("wait a while", "go"))
    ask(cached, (Message("user", "Which action is worst?"),))
    ask(cached, (Message("system", "Which action is best?"),))
    assert model.calls == 4
    ask(CachedScorer(other := Scorer("m2"), tmp_path / "answers.db"))
    assert other.calls == 1


def test_concurrent_equal_requests_are_sent_once_and_failures_not_stored(tmp_path):
    model = Scorer(fails=1)
    cached = CachedScorer(model, tmp_path / "answers.db")
    with pytest.raises(ModelUnavailableError):
        ask(cached)

    async def both():
        return await asyncio.gather(cached.score(QUESTION, ("go",)), cached.score(QUESTION, ("go",)))

    one, other = asyncio.run(both())
    assert model.calls == 2 and one.logprobs == other.logprobs


def test_file_is_shared_with_completions_and_used_by_the_exact_reader(tmp_path):
    path = tmp_path / "answers.db"
    llm = CachedLLM(ScriptedLLM(["yes"], name="m"), path)
    assert asyncio.run(llm.complete(CompletionRequest(QUESTION))).text == "yes"
    reader = ExactReader(CachedScorer(Scorer(), path), "none")
    read = [asyncio.run(reader.read("a door", "leave", ["go", "wait"])) for _ in range(2)]
    assert read[0].prior == read[1].prior and read[1].usage.calls == 0
    assert asyncio.run(llm.complete(CompletionRequest(QUESTION))).usage.cached_calls == 1
    asyncio.run(reader.model.aclose())


def test_invalid_requests_foreign_files_and_damaged_scores_are_refused(tmp_path):
    cached = CachedScorer(Scorer(), tmp_path / "answers.db")
    with pytest.raises(InputError, match="at least one"):
        ask(cached, texts=())
    (tmp_path / "notes.txt").write_text("mine, and long enough to be a header of something else" * 4)
    with pytest.raises(ForeignStoreError):
        CachedScorer(Scorer(), tmp_path / "notes.txt")
    ask(cached)
    asyncio.run(cached.aclose())
    with sqlite3.connect(tmp_path / "answers.db") as connection:
        connection.execute("UPDATE answers SET completion = '{}'")
    connection.close()
    with pytest.raises(IntegrityError, match="read back"):
        ask(cached)
