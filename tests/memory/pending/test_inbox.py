"""Pending episodes of PostgreSQL: an add commits one row, and the next reader or writer derives it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import psycopg
import pytest
from late_commit import late_commit
from postgres_server import fresh_url, postgres, run_server  # noqa: F401

from seasoned import Budget, Episode, Memory, Selection, Step
from seasoned.errors import (
    EncoderMismatchError,
    EpisodeConflictError,
    InputError,
    IntegrityError,
    StoreBusyError,
    StoreError,
)
from seasoned.memory.maintenance.backup import backup
from seasoned.memory.maintenance.diff import diff_stores
from seasoned.memory.pending.inbox import RETRY_AFTER_S, CachingEncoder
from seasoned.memory.stores.postgres.schema import TABLES
from seasoned.memory.stores.postgres.tenants import migrate
from seasoned.memory.transfer.merge import merge
from seasoned.states import TokenEncoder
from seasoned.types import EvidenceQuery


@pytest.fixture(scope="module")
def crowd():
    """A server of these tests' own, since they read its log."""
    one = run_server()
    yield one
    one.stop()


def owned(server):
    """A new database of an owner who may make tenants; returns the owner's URL, and a function for a tenant's."""
    url = server.fresh()
    database = url.rsplit("/", 1)[1]

    def tenant(letter):
        name = f"{letter}_{database}"
        migrate(url, [name], {name: "w"})
        return server.url(name, "w", database)

    return url, tenant


def episode(id_, reward=1.0, **fields):
    steps = [Step(f"page {id_}", "go", reward), Step("a page that all share", "Go ", 0.5, prior={"go": -0.1})]
    return Episode("t", steps, id=id_, **fields)


def found_ids(memory, state="a page that all share"):
    return {neighbor.experience.episode_id for neighbor in memory.search(state, 10_000)}


def waiting(url):
    """Return the number of pending episodes on the server."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT count(*) FROM seasoned.episode WHERE ordinal < 0").fetchone()[0]


def rows(memory):
    """Everything that is stored of a namespace, by table."""
    store, rows_by_table = memory.session.store, {}
    for table in TABLES:
        names = [
            column.name for column in table.columns if column.name not in ("namespace_id", "id", "revision", "name")
        ]
        if table.name == "namespace":
            names.remove("checksum")  # it covers the name, and when the namespace was made
        names += ["id"] * (table.name not in ("namespace", "step", "value", "evidence", "distribution", "copy"))
        key = "id" if table.name == "namespace" else "namespace_id"
        with store.snapshot():
            rows_by_table[table.name] = sorted(
                store.execute(
                    f"SELECT {', '.join(names)} FROM {table.name} WHERE {key} = ?", (memory.session.namespace_id,)
                ).fetchall(),
                key=repr,
            )
    # When a namespace was made, and what is how old, is told apart.
    rows_by_table["namespace"] = [
        [value for value in row if not (isinstance(value, float) and value > 1e9)] for row in rows_by_table["namespace"]
    ]
    return rows_by_table


def in_child(work, *, end=os._exit):
    """Run `work` in a forked child, which then ends without any goodbye."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            end(0)
    return child


def kill(_status):
    os.kill(os.getpid(), signal.SIGKILL)


# ------------------------------------------------------------------------------- what `add` promises


def test_add_writes_one_row_and_takes_no_lock(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory:
        before = rows(memory)
        memory.add(episode("e"))
        after = rows(memory)
        changed = {name for name in after if after[name] != before[name]}
        assert (changed, len(after["episode"]), waiting(fresh_url)) == ({"episode"}, 1, 1)
        found_ids(memory)
        assert waiting(fresh_url) == 0


def test_added_episode_outlives_its_process(fresh_url):  # noqa: F811
    Memory.open(fresh_url).close()

    def add():
        memory = Memory.open(fresh_url)
        for number in range(5):
            memory.add(episode(f"e{number}"))

    _, status = os.waitpid(in_child(add, end=kill), 0)
    assert os.WIFSIGNALED(status)
    assert waiting(fresh_url) == 5
    with Memory.open(fresh_url) as memory:
        assert found_ids(memory) == {f"e{number}" for number in range(5)}
        assert [one.id for one in memory.episodes()] == [f"e{number}" for number in range(5)]
        assert memory.verify().waiting == 0


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("again", [Memory.add, lambda memory, one: memory.add_many([one])], ids=["add", "add_many"])
def test_same_content_is_a_no_op_and_other_content_a_conflict(fresh_url, folded, again):  # noqa: F811
    with Memory.open(fresh_url) as memory, Memory.open(fresh_url) as other:
        memory.add(episode("e"))
        if folded:
            found_ids(other)
        again(memory, episode("e"))
        with pytest.raises(EpisodeConflictError, match=r"'e' is stored with other content.*one id.*another id"):
            again(other, episode("e", reward=0.5))
        assert (len(memory), memory.get("e")) == (2, episode("e"))
        assert memory.verify().episodes == 1


def test_concurrent_adds_of_one_id_store_one_content(fresh_url):  # noqa: F811
    memories = [Memory.open(fresh_url) for _ in range(6)]
    outcomes = []

    def add(number, memory):
        for id_ in range(10):
            try:
                memory.add(episode(f"e{id_}", float(number)))
                outcomes.append((f"e{id_}", float(number)))
            except EpisodeConflictError:
                found_ids(memory)

    threads = [threading.Thread(target=add, args=pair) for pair in enumerate(memories)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == sorted((one.id, one.steps[0].reward) for one in memories[0].episodes())
    assert memories[0].verify().episodes == 10


def test_add_during_a_batch_with_the_same_id(fresh_url):  # noqa: F811
    """The batch looks the id up before the other commit, and writes after it."""
    other = Memory.open(fresh_url)

    meanwhile = []

    class Interrupted(TokenEncoder):
        def features(self, state):
            if meanwhile:
                other.add(meanwhile.pop())
            return super().features(state)

    encoder = Interrupted()
    with Memory.open(fresh_url, encoder=encoder) as memory:
        meanwhile.append(episode("e"))
        memory.add_many([episode("e"), episode("f")])
        assert found_ids(other) == {"e", "f"}
        meanwhile.append(episode("g", reward=0.25))
        with pytest.raises(EpisodeConflictError, match=r"'g' is stored with other content"):
            memory.add_many([episode("g")])
        assert not meanwhile
        assert (memory.verify().episodes, memory.get("g").steps[0].reward) == (3, 0.25)


def test_two_processes_add_to_one_namespace_and_a_third_reads_all(fresh_url):  # noqa: F811
    Memory.open(fresh_url).close()

    def add(name):
        with Memory.open(fresh_url) as memory:
            for number in range(40):
                memory.add(episode(f"{name}{number}"))

    children = [in_child(lambda name=name: add(name)) for name in "ab"]
    with Memory.open(fresh_url) as reader:
        while any(os.waitpid(child, os.WNOHANG) == (0, 0) for child in children[:1]):
            assert found_ids(reader) <= {f"{name}{number}" for name in "ab" for number in range(40)}
        with contextlib.suppress(ChildProcessError):
            os.waitpid(children[1], 0)
        assert found_ids(reader) == {f"{name}{number}" for name in "ab" for number in range(40)}
        for name in "ab":  # what one process added one after the other stays in that order
            assert [one.id for one in reader.episodes() if one.id[0] == name] == [f"{name}{n}" for n in range(40)]
        assert reader.verify().episodes == 80


# ------------------------------------------------------------------------------- who sees it

READS = {
    "search": lambda memory: found_ids(memory) == {"e"},
    "evidence": lambda memory: (
        list(memory.evidence(EvidenceQuery("page e", k=1, unit="states", threshold=0.9)).counts) == [1.0]
    ),
    "steps": lambda memory: len(memory) == 2,
    "get": lambda memory: memory.get("e") == episode("e"),
    "episodes": lambda memory: memory.episodes(task="t", last=1) == [episode("e")],
    "stats": lambda memory: (memory.stats().episodes, memory.stats().states, memory.stats().waiting) == (1, 2, 0),
    "verify": lambda memory: (memory.verify().episodes, memory.verify().states) == (1, 2),
    "feedback": lambda memory: memory.feedback("e", 1.0) and memory.search("page e", 1)[0].experience.reward == 1.0,
    "export": lambda memory: sum('"type":"episode"' in line for line in memory.export()) == 1,
    "selected": lambda memory: memory.selected(Selection(task="t")) == (1, 0),
    "quarantine": lambda memory: memory.quarantine(Selection(episode="e"), "r") and memory.excluded_ids()[0] == {"e"},
    "prune": lambda memory: memory.prune(Budget(steps=0)).episodes == ("e",) and len(memory) == 0,
    "a dry run": lambda memory: memory.prune(Budget(steps=0), dry_run=True).episodes == ("e",),
    "another gamma": lambda memory: len(memory.search("page e", 10, gamma=0.25)) == 2,
}


@pytest.mark.parametrize("look", READS.values(), ids=READS)
def test_pending_episode_is_visible_at_the_next_query(fresh_url, look):  # noqa: F811
    with Memory.open(fresh_url) as writer, Memory.open(fresh_url) as reader:
        assert found_ids(reader) == set()
        writer.add(episode("e"))
        assert look(reader)


def test_derivation_gives_the_rows_of_a_batch_bit_for_bit(fresh_url):  # noqa: F811
    """With active quarantines, aborted episodes, missing and odd values, and more than one batch."""
    suspects = [Selection(model="m7"), Selection(subject="s3")]
    odd = Episode(
        "t", [Step("a\0b \ue000", "go\0", 0.1, {"x": -0.5, "a": -1.0}, 0.25)], "odd\0", "a page that all share"
    )
    episodes = [
        odd,
        *(
            episode(f"n{n}", n / 7, model=f"m{n % 11}", subject=f"s{n % 5}", ending="truncated" if n % 6 else "aborted")
            for n in range(520)
        ),
        Episode("t", [], "empty", "the end", "aborted"),
    ]
    memories = [Memory.open(fresh_url, namespace=name, gamma=0.7) for name in ("later", "at once")]
    later, at_once = memories
    for memory in memories:
        memory.evidence(EvidenceQuery("page", k=3, unit="states", threshold=0.1, decay=0.9))
    ids = [later.quarantine(one, "r") for one in suspects]
    assert len(ids) == 2
    at_once.import_lines(list(later.export()))
    for one in episodes:
        later.add(one)
    assert waiting(fresh_url) == len(episodes)
    found_ids(later)
    assert waiting(fresh_url) == 0
    with later.session.store.snapshot():
        times = [created_at for _, created_at, _, _ in later.session.reader.episodes()]
    at_once.import_episodes(zip(episodes, times, strict=True))
    assert later.episodes() == episodes
    assert later.verify().hash == at_once.verify().hash
    assert rows(later) == rows(at_once)
    assert len(later.excluded_ids()[0]) > 50


def test_quarantined_time_window_covers_pending_episodes(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory:
        id_ = memory.quarantine(Selection(since=0.0), "everything since then")
        memory.add(episode("e"))
        assert (found_ids(memory), memory.excluded_ids()[0]) == (set(), {"e"})
        memory.release(id_)
        assert found_ids(memory) == {"e"}
        memory.verify()


def test_encoded_states_are_cached_per_process(fresh_url):  # noqa: F811
    encoded = []

    class Counting(TokenEncoder):
        def features(self, state):
            encoded.append(state)
            return super().features(state)

    with Memory.open(fresh_url, encoder=Counting()) as memory:
        found_ids(memory, "page e")
        memory.add(episode("e"))
        assert found_ids(memory, "page e") == {"e"}
        assert sorted(encoded) == ["a page that all share", "page e"]


# ------------------------------------------------------------------------------- what is refused

BAD = {
    "no episode": lambda memory: memory.add("e"),
    "a long id": lambda memory: memory.add(episode("é" * 501)),
    "a large state": lambda memory: memory.add(episode("x" * 2**20)),
    "refused by its encoder": lambda memory: memory.add(episode("unspeakable")),
    "a final state that is refused": lambda memory: memory.add(episode("e", final_state="unspeakable end")),
}


class Squeamish(TokenEncoder):
    """Refuses one word."""

    def features(self, state):
        if "unspeakable" in state:
            raise InputError("unspeakable", "this encoder takes clean words only", "Use another word.")
        return super().features(state)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_refused_episode_leaves_no_row(fresh_url, bad):  # noqa: F811
    with Memory.open(fresh_url, encoder=Squeamish()) as memory:
        before = rows(memory)
        with pytest.raises(InputError) as caught:
            bad(memory)
        assert caught.value.seen and caught.value.rule and caught.value.next_step
        assert rows(memory) == before
        memory.add(episode("e"))
        assert found_ids(memory) == {"e"}


class Lengths:
    """Another encoder."""

    identity = "test/lengths"

    def features(self, state):
        return frozenset(str(len(word)) for word in state.split())


def test_add_with_the_old_encoder_is_refused_after_reindex(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory:
        memory.add(episode("before"))
        with Memory.open(fresh_url, encoder=Lengths(), reindex=True) as other:
            with pytest.raises(EncoderMismatchError, match=r"test/lengths"):
                memory.add(episode("after"))
            with pytest.raises(EncoderMismatchError):
                found_ids(memory)
            assert found_ids(other) == {"before"}
            assert other.verify().episodes == 1


class Strict(Lengths):
    """Refuses the states that have a forbidden word."""

    identity = "test/strict"

    def __init__(self, *forbidden):
        self.forbidden = forbidden

    def features(self, state):
        if any(word in state for word in self.forbidden):
            raise ValueError("a forbidden word")
        return super().features(state)


def test_reindex_includes_pending_episodes_or_fails_whole(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory:
        memory.add(episode("good"))
        memory.add_many([])  # derives it
        memory.add(episode("bad"))
        with pytest.raises(ValueError, match=r"^a forbidden word$"):
            Memory.open(fresh_url, encoder=Strict("bad"), reindex=True)
        assert waiting(fresh_url) == 1
        assert found_ids(memory) == {"good", "bad"}
        memory.add(episode("late"))
        with Memory.open(fresh_url, encoder=Strict(), reindex=True) as other:
            assert waiting(fresh_url) == 0
            assert found_ids(other) == {"good", "bad", "late"}
            assert other.verify().episodes == 3


DERIVING_READS = {
    "search": found_ids,
    "evidence": lambda memory: memory.evidence(EvidenceQuery("page", k=1, unit="states", threshold=0.0)),
    "stats": Memory.stats,
    "verify": Memory.verify,
    "get": lambda memory: memory.get("bad"),
    "add_many": lambda memory: memory.add_many([episode("other")]),
}


@pytest.mark.parametrize("look", DERIVING_READS.values(), ids=DERIVING_READS)
def test_encoder_error_on_a_pending_episode_is_raised_as_it_is(fresh_url, look):  # noqa: F811
    with Memory.open(fresh_url, encoder=Strict()) as writer, Memory.open(fresh_url, encoder=Strict("bad")) as other:
        writer.add(episode("bad"))
        with pytest.raises(ValueError, match=r"^a forbidden word$"):
            look(other)
        assert found_ids(writer) == {"bad"}


def test_long_states_are_not_cached():
    encoded = []

    class Counting(TokenEncoder):
        def features(self, state):
            encoded.append(len(state))
            return super().features(state)

    encoder = CachingEncoder(Counting())
    for n_characters in (16 * 1024, 16 * 1024 + 1):
        for _ in range(2):
            assert encoder.features("x" * n_characters) == TokenEncoder().features("x" * n_characters)
    assert encoded == [16 * 1024, 16 * 1024 + 1, 16 * 1024 + 1]


@pytest.mark.parametrize("n", [1, 40])
def test_export_fails_if_a_pending_episode_was_erased(fresh_url, n):  # noqa: F811
    with Memory.open(fresh_url) as memory, Memory.open(fresh_url, read_only=True) as reader:
        for number in range(n):
            memory.add(episode(f"e{number}", subject="ann" if number == n - 1 else None))
        lines = reader.export()
        exported = [next(lines)]
        assert waiting(fresh_url) == n
        memory.erase("ann")
        with pytest.raises(StoreBusyError, match=r"erased.*Export again"):
            exported.extend(lines)
        assert "ann" not in "".join(exported)


def test_add_inside_a_transaction_is_refused(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory:
        with memory.session.store.snapshot(), pytest.raises(StoreError, match=r"a write inside another"):
            memory.add(episode("e"))
        assert len(memory) == 0


def test_pending_line_that_differs_from_its_hash_is_refused(postgres, fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory, Memory.open(fresh_url, read_only=True) as reader:
        memory.add(episode("e"))
        with postgres.connect(postgres.url(database=fresh_url.rsplit("/", 1)[1])) as admin:
            admin.execute("UPDATE seasoned.episode SET line = replace(line, '0.5', '0.25')")
        for look in (found_ids, Memory.verify, Memory.episodes, len):
            with pytest.raises(IntegrityError, match=r"'e' differs from its hash.*backup"):
                look(memory)
        with pytest.raises(IntegrityError, match=r"'e' differs from its hash"):
            reader.verify()


# ------------------------------------------------------------------------------- others are in the way


def test_reader_does_not_wait_for_a_long_writer(fresh_url):  # noqa: F811
    holder, writer, reader = (Memory.open(fresh_url) for _ in range(3))
    writer.add(episode("before"))
    assert found_ids(reader) == {"before"}
    with holder.session.store.transaction(holder.session.namespace_id):
        holder.session.store.execute("SELECT count(*) FROM seasoned.meta").fetchone()  # the lock is taken
        writer.add(episode("during"))
        assert found_ids(reader) == {"before", "during"}  # though it cannot be folded
        assert {one.id for one in reader.episodes()} == {"before", "during"}
        assert (reader.stats().waiting, reader.verify().waiting) == (1, 1)
    time.sleep(RETRY_AFTER_S)
    assert found_ids(reader) == {"before", "during"}
    assert reader.verify().waiting == 0


def test_late_commit_is_derived_at_the_next_query(fresh_url):  # noqa: F811
    """It gets its number first, and commits after another episode was derived."""
    early, late, reader = (Memory.open(fresh_url) for _ in range(3))
    with late_commit(early, episode("early")):
        late.add(episode("late"))
        assert found_ids(reader) == {"late"}
    assert found_ids(reader) == {"early", "late"}
    assert [one.id for one in reader.episodes()] == ["late", "early"]
    assert reader.verify().episodes == 2


def test_concurrent_readers_derive_once(fresh_url):  # noqa: F811
    writer, readers = Memory.open(fresh_url), [Memory.open(fresh_url) for _ in range(5)]
    for number in range(20):
        writer.add(episode(f"e{number}"))
    seen = []
    threads = [threading.Thread(target=lambda one=one: seen.append(found_ids(one))) for one in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [{f"e{number}" for number in range(20)}] * 5
    assert (writer.verify().episodes, waiting(fresh_url)) == (20, 0)


def test_close_derives_pending_episodes(fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory:
        memory.add(episode("e"))
        assert waiting(fresh_url) == 1
    assert waiting(fresh_url) == 0
    with Memory.open(fresh_url, read_only=True) as reader:
        assert found_ids(reader) == {"e"}


# ------------------------------------------------------------------------------- who may not write


def test_read_only_memory_reads_and_finds_pending_and_derived_episodes(fresh_url, tmp_path):  # noqa: F811
    writer, reader = Memory.open(fresh_url), Memory.open(fresh_url, read_only=True)
    writer.add_many([episode("folded")])
    writer.add(episode("arrived"))
    assert found_ids(reader) == {"folded", "arrived"}
    assert len(reader) == 4
    assert [one.id for one in reader.episodes()] == ["folded", "arrived"]
    assert [one.id for one in reader.episodes(last=1)] == ["arrived"]
    assert reader.get("arrived") == episode("arrived")
    stats, verified = reader.stats(), reader.verify()
    assert (stats.episodes, stats.waiting, verified.episodes, verified.steps, verified.waiting) == (2, 1, 2, 4, 1)
    exported = list(reader.export())
    assert waiting(fresh_url) == 1
    backup(fresh_url, tmp_path / "backup.db")
    assert waiting(fresh_url) in (0, 1)
    assert diff_stores(fresh_url, tmp_path / "backup.db").equal
    with Memory.open(tmp_path / "imported.db", gamma=reader.gamma) as imported:
        imported.import_lines(exported)
        assert imported.verify().hash == verified.hash
    with Memory.open(tmp_path / "backup.db") as copy:
        assert copy.verify().hash == verified.hash
    found_ids(writer)
    assert found_ids(reader) == {"folded", "arrived"}
    assert reader.verify().hash == verified.hash
    assert list(reader.export()) == exported


def test_merge_includes_pending_episodes_of_both_stores(postgres):  # noqa: F811
    one, other = Memory.open(postgres.fresh()), Memory.open(postgres.fresh())
    urls = [
        postgres.url(*[m.session.store._parameters[k] for k in ("user", "password", "dbname")]) for m in (one, other)
    ]
    one.add(episode("both"))
    one.add(episode("one"))
    other.add(episode("both"))
    other.feedback("both", 1.0)
    other.add(episode("other"))
    assert [waiting(url) for url in urls] == [2, 1]
    merge(*urls)
    assert found_ids(one) == {"both", "one", "other"}
    assert (len(one.events()), one.verify().episodes) == (1, 3)
    one.add(Episode("t", [Step("p", "go", 0.0)], "conflict"))
    other.add(Episode("t", [Step("p", "go", 1.0)], "conflict"))
    with pytest.raises(EpisodeConflictError, match=r"conflict"):
        merge(*urls)


def test_read_only_role_sees_pending_episodes(crowd):
    owner_url, tenant = owned(crowd)
    url = tenant("a")
    with Memory.open(url) as memory, Memory.open(url) as reader:
        memory.add(episode("folded"))
        assert found_ids(reader) == {"folded"}
        memory.add(episode("arrived"))
        with crowd.connect(owner_url) as owner:
            schema, role = memory.session.store.schema, url.split("/")[2].split(":")[0]
            owner.execute(f"REVOKE UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} FROM {role}")
            owner.execute(f"REVOKE UPDATE (revision) ON {schema}.namespace FROM {role}")
        for _ in range(5):
            assert found_ids(reader) == {"folded", "arrived"}
        assert reader.stats().waiting == 1
        assert crowd.log.read_text().count("permission denied for table namespace") == 1  # it is not tried each time
        tenant("a")  # gives it its rights back
        reader.session.inbox.permission_retry_s = 0.0
        assert found_ids(reader) == {"folded", "arrived"}
        assert reader.stats().waiting == 0


def test_tenant_cannot_read_or_write_pending_episodes_of_another(crowd):
    _, tenant = owned(crowd)
    urls = [tenant(letter) for letter in "ab"]
    a, b = (Memory.open(url, namespace="n") for url in urls)
    a.add(episode("a"))
    with crowd.connect(urls[1]) as connection:
        for name in ("seasoned.episode", f"{a.session.store.schema}.episode"):
            for statement in ("SELECT FROM {}", "UPDATE {} SET line = '{{}}'", "DELETE FROM {}"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied"):
                    connection.execute(statement.format(name))
        with pytest.raises(psycopg.errors.CheckViolation, match=r"partition constraint"):
            connection.execute(
                f"INSERT INTO {b.session.store.schema}.episode "
                "(namespace_id, ordinal, id, task, ending, steps, created_at, digest, line, checksum) "
                f"VALUES ({a.session.namespace_id}, -5, 'x', 't', 'aborted', 0, 1, '', '{{}}', '')"
            )
    b.add(episode("a", reward=0.0))  # the same id, and another namespace
    b.session.inbox._ns = a.session.namespace_id
    with pytest.raises((StoreError, TypeError)):
        b.add(episode("into a's"))
    assert (found_ids(a), found_ids(a, "page a")) == ({"a"}, {"a"})
    assert a.verify().episodes == 1


# ------------------------------------------------------------------------------- taking away


def test_erasure_includes_pending_episodes(postgres, fresh_url):  # noqa: F811
    with Memory.open(fresh_url) as memory, Memory.open(fresh_url, read_only=True) as reader:
        memory.add(episode("keep", subject="bob"))
        memory.add(Episode("t", [Step("the secret page of ann", "go", 1.0)], "gone", subject="ann"))
        assert reader.erase("ann", dry_run=True).episodes == ("gone",)
        erased = memory.erase("ann")
        assert (erased.episodes, erased.steps, found_ids(memory)) == (("gone",), 1, {"keep"})
        assert memory.verify().episodes == 1
    with postgres.connect(postgres.url(database=fresh_url.rsplit("/", 1)[1])) as admin:
        for table in TABLES:
            assert "secret" not in str(admin.execute(f"SELECT to_jsonb(t) FROM seasoned.{table.name} t").fetchall())
        admin.execute("CHECKPOINT")
        [path] = admin.execute("SELECT pg_relation_filepath('seasoned_1.episode')").fetchone()
    assert b"secret" not in (postgres.folder / "data" / path).read_bytes()  # nor are there dead rows
