"""The memory over HTTP: episodes, search, typed feedback, and a page on which people answer questions."""

from __future__ import annotations

from seasoned.service.answer_form import Candidate, Reply
from seasoned.service.app import make_app
from seasoned.service.auth import check_token
from seasoned.service.questions import Learned, Question, Questions, Queue
from seasoned.service.server import serve

__all__ = ["Candidate", "Learned", "Question", "Questions", "Queue", "Reply", "check_token", "make_app", "serve"]
