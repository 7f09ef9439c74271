"""The cost of a query on the overlay while a writing transaction stays open, and numbers from a restored dump."""

from __future__ import annotations

import contextlib
import re
import tempfile

import psycopg
import pytest
from click.testing import CliRunner
from late_commit import late_commit
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli
from seasoned.errors import NotFoundError, StoreBusyError
from seasoned.memory.pending.overlay import MAX_TAIL
from seasoned.memory.stores.postgres.schema import FIRST_ARRIVAL, POSTGRES_VERSION
from seasoned.types import Backup, EvidenceQuery


def episode(id_, *states, **fields):
    return Episode("t", [Step(state, "go", 1.0) for state in states or ("page", f"page {id_}")], id=id_, **fields)


def found_ids(memory, state="page"):
    return [neighbor.experience.episode_id for neighbor in memory.search(state, 1_000, 0.9)]


@contextlib.contextmanager
def held(url):
    """Hold a writing transaction open: no later episode settles."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_current_xact_id()")
        yield
        connection.rollback()


def traffic(memory, look):
    """Return the bytes that a query sends and the rows that it gets: the minimum of four runs."""
    costs = []
    for _ in range(4):
        wire = memory.session.store._live.pgconn
        with tempfile.TemporaryFile() as file:
            wire.trace(file.fileno())
            look()
            wire.untrace()
            file.seek(0)
            messages = re.findall(r"\t([FB])\t(\d+)\t(\w+)", file.read().decode(errors="replace"))
        sent = sum(int(size) for side, size, _ in messages if side == "F")
        costs.append((sent, sum(kind == "DataRow" for _, _, kind in messages)))
    return min(costs)


@pytest.fixture
def three(fresh_url):  # noqa: F811
    """A writer, a read-only reader, and a memory whose transactions commit late, while a transaction is held open."""
    with Memory.open(fresh_url) as writer, Memory.open(fresh_url) as slow:
        writer.add(episode("first"))
        found_ids(writer)
        with Memory.open(fresh_url, read_only=True) as reader, held(fresh_url):
            yield writer, reader, slow


def test_query_reads_new_pending_episodes_only(three):
    writer, reader, slow = three
    costs = []

    def look():
        slow.session.store.execute("SELECT pg_current_xact_id()")  # transactions come and go
        found_ids(reader, "nothing like it")

    for more in (10, MAX_TAIL):
        for number in range(more):
            writer.add(episode(f"{more} {number}", f"room {more} {number}"))
        look()
        costs.append(traffic(reader, look))
    assert costs[0][1] == costs[1][1] == 1
    assert abs(costs[1][0] - costs[0][0]) < MAX_TAIL  # not a number for each that waits
    overlay = reader._retriever._overlay
    derived = overlay.n_derived
    for number in range(3):
        writer.add(episode(f"one {number}"))
        found_ids(reader)
    assert overlay.n_derived == derived + 3


def test_late_commit_rolls_back_only_the_episodes_after_it(three):
    writer, reader, slow = three
    for number in range(MAX_TAIL + 20):
        writer.add(episode(f"e{number}", f"room {number}"))
    found_ids(reader)
    overlay = reader._retriever._overlay
    with late_commit(slow, episode("late")):
        writer.add(episode("after"))
        assert found_ids(reader) == ["after", "first"]
    derived, undone = overlay.n_derived, overlay.n_rollbacks
    assert found_ids(reader) == ["after", "late", "first"]
    assert (overlay.n_derived - derived, overlay.n_rollbacks - undone) == (2, 1)


def test_overtaking_commits_are_derived_a_few_times_each(three):
    writer, reader, slow = three
    for number in range(MAX_TAIL + 1):
        writer.add(episode(f"e{number}", f"room {number}"))
    found_ids(reader)
    overlay, pairs = reader._retriever._overlay, 15
    derived = overlay.n_derived
    for number in range(pairs):
        with late_commit(slow, episode(f"late {number}", "room")):
            writer.add(episode(f"after {number}", "room"))
            found_ids(reader)
        writer.add(episode(f"then {number}", "room"))
        found_ids(reader)
    assert overlay.n_derived - derived <= 5 * pairs
    assert len(found_ids(reader, "room")) == 3 * pairs


def test_settled_episodes_are_not_derived_again(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as writer, Memory.open(fresh_url, read_only=True) as reader:
        with held(fresh_url):
            for number in range(5):
                writer.add(episode(f"e{number}"))
                found_ids(reader)
        overlay = reader._retriever._overlay
        for number in range(5, 7):
            writer.add(episode(f"e{number}"))
            found_ids(reader)
        assert (overlay._base, overlay._tail, overlay.n_derived) == ([], [], 7)


def test_graph_reads_new_overlay_rows_only(three):
    writer, reader, slow = three

    def ask():
        store = reader._retriever._overlay.store
        with contextlib.nullcontext([]) if store is None else store.trace() as statements:
            reader.evidence(EvidenceQuery("page", k=5, unit="states", threshold=0.5, gamma=0.5, backup=Backup(4.0)))
        read = [sql for sql in statements if "AS final" in sql and "step.visit >" in sql]
        return [len(store.execute(sql).fetchall()) for sql in read]

    writer.evidence(EvidenceQuery("page", k=5, unit="states", threshold=0.5, gamma=0.5))
    for number in range(MAX_TAIL + 20):
        writer.add(episode(f"e{number}", f"room {number}"))
    ask()
    for number in range(3):
        writer.add(episode(f"one {number}"))
        found_ids(reader)
        assert ask() == [2]
    with late_commit(slow, episode("late")):
        writer.add(episode("after"))
        found_ids(reader)
        ask()
    found_ids(reader)
    assert ask() == [4]  # the late one, and what it took back


# ------------------------------------------------------------------------------- numbers from elsewhere


def renumbered(postgres, url, shift):  # noqa: F811
    """Give the pending episodes other numbers, as a dump does."""
    with postgres.connect(postgres.url(database=url.rsplit("/", 1)[1])) as admin:
        admin.execute(f"UPDATE seasoned.episode SET ordinal = {shift} WHERE ordinal < 0")


def scan_from_the_first(memory):
    memory.session.store.pending.watermark.full_scan_s = 0.0


def test_restored_pending_episodes_are_found_by_the_full_scan(postgres, fresh_url):  # noqa: F811
    with (
        Memory.open(fresh_url) as loader,
        Memory.open(fresh_url) as writer,
        Memory.open(fresh_url, read_only=True) as reader,
    ):
        for memory in (writer, reader):
            found_ids(memory)
        loader.add(episode("loaded"))
        renumbered(postgres, fresh_url, FIRST_ARRIVAL + 5)
        assert found_ids(reader) == []
        scan_from_the_first(reader)
        assert found_ids(reader) == ["loaded"]
        assert found_ids(writer) == []
        scan_from_the_first(writer)
        assert found_ids(writer) == ["loaded"]
        loader.add(episode("above"))
        assert found_ids(reader) == ["above", "loaded"]


def test_restored_episode_below_the_settled_layer_resets_the_overlay(postgres, fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as writer, Memory.open(fresh_url, read_only=True) as reader:
        writer.add(episode("loaded"))
        renumbered(postgres, fresh_url, FIRST_ARRIVAL + 5)
        for number in range(3):
            writer.add(episode(f"e{number}"))
        found_ids(reader)
        with postgres.connect(postgres.url(database=fresh_url.rsplit("/", 1)[1])) as admin:
            admin.execute("UPDATE seasoned.episode SET ordinal = ordinal + 1 WHERE id = 'loaded'")
        scan_from_the_first(reader)
        assert found_ids(reader) == ["e2", "e1", "e0", "loaded"]


def test_feedback_on_a_restored_episode_succeeds_at_the_second_attempt(postgres, fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as loader, Memory.open(fresh_url) as writer:
        found_ids(writer)
        loader.add(episode("loaded", subject="ann"))
        renumbered(postgres, fresh_url, FIRST_ARRIVAL + 5)
        with pytest.raises(StoreBusyError, match="added just now"):
            writer.feedback("loaded", 1.0)
        writer.feedback("loaded", 1.0)
        found_ids(writer)
        loader.add(episode("more", subject="bob"))
        renumbered(postgres, fresh_url, FIRST_ARRIVAL + 6)
        assert writer.erase("bob").episodes == ("more",)
        with pytest.raises(NotFoundError):
            writer.erase("bob")


def test_every_scan_on_citus_begins_at_the_first_number(postgres, fresh_url):  # noqa: F811
    with postgres.connect(postgres.url(database=fresh_url.rsplit("/", 1)[1])) as admin:  # as if it were installed
        admin.execute(
            "INSERT INTO pg_extension SELECT 1, 'citus', extowner, extnamespace, false, '1' FROM pg_extension"
        )
    with Memory.open(fresh_url) as writer, Memory.open(fresh_url, read_only=True) as reader:
        for id_, number in (("a", 9), ("b", 7), ("c", 8)):
            found_ids(reader)
            writer.add(episode(id_))
            with postgres.connect(postgres.url(database=fresh_url.rsplit("/", 1)[1])) as admin:
                admin.execute(f"UPDATE seasoned.episode SET ordinal = {FIRST_ARRIVAL + number} WHERE id = '{id_}'")
        assert found_ids(reader) == ["a", "c", "b"]
        assert found_ids(writer) == ["a", "c", "b"]


# ------------------------------------------------------------------------------- locks and the command line


def test_add_behind_a_row_lock_is_busy_after_the_timeout(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory, psycopg.connect(fresh_url) as other:
        memory.session.store._live.execute("SET lock_timeout = 50")  # 30 s otherwise
        memory.session.store.retry_s = 0.0
        other.execute("SELECT id FROM seasoned.namespace FOR UPDATE")
        with pytest.raises(StoreBusyError):
            memory.add(episode("e"))


def test_command_line_prints_the_schema_of_the_server(fresh_url):  # noqa: F811
    done = CliRunner().invoke(cli, ["memory", "migrate", fresh_url])
    assert (done.exit_code, done.stdout.splitlines()[0].rsplit(maxsplit=1)[-1]) == (0, str(POSTGRES_VERSION))
