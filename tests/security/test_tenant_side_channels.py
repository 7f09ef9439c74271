"""A tenant logs in and tries to learn another's rows from plans, counts, estimates and costs, rather than from rows."""

from __future__ import annotations

import hashlib
import itertools
import os
import re

import psycopg
import pytest
from postgres_server import postgres  # noqa: F401
from psycopg import sql

from seasoned import Episode, Memory, Selection, Step
from seasoned.errors import SeasonedError
from seasoned.memory.stores.postgres.tenants import migrate

WORDS = [f"word{number}" for number in range(20)]
RETURNS = [float(number) for number in range(1, 13)]
KEYS = {
    "namespace": "id = {ns}",
    "token": "namespace_id = {ns} AND digest = {word}",
    "feature_set": "namespace_id = {ns} AND id = {number}",
    "state": "namespace_id = {ns} AND digest = {state}",
    "action": "namespace_id = {ns} AND digest = {action}",
    "prior": "namespace_id = {ns} AND id = {number}",
    "episode": "namespace_id = {ns} AND id = {id}",
    "step": "namespace_id = {ns}",
    "feedback": "namespace_id = {ns} AND seq = {number}",
    "view": "namespace_id = {ns} AND gamma >= {low} AND gamma < {high}",
    "value": "namespace_id = {ns} AND view_id = 1 AND return_ >= {low} AND return_ < {high}",
    "evidence": "namespace_id = {ns} AND view_id = 1 AND set_id = {number}",
    "distribution": "namespace_id = {ns} AND view_id = 1 AND mean >= {low} AND mean < {high}",
    "quarantine": "namespace_id = {ns} AND seq = {number}",
    "copy": "namespace_id = {ns} AND seq = {number}",
    "note": "namespace_id = {ns} AND episode_id = {id}",
}
"""By table: a condition whose operators are LEAKPROOF, so that a policy alone does not keep it out of an index."""

SHARED = {"meta", "tenant"}
"""The tables without a row of a namespace: the version, and the numbers of the roles."""


def digest(text):
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Neighborhood:
    """A database with a victim and an attacker, each a tenant, and a second database with an attacker of its own."""

    def __init__(self, server):
        self.server = server
        self.owner = server.empty()
        self.database = self.owner.rsplit("/", 1)[1]
        self.victim, self.attacker = (f"{name}_{self.database}" for name in ("victim", "attacker"))
        migrate(self.owner, [self.victim, self.attacker], {self.victim: "v", self.attacker: "a"})
        with Memory.open(server.url(self.victim, "v", self.database), namespace="site", gamma=0.5) as memory:
            memory.add_many(
                Episode(
                    "t",
                    [Step(" ".join([WORDS[n], WORDS[n + 8]]), f"act {n}", value, {f"act {n}": -0.5})],
                    f"secret-{n}",
                )
                for n, value in enumerate(RETURNS)
            )
            memory.feedback("secret-0", 0.0)
            memory.note("secret-0", "plan", {"text": "p"})
            memory.release(memory.quarantine(Selection(source="human"), "a test"))
            memory.record_copy("export", "/backups/secret.jsonl")
            self.namespace_id = memory.session.namespace_id
        with Memory.open(server.url(self.attacker, "a", self.database), namespace="mine") as memory:
            memory.add_many([Episode("t", [Step("page", "go", 1.0)], "mine")])
        self.admin = server.connect(server.url(database=self.database))
        self.admin.execute("ANALYZE")

    def may(self, right, relation):
        """Whether the attacker has a right on a table or a sequence, and on its schema."""
        kind = "sequence" if right == "USAGE" else "table"
        return self.admin.execute(
            f"SELECT has_schema_privilege(%(role)s, split_part(%(name)s, '.', 1), 'USAGE') "
            f"AND has_{kind}_privilege(%(role)s, %(name)s, %(right)s)",
            {"role": self.attacker, "name": relation, "right": right},
        ).fetchone()[0]

    def with_rows_of_the_victim(self, table):
        """Return the names of all tables of this name in which the victim's rows are found, by a superuser."""
        key = "id" if table == "namespace" else "namespace_id"
        found = [
            name
            for name in relations(self.admin, table)
            if self.admin.execute(f"SELECT count(*) FROM {name} WHERE {key} = %s", (self.namespace_id,)).fetchone()[0]
        ]
        assert found
        return found

    def values(self, *, present):
        """What the attacker asks for: something that the victim has, or something of that kind that it lacks."""
        return {
            "ns": self.namespace_id if present else self.namespace_id + 7,
            "word": digest(WORDS[3] if present else "unheard"),
            "state": digest(f"{WORDS[3]} {WORDS[11]}" if present else "unseen"),
            "action": digest("act 3" if present else "act 99"),
            "number": 1 if present else 999_999,
            "id": "secret-3" if present else "secret-99",
            "low": 0.5 if present else 100.5,
            "high": 50.0 if present else 101.0,
        }


@pytest.fixture(scope="module")
def site(postgres):  # noqa: F811
    return Neighborhood(postgres)


@pytest.fixture
def attacker(site):
    with site.server.connect(site.server.url(site.attacker, "a", site.database)) as connection:
        yield connection


def relations(connection, table):
    """Return the names of all tables of this name that the catalogue shows: it hides none."""
    rows = connection.execute(
        "SELECT quote_ident(nspname) || '.' || quote_ident(relname) FROM pg_class "
        "JOIN pg_namespace AS n ON n.oid = relnamespace "
        "WHERE relkind IN ('r', 'p', 'v', 'm') AND relname ~ %s "
        "AND nspname NOT IN ('pg_catalog', 'information_schema')",
        (f"^{table}(_[0-9]+)?$",),
    )
    return sorted(name for (name,) in rows.fetchall())


def asked(connection, statement, values=None):
    """Return what a statement tells: the rows of its answer, or its error."""
    try:
        return str(connection.execute(statement, values).fetchall())
    except psycopg.Error as error:
        return f"{error.sqlstate} {error.diag.message_primary} {error.diag.message_detail}"


def condition(table, values):
    return sql.SQL(KEYS[table]).format(**{name: sql.Literal(value) for name, value in values.items()})


def removed_rows(connection, relation, where):
    """Return how many rows a plan read and hid from the role, and how many pages it touched beyond those of a miss."""
    explain = sql.SQL("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT FROM {} WHERE {}").format(
        sql.SQL(relation), where
    )
    told = asked(connection, explain)
    return sum(int(number) for number in re.findall(r"Rows Removed by [\w ]+: (\d+)", told))


def test_every_table_is_attacked(site):
    """A new table needs a line in KEYS."""
    names = site.admin.execute(
        "SELECT DISTINCT regexp_replace(relname, '_[0-9]+$', '') FROM pg_class "
        "JOIN pg_namespace AS n ON n.oid = relnamespace "
        "WHERE relkind IN ('r', 'p', 'v', 'm') AND nspname LIKE 'seasoned%'"
    )
    assert {name for (name,) in names} == {*KEYS, *SHARED}


@pytest.mark.parametrize("table", KEYS)
def test_explain_analyze_counts_no_row_of_another(site, attacker, table):
    for relation in relations(attacker, table):
        answer = asked(attacker, sql.SQL("SELECT count(*) FROM {}").format(sql.SQL(relation)))
        n_own = int(found[1]) if (found := re.fullmatch(r"\[\((\d+),\)\]", answer)) else 0  # a scan removes these
        for scan in ("seqscan", "indexscan", "bitmapscan"):
            with attacker.transaction(force_rollback=True):
                for method in {"seqscan", "indexscan", "indexonlyscan", "bitmapscan"} - {scan}:
                    attacker.execute(f"SET LOCAL enable_{method} = off")
                where = condition(table, site.values(present=True))
                assert removed_rows(attacker, relation, where) <= n_own, (relation, scan)
                assert removed_rows(attacker, relation, sql.SQL("true")) == 0, (relation, scan)


def test_bisection_finds_no_word_and_no_return(site, attacker, report_line):
    """The attack as it was: split a range until each part holds one row."""

    def bisect(table, column, low, high, split, depth=24):
        found, open_ranges = 0, [(low, high, depth)]
        while open_ranges:
            low, high, depth = open_ranges.pop()
            where = sql.SQL("namespace_id = {} AND {} >= {} AND {} < {}").format(
                site.namespace_id, sql.Identifier(column), sql.Literal(low), sql.Identifier(column), sql.Literal(high)
            )
            n_rows = max(removed_rows(attacker, relation, where) for relation in relations(attacker, table))
            middle = split(low, high)
            if n_rows == 1 or depth == 0:
                found += n_rows
            elif n_rows > 1:
                open_ranges += [(low, middle, depth - 1), (middle, high, depth - 1)]
        return found

    assert bisect("distribution", "mean", -1000.0, 1000.0, lambda low, high: (low + high) / 2) == 0
    whole = bytes(16), b"\xff" * 16
    halfway = lambda low, high: ((int.from_bytes(low) + int.from_bytes(high)) // 2).to_bytes(16)
    assert bisect("token", "digest", *whole, halfway) == 0
    report_line(f"tenants: 0 of {len(RETURNS)} returns and {len(WORDS)} words of another found by bisection", rounds=1)


STATEMENTS = {
    "a plan": "EXPLAIN SELECT FROM {relation} WHERE {where}",
    "a plan with its costs": "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) SELECT FROM {relation} WHERE {where}",
    "a plan of a change": "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) DELETE FROM {relation} WHERE {where}",
    "a count": "SELECT count(*) FROM {relation} WHERE {where}",
    "a lock": "SELECT FROM {relation} WHERE {where} FOR UPDATE",
    "a range over rows": "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) SELECT FROM {relation} WHERE {where} "
    "AND ({relation_key}) >= ({ns})",
    "a place in the file": "SELECT FROM {relation} WHERE ctid = '(0,1)' AND {where}",
    "a join": "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) SELECT FROM {relation} JOIN (SELECT 1) AS one ON {where}",
    "an error that depends on rows": "SELECT 1 / count(*) FROM {relation} WHERE {where}",
}


@pytest.mark.parametrize("table", KEYS)
def test_answer_does_not_depend_on_rows_of_another(site, attacker, table):
    """Estimates and pages are part of a plan; neither differs between what the victim has and what nobody has."""
    relations_of_the_victim = site.with_rows_of_the_victim(table)
    for statement, relation in itertools.product(STATEMENTS.values(), relations_of_the_victim):
        answers = set()
        for present in (True, False):
            values = site.values(present=present)
            text = sql.SQL(statement).format(
                relation=sql.SQL(relation),
                relation_key=sql.SQL("id" if table == "namespace" else "namespace_id"),
                where=condition(table, values),
                ns=sql.Literal(site.namespace_id),
            )
            with attacker.transaction(force_rollback=True):
                told = asked(attacker, text)
            for value in (value for value in values.values() if value != 1):  # a 1 is in other places too
                shown = value.hex() if isinstance(value, bytes) else str(value)
                told = told.replace(shown, "?")
            answers.add(told)
        assert len(answers) == 1, (statement, answers)


@pytest.mark.parametrize("table", KEYS)
def test_tables_of_another_are_refused_before_they_are_read(site, attacker, table):
    """A refusal takes the same time whatever the table holds: the right is checked before the first page is read."""
    for relation in site.with_rows_of_the_victim(table):
        for statement in ("SELECT FROM {}", "EXPLAIN SELECT FROM {}", "COPY {} TO STDOUT", "DELETE FROM {}"):
            assert asked(attacker, statement.format(relation)).startswith("42501 permission denied for"), statement


def test_functions_of_the_schema_run_as_their_caller(site, attacker):
    as_owner = "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace::regnamespace::text LIKE 'seasoned%'"
    assert attacker.execute(as_owner).fetchall() == []


# ------------------------------------------------------------------------------- locks and numbers


def test_tenant_cannot_hold_back_a_migration_or_a_new_tenant(site, attacker):
    with attacker.transaction():
        attacker.execute("SELECT pg_advisory_xact_lock(%s)", (0x5EA50AED,))
        attacker.execute("SELECT * FROM seasoned.meta").fetchall()
        for relation in relations(attacker, "state"):
            if site.may("SELECT", relation):
                attacker.execute(f"SELECT count(*) FROM {relation}").fetchall()
        late = f"late_{site.database}"
        assert migrate(site.owner, [late], {late: "l"}).made == (late,)


def test_tenant_cannot_lock_what_others_use(site, attacker):
    for name in ("seasoned.meta", "seasoned.tenant", *relations(attacker, "namespace")):
        if not site.may("UPDATE", name) and not site.may("DELETE", name):
            for mode in ("ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "EXCLUSIVE", "ACCESS EXCLUSIVE"):
                assert asked(attacker, f"LOCK TABLE {name} IN {mode} MODE").startswith(("42501", "25P01"))


def test_numbers_that_a_tenant_takes_are_its_own(site, attacker):
    """It may waste the numbers of its own namespaces, and no others'."""
    names = attacker.execute(
        "SELECT quote_ident(nspname) || '.' || quote_ident(relname) FROM pg_class "
        "JOIN pg_namespace AS n ON n.oid = relnamespace WHERE relkind = 'S' AND nspname LIKE 'seasoned%'"
    ).fetchall()
    usable = [name for (name,) in names if site.may("USAGE", name)]
    assert usable
    for (name,) in names:
        told = asked(attacker, sql.SQL("SELECT nextval({})").format(sql.Literal(name)))
        assert told.startswith("[(" if name in usable else "42501")
        assert asked(attacker, sql.SQL("SELECT setval({}, 1)").format(sql.Literal(name))).startswith("42501")
    users = site.admin.execute(
        "SELECT rolname FROM pg_roles, unnest(%s::text[]) AS s (name) WHERE NOT rolsuper "
        "AND rolname !~ '^(owner|pg)_' AND has_schema_privilege(oid, split_part(name, '.', 1), 'USAGE') "
        "AND has_sequence_privilege(oid, name, 'USAGE')",
        (usable,),
    ).fetchall()
    assert {role for (role,) in users} == {site.attacker}


# ------------------------------------------------------------------------------- other databases


def test_second_database_of_another_owner_makes_tenants(site):
    """Roles belong to the whole server; the second owner cannot grant what the first one made."""
    owner = site.server.empty()
    database = owner.rsplit("/", 1)[1]
    name = f"far_{os.urandom(3).hex()}"
    report = migrate(owner, [name, site.attacker], {name: "f"})
    assert (report.made, report.known) == ((name,), (site.attacker,))
    for role, password in ((name, "f"), (site.attacker, "a")):  # one role may be a tenant of both
        with Memory.open(site.server.url(role, password, database), namespace="n") as memory:
            memory.add(Episode("t", [Step("s", "a", 1.0)]))
            assert len(memory) == 1
    with pytest.raises(SeasonedError, match=r"may not connect|permission denied for database"):
        Memory.open(site.server.url(name, "f", site.database))


def test_role_that_is_no_tenant_cannot_connect(site):
    with site.server.connect() as admin:
        name = f"stranger_{os.urandom(3).hex()}"
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    with pytest.raises(psycopg.OperationalError, match=r"permission denied for database"):
        site.server.connect(site.server.url(name, "x", site.database))
