"""`seasoned memory fork`, `promote`, `roll-back` and `import-harbor`."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from seasoned import Episode, Memory, Selection, Step
from seasoned.cli.memory.forks import fork, promote, roll_back
from seasoned.cli.memory.transfer import import_harbor
from seasoned.errors import InputError, NotFoundError


def ran(command, *arguments):
    done = CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def n_found(path, namespace="default"):
    with Memory.open(path, namespace=namespace) as memory:
        return len(memory.search("cart"))


def test_fork_is_promoted_by_its_scores_and_rolled_back(tmp_path):
    live, candidate, scores = tmp_path / "agent.db", tmp_path / "tried.db", tmp_path / "scores.json"
    with Memory.open(live) as memory:
        memory.add_many([Episode("t", [Step("cart", "pay", reward)], str(reward)) for reward in (1.0, -1.0)])
    ran(fork, live, candidate)
    with Memory.open(candidate) as memory:
        memory.quarantine(Selection(episode="-1.0"), "bad")
    scores.write_text(json.dumps({"live": [0, 0, 0, 1], "candidate": [1, 0, 0, 0]}))
    with pytest.raises(InputError, match="above zero"):
        ran(promote, candidate, "--scores", scores)
    better = {"live": [0, 0, 0.1, 0], "candidate": [1, 1, 1, 1]}
    with Memory.open(live) as memory:
        scores.write_text(json.dumps({**better, "content": memory.verify().hash}))
    with pytest.raises(InputError, match="changed since it was evaluated"):
        ran(promote, candidate, "--scores", scores)
    with Memory.open(candidate) as memory:
        scores.write_text(json.dumps({**better, "content": memory.verify().hash}))
    promotion = json.loads(ran(promote, candidate, "--scores", scores, "--json").stdout)
    assert (promotion["carried"], n_found(live), n_found(promotion["retired"])) == (0, 1, 2)
    ran(roll_back, live)
    assert n_found(live) == 2
    wrong = '{"live": [1, 2], "candidate": [1, 2], "content": 5}'
    for content, error in (("[]", InputError), ("{", InputError), ('{"live": [1]}', InputError), (wrong, InputError)):
        scores.write_text(content)
        with pytest.raises(error):
            ran(promote, candidate, "--scores", scores)
    with pytest.raises(InputError, match=r"new file.*another name"):
        ran(fork, live, candidate)
    with pytest.raises(InputError, match="--scores FILE"):
        ran(promote, candidate)
    with pytest.raises(NotFoundError, match=r"is missing.*memory fork"):
        ran(promote, tmp_path / "none.db", "--force", "x")


def test_fork_uses_the_only_namespace_and_refuses_several(tmp_path):
    live, candidate = tmp_path / "agent.db", tmp_path / "tried.db"
    with Memory.open(live, namespace="shop") as memory:
        memory.add(Episode("t", [Step("cart", "pay")], "e"))
    assert json.loads(ran(fork, live, candidate, "--json").stdout)["namespace"] == "shop"
    with Memory.open(candidate, namespace="shop") as memory:
        memory.add(Episode("t", [Step("cart", "leave")], "f"))
    ran(promote, candidate, "--force", "tried")
    assert n_found(live, "shop") == 2
    Memory.open(live, namespace="desk").close()
    ran(roll_back, live)  # the record says which one was promoted
    assert n_found(live, "shop") == 1
    with pytest.raises(NotFoundError, match="no promotion"):
        ran(roll_back, live)
    with pytest.raises(InputError, match="desk, shop"):
        ran(fork, live, tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()
    journal = tmp_path / "agent.db.promotions.jsonl"
    journal.write_text(journal.read_text() + json.dumps({"live": str(live), "namespace": "desk", "retired_path": "x"}))
    with pytest.raises(InputError, match=r"2 namespaces .*desk, shop.*--namespace"):
        ran(roll_back, live)


def test_record_of_another_fork_is_replaced_only_with_overwrite(tmp_path):
    live, other, candidate = (tmp_path / name for name in ("agent.db", "other.db", "tried.db"))
    record = tmp_path / "tried.db.fork.json"
    for path in (live, other):
        with Memory.open(path) as memory:
            memory.add(Episode("t", [Step("cart", "pay")], path.name))
    ran(fork, live, candidate)
    first = record.read_text()
    candidate.unlink()
    ran(fork, live, candidate)  # of the same: nothing is lost
    candidate.unlink()
    for content, message in ((first, "of namespace"), ("{", "no record of a fork")):
        record.write_text(content)
        with pytest.raises(InputError, match=rf"{message}.*must not be replaced.*--overwrite"):
            ran(fork, other, candidate)
        assert (record.read_text(), candidate.exists()) == (content, False)
    ran(fork, other, candidate, "--overwrite")
    assert json.loads(record.read_text())["live"] == str(other)


def test_harbor_job_is_imported(tmp_path):
    trial = tmp_path / "job" / "t"
    (trial / "agent").mkdir(parents=True)
    (trial / "result.json").write_text('{"id": "i", "verifier_result": {"rewards": {"reward": 1}}}')
    steps = [{"step_id": 1, "source": "user", "message": "Do."}, {"step_id": 2, "source": "agent", "message": "ls"}]
    document = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": steps}
    (trial / "agent" / "trajectory.json").write_text(json.dumps(document))
    path = tmp_path / "agent.db"
    assert "1 would be new" in ran(import_harbor, path, trial.parent, "--create", "--dry-run").output
    assert not path.exists()
    assert json.loads(ran(import_harbor, path, trial.parent, "--create", "--json").stdout)["new"] == 1
    (trial / "agent" / "trajectory.json").unlink()
    done = ran(import_harbor, path, trial.parent)
    assert "1 trial, 1 refused; 0 are new" in done.output


def test_fork_commands_are_in_the_group():
    assert all(isinstance(one, click.Command) for one in (fork, promote, roll_back, import_harbor))
