"""The conformance check of language models."""

from __future__ import annotations

from seasoned.errors import excerpt
from seasoned.protocols import LLM, Capabilities, Completion, CompletionRequest, Message
from seasoned.sync import Sync
from seasoned.testing.requirement import name_of, require

__all__ = ["check_llm"]

_TOLERANCE = 1e-9


def check_llm(llm: LLM) -> None:
    """Request a few tokens twice and check the completions; this calls the endpoint, and closes the model.

    Checked: name; capabilities; the completion's types; usage counts at least this call, without negative numbers; the
    top logprobs, if the endpoint has them: at most 0, most likely first, at most the requested number. Equal texts for
    equal requests are not checked, because few endpoints guarantee them.

    Raises:
        InputError: the first violation.
        ModelError: the endpoint failed.
    """
    subject = f"llm {name_of(llm)}"
    require(isinstance(llm, LLM), subject, "it has name, capabilities, complete and aclose", "Add the missing members.")
    require(
        bool(llm.name), f"{subject}, name = {llm.name!r}", "a name is not empty", "Name the model and its endpoint."
    )
    with Sync(llm) as model:
        can = model.capabilities()
        require(
            isinstance(can, Capabilities), f"{subject}, {excerpt(can)}", "capabilities are Capabilities", "Return them."
        )
        require(
            can.max_top_logprobs >= 0 and (can.logprobs or can.max_top_logprobs == 0),
            f"{subject}, {can!r}",
            "an endpoint without logprobs has 0 top logprobs",
            "Report the probed number.",
        )
        require(model.capabilities() == can, subject, "capabilities are probed once", "Store the result.")
        top = min(5, can.max_top_logprobs)
        question = Message("user", "Answer with one word: which colour is grass?")
        for request in (
            CompletionRequest((question,), max_tokens=4),
            CompletionRequest((Message("system", "Be brief."), question), max_tokens=2, top_logprobs=top, seed=1),
        ):
            _check_completion(subject, model.complete(request), request)


def _check_completion(subject: str, answer: Completion, request: CompletionRequest) -> None:
    require(
        isinstance(answer, Completion), f"{subject}: {excerpt(answer)}", "complete returns a Completion", "Build one."
    )
    require(isinstance(answer.text, str), f"{subject}: text = {excerpt(answer.text)}", "text is a str", "Decode it.")
    require(bool(answer.model), f"{subject}: model = {answer.model!r}", "the completion names its model", "Set it.")
    usage = answer.usage
    counts = (usage.calls, usage.cached_calls, usage.prompt_tokens, usage.completion_tokens, usage.latency_s)
    require(min(counts) >= 0, f"{subject}: {usage}", "no count is negative", "Count up.")
    require(usage.calls + usage.cached_calls >= 1, f"{subject}: {usage}", "a completion counts as a call", "Count it.")
    for token in answer.top_logprobs:
        values = [alternative.logprob for alternative in token]
        require(
            len(values) <= request.top_logprobs,
            f"{subject}: {len(values)} top logprobs",
            "at most the requested number of top logprobs",
            "Return fewer.",
        )
        require(all(v <= _TOLERANCE for v in values), f"{subject}: {values}", "a logprob is at most 0", "Use logprobs.")
        require(
            values == sorted(values, reverse=True), f"{subject}: {values}", "the most likely comes first", "Sort them."
        )
