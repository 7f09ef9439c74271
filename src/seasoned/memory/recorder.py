"""Records an episode as it is played, and commits it when it ends."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from seasoned.core import log_softmax
from seasoned.errors import InputError, excerpt
from seasoned.types import Decision, Ending, Episode, Step

__all__ = ["EpisodeRecorder"]


class EpisodeRecorder:
    """A running episode. Nothing of it is in memory before it ends; leaving the context commits it, whole.

    An exception (or Ctrl-C) commits what was played as `aborted` and goes on its way. Ctrl-C inside the commit of an
    episode that had ended lets the commit finish, with the episode's own ending. `id` is known after the commit. Where
    the store fails (a full disk, say), nothing is lost: mend it, and call `commit` again.

    Example:
        >>> from seasoned import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     with memory.episode(task="checkout") as episode:
        ...         episode.record("page:pay", "click(confirm)", reward=1.0)
        ...     len(memory)
        1
    """

    def __init__(self, add: Callable[[Episode], str], task: str, fields: Mapping[str, str | None]) -> None:
        self._add = add
        self._task = task
        self._fields = dict(fields)
        self._steps: list[Step] = []
        self._entered = self._done = False
        self.ending: Ending = "terminated"
        self.final_state: str | None = None
        self.id: str | None = self._fields.pop("id", None)
        self._commit_id = uuid.uuid4().hex

    def record(
        self,
        state: str,
        decision: Decision | str,
        reward: float = 0.0,
        *,
        prior: Mapping[str, float] | None = None,
        propensity: float | None = None,
    ) -> None:
        """Add an executed step: a decision (with its prior and propensity), or an action's text.

        Raises:
            InputError: a value breaks a rule, or the episode is over.
        """
        if self._done:
            raise InputError(
                "record() after the end", "an episode is committed once", "Open another: memory.episode(...)."
            )
        if isinstance(decision, Decision):
            prior = _own_prior(decision) if prior is None else prior
            propensity = decision.propensity if propensity is None else propensity
            if self._fields.get("policy") is None:
                self._fields["policy"] = decision.policy
            if self._fields.get("model") is None and decision.prior is not None:
                self._fields["model"] = decision.prior.model
            action = decision.action
        elif isinstance(decision, str):
            action = decision
        else:
            raise InputError(
                f"decision = {excerpt(decision)}", "a step records a Decision or an action's text", "Pass one."
            )
        self._steps.append(Step(state, action, reward, prior, propensity))

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was recorded so far."""
        return tuple(self._steps)

    def __enter__(self) -> Self:
        if self._entered:
            raise InputError(
                "a second `with` on one recorder", "it records one episode", "Open another: memory.episode(...)."
            )
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done = True
        if kind is not None:
            self.ending = "aborted"
        try:
            self.commit()
        except Exception:
            raise
        except BaseException:  # Ctrl-C inside the commit: either it went through, and this is a no-op, or it did not
            self.commit()
            raise

    def commit(self) -> str:
        """Store what was recorded, and return the episode's id. Leaving the context does it; again is a no-op.

        Raises:
            InputError: nothing was recorded.
            StoreError: the store failed; nothing was written, and what was recorded is still here.
        """
        self._done = True
        self._commit_id = self.id or self._commit_id
        episode = Episode(self._task, self._steps, self._commit_id, self.final_state, self.ending, **self._fields)
        self.id = self._add(episode)
        return self.id


def _own_prior(decision: Decision) -> Mapping[str, float] | None:
    """The model's own logprobs, without what memory added to the candidates."""
    if decision.prior is not None:
        return decision.prior
    own = {action: logprob for action, logprob in decision.logprobs.items() if action not in decision.memory_only}
    if not decision.memory_only or not own:
        return own or None
    return dict(zip(own, log_softmax(list(own.values())).tolist(), strict=True))
