"""Fixtures of the service tests: an application on a memory in RAM, and a client of it."""

from __future__ import annotations

import contextlib

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")
pytest.importorskip("httpx", reason="needs httpx, a client for the service")

from fastapi.testclient import TestClient

from seasoned.service import make_app

TOKEN = "a-token-of-enough-characters"
HERE = "http://127.0.0.1:8710"
MAIL = "mail: where is my order 17?"
REPLIES = ("It is lost.", "It comes on Monday.", "Which order?")


@contextlib.contextmanager
def serving(path=":memory:", **settings):
    """Return a client of the service on `path`, which sends the token, if there is one."""
    settings = {"create": True, **settings}
    headers = {"Authorization": f"Bearer {settings['token']}"} if settings.get("token") else {}
    with TestClient(make_app(path, **settings), base_url=HERE, headers=headers) as client:
        yield client


def post_question(client, **more):
    """Add a question and return its id."""
    question = {"task": "support", "state": MAIL, "candidates": [{"text": text} for text in REPLIES], **more}
    response = client.post("/v1/questions", json={name: value for name, value in question.items() if value is not None})
    assert response.status_code == 201, response.text
    return response.json()["id"]


def error_of(response, status):
    """Return the error document of a response; it must have this status, and the three sentences."""
    assert response.status_code == status, response.text
    error = response.json()
    assert set(error) == {"error", "seen", "rule", "next"}
    assert all(isinstance(value, str) and value for value in error.values())
    return error
