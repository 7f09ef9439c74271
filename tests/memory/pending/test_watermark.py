"""The watermark: the cost of a scan for pending episodes, and adds during a reindex."""

from __future__ import annotations

import contextlib
import threading
import time

import psycopg
import pytest
from late_commit import late_commit
from memory_by_definition import HashtagBlind
from postgres_server import fresh_url, postgres  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import EncoderMismatchError, StoreError
from seasoned.memory.stores.postgres.schema import FIRST_ARRIVAL
from seasoned.memory.stores.postgres.watermark import VERSION
from seasoned.memory.stores.postgres.wire import translate


def episode(id_, *states, **fields):
    return Episode("t", [Step(state, "go", 1.0) for state in states or ("page", f"page {id_}")], id=id_, **fields)


def found_ids(memory, state="page"):
    return [neighbor.experience.episode_id for neighbor in memory.search(state, 1_000, 0.9)]


# ------------------------------------------------------------------------------- what a look costs


def blocks_read(connection, memory, lowest):
    """Return the number of blocks that a scan from this number reads."""
    sql = (
        translate(VERSION)
        .replace("$1", str(memory.session.namespace_id))
        .replace("$2", str(lowest))
        .replace("$3", str(memory.session.namespace_id))
    )
    [(plan,)] = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}").fetchall()
    return plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]


def test_scan_skips_dead_rows_of_an_old_snapshot(postgres, fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory, postgres.connect(fresh_url) as backup, postgres.connect(fresh_url) as owner:
        owner.execute("SET search_path = seasoned; SET enable_seqscan = off")
        backup.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        backup.execute("SELECT count(*) FROM seasoned.episode")
        for number in range(200):
            memory.add(episode(f"e{number}", "page", "x" * 1500))  # five a block
        assert len(found_ids(memory)) == 200
        found_ids(memory)
        lowest = memory.session.store.pending.watermark.start(
            memory.session.store.generation, memory.session.namespace_id
        )
        assert blocks_read(owner, memory, FIRST_ARRIVAL) - blocks_read(owner, memory, lowest) > 30
        memory.add(episode("after"))
        assert found_ids(memory)[0] == "after"


def test_rolled_back_derivation_does_not_advance_the_watermark(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory:
        memory.add(episode("e"))
        with contextlib.suppress(LookupError), memory.session.store.transaction(memory.session.namespace_id):
            memory.session.inbox.derive_all()
            assert memory.session.store.version(memory.session.namespace_id).pending is None
            raise LookupError
        assert found_ids(memory) == ["e"]


def test_restored_numbers_do_not_block_adds(postgres, fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory, Memory.open(fresh_url, read_only=True) as reader:
        for number in range(12):
            memory.add(episode(f"e{number}"))
        with postgres.connect(postgres.url(database=fresh_url.rsplit("/", 1)[1])) as admin:
            # To those that come next: the numbers are the server's, so others' transactions may take some between.
            admin.execute(
                "WITH old AS (SELECT ordinal, row_number() OVER (ORDER BY ordinal) AS place FROM seasoned.episode)"
                " UPDATE seasoned.episode SET ordinal = %s + pg_current_xact_id()::text::bigint + old.place"
                " FROM old WHERE old.ordinal = episode.ordinal",
                (FIRST_ARRIVAL,),
            )
        memory.add(episode("new"))
        assert reader.stats().waiting == 1  # the others had to be folded first
        assert (
            sorted(found_ids(reader))
            == sorted(found_ids(memory))
            == sorted(["new", *(f"e{number}" for number in range(12))])
        )


# ------------------------------------------------------------------------------- encoding anew


class Strict(HashtagBlind):
    """Refuses one word; waits at another one."""

    identity = "test/strict"

    def __init__(self):
        self.reached, self.go_on = threading.Event(), threading.Event()

    def features(self, state):
        if "refused" in state:
            raise ValueError("a refused word")
        if "wait" in state:
            self.reached.set()
            self.go_on.wait(60)
        return super().features(state)


def in_thread(work):
    """Run it in a thread; the list gets its result or its error."""
    outcome = []

    def run():
        try:
            outcome.append(work())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def until_blocked(postgres, n=1):  # noqa: F811
    """Wait until so many connections of the server wait for a lock."""
    deadline = time.monotonic() + 30
    with postgres.connect() as admin:
        while True:
            sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            if admin.execute(sql).fetchone() == (n,):
                return
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_reindex_waits_for_open_adds_and_fails_whole(postgres, fresh_url):  # noqa: F811
    with (
        Memory.open(fresh_url, encoder=HashtagBlind()) as memory,
        Memory.open(fresh_url, encoder=HashtagBlind()) as slow,
    ):
        memory.add(episode("before"))
        found_ids(memory)
        with late_commit(slow, episode("late", "a refused page")):
            thread, outcome = in_thread(lambda: Memory.open(fresh_url, encoder=Strict(), reindex=True))
            until_blocked(postgres)
        thread.join(60)
        assert [type(one) for one in outcome] == [ValueError]
        assert found_ids(memory) == ["before"]
        assert found_ids(memory, "a refused page") == ["late"]
        assert Memory.namespaces(fresh_url) == {"default": HashtagBlind.identity}
        memory.verify()


def test_add_during_a_reindex_is_refused(postgres, fresh_url):  # noqa: F811
    encoder = Strict()
    with Memory.open(fresh_url, encoder=HashtagBlind()) as memory:
        memory.add(episode("before", "wait here"))
        reindexing, reopened = in_thread(lambda: Memory.open(fresh_url, encoder=encoder, reindex=True))
        assert encoder.reached.wait(60)
        adding, outcome = in_thread(lambda: memory.add(episode("late", "a refused page")))
        until_blocked(postgres)
        encoder.go_on.set()
        for thread in (reindexing, adding):
            thread.join(60)
        assert [type(one) for one in outcome] == [EncoderMismatchError]
        with reopened[0] as other:
            assert [one.id for one in other.episodes()] == ["before"]
            assert found_ids(other, "wait here") == ["before"]
            other.verify()


def test_lost_connection_is_reported_once(fresh_url, caplog):  # noqa: F811
    with Memory.open(fresh_url) as memory, psycopg.connect(fresh_url, autocommit=True) as admin:
        memory.add_many([episode("e")])
        memory.session.store.retry_s = 0.0
        with pytest.raises(StoreError), memory.session.store.snapshot():
            pid = memory.session.store.execute("SELECT pg_backend_pid()").fetchone()[0]
            admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
            memory.session.store.execute("SELECT 1").fetchone()
        assert [record for record in caplog.records if "terminating" in record.msg] == []
        assert found_ids(memory) == ["e"]
