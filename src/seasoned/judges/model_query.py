"""Query of a judge's model, with a bounded number of retries and a usage meter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from seasoned.checks import check_number, check_whole
from seasoned.errors import InputError, ModelAnswerError
from seasoned.protocols import LLM, Completion, CompletionRequest, Message, Usage, check_model

__all__ = ["Meter", "ModelQuery", "gather"]

T = TypeVar("T")


@dataclass
class Meter:
    """Adds up the usage of calls.

    Example:
        >>> meter = Meter()
        >>> meter.add(Usage(calls=1))
        >>> meter.usage.calls
        1
    """

    usage: Usage = field(default_factory=Usage)

    def add(self, usage: Usage) -> None:
        """Add the usage of one call."""
        self.usage += usage


@dataclass(frozen=True)
class ModelQuery:
    """Requests of a judge: greedy for one vote, at a temperature for several, and repeated after a refused reply.

    Each attempt of each vote has its own seed, so that an answer cache stores each, and finds it again.

    Args:
        llm: the model.
        votes: number of votes; an odd number.
        temperature: None: 0 for one vote, 1 for several.
        retries: number of further requests after a refused reply.
        seed: of the first attempt of the first vote.

    Raises:
        InputError: a value breaks a rule; several votes at temperature 0 would be equal.
    """

    llm: LLM
    votes: int
    temperature: float | None
    retries: int
    seed: int

    def __post_init__(self) -> None:
        check_model(self.llm)
        check_whole("retries", self.retries, 0)
        check_whole("seed", self.seed, 0)
        if self.temperature is not None:
            check_number("temperature", self.temperature, 0.0)
        if self.votes > 1 and self.temperature == 0:
            raise InputError(
                f"{self.votes} votes at temperature 0",
                "several votes need a temperature above 0, as greedy votes are equal",
                "Leave the temperature out, or take one vote.",
            )

    async def ask(
        self,
        system: str,
        user: str,
        read: Callable[[Completion], T],
        *,
        vote: int,
        max_tokens: int,
        meter: Meter,
        example: tuple[str, str] | None = None,
    ) -> T:
        """Return the reply as parsed by `read`. A refused reply is requested again, with the fault in the request.

        Args:
            system, user: the messages.
            read: parses a reply, or raises ModelAnswerError.
            vote: number of the vote, for the seed.
            max_tokens: limit of the reply.
            meter: counts the usage.
            example: a question and its reply, shown before.

        Raises:
            ModelAnswerError: all `1 + retries` replies were refused; it names the fault of the last.
            ModelError: the model failed.
        """
        attempts = 1 + self.retries
        attempt, note = 0, ""
        shown = () if example is None else (Message("user", example[0]), Message("assistant", example[1]))
        while True:
            request = CompletionRequest(
                (Message("system", system), *shown, Message("user", user + note)),
                max_tokens=max_tokens,
                temperature=self._temperature,
                seed=self.seed + vote * attempts + attempt,
            )
            try:
                return read(await self._complete(request, meter))
            except ModelAnswerError as fault:
                attempt += 1
                note = f"\nThe last reply was refused: {fault.rule}. This is attempt {attempt + 1} of {attempts}."
                if attempt == attempts:
                    raise ModelAnswerError(
                        f"{fault.seen}, the last of {attempts} replies, all refused", fault.rule, fault.next_step
                    ) from fault

    async def _complete(self, request: CompletionRequest, meter: Meter) -> Completion:
        try:
            answer = await self.llm.complete(request)
        except ModelAnswerError:  # a refusal without text, for example: an answer with an unknown price
            meter.add(Usage(calls=1, cost_usd=None))
            raise
        meter.add(answer.usage)
        return answer

    @property
    def _temperature(self) -> float:
        if self.temperature is not None:
            return self.temperature
        return 0.0 if self.votes == 1 else 1.0


async def gather(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of all calls, run concurrently; the first error cancels the others, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
