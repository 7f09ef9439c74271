"""The PostgreSQL schema, declared once: tables, policies, partitions and writing statements are made from it.

Version 2 is the first PostgreSQL schema; from 3 on, `episode` holds pending episodes (see `pending_table`), from 4 on
there are notes, and from 5 on checksums of rows and limits of feedback. Every key begins with the namespace, so that
Citus or native partitions can spread the rows. The table `tenant` numbers the roles; the upper bits of a namespace's id
are its tenant's number, so that each row shows its tenant. No content (text, bytes, real numbers) enters the planner's
statistics, which roles share.
"""

from __future__ import annotations

from dataclasses import dataclass

from seasoned.memory.stores.sqlite_schema import APPLICATION_ID, COLUMNS, COUNTERS, STEP_BITS

__all__ = [
    "FIRST_ARRIVAL",
    "GROUP",
    "KEY_LIMIT_BYTES",
    "MIGRATIONS",
    "POSTGRES_VERSION",
    "SCHEMA",
    "TABLES",
    "TENANT_BITS",
    "Column",
    "TableSchema",
    "citus_statements",
    "create_statements",
    "partition_statements",
]

SCHEMA = "seasoned"
POSTGRES_VERSION = 5
KEY_LIMIT_BYTES = 1000
"""The longest text that may be a key, as UTF-8; PostgreSQL indexes hold about 2,700 bytes."""

GROUP = "seasoned_tenant"
"""The role that holds the rights; every tenant is a member of it."""

TENANT_BITS = 40
"""How far a tenant's number is shifted in the ids of its namespaces."""

FIRST_ARRIVAL = -(2**43)
"""A pending episode's `ordinal` is the number of the transaction that added it, counted from here."""

_TEXT = 'text COLLATE "C"'
_TYPES = {"integer": "bigint", "real": "double precision", "blob": "bytea", "text": _TEXT, "truth": "boolean"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its kind (`integer`, `real`, `blob`, `text`, `truth`), and the constraint after its type."""

    name: str
    kind: str
    rule: str = "NOT NULL"

    @property
    def type(self) -> str:
        """Its type in an expression, such as `bigint`."""
        return _TYPES[self.kind].split()[0] if self.kind == "text" else _TYPES[self.kind]

    @property
    def is_content(self) -> bool:
        """Whether its values are content of the memory, rather than ids and counts."""
        return self.kind not in ("integer", "truth")

    def ddl(self) -> str:
        """Return its declaration."""
        return f"{self.name} {_TYPES[self.kind]} {self.rule}".rstrip()


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: its columns, its keys, its other indexes as (name, columns and condition), how full a page is made."""

    name: str
    columns: tuple[Column, ...]
    primary: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, str], ...] = ()
    fill_percent: int = 100

    @property
    def storage(self) -> str:
        """Room on each page for new versions of rows that are updated again and again."""
        return "" if self.fill_percent == 100 else f" WITH (fillfactor = {self.fill_percent})"

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        return next(column for column in self.columns if column.name == name)

    def create(self, partition_by: str = "") -> str:
        """Return the statement that makes it."""
        parts = [column.ddl() for column in self.columns]
        parts += [f"PRIMARY KEY ({', '.join(self.primary)})"]
        parts += [f"UNIQUE ({', '.join(key)})" for key in self.unique]
        return f"CREATE TABLE {SCHEMA}.{self.name} ({', '.join(parts)}){partition_by or self.storage}"

    def index_statements(self) -> list[str]:
        """Return the statements that make its other indexes."""
        return [f"CREATE INDEX {name} ON {SCHEMA}.{self.name} {what}" for name, what in self.indexes]

    def policy(self) -> str:
        """Return the condition under which a row belongs to the current role.

        One read of the table `tenant` for each query, however many rows and namespaces there are; a correlated subquery
        costs a microsecond for each row, and PostgreSQL's hashed one reads all of a tenant's namespaces first. The
        `coalesce` keeps the planner from taking the tenant's rows for few.
        """
        number = f"(SELECT number FROM {SCHEMA}.tenant WHERE role = current_user)"
        column = "id" if self.name == "namespace" else "namespace_id"
        mine = f"coalesce({column} >> {TENANT_BITS} = {number}, false)"
        return f"tenant = current_user AND {mine}" if self.name == "namespace" else mine

    def guard_statements(self) -> list[str]:
        """Return the statements that isolate tenants, its owner included."""
        table = f"{SCHEMA}.{self.name}"
        return [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY own ON {table} USING ({self.policy()}) WITH CHECK ({self.policy()})",
        ]

    def statistics_statements(self) -> list[str]:
        """Return the statements that give the planner statistics: many rows to a namespace, few to a key.

        Of a table that was never analysed it expects few rows altogether, and would read a namespace whole. So it is
        shown some rows that are of no tenant. Stored content never enters its statistics, which all roles share.
        """
        table = f"{SCHEMA}.{self.name}"
        samples = {"integer": "n", "real": "n", "truth": "true", "text": "n::text", "blob": "sha256(n::text::bytea)"}
        shown = {"namespace_id": "0", "view_id": "1", "ending": "'aborted'", "line": "NULL"}
        if self.name == "copy":
            shown["kind"] = "'export'"
        given = [column for column in self.columns if "GENERATED" not in column.rule]
        values = [shown.get(column.name, samples[column.kind]) for column in given]
        return [
            *(f"ALTER TABLE {table} ALTER COLUMN {c.name} SET STATISTICS 0" for c in self.columns if c.is_content),
            f"INSERT INTO {table} ({', '.join(column.name for column in given)}) "
            f"SELECT {', '.join(values)} FROM generate_series(1, {_SHOWN_ROWS}) AS n",
            f"ANALYZE {table}",
            f"DELETE FROM {table}",
        ]


_NULL = ""
_SHOWN_ROWS = 2_000
# A join over `visit >> 20` cannot use an index under row-level security, since the shift is not LEAKPROOF; one over a
# stored column can.
_ORDINAL = Column("visit_ordinal", "integer", f"GENERATED ALWAYS AS (visit >> {STEP_BITS}) STORED")


def _columns(table: str, kinds: str, **rules: str) -> tuple[Column, ...]:
    names = ("namespace_id", *COLUMNS[table][1:])
    return tuple(
        Column(name, kind, rules.get(name, "NOT NULL")) for name, kind in zip(names, kinds.split(), strict=True)
    )


_ENDING = "NOT NULL CHECK (ending IN ('terminated', 'truncated', 'aborted'))"
_LINE = Column("line", "text", "CHECK ((line IS NULL) = (ordinal >= 0))")
# Former versions numbered pending episodes by it; the number of the transaction does now.
_ARRIVAL_NUMBER = f"CREATE SEQUENCE {SCHEMA}.arrival_number MINVALUE {-(2**42)} MAXVALUE -1"

_NOTE = TableSchema(
    "note",
    _columns(
        "note",
        "integer text text integer text text text text real real blob blob",
        step=_NULL,
        author=_NULL,
        revoked_at=_NULL,
    ),
    ("namespace_id", "id"),
    (),
    (("note_by_episode", "(namespace_id, episode_id)"), ("note_by_kind", "(namespace_id, kind, created_at, id)")),
)

TABLES: tuple[TableSchema, ...] = (
    TableSchema(
        "namespace",
        (
            Column("id", "integer", f"NOT NULL DEFAULT {SCHEMA}.next_namespace()"),
            Column("name", "text"),
            Column("encoder", "text"),
            Column("gamma", "real"),
            Column("created_at", "real"),
            *(
                Column(name, "integer", "NOT NULL DEFAULT 0")
                for name in (*COUNTERS, "notes", "revision", "epoch", "compaction_due")
            ),
            Column("feedback_limits", "text", "NOT NULL DEFAULT '{}'"),
            Column("checksum", "blob"),
            Column("removed", "text", "NOT NULL DEFAULT '{}'"),
            Column("tenant", "text", "NOT NULL DEFAULT current_user"),
        ),
        ("id",),
        (("tenant", "name"),),
        fill_percent=50,
    ),
    TableSchema(
        "token", _columns("token", "integer integer text blob"), ("namespace_id", "id"), (("namespace_id", "digest"),)
    ),
    TableSchema(
        "feature_set",
        _columns("feature_set", "integer integer blob blob integer", last_visit=_NULL),
        ("namespace_id", "id"),
        (("namespace_id", "digest"),),
        (("feature_set_by_visit", "(namespace_id, last_visit)"),),
    ),
    TableSchema(
        "state",
        _columns("state", "integer integer text blob integer"),
        ("namespace_id", "id"),
        (("namespace_id", "digest"),),
    ),
    TableSchema(
        "action",
        _columns("action", "integer integer text blob integer blob"),
        ("namespace_id", "id"),
        (("namespace_id", "digest"),),
        (("action_by_key", "(namespace_id, key_digest, id)"),),
    ),
    TableSchema(
        "prior", _columns("prior", "integer integer text blob"), ("namespace_id", "id"), (("namespace_id", "digest"),)
    ),
    TableSchema(
        "episode",
        (
            *_columns(
                "episode",
                "integer integer text text text integer integer text text text text real blob blob",
                ending=_ENDING,
                final_state_id=_NULL,
                model=_NULL,
                policy=_NULL,
                arm=_NULL,
                subject=_NULL,
            ),
            _LINE,
        ),
        ("namespace_id", "ordinal"),
        (("namespace_id", "id"),),
    ),
    TableSchema(
        "step",
        (
            *_columns(
                "step",
                "integer integer integer integer integer real real real integer truth",
                propensity=_NULL,
                prior_id=_NULL,
            ),
            _ORDINAL,
        ),
        ("namespace_id", "visit"),
        (),
        (("step_by_set", "(namespace_id, set_id, visit) WHERE live"),),
    ),
    TableSchema(
        "feedback",
        (
            *_columns(
                "feedback",
                "integer integer text integer real real text text real real text blob truth text blob",
                author=_NULL,
                revoked_at=_NULL,
                superseded_by=_NULL,
                kind=_NULL,
            ),
            _ORDINAL,
        ),
        ("namespace_id", "seq"),
        (("namespace_id", "id"),),
        (("feedback_by_visit", "(namespace_id, visit)"),),
    ),
    TableSchema(
        "view",
        _columns("view", "integer integer real real"),
        ("namespace_id", "id"),
        (("namespace_id", "gamma", "decay"),),
    ),
    TableSchema("value", _columns("value", "integer integer integer real"), ("namespace_id", "view_id", "visit")),
    TableSchema(
        "evidence",
        _columns("evidence", "integer integer integer integer integer real real real integer"),
        ("namespace_id", "view_id", "set_id", "key_id"),
        fill_percent=80,
    ),
    TableSchema(
        "distribution",
        _columns("distribution", "integer integer real integer"),
        ("namespace_id", "view_id", "mean"),
        fill_percent=50,
    ),
    TableSchema(
        "quarantine",
        _columns("quarantine", "integer integer text text text real real blob blob", lifted_at=_NULL),
        ("namespace_id", "seq"),
        (("namespace_id", "id"),),
    ),
    TableSchema(
        "copy",
        _columns("copy", "integer integer text text real blob", kind="NOT NULL CHECK (kind IN ('export', 'backup'))"),
        ("namespace_id", "seq"),
    ),
    _NOTE,
)
"""Every table, as it is at the latest version."""


def _made(table: TableSchema) -> list[str]:
    """Return the statements that create a table with its policies."""
    return [table.create(), *table.index_statements(), *table.statistics_statements(), *table.guard_statements()]


def _granted(privilege: str) -> str:
    """Return the statement that gives the tenants a right, where there are some."""
    return (
        f"DO $$ BEGIN IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{GROUP}') THEN "
        f"GRANT {privilege} TO {GROUP}; END IF; END $$"
    )


def _float_bytes(value: str) -> str:
    return f"coalesce('\\x01'::bytea || float8send({value}), '\\x00'::bytea)"


def _digest_bytes(value: str) -> str:
    return f"'\\x02'::bytea || int4send(octet_length({value})) || {value}"


def _text_bytes(value: str) -> str:
    """Return the bytes of a text as `row_checksum` hashes them; `wire.escape` is undone, in hexadecimal digits."""
    digits = f"encode(convert_to({value}, 'UTF8'), 'hex')"
    for old, new in (("ee8080ee8080", "zz"), ("ee808030", "00"), ("zz", "ee8080")):
        digits = f"replace({digits}, '{old}', '{new}')"
    return _digest_bytes(f"decode({digits}, 'hex')")


_SUPERSEDED = "(superseded_by IS NOT NULL)::int::float8"
_CHECKSUMS = {
    "namespace": [
        *map(_text_bytes, ("name", "encoder")),
        *map(_float_bytes, ("gamma", "created_at")),
        _text_bytes("feedback_limits"),
    ],
    "episode": [_digest_bytes("digest"), _float_bytes("created_at")],
    "feedback": [_digest_bytes("digest"), _float_bytes("revoked_at"), _float_bytes(_SUPERSEDED)],
    "note": [_digest_bytes("digest"), _float_bytes("revoked_at")],
    "quarantine": [_digest_bytes("digest"), _float_bytes("lifted_at")],
    "copy": [_text_bytes("kind"), _text_bytes("path"), _float_bytes("created_at")],
}
"""The bytes of each table's rows that `seasoned.memory.values.row_checksum` hashes, in SQL."""


def _add_checksums() -> list[str]:
    """Return the statements that add the column `checksum`, and fill it in the rows of all tenants.

    A table that an earlier step made just now has it already.
    """
    made: list[str] = []
    for table, parts in _CHECKSUMS.items():
        name = f"{SCHEMA}.{table}"
        hashed = " || ".join([f"convert_to('seasoned:{table}:row:v1' || chr(10), 'UTF8')", *parts])
        made += [
            f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS checksum bytea NOT NULL DEFAULT ''",
            f"ALTER TABLE {name} ALTER COLUMN checksum DROP DEFAULT",
            f"ALTER TABLE {name} ALTER COLUMN checksum SET STATISTICS 0",
            f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY",
            f"UPDATE {name} SET checksum = substring(sha256({hashed}) FROM 1 FOR 16)",
            f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY",
        ]
    return made


MIGRATIONS: dict[int, tuple[str, ...]] = {
    2: (
        f"ALTER TABLE {SCHEMA}.episode ADD COLUMN {_LINE.ddl()}",
        f"ALTER TABLE {SCHEMA}.episode ALTER COLUMN line SET STATISTICS 0",
        _ARRIVAL_NUMBER,
        _granted(f"USAGE ON SEQUENCE {SCHEMA}.arrival_number"),
    ),
    3: (
        f"ALTER TABLE {SCHEMA}.feedback ADD COLUMN kind {_TEXT}",
        f"ALTER TABLE {SCHEMA}.feedback ALTER COLUMN kind SET STATISTICS 0",
        f"ALTER TABLE {SCHEMA}.namespace ADD COLUMN notes bigint NOT NULL DEFAULT 0",
        *_made(_NOTE),
        _granted(f"SELECT, INSERT, UPDATE, DELETE ON {SCHEMA}.note"),
        _granted(f"INSERT (notes), UPDATE (notes) ON {SCHEMA}.namespace"),
    ),
    4: (
        f"ALTER TABLE {SCHEMA}.namespace ADD COLUMN feedback_limits {_TEXT} NOT NULL DEFAULT '{{}}'",
        f"ALTER TABLE {SCHEMA}.namespace ALTER COLUMN feedback_limits SET STATISTICS 0",
        f"ALTER TABLE {SCHEMA}.namespace ADD COLUMN compaction_due bigint NOT NULL DEFAULT 0",
        *_add_checksums(),
        *(
            _granted(f"INSERT ({column}), UPDATE ({column}) ON {SCHEMA}.namespace")
            for column in ("feedback_limits", "compaction_due", "checksum")
        ),
    ),
}
"""Statements that bring a schema from version i to i + 1; a new one is made from `TABLES`, at the latest version.

They run as the tables' owner, who sees only its own rows: one that changes rows must lift FORCE ROW LEVEL SECURITY and
set it again. A table that came later is whole in a store whose others are in partitions.
"""


def _common_statements() -> list[str]:
    return [
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
        f"CREATE TABLE {SCHEMA}.meta (application bigint NOT NULL PRIMARY KEY, version bigint NOT NULL)",
        f"INSERT INTO {SCHEMA}.meta VALUES ({APPLICATION_ID}, {POSTGRES_VERSION})",
        f"CREATE TABLE {SCHEMA}.tenant "
        f"(role {_TEXT} NOT NULL PRIMARY KEY, number bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE)",
        f"ALTER TABLE {SCHEMA}.tenant ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY own ON {SCHEMA}.tenant FOR SELECT USING (role = current_user)",
        f"ALTER TABLE {SCHEMA}.tenant ALTER COLUMN role SET STATISTICS 0",
        f"CREATE SEQUENCE {SCHEMA}.namespace_number MAXVALUE {2**TENANT_BITS - 1}",
        _ARRIVAL_NUMBER,
        f"CREATE FUNCTION {SCHEMA}.next_namespace() RETURNS bigint LANGUAGE sql SET search_path = pg_catalog AS "
        f"'SELECT (SELECT number FROM {SCHEMA}.tenant WHERE role = current_user) << {TENANT_BITS} "
        f"| nextval(''{SCHEMA}.namespace_number'')'",
    ]


def create_statements() -> list[str]:
    """Return the statements that create the schema of the latest version in an empty database."""
    made = _common_statements()
    for table in TABLES:
        made += _made(table)
    return made


def partition_statements(partitions: int) -> list[str]:
    """Return the statements that create the schema with each large table in `partitions` partitions, by namespace.

    Run them in an empty database, as the role that shall own the tables, before the first `Memory.open`.

    Example:
        >>> [line for line in partition_statements(2) if " step_0 " in line or ".step_0 " in line]
        ['CREATE TABLE seasoned.step_0 PARTITION OF seasoned.step FOR VALUES WITH (MODULUS 2, REMAINDER 0)']
    """
    made = _common_statements()
    for table in TABLES:
        spread = table.name != "namespace"
        made += [table.create(" PARTITION BY HASH (namespace_id)" if spread else "")]
        made += [
            f"CREATE TABLE {SCHEMA}.{table.name}_{part} PARTITION OF {SCHEMA}.{table.name} "
            f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part}){table.storage}"
            for part in range(partitions if spread else 0)
        ]
        made += [*table.index_statements(), *table.statistics_statements(), *table.guard_statements()]
    return made


def citus_statements() -> list[str]:
    """Return the statements that distribute a store's tables over a Citus cluster.

    `tenant` and `namespace` are on every worker.

    Example:
        >>> citus_statements()[2]
        "SELECT create_reference_table('seasoned.namespace')"
    """
    spread = [table.name for table in TABLES if table.name != "namespace"]
    first, *others = spread
    return [
        "CREATE EXTENSION IF NOT EXISTS citus",
        f"SELECT create_reference_table('{SCHEMA}.tenant')",
        f"SELECT create_reference_table('{SCHEMA}.namespace')",
        f"SELECT create_distributed_table('{SCHEMA}.{first}', 'namespace_id')",
        *(
            f"SELECT create_distributed_table('{SCHEMA}.{name}', 'namespace_id', colocate_with => '{SCHEMA}.{first}')"
            for name in others
        ),
    ]
