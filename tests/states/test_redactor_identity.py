"""The identity of a redactor names its settings, and not its key."""

from __future__ import annotations

import pytest

from seasoned.errors import UnknownNameError
from seasoned.states import Redactor
from seasoned.states.redactor_identity import named_redactor, redactor_from_identity

REDACTORS = [
    Redactor(),
    Redactor(["emails"]),
    Redactor(["cards", "emails"]),
    Redactor([], {"order": r"\d{6}", "name": "ann|bob"}),
    Redactor(["emails"], {"b": "b+", "a": "a+"}),
]
TEXT = "ann@example.com, order 123456 of bob, 4111 1111 1111 1111, aab"


@pytest.mark.parametrize("redactor", REDACTORS, ids=lambda one: one.identity)
def test_redactor_of_an_identity_redacts_alike(redactor):
    again = redactor_from_identity(redactor.identity)
    assert again.identity == redactor.identity
    assert again(TEXT) == redactor(TEXT)


def test_identities_differ_where_redaction_does():
    keyed = [Redactor(keyed=b"one"), Redactor(keyed=b"two")]
    assert len({one.identity for one in (*REDACTORS, *keyed)}) == len(REDACTORS) + 2
    assert Redactor(["cards", "emails"]).identity == Redactor(["emails", "cards"]).identity  # one order of application
    swapped = Redactor(["emails"], {"a": "a+", "b": "b+"})  # of patterns the order counts
    assert swapped.identity != REDACTORS[-1].identity


def test_key_is_in_no_identity():
    secret = b"0123456789abcdef"
    identity = Redactor(keyed=secret).identity
    assert secret.decode() not in identity
    assert secret.hex() not in identity
    with pytest.raises(UnknownNameError, match="redact="):
        redactor_from_identity(identity)


@pytest.mark.parametrize(
    "identity",
    [
        "",
        "function",
        "redactor/v1",
        "redactor/v1 [",
        "redactor/v2 {}",
        'redactor/v1 {"rules":7}',
        'redactor/v1 {"rules":["email"]}',
        'redactor/v1 {"rules": ["emails"]}',
        'redactor/v1 {"rules":["cards","emails"],"x":1}',
    ],
)
def test_other_text_is_no_identity(identity):
    with pytest.raises(UnknownNameError):
        redactor_from_identity(identity)


def test_redactors_are_named_by_their_rules():
    assert named_redactor("all").identity == Redactor().identity
    assert named_redactor("emails,cards").rules == ("emails", "cards")
    assert named_redactor(Redactor(["emails"]).identity).rules == ("emails",)
    with pytest.raises(UnknownNameError, match="emails"):
        named_redactor("email")
