"""Reader of inspect_ai logs: a JSON log with `samples`, or the parts of an `.eval` file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seasoned.checks import check_reward
from seasoned.errors import InputError, excerpt
from seasoned.integrations.chat.messages import MessageReader
from seasoned.integrations.conversation import InputMessage, content_id
from seasoned.integrations.field_rules import FieldRules
from seasoned.integrations.json_input import Document, ReadEpisode, ReadResult, Refusal, reason
from seasoned.integrations.json_shapes import (
    describe_value,
    last_time,
    optional_list,
    optional_record,
    optional_text,
    record,
    text_key,
)
from seasoned.integrations.readers import Format
from seasoned.types import Ending

__all__ = ["INSPECT_LOGS"]

_VALUES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
"""Values of scores that are texts, as inspect_ai's `value_to_float` maps them."""
_ATTACHMENT = "attachment://"


class _LogReader:
    """Reads logs and samples; a refusal concerns its sample only."""

    def __init__(self, rules: FieldRules) -> None:
        self._rules = rules
        self._eval: dict[str, Any] = {}
        self._n_samples = 0  # of this log, which may be read sample by sample

    def add(self, document: Document) -> Iterator[ReadResult]:
        try:
            log = record("a log", document.value)
            if "eval" in log:
                known, self._eval = self._eval, optional_record("eval", log.get("eval"))
                samples = optional_list("samples", log.get("samples"))
                self._n_samples = self._n_samples if self._eval == known and len(samples) == 1 else 0
            else:
                samples = [log]
        except ValueError as error:
            yield Refusal(document.line, reason(error))
            return
        for sample in samples:
            self._n_samples += 1
            try:
                yield self._episode(sample, document.line)
            except (ValueError, OverflowError, RecursionError) as error:
                yield Refusal(document.line, f"sample {self._n_samples - 1}: {reason(error)}")

    def close(self) -> Iterator[ReadResult]:
        return iter(())

    def _episode(self, value: object, line: int) -> ReadEpisode:
        """Return the episode of a sample.

        | field | becomes |
        |---|---|
        | `messages`, see `chat.messages.MessageReader`; `attachments` are inserted | steps |
        | the score in `scores` (C is 1, P 0.5, I and N 0); of several the one that was named | reward |
        | `eval.task` with the sample's `id` | the task |
        | `uuid`, else a hash of the content | the episode's id |
        | `error`; `limit` | aborted; truncated |
        | `eval.model`, else `output.model`; `eval.solver` | model; policy |
        """
        sample = record("a sample", value)
        attachments = optional_record("attachments", sample.get("attachments"))
        reader = MessageReader()
        items: list[Any] = []
        for message in optional_list("messages", sample.get("messages")):
            if message is None:
                items += reader.items(message)  # counted
                continue
            fields = record("a message", _attached(message, attachments))
            if fields.get("role") == "tool":
                fields = {"content": _tool_error(fields), **{k: v for k, v in fields.items() if v not in ("", None)}}
                fields["name"] = fields.get("function")
            items += reader.items(fields)
        if not any(isinstance(item, InputMessage) for item in items) and isinstance(sample.get("input"), str):
            items.insert(0, InputMessage("user", sample["input"]))
        output = optional_record("output", sample.get("output"))
        name, identity = optional_text("task", self._eval.get("task")), text_key("id", sample.get("id"))
        uuid = text_key("uuid", sample.get("uuid"))
        reward = None if self._rules.reward else self._score(sample)
        return self._rules.read(
            items,
            source=sample,
            line=line,
            created_at=last_time([self._eval.get("created"), sample.get("completed_at")], reader.skipped),
            skipped=reader.skipped,
            task="/".join(part for part in (name, identity) if part) or None,
            id=f"inspect:{uuid}" if uuid else content_id("inspect", [self._eval.get("run_id"), sample]),
            reward=reward,
            ending=_ending(sample),
            model=optional_text("model", self._eval.get("model") or output.get("model")),
            policy=optional_text("solver", self._eval.get("solver")),
        )

    def _score(self, sample: dict[str, Any]) -> float | None:
        scores = optional_record("scores", sample.get("scores"))
        scores = {**scores, **_inner_scores(scores)}
        name = self._rules.evaluation
        if name is None and len(scores) > 1:
            raise InputError(
                f"scores {excerpt(sorted(scores), 80)}",
                "only one of them can be the reward",
                "Name it: --evaluation on the command line, evaluation= in Python.",
            )
        if not scores or (name is not None and name not in scores):
            return None
        value = record("a score", scores[next(iter(scores)) if name is None else name]).get("value")
        if isinstance(value, bool):
            return float(value)
        if isinstance(value, str) and (value in _VALUES or value.lower() in _VALUES):
            return _VALUES.get(value, _VALUES.get(value.lower()))
        if isinstance(value, str | list | dict):
            try:
                value = float(value)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                raise InputError(
                    f"a score of {describe_value(value)}",
                    "a reward must be a number, or one of C, I, P, N",
                    "Name a field with a number: --reward scores.NAME.metadata.FIELD.",
                ) from None
        return None if value is None else check_reward("the score", value)


def _inner_scores(scores: dict[str, Any]) -> dict[str, Any]:
    """Return the values of scores that are objects, `{"value": {"a": 1, "b": 0}}`, as scores of their own."""
    inner: dict[str, Any] = {}
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else None
        if isinstance(value, dict):
            inner |= {key: {"value": each} for key, each in value.items() if key not in scores}
            inner |= {f"{name}.{key}": {"value": each} for key, each in value.items()}
    return inner


def _attached(value: Any, attachments: dict[str, Any]) -> Any:
    """Return a value with the texts that the log keeps apart, `attachment://HASH`, inserted."""
    if not attachments:
        return value
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, list):
        return [_attached(item, attachments) for item in value]
    if isinstance(value, dict):
        return {key: _attached(item, attachments) for key, item in value.items()}
    return value


def _tool_error(message: dict[str, Any]) -> str | None:
    """Return the message of a failed call, which the model sees where the call has no content."""
    error = message.get("error")
    text = error.get("message") if isinstance(error, dict) else None
    return text if isinstance(text, str) else None


def _ending(sample: dict[str, Any]) -> Ending:
    if sample.get("error"):
        return "aborted"
    return "truncated" if sample.get("limit") else "terminated"


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("eval"), dict):
        return "samples" in value or "plan" in value or "task" in value["eval"]
    return isinstance(value.get("messages"), list) and {"epoch", "target"} <= value.keys()


INSPECT_LOGS = Format("inspect_ai logs", _recognises, _LogReader, has_not_finite=True)
