"""What every language model promises."""

from __future__ import annotations

from seasoned.errors import excerpt
from seasoned.protocols import LLM, Capabilities, Completion, CompletionRequest, Message
from seasoned.sync import Sync
from seasoned.testing.requirement import name_of, require

__all__ = ["check_llm"]

_TOLERANCE = 1e-9


def check_llm(llm: LLM) -> None:
    """Ask a model twice for a few tokens and check what comes back; this calls the endpoint, and closes the model.

    Checked: name; capabilities; the completion's types; usage counts at least this call, no negative number; the top
    logprobs, where the endpoint has them: at most 0, most likely first, no more than were asked for. That equal
    requests get equal texts is not checked: few endpoints promise it.

    Raises:
        InputError: the first promise that is broken.
        ModelError: the endpoint failed.
    """
    who = f"llm {name_of(llm)}"
    require(isinstance(llm, LLM), who, "it has name, capabilities, complete and aclose", "Add what is missing.")
    require(bool(llm.name), f"{who}, name = {llm.name!r}", "a name is not empty", "Name the model and its place.")
    with Sync(llm) as model:
        can = model.capabilities()
        require(
            isinstance(can, Capabilities), f"{who}, {excerpt(can)}", "capabilities are Capabilities", "Return them."
        )
        require(
            can.max_top_logprobs >= 0 and (can.logprobs or can.max_top_logprobs == 0),
            f"{who}, {can!r}",
            "an endpoint without logprobs has 0 top logprobs",
            "Report what was probed.",
        )
        require(model.capabilities() == can, who, "capabilities are probed once", "Keep the answer.")
        top = min(5, can.max_top_logprobs)
        question = Message("user", "Answer with one word: which colour is grass?")
        for request in (
            CompletionRequest((question,), max_tokens=4),
            CompletionRequest((Message("system", "Be brief."), question), max_tokens=2, top_logprobs=top, seed=1),
        ):
            _check_completion(who, model.complete(request), request)


def _check_completion(who: str, answer: Completion, request: CompletionRequest) -> None:
    require(isinstance(answer, Completion), f"{who}: {excerpt(answer)}", "complete returns a Completion", "Build one.")
    require(isinstance(answer.text, str), f"{who}: text = {excerpt(answer.text)}", "text is a str", "Decode it.")
    require(
        bool(answer.model), f"{who}: model = {answer.model!r}", "the answer says which model gave it", "Fill it in."
    )
    usage = answer.usage
    counts = (usage.calls, usage.cached_calls, usage.prompt_tokens, usage.completion_tokens, usage.latency_s)
    require(min(counts) >= 0, f"{who}: {usage}", "no count is negative", "Count up.")
    require(usage.calls + usage.cached_calls >= 1, f"{who}: {usage}", "an answer counts as a call", "Count it.")
    for token in answer.top_logprobs:
        values = [alternative.logprob for alternative in token]
        require(len(values) <= request.top_logprobs, f"{who}: {len(values)} top logprobs", "no more than asked", "Cut.")
        require(all(v <= _TOLERANCE for v in values), f"{who}: {values}", "a logprob is at most 0", "Use logprobs.")
        require(values == sorted(values, reverse=True), f"{who}: {values}", "the most likely comes first", "Sort them.")
