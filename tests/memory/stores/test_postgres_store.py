"""PostgreSQL as a store: the promises of the SQLite file, kept by a server."""

from __future__ import annotations

import contextlib
import os
import threading
import time

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import PASSWORD, empty_url, fresh_url, postgres, run_server  # noqa: F401

from seasoned import Episode, Memory, Step
from seasoned.errors import (
    ConfigError,
    InputError,
    IntegrityError,
    NotFoundError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
)
from seasoned.memory.stores.postgres.store import PostgresStore
from seasoned.memory.stores.postgres.wire import escape, unescape
from seasoned.memory.writing.episode_writer import TimedEpisode
from seasoned.testing import check_memory


def opened(url, **options):
    return PostgresStore(url, **{"create": True, "read_only": False, **options})


def namespace(store, name="n"):
    with store.transaction(None):
        return store.execute(
            "INSERT INTO namespace (name, encoder, gamma, created_at, checksum) VALUES (?, ?, ?, ?, '') RETURNING id",
            (name, "e", 0.5, 1.0),
        ).fetchone()[0]


def state(ns, number, text="s"):
    return (ns, number, text, number.to_bytes(8, "big"), 1)


def states(store, ns):
    with store.snapshot():
        return store.execute("SELECT id, text FROM state WHERE namespace_id = ? ORDER BY id", (ns,)).fetchall()


def episode(id_, reward=1.0):
    return Episode("t", [Step(f"page {id_}", "go", reward)], id=id_)


def test_the_public_checker_passes(fresh_url):  # noqa: F811
    check_memory(lambda name: Memory.open(fresh_url, namespace=name, gamma=0.5))


def test_hash_of_content_equals_that_in_a_file(fresh_url, tmp_path):  # noqa: F811
    texts = ["a\0b", "\ue000", "\ue0000", "買い物 page", "page\ue000\0"]
    with Memory.open(tmp_path / "a.db") as file, Memory.open(fresh_url) as server:
        file.add_many([Episode("t\0", [Step(t, f"go {t}", 0.1)], id=f"e {t}") for t in texts])
        server.import_lines(list(file.export()))
        assert server.verify() == file.verify()
        assert list(server.export()) == list(file.export())


# ------------------------------------------------------------------------------- texts

ODD = st.text(st.one_of(st.sampled_from("\0\ue0000a"), st.characters(exclude_categories=["Cs"])))


@given(ODD)
def test_every_text_is_read_back_equal(text):
    assert "\0" not in escape(text)
    assert unescape(escape(text)) == text


@given(ODD, ODD)
def test_escaped_texts_are_equal_only_for_equal_texts(one, other):
    assert (escape(one) == escape(other)) == (one == other)


def test_texts_are_read_back_from_the_server_unchanged(fresh_url):  # noqa: F811
    store = opened(fresh_url)
    ns = namespace(store)

    @settings(max_examples=25)
    @given(st.lists(ODD, min_size=1, max_size=20))
    def through(texts):
        with store.transaction(ns):
            store.execute("DELETE FROM state WHERE namespace_id = ?", (ns,))
            store.insert("state", [state(ns, number, text) for number, text in enumerate(texts)])
            rows = store.execute_in("SELECT text FROM state WHERE namespace_id = ? AND text IN {values}", (ns,), texts)
        assert [text for _, text in states(store, ns)] == texts
        assert sorted(text for (text,) in rows) == sorted(texts)

    through()


# ------------------------------------------------------------------------------- statements


def test_last_of_several_updates_of_a_row_is_stored(fresh_url):  # noqa: F811
    store = opened(fresh_url)
    ns = namespace(store)
    with store.transaction(ns):
        store.insert("state", [state(ns, n) for n in range(1, 4)])
        store.upsert("state", [state(ns, 1, "old"), state(ns, 1, "new"), state(ns, 9, "more")])
        store.update("state", ("text",), ("namespace_id", "id"), [("x", ns, 2), ("y", ns, 2), ("z", ns, 77)])
        store.insert("state", [])
        assert store.execute_in("SELECT id FROM state WHERE namespace_id = ? AND id IN {values}", (ns,), []) == []
    assert states(store, ns) == [(1, "new"), (2, "y"), (3, "s"), (9, "more")]


def test_transaction_is_committed_whole_or_not_at_all(fresh_url):  # noqa: F811
    store = opened(fresh_url)
    ns = namespace(store)
    mark = store.version(ns).mark
    with pytest.raises(KeyError), store.transaction(ns):
        store.insert("state", [state(ns, 1)])
        raise KeyError
    assert (states(store, ns), store.version(ns).mark) == ([], mark)
    # Nothing is fetched: the second row's error comes with the commit, and as ours.
    with pytest.raises(IntegrityError, match=r"duplicate key"), store.transaction(ns):
        store.insert("state", [state(ns, 1)])
        store.insert("state", [state(ns, 1)])
        store.insert("state", [state(ns, 2)])
    assert (states(store, ns), store.version(ns).mark) == ([], mark)
    with store.transaction(ns):
        store.insert("state", [state(ns, 1)])
    assert (len(states(store, ns)), store.version(ns).mark == mark) == (1, False)


def test_swallowed_error_fails_the_commit(fresh_url):  # noqa: F811
    store = opened(fresh_url)
    ns = namespace(store)
    with pytest.raises(StoreError), store.transaction(ns):
        with contextlib.suppress(psycopg.Error):
            store.execute("SELECT 1 / 0").fetchone()
        store.insert("state", [state(ns, 1)])
    assert states(store, ns) == []


def test_snapshot_reads_one_state_and_refuses_writes(fresh_url):  # noqa: F811
    store, other = opened(fresh_url), opened(fresh_url)
    ns = namespace(store)
    with store.snapshot():
        assert store.in_transaction()
        before = store.execute("SELECT count(*) FROM state").fetchone()
        with other.transaction(ns):
            other.insert("state", [state(ns, 1)])
        with store.snapshot():
            assert store.execute("SELECT count(*) FROM state").fetchone() == before == (0,)
    assert not store.in_transaction()
    assert len(states(store, ns)) == 1
    with pytest.raises(ReadOnlyStoreError), store.snapshot():
        store.insert("state", [state(ns, 2)])
    reader = opened(fresh_url, read_only=True)
    with pytest.raises(ReadOnlyStoreError, match=r"read-only"), reader.transaction(ns):
        pass


@pytest.mark.parametrize("table", ["episode", "feedback", "quarantine", "note"])
def test_key_too_long_for_an_index_is_refused(fresh_url, table):  # noqa: F811
    store = opened(fresh_url)
    ns = namespace(store)
    long = "é" * 501
    row = {
        "episode": (ns, 1, long, "t", "terminated", 0, None, None, None, None, None, 1.0, b"d", b"c", None, False),
        "feedback": (ns, 1, long, 1, 1.0, 1.0, "s", None, 1.0, None, None, b"d", True, None, b"c"),
        "quarantine": (ns, 1, long, "{}", "r", 1.0, None, b"d", b"c"),
        "note": (ns, long, "e", None, "plan", "{}", "s", None, 1.0, None, b"d", b"c"),
    }[table]
    with pytest.raises(InputError, match=r"1002 bytes.*at most 1000 bytes.*shorter"), store.transaction(ns):
        store.insert(table, [row])
    with store.transaction(ns):
        store.insert(table, [tuple("é" * 500 if value == long else value for value in row)])


def test_namespace_name_too_long_for_an_index_is_refused(fresh_url):  # noqa: F811
    name = "".join(chr(0x4E00 + (i * i * 7919) % 20000) for i in range(2000))  # does not compress
    with pytest.raises(InputError, match=r"at most 1000 bytes"):
        Memory.open(fresh_url, namespace=name)
    assert Memory.namespaces(fresh_url) == {}


# ------------------------------------------------------------------------------- who comes first


def test_commits_of_one_namespace_are_in_the_order_of_its_numbers(fresh_url):  # noqa: F811
    """The first writer holds its transaction open while others commit; the reader ends with everything, once."""
    slow, fast, other, reader = (Memory.open(fresh_url, namespace=n) for n in ("a", "a", "b", "a"))
    open_, go, seen = threading.Event(), threading.Event(), []

    def hold():
        with slow.session.store.transaction(slow.session.namespace_id):
            slow.session.writer.add([TimedEpisode(episode("slow"), None)])
            open_.set()
            go.wait(30)

    def hurry():
        fast.add_many([episode("fast")])
        seen.append("fast committed")

    holder, hurrier = threading.Thread(target=hold), threading.Thread(target=hurry)
    holder.start()
    assert open_.wait(30)
    hurrier.start()
    other.add(episode("elsewhere"))  # another namespace waits for nobody
    assert [n.experience.episode_id for n in other.search("page elsewhere", 1)] == ["elsewhere"]
    for _ in range(20):
        assert reader.search("page slow", 10) == []
        time.sleep(0.01)
    assert seen == []  # it waits for the one that was first
    go.set()
    holder.join(30)
    hurrier.join(30)
    order = [n.experience.episode_id for n in reader.search("page slow", 10)]
    assert sorted(order) == ["fast", "slow"]
    assert [one.id for one in reader.episodes()] == ["slow", "fast"]
    assert reader.verify().episodes == 2


def test_earlier_transaction_with_later_numbers_loses_no_episode(fresh_url):  # noqa: F811
    early, late, reader = (Memory.open(fresh_url, namespace="a") for _ in range(3))
    with early.session.store._block("transaction", "BEGIN ISOLATION LEVEL READ COMMITTED"):
        early.session.store.execute(
            "SELECT count(*) FROM seasoned.meta"
        ).fetchone()  # it is open before the other begins
        late.add(episode("late"))
        assert [n.experience.episode_id for n in reader.search("page", 10)] == ["late"]
        early.session.store.execute(
            "UPDATE namespace SET revision = revision + 1 WHERE id = ?", (early.session.namespace_id,)
        )
        early.session.writer.add([TimedEpisode(episode("early"), None)])
        assert [n.experience.episode_id for n in reader.search("page", 10)] == ["late"]
    assert sorted(n.experience.episode_id for n in reader.search("page", 10)) == ["early", "late"]
    assert reader.verify().episodes == 2


def test_writers_of_one_namespace_are_serialised(fresh_url):  # noqa: F811
    memories = [Memory.open(fresh_url, namespace="a") for _ in range(6)]

    def write(number, memory):
        for index in range(8):
            memory.add(episode(f"{number}-{index}", float(index)))

    threads = [threading.Thread(target=write, args=pair) for pair in enumerate(memories)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    reader = memories[0]
    assert {one.id for one in reader.episodes()} == {f"{n}-{i}" for n in range(6) for i in range(8)}
    assert reader.verify().episodes == 48


def test_writer_that_waits_too_long_is_busy(fresh_url):  # noqa: F811
    one, other = opened(fresh_url), opened(fresh_url)
    ns = namespace(one)
    other._live.execute("SET lock_timeout = '100ms'")
    with one.transaction(ns):
        one.execute("SELECT count(*) FROM seasoned.meta").fetchone()  # sent, and held
        with pytest.raises(StoreBusyError, match=r"lock timeout.*pg_stat_activity"), other.transaction(ns):
            pass
    with other.transaction(ns):
        pass


# ------------------------------------------------------------------------------- addresses


def test_url_may_contain_the_socket_and_parameters(postgres, fresh_url):  # noqa: F811
    user = fresh_url.split("/")[2].split(":")[0]
    url = postgres.url(user, database=fresh_url.rsplit("/", 1)[1], host="") + "&application_name=mine"
    store = opened(url)
    with store.snapshot():
        assert store.execute("SELECT current_setting('application_name')").fetchone() == ("mine",)
    assert PASSWORD not in store.path and store.path.startswith(f"postgresql://{user}@")


BAD = {
    "a wrong password": (lambda s: s.url(password="wrong secret"), ConfigError, "this user with this password"),
    "no such user": (lambda s: s.url("no one", "wrong secret"), ConfigError, "this user with this password"),
    "no password": (lambda s: s.url(password=None), ConfigError, "this user with this password"),
    "no such database": (lambda s: s.url(database="nope"), NotFoundError, "no such database.*createdb"),
    "nobody listens": (
        lambda _: "postgresql://u:secret@127.0.0.1:1/d",
        StoreError,
        "must be reachable.*its host and its",
    ),
    "no such host": (lambda _: "postgresql://u:secret@no.such.host.invalid/d", StoreError, "must be reachable"),
    "no such folder": (lambda _: "postgresql://u:secret@/d?host=/nowhere", StoreError, "must be reachable"),
    "spaces": (lambda _: "postgresql://u:se cret@h/d", InputError, "percent-encoded"),
    "an unknown parameter": (lambda _: "postgresql://u:secret@h/d?colour=red", InputError, "percent-encoded"),
    "a wrong escape": (lambda _: "postgresql://u:secret%zz@h/d", InputError, "percent-encoded"),
    "an open bracket": (lambda _: "postgres://u:secret@[::1/d", InputError, "percent-encoded"),
    "a NUL": (lambda _: "postgres://u:secret@h/d\0", InputError, "percent-encoded"),
}


@pytest.mark.parametrize(("make", "error", "message"), BAD.values(), ids=BAD)
def test_bad_url_is_refused_without_its_password(postgres, make, error, message):  # noqa: F811
    with pytest.raises(error, match=message) as caught:
        Memory.open(make(postgres))
    told_all = f"{caught.value} {caught.value.__cause__} {caught.value.__context__ or ''}"
    for secret in ("secret", "se cret", PASSWORD):
        assert secret not in str(caught.value)
    assert "wrong secret" not in told_all


def test_missing_rights_are_reported_with_the_command(postgres, empty_url):  # noqa: F811
    name = empty_url.rsplit("/", 1)[1]
    with postgres.connect() as connection:
        connection.execute(f"CREATE ROLE guest_{name} LOGIN PASSWORD 'guest'")
    guest = postgres.url(f"guest_{name}", "guest", name)
    with pytest.raises(StoreError, match=r"permission denied.*may create a schema.*seasoned memory migrate"):
        opened(guest)
    opened(empty_url).close()
    with pytest.raises(StoreError, match=r"may not use the schema.*seasoned memory migrate"):
        opened(guest)


def test_superuser_is_accepted_with_one_warning(postgres, fresh_url):  # noqa: F811
    """One warning for each database: the rows that no policy hides are others' in each."""
    import warnings

    for address in (fresh_url, postgres.empty()):
        url = postgres.url(database=address.rsplit("/", 1)[1])
        with pytest.warns(UserWarning, match=r"bypasses row-level security.*Connect as a tenant"):
            Memory.open(url).add(episode("e"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(Memory.open(url)) == 1


# ------------------------------------------------------------------------------- closing and forking


def test_closed_store_refuses_calls(fresh_url):  # noqa: F811
    store = opened(fresh_url)
    store.close()
    store.close()
    for ask in (store.check_open, lambda: store.version(1), lambda: store.execute("SELECT 1")):
        with pytest.raises(StoreError, match=r"was closed.*Open it again"):
            ask()


def forked(work):
    """Run `work` in a child, and return what it says."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            result = repr(work())
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(write, result.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        result = pipe.read().decode()
    os.waitpid(child, 0)
    return result


def test_a_child_has_a_connection_of_its_own(fresh_url):  # noqa: F811
    memory = Memory.open(fresh_url)
    memory.add(episode("before"))
    backend = "SELECT pg_backend_pid()"
    mine = memory.session.store.execute(backend).fetchone()[0]
    assert forked(
        lambda: (memory.add(episode("child")), memory.session.store.execute(backend).fetchone()[0] != mine)
    ) == ("('child', True)")
    assert memory.session.store.execute(backend).fetchone()[0] == mine
    assert {one.id for one in memory.episodes()} == {"before", "child"}
    assert memory.verify().episodes == 2


def test_a_child_forked_inside_a_transaction_is_refused(fresh_url):  # noqa: F811
    store = opened(fresh_url)
    ns = namespace(store)
    with store.transaction(ns):
        store.insert("state", [state(ns, 1)])
        assert forked(lambda: store.insert("state", [state(ns, 2)])).startswith("StoreError: ")
        assert "forked inside a transaction" in forked(lambda: store.version(ns))
    assert [number for number, _ in states(store, ns)] == [1]
