"""The memory over HTTP: episodes, search, typed feedback, and a page on which people answer questions."""

from __future__ import annotations

from seasoned.service.app import make_app
from seasoned.service.gate import check_token
from seasoned.service.questions import Learned, Question, Questions, Queue
from seasoned.service.replies import Candidate, Reply
from seasoned.service.serving import serve

__all__ = ["Candidate", "Learned", "Question", "Questions", "Queue", "Reply", "check_token", "make_app", "serve"]
