"""Redaction of secrets and personal data, before a text is stored or compared.

Every built-in rule scans a text in linear time: each run has one starting point, and lookahead is bounded.
"""

from __future__ import annotations

import bisect
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from seasoned.actions.key_escapes import escape_folded, unescape_folded
from seasoned.canonical_json import canonical_json
from seasoned.checks import check_instance, check_mapping, check_text, suggest
from seasoned.errors import InputError, UnknownNameError, excerpt
from seasoned.states.masks import Mask
from seasoned.states.secret_patterns import RULES, SecretRule
from seasoned.types import Episode, Step

__all__ = ["REDACTION_RULES", "Redactor", "redact_episode"]

REDACTION_RULES = tuple(RULES)
"""The built-in rules by name, in the order of application: `api-keys`, `tokens`, `emails`, `cards`."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_MAX_KEY_BYTES = 64
_DIGEST_BYTES = 4
_KEY_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secrets and personal data by marks: a function from text to text, deterministic and idempotent.

    A mark is `[email]`; with a key, `[email:1d0c9b62]`: 32 bits of a keyed BLAKE2b of the value, so that equal values
    have equal marks, and values cannot be guessed without the key. E-mail addresses are equal in any case, card numbers
    with any separators. Marks in a text do not change.

    | rule | finds | mark |
    |---|---|---|
    | `api-keys` | keys by their well-known prefix (`sk-`, `AKIA`, `ghp_`, `xoxb-`, `AIza`), private keys | api-key |
    | `tokens` | JWTs, `Authorization`, Bearer, `user:password@` in URLs, values of `password=`, `"token":` | token |
    | `emails` | e-mail addresses | email |
    | `cards` | 13 to 19 digits, as cards are printed, that pass the Luhn check | card |

    Rules find texts with the form of a secret. A password in running text has the form of a word: add a pattern for it.

    Args:
        rules: the names of built-in rules; all of them by default.
        patterns: name to regular expression, with letters in both cases; each match becomes `[name]`. Nested repeats
            such as `(a+)+` can take exponential time on a hostile text.
        keyed: a secret key of 1 to 64 bytes (16 random ones are enough); with another key equal values get other marks.

    Raises:
        UnknownNameError: there is no such built-in rule.
        InputError: a pattern is not a regular expression, or another setting breaks its rule.

    Example:
        >>> Redactor()("ann@example.com paid with 4111 1111 1111 1111")
        '[email] paid with [card]'
        >>> keyed = Redactor(["emails"], keyed=b"secret")
        >>> keyed("Ann@example.com") == keyed("ann@example.com") != keyed("bob@example.com")
        True
    """

    rules: Iterable[str] = REDACTION_RULES
    patterns: Mapping[str, str] = field(default_factory=dict, hash=False)
    keyed: bytes | None = field(default=None, repr=False)
    identity: str = field(init=False, repr=False, compare=False)
    """`redactor/v1`, then its rules and patterns in order, and a digest of its key, as canonical JSON."""
    _finders: tuple[SecretRule, ...] = field(init=False, repr=False, compare=False)
    _marks: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.rules, str) or not isinstance(self.rules, Iterable):
            raise InputError(f"rules = {excerpt(self.rules)}", "rules must be a list of names", "Pass ['emails'].")
        rules = tuple(self.rules)
        for name in rules:
            if not isinstance(name, str) or name not in RULES:
                raise UnknownNameError(
                    f"redaction rule {excerpt(name)}", "there is no such rule", suggest(str(name), RULES)
                )
        check_mapping("patterns", self.patterns, "names to regular expressions")
        key = self.keyed
        if key is not None and not (isinstance(key, bytes) and 1 <= len(key) <= _MAX_KEY_BYTES):
            raise InputError(
                f"keyed = {'b' + repr('...') if isinstance(key, bytes) else excerpt(type(key).__name__)}",
                f"a key must have 1 to {_MAX_KEY_BYTES} bytes",
                "Use os.urandom(16), and store it.",
            )
        # In the order of the table: a password in a URL would otherwise match as an e-mail address.
        finders = [finder for name in RULES if name in rules for finder in RULES[name]]
        finders += [_own_rule(name, pattern) for name, pattern in self.patterns.items()]
        names = "|".join(sorted({re.escape(finder.mark) for finder in finders}, key=len, reverse=True))
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "patterns", dict(self.patterns))
        object.__setattr__(self, "identity", self._identity())
        object.__setattr__(self, "_finders", tuple(finders))
        object.__setattr__(self, "_marks", re.compile(rf"\[(?:{names})(?::[0-9a-f]{{{2 * _DIGEST_BYTES}}})?\]"))

    def _identity(self) -> str:
        settings: dict[str, object] = {"rules": [name for name in RULES if name in tuple(self.rules)]}
        if self.patterns:
            settings["patterns"] = list(self.patterns.items())
        if self.keyed is not None:
            settings["key"] = hashlib.blake2b(b"identity", digest_size=_KEY_DIGEST_BYTES, key=self.keyed).hexdigest()
        return f"redactor/v1 {canonical_json(settings)}"

    def __call__(self, text: str) -> str:
        """Return `text` with every secret replaced, also in a call whose characters are escapes (`ToolAction.text`).

        Raises:
            InputError: the text is not a str.
        """
        check_instance("text", text, str, next_step="Convert it first.")
        if (plain := unescape_folded(text)) != text:
            redacted = self(plain)
            if redacted == plain:
                return text
            # In the arguments of a call, which begin at the first bracket, every such character is an escape.
            _, arguments = _at_bracket(text)
            name, rest = _at_bracket(redacted)
            return name + escape_folded(rest) if escape_folded(arguments) == arguments else redacted
        # Repeated to the fixed point: a mark can complete another secret, and redaction must be idempotent. It ends,
        # since every round leaves fewer characters outside the marks.
        while (redacted := self._once(text)) != text:
            text = redacted
        return text

    def _once(self, text: str) -> str:
        small = text.lower()
        for finder in self._finders:
            if finder.telltales and not any(telltale in small for telltale in finder.telltales):
                continue
            parts: list[str] = []
            at = 0
            for begin, end in self._outside(text, finder.spans(text)):
                parts += (text[at:begin], self._mark(finder, text[begin:end]))
                at = end
            if parts:
                text = "".join(parts) + text[at:]
        return text

    def _outside(self, text: str, spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the parts of the spans that are outside of marks."""
        starts: list[int] | None = None
        ends: list[int] = []
        for begin, end in spans:
            if starts is None:
                marks = [found.span() for found in self._marks.finditer(text)]
                starts, ends = [start for start, _ in marks], [stop for _, stop in marks]
            index = bisect.bisect_right(ends, begin)
            at = begin
            while index < len(starts) and starts[index] < end:
                if at < starts[index]:
                    yield at, starts[index]
                at = ends[index]
                index += 1
            if at < end:
                yield at, end

    def _mark(self, finder: SecretRule, secret: str) -> str:
        if self.keyed is None:
            return f"[{finder.mark}]"
        value = finder.canonical(secret).encode("utf-8", "surrogatepass")
        return f"[{finder.mark}:{hashlib.blake2b(value, digest_size=_DIGEST_BYTES, key=self.keyed).hexdigest()}]"


def _at_bracket(text: str) -> tuple[str, str]:
    at = min((at for at in (text.find("("), text.find("{")) if at >= 0), default=0)
    return text[:at], text[at:]


def _own_rule(name: object, pattern: object) -> SecretRule:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"the name {excerpt(name)} of a pattern",
            "a name must have up to 32 small letters, digits, - and _, a letter first",
            "Name it 'order', for example.",
        )
    mask = Mask(name, check_text("pattern", pattern))  # checks that it is a regular expression without empty matches
    regex = re.compile(mask.pattern, re.IGNORECASE)
    return SecretRule(name, lambda text: (found.span() for found in regex.finditer(text)))


def redact_episode(episode: Episode, redact: Callable[[str], str], *, ids: bool = False) -> Episode:
    """Return the episode with every text redacted: task, states, actions, final state, and the actions of each prior.

    If two actions of a prior become the same text, their probabilities add up: `log(exp(a) + exp(b))`, at most 0. `id`
    and `subject` are keys for retrieval and erasure, and do not change unless `ids` is set. Names of models, policies
    and arms do not change.

    Raises:
        InputError: a redacted text is not valid in an episode, for example because it is blank.

    Example:
        >>> step = Step("to: ann@example.com", "send(ann@example.com)")
        >>> redact_episode(Episode("write to ann@example.com", [step]), Redactor(["emails"])).steps[0].action
        'send([email])'
    """

    def redacted(text: str | None) -> str | None:
        return None if text is None else redact(text)

    return replace(
        episode,
        task=redact(episode.task),
        steps=[_redact_step(step, redact) for step in episode.steps],
        final_state=redacted(episode.final_state),
        id=redacted(episode.id) if ids else episode.id,
        subject=redacted(episode.subject) if ids else episode.subject,
    )


def _redact_step(step: Step, redact: Callable[[str], str]) -> Step:
    prior = step.prior
    if prior is not None:
        by_action: dict[str, list[float]] = {}
        for action, logprob in prior.items():
            by_action.setdefault(redact(action), []).append(logprob)
        prior = {action: _logsumexp(logprobs) for action, logprobs in by_action.items()}
    return replace(step, state=redact(step.state), action=redact(step.action), prior=prior)


def _logsumexp(logprobs: list[float]) -> float:
    if len(logprobs) == 1:
        return logprobs[0]
    largest = max(logprobs)
    return min(0.0, largest + math.log(math.fsum(math.exp(logprob - largest) for logprob in logprobs)))
