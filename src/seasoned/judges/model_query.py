"""Asking until a reply can be read, a bounded number of times, and what all of it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from seasoned.checks import check_number
from seasoned.errors import InputError, ModelAnswerError, excerpt
from seasoned.protocols import LLM, Completion, CompletionRequest, Message, Usage, check_model

__all__ = ["Meter", "ModelQuery", "check_whole", "together"]

Answer = TypeVar("Answer")


def check_whole(name: str, value: object, least: int) -> int:
    """Return `value` if it is a whole number, at least `least`.

    Raises:
        InputError: it is something else.

    Example:
        >>> check_whole("retries", 2, 0)
        2
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} = {excerpt(value)}", f"it is a whole number, at least {least}", f"Try {least + 1}.")
    return value


@dataclass
class Meter:
    """Adds up what calls cost.

    Example:
        >>> meter = Meter()
        >>> meter.add(Usage(calls=1))
        >>> meter.usage.calls
        1
    """

    usage: Usage = field(default_factory=Usage)

    def add(self, usage: Usage) -> None:
        """Add one call."""
        self.usage += usage


@dataclass(frozen=True)
class ModelQuery:
    """How a judge asks: greedily for one vote, at a temperature for several, and again where a reply is refused.

    Each attempt of each vote has a seed of its own, so that an answer cache keeps them apart, and asks for the same
    again.

    Args:
        llm: the model.
        votes: how many votes; an odd number.
        temperature: None: 0 for one vote, 1 for several.
        retries: how often a refused reply is asked for again.
        seed: of the first attempt of the first vote.

    Raises:
        InputError: a value breaks a rule: several votes at temperature 0 would be one vote counted several times.
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
        if self.temperature is not None and check_number("temperature", self.temperature) < 0:
            raise InputError(f"temperature = {self.temperature}", "a temperature is at least 0", "Leave it out.")
        if self.votes > 1 and self.temperature == 0:
            raise InputError(
                f"{self.votes} votes at temperature 0",
                "votes are drawn independently; greedy ones would all be the same",
                "Leave the temperature out, or take one vote.",
            )

    async def ask(
        self,
        system: str,
        user: str,
        read: Callable[[Completion], Answer],
        *,
        vote: int,
        max_tokens: int,
        meter: Meter,
        example: tuple[str, str] | None = None,
    ) -> Answer:
        """Return what `read` makes of the reply. A refused one is asked for again, with the fault named.

        An `example` is a question and its reply, shown before.

        Raises:
            ModelAnswerError: no reply could be read, after `1 + retries` calls; it says what was wrong with the last.
            ModelError: the model failed.
        """
        attempts = 1 + self.retries
        attempt, again = 0, ""
        shown = () if example is None else (Message("user", example[0]), Message("assistant", example[1]))
        while True:
            request = CompletionRequest(
                (Message("system", system), *shown, Message("user", user + again)),
                max_tokens=max_tokens,
                temperature=self._temperature,
                seed=self.seed + vote * attempts + attempt,
            )
            try:
                return read(await self._complete(request, meter))
            except ModelAnswerError as fault:
                attempt += 1
                again = f"\nThe last reply was refused: {fault.rule}. This is attempt {attempt + 1} of {attempts}."
                if attempt == attempts:
                    raise ModelAnswerError(
                        f"{fault.seen}, the last of {attempts} replies, all refused", fault.rule, fault.next_step
                    ) from fault

    async def _complete(self, request: CompletionRequest, meter: Meter) -> Completion:
        try:
            answer = await self.llm.complete(request)
        except ModelAnswerError:  # such as a refusal that has no text: an answer, at an unknown cost
            meter.add(Usage(calls=1, cost_usd=None))
            raise
        meter.add(answer.usage)
        return answer

    @property
    def _temperature(self) -> float:
        if self.temperature is not None:
            return self.temperature
        return 0.0 if self.votes == 1 else 1.0


async def together(asked: Iterable[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    """Wait for all; where one fails, the others are stopped, and its own error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in asked]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
