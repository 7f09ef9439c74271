"""Templates: a state's text composed of named fields, such as `[State: {nouns}] [Action: {recent_verbs}]`."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field

from seasoned.canonical_json import canonical_json
from seasoned.checks import check_instance, check_mapping, check_text, suggest
from seasoned.errors import InputError, excerpt
from seasoned.states.buckets import as_run
from seasoned.states.fields import Field, FieldValue, Nouns, RecentVerbs
from seasoned.states.tokens import TokenEncoder, check_state

__all__ = ["DEFAULT_FIELDS", "Template", "TemplateEncoder"]

DEFAULT_FIELDS: Mapping[str, Field] = {"nouns": Nouns(), "recent_verbs": RecentVerbs()}
"""The fields that every template may name."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text with named placeholders. `{{` and `}}` are literal braces.

    Raises:
        InputError: the braces do not match, or a placeholder is not a plain name.

    Example:
        >>> template = Template("[Page: {page}] total:{total} {{v1}}")
        >>> template.names
        ('page', 'total')
        >>> template.fill({"page": ("cart", "empty"), "total": "10-20"})
        '[Page: cart empty ] total:10-20 {v1}'
    """

    text: str
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The names of the placeholders, each once, in order of appearance."""
    _parts: tuple[tuple[str, str | None], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_text("template", self.text)
        next_step = "Write {name}, and {{ for a literal brace."
        try:
            places = list(string.Formatter().parse(self.text))
        except ValueError as error:
            raise InputError(f"template {excerpt(self.text)}", f"braces must match ({error})", next_step) from None
        for _, name, spec, conversion in places:
            if name is not None and (spec or conversion or not name.isidentifier()):
                seen = f"placeholder {excerpt(name)} in a template"
                raise InputError(seen, "a placeholder must be a plain name", next_step)
        parts = tuple((literal, name) for literal, name, _, _ in places)
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "names", tuple(dict.fromkeys(name for _, name in parts if name)))

    def fill(self, values: Mapping[str, FieldValue]) -> str:
        """Return the text with every placeholder filled.

        A str becomes one run, directly next to the surrounding text (`total:{total}`). A tuple of words is separated
        from it by blanks, so that a word is the same feature at every position of the list.

        Raises:
            InputError: a value is missing, or is neither a str nor a tuple of str.
        """
        text, apart = "", False
        for literal, name in self._parts:
            text, apart = _join(text, literal, apart), apart and not literal
            if name is not None:
                if name not in values:
                    rule = "every placeholder needs a value"
                    raise InputError(f"no value for {excerpt(name)}", rule, suggest(name, values))
                value, words = _shown(name, values[name])
                text, apart = _join(text, value, apart or words), words or (apart and not value)
        return text


def _join(left: str, right: str, apart: bool) -> str:
    blank = apart and left and right and not left[-1].isspace() and not right[0].isspace()
    return f"{left} {right}" if blank else left + right


def _shown(name: str, value: object) -> tuple[str, bool]:
    """Return a value's text, and whether it consists of words to be separated by blanks."""
    if isinstance(value, str):
        return as_run(value), False
    if isinstance(value, tuple) and all(isinstance(word, str) for word in value):
        return " ".join(map(as_run, value)), True
    raise InputError(
        f"{name} = {excerpt(value)}", f"{name} must be a str or a tuple of str", "Turn numbers into Buckets labels."
    )


@dataclass(frozen=True, slots=True)
class TemplateEncoder:
    """Encodes the filled template of a state instead of its whole text. The memory still stores the whole text.

    Args:
        template: the text, or a Template.
        fields: name to field, added to `DEFAULT_FIELDS` (`nouns`, `recent_verbs`).
        tokens: turns the filled template into features.

    Raises:
        InputError: the template names an unknown field, or a setting is of the wrong type.

    Example:
        >>> from seasoned.states import with_recent_actions
        >>> encoder = TemplateEncoder("[State: {nouns}] [Action: {recent_verbs}]")
        >>> state = with_recent_actions("There is a brass lantern here.", ["go north", "take lantern"])
        >>> encoder.text(state)
        '[State: brass lantern ] [Action: go take ]'
        >>> sorted(encoder.features(state))
        ['[action:', '[state:', ']', 'brass', 'go', 'lantern', 'take']
    """

    template: Template | str
    fields: Mapping[str, Field] = field(default_factory=dict, hash=False)
    tokens: TokenEncoder = field(default_factory=TokenEncoder)
    identity: str = field(init=False, repr=False, compare=False)
    """`template/v1`, then the template, its fields' identities and the token encoder's, as canonical JSON."""
    _template: Template = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        template = self.template if isinstance(self.template, Template) else Template(self.template)
        check_instance("tokens", self.tokens, TokenEncoder, next_step="Pass TokenEncoder().")
        known = {**DEFAULT_FIELDS, **check_mapping("fields", self.fields, "names to fields")}
        for name, value in known.items():
            rule = "a field must have identity and extract()"
            check_instance(f"field {excerpt(name)}", value, Field, rule, "Pass a PatternMatch, for example.")
        for name in template.names:
            if name not in known:
                raise InputError(f"field {excerpt(name)}", "there is no such field", suggest(name, known))
        used = {name: known[name] for name in template.names}
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "_template", template)
        object.__setattr__(self, "fields", used)
        settings = {
            "template": template.text,
            "fields": {name: value.identity for name, value in used.items()},
            "tokens": self.tokens.identity,
        }
        object.__setattr__(self, "identity", f"template/v1 {canonical_json(settings)}")

    def text(self, state: str) -> str:
        """Return the template, filled from `state`."""
        return self._template.fill({name: value.extract(state) for name, value in self.fields.items()})

    def features(self, state: str) -> frozenset[str]:
        """Return the features of the filled template.

        Raises:
            InputError: the state is not a str, is too long, or cannot be written as UTF-8.
        """
        check_state(state)
        return self.tokens.features(self.text(state))
