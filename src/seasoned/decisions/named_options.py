"""Named options: a question about a state in the form in which a memory stores it, in any order of the options."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from seasoned.actions import normalize_action
from seasoned.canonical_json import canonical_json
from seasoned.checks import check_text, check_texts, suggest
from seasoned.errors import InputError, excerpt
from seasoned.llms.wire.decision_types import memory_actions
from seasoned.policies.candidates import check_candidates

__all__ = ["NamedOptions", "canonical_state", "question_prefix", "stored_action"]

_UNNAMED = "decision"
_OF_NAME = ": "
_DIGEST_BYTES = 4
_MOST_LISTED = 50
_INSTRUCTIONS = re.compile("#[0-9a-f]{8}$")
_MARK = re.compile(" #[0-9a-f]{8}$")
_PREFIX = re.compile(r"[^:#]+: |.+? #[0-9a-f]{8}: ")


def canonical_state(state: object) -> str:
    """Return a state as text: a text as it is, any other JSON value in its canonical form.

    Raises:
        InputError: it is blank, or no JSON value.

    Example:
        >>> canonical_state({"subject": "refund", "body": "broken lamp"})
        '{"body":"broken lamp","subject":"refund"}'
    """
    if isinstance(state, str):
        return check_text("state", state)
    try:
        text = canonical_json(state)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"state = {excerpt(state)} ({error})", "a state is a text or a JSON value", "Pass a text."
        ) from None
    if not state:
        raise InputError(f"state = {text}", "a decision needs a state", "Pass what the decision is about.")
    return check_text("state", text)


@dataclass(frozen=True, slots=True)
class NamedOptions:
    """A question about a state, with its options in the order of their names.

    The *task* of a decision, by which memory groups outcomes and lift, is the name of the question and, if it has
    instructions, a hash of them: `desk#1c3f9a0b`. An *action* is what memory stores for an option: the option, after
    the question's name if it has one (`question_prefix`), so that the yes of one question is no evidence about
    the yes of another.

    Tasks and actions are redacted as the memory does it, so that what is looked up is what is stored. An unkeyed
    redactor makes two values one mark: two such options of one question are refused, those of two requests are one.

    Args:
        state: as canonical text.
        options: distinct, in the order of their texts.
        actions: the stored action of each option, in the same order.
        descriptions: of options, None for none.
        name: of the question; None: unnamed.
        instructions: the question in words, for the model.
        task: see above.

    Example:
        >>> asked = NamedOptions.of("ticket: broken lamp", ["sales", "refunds"], name="desk")
        >>> asked.options, asked.actions, asked.task
        (('refunds', 'sales'), ('desk: refunds', 'desk: sales'), 'desk')
    """

    state: str
    options: tuple[str, ...]
    actions: tuple[str, ...]
    descriptions: Mapping[str, str | None]
    name: str | None
    instructions: str | None
    task: str

    @classmethod
    def of(
        cls,
        state: object,
        options: Sequence[str] | Mapping[str, str | None],
        *,
        name: str | None = None,
        instructions: str | None = None,
        task: str | None = None,
        redact: Callable[[str], str] = str,
    ) -> Self:
        """Return the question about a state.

        Args:
            state: a text or a JSON value.
            options: their names; or a mapping from each name to its description, or None.
            name, instructions: of the question.
            task: another task than the one that follows from them.
            redact: the memory's own redaction of a text (`memory.redacted`).

        Raises:
            InputError: a text is blank, there are no options, an option is listed twice, or two are one once redacted.
        """
        for field, text in (("question", name), ("instructions", instructions), ("task", task)):
            if text is not None:
                check_text(field, text)
        descriptions: dict[str, str | None] = dict(options) if isinstance(options, Mapping) else {}
        names = sorted(check_texts("options", list(options) if isinstance(options, Mapping) else options))
        for option, description in descriptions.items():
            if description is not None:
                check_text(f"description of {excerpt(option)}", description)
        if len(set(names)) < len(names):
            twice = next(one for one, other in itertools.pairwise(names) if one == other)
            raise InputError(f"{excerpt(twice)}, twice", "each option must be listed once", "Leave one of them out.")
        stored_name = None if name is None else redact(name)
        actions = _actions(stored_name, names, redact)
        check_candidates(dict.fromkeys(actions, 0.0), None)
        if task is None:
            digest = "" if instructions is None else f"#{_digest(redact(instructions))}"
            task = f"{stored_name or _UNNAMED}{digest}"
        task = redact(task)
        return cls(canonical_state(state), tuple(names), actions, descriptions, name, instructions, task)

    @property
    def shown(self) -> tuple[str, ...]:
        """The options as a model reads them, each with its description."""
        found = ((option, self.descriptions.get(option)) for option in self.options)
        return tuple(option if text is None else f"{option}: {text}" for option, text in found)


def _actions(name: str | None, options: Sequence[str], redact: Callable[[str], str]) -> tuple[str, ...]:
    """Return the action of each option behind the question's stored name, as the memory stores it.

    Raises:
        InputError: two options are one text once redacted, or an action would be stored as another text.
    """
    redacted = [redact(option) for option in options]
    if len(set(redacted)) < len(redacted):
        raise InputError(  # without the options, which are to be stored and logged nowhere
            f"{len(redacted) - len(set(redacted)) + 1} or more options that redaction makes one text",
            "the options of a question differ once they are redacted",
            "Give the redactor a key (Redactor(keyed=...)), so that different values have different marks.",
        )
    kept = memory_actions(redacted)
    prefix = "" if name is None else question_prefix(name)
    actions = tuple(f"{prefix}{kept[one]}" for one in redacted)
    for action in actions:
        if (stored := redact(action)) != action:
            raise InputError(
                f"an option that is stored as {excerpt(stored)}",
                "a question's name and an option stay as they are once they are redacted",
                "Name the question otherwise, or let the redactor leave its own marks alone.",
            )
    return actions


def question_prefix(name: str) -> str:
    """Return what stands before each option of a question in its actions, the name as the memory stores it.

    Memory folds case and blanks. So a name that is not in that form, or that holds one of the separators `:` and `#`,
    has the start of its digest: two names never have one prefix.

    Example:
        >>> question_prefix("desk"), question_prefix("Desk")
        ('desk: ', 'Desk #210e51e0: ')
    """
    is_plain = normalize_action(name) == name and not {":", "#"} & set(name)
    return f"{name if is_plain else _marked(name)}{_OF_NAME}"


def stored_action(option: str, actions: Collection[str], task: str) -> str:
    """Return the action that stands for an option of a decision: the option, behind the prefix of the question.

    The question's name is that in the task. Behind a task of the caller's own it is read from the actions.

    Raises:
        InputError: it is none of them.

    Example:
        >>> stored_action("refunds", ["desk: late refunds", "desk: refunds"], "desk#1c3f9a0b")
        'desk: refunds'
    """
    check_text("right", option)
    name = _INSTRUCTIONS.sub("", task)
    prefix = question_prefix(name)
    if not all(action.startswith(prefix) for action in actions):
        read = None if name == _UNNAMED else _PREFIX.match(next(iter(actions), ""))
        prefix = read[0] if read is not None and all(action.startswith(read[0]) for action in actions) else ""
    for kept in (option, _marked(option)):  # see `memory_actions`
        if f"{prefix}{kept}" in actions:
            return f"{prefix}{kept}"
    raise InputError(
        f"right = {excerpt(option)}",
        "the right label is an option of the decision",
        suggest(option, sorted(_unmarked(action.removeprefix(prefix)) for action in actions)[:_MOST_LISTED]),
    )


def _marked(text: str) -> str:
    return f"{text} #{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _unmarked(text: str) -> str:
    """Return a text without the start of its digest, as its client knows it; a text that ends so by itself stays."""
    plain = _MARK.sub("", text)
    return plain if text == _marked(plain) else text


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
