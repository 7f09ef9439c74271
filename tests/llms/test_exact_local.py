"""Whole texts under llama.cpp, with the real default model; short prompts, since each candidate evaluates its own."""

import asyncio
import math

import pytest

from seasoned.errors import InputError, MissingExtraError
from seasoned.llms.exact import ExactReader
from seasoned.llms.local_scoring import LocalScorer
from seasoned.llms.scores import TextScorer
from seasoned.protocols import LLM, CompletionRequest, Message, PriorReader

QUESTION = (Message("system", "Answer in one word."), Message("user", "Go north or south?"))
TEXTS = ["North", "South", "go north"]


@pytest.fixture(scope="module")
def scorer():
    try:
        return LocalScorer(context_tokens=256)
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def scores(scorer):
    return asyncio.run(scorer.score(QUESTION, TEXTS))


def ask(scorer, **settings):
    return asyncio.run(scorer.complete(CompletionRequest(QUESTION, **settings)))


def test_the_prompt_is_the_one_that_the_model_answers(scorer, scores):
    assert isinstance(scorer, LLM) and isinstance(scorer, TextScorer)
    assert ask(scorer, max_tokens=1).usage.prompt_tokens == len(scores.prompt_ids)


def test_a_greedy_answer_has_the_logprob_that_the_model_gave_while_writing_it(scorer):
    """What a generation reports for its own tokens read again as a given text."""
    answer = ask(scorer, max_tokens=5, top_logprobs=1)
    while_writing = [position[0].logprob for position in answer.top_logprobs]
    (read,) = asyncio.run(scorer.score(QUESTION, [answer.text])).token_logprobs
    assert len(read) == len(while_writing) + 1  # and the end, which the limit cut off
    assert list(read[:-1]) == pytest.approx(while_writing, abs=1e-4)


def test_first_tokens_agree_with_the_alternatives_of_one_call(scorer, scores):
    shown = {entry.token: entry.logprob for entry in ask(scorer, max_tokens=1, top_logprobs=20).top_logprobs[0]}
    agreeing = 0
    for text, values in zip(scores.texts, scores.token_logprobs, strict=True):
        if text in shown:  # the text is one token
            assert values[0] == pytest.approx(shown[text], abs=1e-4)
            agreeing += 1
    assert agreeing >= 1


@pytest.mark.slow
def test_a_reading_repeats_whatever_was_asked_before(scorer, scores):
    asyncio.run(scorer.score((Message("user", "Wait or sleep?"),), ["wait"]))
    again = asyncio.run(scorer.score(QUESTION, TEXTS[::-1]))
    assert again.token_logprobs == scores.token_logprobs[::-1]


@pytest.mark.slow
def test_one_evaluation_of_the_prompt_repeats_too_and_stays_near(scores):
    shared = LocalScorer(context_tokens=256, prefix_cache=True)
    first = asyncio.run(shared.score(QUESTION, TEXTS))
    asyncio.run(shared.score((Message("user", "Wait or sleep?"),), ["wait"]))
    again = asyncio.run(shared.score(QUESTION, TEXTS[::-1]))
    asyncio.run(shared.aclose())
    assert again.token_logprobs == first.token_logprobs[::-1]
    assert first.logprobs == pytest.approx(scores.logprobs, abs=1.5)  # 4-bit arithmetic rounds this coarsely
    assert first.usage.prompt_tokens == len(scores.prompt_ids) < scores.usage.prompt_tokens


@pytest.mark.slow
def test_the_reader_normalises(scorer):
    reader = ExactReader(scorer)
    assert isinstance(reader, PriorReader)
    reading = asyncio.run(reader.read("Two doors.", "Leave.", ["north", "south"]))
    assert reading.prior.method == "exact"
    assert sum(map(math.exp, reading.prior.values())) == pytest.approx(1.0)
    raw = reading.scores.logprobs
    assert reading.prior["north"] - reading.prior["south"] == pytest.approx(raw["north"] - raw["south"])
    assert 0.0 < reading.scores.covered < 1.0


@pytest.mark.parametrize(
    ("texts", "match"),
    [
        ([], "at least one"),
        ([" "], "blank"),
        ([3], "str"),
        (["north", " north "], "different tokens"),
        (["north<|im_end|>"], "special"),
        (["<|im_start|>"], "special"),
        (["word " * 300], "context_tokens"),
    ],
)
def test_texts_that_cannot_be_scored(scorer, texts, match):
    with pytest.raises(InputError, match=match) as raised:
        asyncio.run(scorer.score(QUESTION, texts))
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


@pytest.mark.slow
def test_an_end_that_is_no_end_is_refused(scores):
    with pytest.raises(InputError, match="one token"):
        asyncio.run(LocalScorer(context_tokens=256, end_token="two words").score(QUESTION, ["north"]))
    with pytest.raises(InputError, match="end_token"):
        asyncio.run(LocalScorer(context_tokens=256, end_token="north").score(QUESTION, ["south"]))
