"""The architecture, read from the source: allowed imports, lazy loading, sizes of files and folders, names."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

import pytest

import seasoned
from seasoned.memory.stores.sqlite_schema import COLUMNS as TABLES

ROOT = Path(seasoned.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
MAX_LINES = 600
MAX_FILES = 16  # in one folder, without `__init__`
DYNAMIC = {"import_module", "__import__", "load_extra"}
SCREEN = {"click", "rich"}

# What each package may import besides libraries; `*` is everything above it in the table.
PACKAGES = """
errors            :
lazy_names        :
checks            : errors
canonical_json    :
actions           : errors checks
types             : errors checks actions
protocols         : errors checks canonical_json actions types
sync              : errors
timed_calls       : errors
sqlite_connection : errors
sqlite_cache      : errors checks canonical_json sqlite_connection
config            : errors checks types protocols registry
registry          : errors checks types protocols config
core              : errors checks
states            : errors checks types actions protocols config registry canonical_json core lazy_names
memory            : errors checks types actions protocols config registry sync timed_calls canonical_json
                    sqlite_connection core states
llms              : errors checks types actions protocols config registry canonical_json sqlite_connection
                    sqlite_cache lazy_names core
envs              : errors checks types actions protocols config registry sqlite_connection sqlite_cache states
judges            : errors checks types actions protocols config registry core
policies          : errors checks types actions protocols config registry timed_calls core states lazy_names
agents            : errors checks types actions protocols config registry sync canonical_json core states
                    judges policies
decisions         : errors checks types actions protocols config registry sync canonical_json core llms policies
testing           : errors checks types protocols core sync
build             : *
integrations      : * build lab service seasoned
lab               : * build service seasoned
service           : * build lab seasoned
seasoned          : *
chat              : *
cli               : *
__main__          : cli
"""

# What each room of a package may import of the same package.
ROOMS = {
    "memory": """
        values      :
        stores      : values
        index       : values
        reading     : stores values
        writing     : reading stores values
        pending     : writing reading index stores values
        retrieval   : pending writing reading index stores values
        recall      : retrieval writing reading index stores values
        retention   : writing reading stores values
        lift        : writing reading stores values
        namespace   : pending writing stores values
        transfer    : namespace pending writing reading stores values
        stats       : stores values
        verify      : writing reading stores values
        outage      : stores values
        session     : outage pending writing reading stores values namespace
        session_factory : session outage namespace stores values
        parts       : session outage recall retrieval retention lift transfer writing reading stores values stats
                      verify
        memory      : session_factory parts session outage namespace stats verify transfer retention recall
                      retrieval pending writing reading stores values
        known_namespaces : memory stores
        maintenance : memory parts session namespace transfer retention writing reading stores values
    """,
    "lab": """
        suites        :
        results       : suites
        arms          : suites
        diagnosis     :
        forks         : diagnosis
        code_survival :
        runner        : arms results suites
        analysis      : arms diagnosis results runner suites
        report        : analysis results runner
    """,
    "agents": """
        loop      :
        baselines : loop
        runs      : loop
        cascade   : runs loop
        react     : cascade runs baselines loop
    """,
    "llms": """
        wire       :
        providers  : wire
        embeddings : providers wire
        cache      : embeddings wire
        priors     : wire
        registry   : cache providers wire
    """,
    "cli": """
        format     :
        exit_codes : format
        model_options :
        redact_option :
        params     : model_options redact_option
        lazy_group : exit_codes
        run        : params format
        demo       : params format
        lab        : params format exit_codes
        serve      : params format
        lift       : params format
        mcp        : params
        chat       : model_options redact_option format
        memory     : lazy_group params format
        main       : lazy_group exit_codes
    """,
}


def law_of(table):
    """Read a table of `name : names`; `*` means all names above; a line without a colon continues the one before."""
    law = {}
    for line in re.sub(r"\n\s+(?=[^:\n]*(\n|$))", " ", table).strip().splitlines():
        name, _, allowed = (part.strip() for part in line.partition(":"))
        names = set(allowed.split())
        law[name] = names - {"*"} | (set(law) if "*" in names else set())
    return law


MAY_IMPORT = law_of(PACKAGES)
ROOM_MAY_IMPORT = {package: law_of(table) for package, table in ROOMS.items()}

# The gerunds that are terms of the field, and words that no module name may have.
GERUNDS = {
    "embedding",
    "embeddings",
    "encoding",
    "indexing",
    "interning",
    "logging",
    "parsing",
    "pending",
    "pruning",
    "ranking",
    "reading",
    "rendering",
    "routing",
    "sampling",
    "scheduling",
    "testing",
    "training",
    "writing",
}
BANNED = {
    "absent",
    "alone",
    "alongside",
    "arrivals",
    "asked",
    "beside",
    "damage",
    "given",
    "inside",
    "looks",
    "noted",
    "opened",
    "outside",
    "said",
    "shown",
    "suspects",
    "things",
    "thoughts",
    "told",
    "util",
    "utils",
    "helper",
    "helpers",
    "manager",
}

# File stems that occur in several folders with the same meaning.
SHARED_STEMS = {
    "spool": "writes that wait for a store: the folder, and its command",
    "registry": "maps names to constructors",
    "run": "plays an environment for several episodes: the loop, and its command",
    "memory": "the facade, its protocol, and the checker of that protocol",
    "environments": "the protocol, and its checker",
    "embedders": "the protocol, and its checker",
    "encoders": "the protocol, and its checker",
    "judges": "the protocol, and its checker",
    "policies": "the protocol, and its checker",
    "recall": "moments by several keys: the values, and the part of Memory",
    "feedback": "typed feedback: the values, and the commands",
    "retention": "pruning, quarantine and erasure: the part of Memory, and the commands",
    "transfer": "export and import: the part of Memory, and the commands",
}

# Public names that two files define, with the reason. Commands and type variables need no entry.
SHARED_NAMES = {
    "HEADINGS": "the headings of a group of commands",
    "MIGRATIONS": "the migrations of a store, one list per kind of store",
    "main": "the entry point of a program",
    "Bools": "the array type, of the maths and of the index",
    "Floats": "the array type; types may not import core",
    "Ints": "the array type; types may not import core",
}

# ------------------------------------------------------------------------------- reading imports


@dataclass(frozen=True)
class Import:
    """An imported module, its line, and its time: on import, on a call, or for the type checker only."""

    target: str
    line: int
    when: Literal["import", "call", "typing"]


def imports_of(source, module, is_package, modules):
    """Return every import in `source`; `from package import name` is the submodule of that name, if there is one."""
    package = module if is_package else module.rpartition(".")[0]
    imports = []

    def visit(node, when):
        if isinstance(node, ast.Import):
            imports.extend(Import(alias.name, node.lineno, when) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                imports.append(Import(inner if inner in modules else base, node.lineno, when))
        elif isinstance(node, ast.Call) and called(node) in DYNAMIC and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                imports.append(Import(first.value, node.lineno, when))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                visit(child, "typing")
            for child in node.orelse:
                visit(child, when)
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            # Defaults, decorators and annotations run on import; only the body waits for the call.
            body = node.body if isinstance(node.body, list) else [node.body]
            for child in ast.iter_child_nodes(node):
                visit(child, "call" if when == "import" and child in body else when)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, when)

    visit(parsed(source), "import")
    return imports


parsed = functools.cache(ast.parse)  # each rule reads each file


def called(node):
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def name_of(path):
    parts = ["seasoned", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module):
    """Return the row of PACKAGES: `memory` for `seasoned.memory.stores.sqlite`, `seasoned` for the package itself."""
    return module.split(".")[1] if "." in module else module


FILES = sorted(ROOT.rglob("*.py"))
MODULES = {name_of(path) for path in FILES}
SOURCES = {name_of(path): path.read_text(encoding="utf-8") for path in FILES}


@functools.cache
def all_imports():
    return {
        name_of(path): imports_of(SOURCES[name_of(path)], name_of(path), path.name == "__init__.py", MODULES)
        for path in FILES
    }


def root_of(target):
    return target.partition(".")[0]


# ------------------------------------------------------------------------------- the reader reads

SNIPPETS = [
    ("import seasoned.llms.providers.local", "seasoned.llms.providers.local", "import"),
    ("from seasoned import llms", "seasoned.llms", "import"),
    ("from seasoned import Memory", "seasoned", "import"),
    ("from seasoned.llms import Local", "seasoned.llms", "import"),
    ("from seasoned.llms.providers import local", "seasoned.llms.providers.local", "import"),
    ("from .stores import sqlite", "seasoned.memory.stores.sqlite", "import"),
    ("from .stores.sqlite import open_", "seasoned.memory.stores.sqlite", "import"),
    ("from ..llms.providers import local", "seasoned.llms.providers.local", "import"),
    ("from .. import llms", "seasoned.llms", "import"),
    ("def f():\n    import torch.nn", "torch.nn", "call"),
    ("async def f():\n    if x:\n        from torch import nn", "torch", "call"),
    ("class A:\n    import torch", "torch", "import"),
    ("class A:\n    def f(self):\n        import torch", "torch", "call"),
    ("try:\n    import torch\nexcept ImportError:\n    pass", "torch", "import"),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", "torch", "typing"),
    ("import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n    import torch", "torch", "import"),
    ("torch = load_extra('torch', 'heavy')", "torch", "import"),
    ("f = lambda: importlib.import_module('seasoned.llms.providers.local')", "seasoned.llms.providers.local", "call"),
    ("def f(x=load_extra('torch', 'heavy')): ...", "torch", "import"),
]


@pytest.mark.parametrize(("source", "target", "when"), SNIPPETS, ids=[source for source, _, _ in SNIPPETS])
def test_every_kind_of_import_is_found(source, target, when):
    modules = {
        "seasoned",
        "seasoned.llms",
        "seasoned.llms.providers.local",
        "seasoned.memory",
        "seasoned.memory.stores.sqlite",
    }
    imports = imports_of(source, "seasoned.memory.facade", False, modules)
    assert (target, when) in {(i.target, i.when) for i in imports}


def test_relative_imports_of_a_package_are_resolved():
    imports = imports_of("from .sqlite import x", "seasoned.memory", True, {"seasoned.memory.sqlite"})
    assert [i.target for i in imports] == ["seasoned.memory.sqlite"]


def test_modules_and_imports_of_the_package_are_read():
    assert {"seasoned", "seasoned.errors", "seasoned.core.modulation", "seasoned.types.experience"} <= MODULES
    assert ("seasoned.errors", "import") in {(i.target, i.when) for i in all_imports()["seasoned.core.returns"]}


# ------------------------------------------------------------------------------- allowed imports


def forbidden_imports(module, imports):
    """Return the imports of a module from packages that its own may not import."""
    part = part_of(module)
    if part not in MAY_IMPORT:
        return [f"{module}: {part!r} has no row in PACKAGES. Add one, there and in CONTRIBUTING.md."]
    return [
        f"{module}, line {i.line}, imports {i.target}; {part} may import {sorted(MAY_IMPORT[part])}"
        for i in imports
        if root_of(i.target) == "seasoned" and part_of(i.target) not in MAY_IMPORT[part] | ({part} - {"seasoned"})
    ]


def forbidden_room_imports(module, imports):
    """Return the imports of a module from rooms of its own package that its own may not import."""
    package, room = module.split(".")[1:3]
    law = ROOM_MAY_IMPORT[package]
    if room not in law:
        return [f"{module}: {room!r} has no row in ROOMS[{package!r}]. Add one."]
    return [
        f"{module}, line {i.line}, imports {i.target}; {package}/{room} may import {sorted(law[room])}"
        for i in imports
        if i.target.startswith(f"seasoned.{package}.") and i.target.split(".")[2] not in law[room] | {room}
    ]


def refuse(wrong):
    """Fail with every breach of a rule, unless there is none."""
    assert not wrong, "\n".join(wrong)


def test_package_imports_are_allowed():
    refuse([line for module, imports in all_imports().items() for line in forbidden_imports(module, imports)])


def test_room_imports_are_allowed():
    inside = [module for module in sorted(MODULES) if part_of(module) in ROOMS and module.count(".") > 1]
    refuse([line for module in inside for line in forbidden_room_imports(module, all_imports()[module])])


def test_forbidden_imports_are_found():
    """Each rule of this page is tried on an import that it must refuse, since a rule reports nothing otherwise."""
    policies = Import("seasoned.policies", 1, "import")
    assert forbidden_imports("seasoned.core.returns", [policies])
    assert forbidden_imports("seasoned.newcomer", []) and forbidden_room_imports("seasoned.lab.newcomer", [])
    assert forbidden_room_imports("seasoned.lab.arms.a", [Import("seasoned.lab.report.b", 1, "call")])
    assert not forbidden_imports("seasoned.lab.arms.a", [policies, Import("torch", 1, "call")])
    assert not forbidden_room_imports("seasoned.lab.report.a", [Import("seasoned.lab.results.b", 1, "import")])


@pytest.mark.parametrize("package", sorted(ROOMS))
def test_room_table_has_no_cycle(package):
    law = ROOM_MAY_IMPORT[package]
    assert all(allowed <= set(law) for allowed in law.values())
    graphlib.TopologicalSorter(law).prepare()


def test_package_table_has_no_cycle():
    """Except the packages at the top, which may import each other, and the pair of registry and config."""
    joined = {"build", "integrations", "lab", "service", "seasoned", "cli", "__main__"}
    pair = {"registry", "config"}
    graphlib.TopologicalSorter({part: MAY_IMPORT[part] - pair for part in set(MAY_IMPORT) - joined}).prepare()


def test_modules_have_no_import_cycle():
    """Imports count at any time: on import, on a call, or for the type checker only."""
    graph = {
        module: {i.target for i in imports if i.target in MODULES and i.target != module}
        for module, imports in all_imports().items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def documented_law(page):
    """Read the table of packages: names, *the floor*, *all above*, *each other*, *but* and the excluded names."""
    [floor] = re.findall(r"\*The floor\* is ((?:`\w+`\s*)+)", page)
    law = {}
    for row in re.findall(r"^\| (`.*) \|$", page.partition("## The packages")[2].partition("\n## ")[0], re.M):
        cells = row.split(" | ")
        packages, (given, _, excluded) = re.findall(r"`(\w+)`", cells[0]), cells[-1].partition(" but ")
        rest = re.sub(r"the floor|all above|each other|nothing|`\w+`|[ ,]", "", given)
        assert not rest, f"the test cannot read {rest!r} in the row of {packages}"
        names = set(re.findall(r"`(\w+)`", given))
        names |= set(re.findall(r"`(\w+)`", floor)) if "the floor" in given else set()
        names |= set(law) if "all above" in given else set()
        names |= set(packages) if "each other" in given else set()
        patterns = re.findall(r"`([\w*]+)`", excluded)
        names = {name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)}
        law |= {package: names - {package} for package in packages}
    return law


def test_contributing_documents_the_law_of_imports():
    page = CONTRIBUTING.read_text(encoding="utf-8")
    assert documented_law(page) == {package: allowed - {package} for package, allowed in MAY_IMPORT.items()}
    [with_rooms] = re.findall(r"The packages ((?:`\w+`[, and\s]*)+)have rooms", page)
    assert set(re.findall(r"`(\w+)`", with_rooms)) == set(ROOMS)


# ------------------------------------------------------------------------------- what it costs to import


def test_heavy_modules_load_when_called():
    """At import, modules load the standard library, NumPy and seasoned; only the command line loads its libraries."""
    always = set(sys.stdlib_module_names) | {"seasoned", "numpy"}
    refuse(
        [
            f"{module}, line {i.line}, imports {i.target} when it is imported; load it when called (load_extra)"
            for module, imports in all_imports().items()
            for i in imports
            if i.when == "import"
            and root_of(i.target) not in always | (SCREEN if part_of(module) in {"cli", "__main__"} else set())
        ]
    )


def test_only_the_command_line_imports_its_libraries():
    refuse(
        [
            f"{module}, line {i.line}, imports {i.target}"
            for module, imports in all_imports().items()
            for i in imports
            if root_of(i.target) in SCREEN and part_of(module) not in {"cli", "__main__"}
        ]
    )


def test_core_imports_numpy_only():
    allowed = set(sys.stdlib_module_names) | {"numpy", "seasoned"}
    refuse(
        [
            f"{module}, line {i.line}, imports {i.target}"
            for module, imports in all_imports().items()
            for i in imports
            if part_of(module) == "core" and root_of(i.target) not in allowed
        ]
    )


# ------------------------------------------------------------------------------- SQL

SQL = re.compile(
    r"\s*(SELECT\s|INSERT\s+(OR|INTO)\s|UPDATE\s+\S*\s*(INDEXED\s+BY\s+\S+\s+)?SET\s|DELETE\s+(FROM\s|\{)"
    r"|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|VIEW|ROLE|POLICY)"
    r"|PRAGMA\s|BEGIN(\s+(IMMEDIATE|EXCLUSIVE|DEFERRED)|\s*$)|(COMMIT|ROLLBACK|VACUUM)\s*$|ATTACH\s|TRUNCATE\s+TABLE"
    r"|\{\}\s+(INTO\s|(\S+\s+)?SET\s))"
)
# The same in any case, in forms that prose does not have.
SQL_IN_ANY_CASE = re.compile(
    r"\s*(select\s.+\sfrom\s+\S+(\s+(where|order|group)\s|\s*$)|(insert|replace|\{\})(\s+or\s+\w+)?\s+into\s+\S+\s*(\(|values|select)"
    r"|(update|\{\})\s+\S+\s+(indexed\s+by\s+\S+\s+)?set\s+\S+\s*=|delete\s+from\s+\S+(\s+where\s|\s*$))",
    re.IGNORECASE | re.DOTALL,
)
OWN_TABLES = {"memory", "sqlite_connection", "sqlite_cache"}
CACHES = {"seasoned.llms.cache", "seasoned.envs.jericho.action_cache"}


def text_of(node, constants):
    """Return a string or an f-string as text, None for another node.

    `{}` is an inserted value, except a constant of the module.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.FormattedValue):
        return constants.get(node.value.id, "{}") if isinstance(node.value, ast.Name) else "{}"
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, constants) for part in node.values)
    return None


def sql_of(source):
    """Return each string of `source` that begins like an SQL statement, with its line; `{}` is an inserted value."""
    tree = parsed(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and (text := text_of(node.value, constants)) is not None:
            constants |= {target.id: text for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        text = None if id(node) in inner or isinstance(node, ast.FormattedValue) else text_of(node, constants)
        if text is not None and (SQL.match(text) or SQL_IN_ANY_CASE.match(text)):
            yield node.lineno, text


@pytest.mark.parametrize(
    ("source", "is_sql"),
    [
        ('"SELECT 1"', True),
        ('f"UPDATE {table} SET a = ?"', True),
        ('("UPDATE namespace " "SET name = ?")', True),
        ('f"INSERT OR IGNORE INTO {table} VALUES (?)"', True),
        ('"BEGIN IMMEDIATE"', True),
        ('"PRAGMA user_version"', True),
        ('f"{verb} INTO {table} VALUES (?)"', True),
        ('f"{verb} note SET body = ?"', True),
        ('"update note set body = ?"', True),
        ('"insert into note values (?)"', True),
        ('"Update note Indexed By i Set body = ?"', True),
        ('"UPDATE note INDEXED BY i SET body = ?"', True),
        ('"delete from note where id = ?"', True),
        ('"select body from note where id = ?"', True),
        ('f"DELETE {rows}"', True),
        ('VERB = "INSERT"\nf"{VERB} INTO note VALUES (?)"', True),
        ('"DELETE"', False),
        ('"update the set of rules"', False),
        ('f"{n} episodes from {path}"', False),
        ('f"BEGIN DATA {tag}"', False),
        ('"Select one of these."', False),
        ('"CREATE a file"', False),
    ],
)
def test_sql_is_recognised(source, is_sql):
    assert bool(list(sql_of(source))) == is_sql


def may_contain_sql(module):
    return part_of(module) in OWN_TABLES or any(module == cache or module.startswith(f"{cache}.") for cache in CACHES)


def test_only_stores_and_caches_contain_sql():
    """Other modules call functions of the memory, so that each table has one owner."""
    refuse(
        [
            f"{module}, line {line}: {text[:80]!r}"
            for module, source in SOURCES.items()
            if not may_contain_sql(module)
            for line, text in sql_of(source)
        ]
    )


# ------------------------------------------------------------------------------- redaction

REDACTED = "seasoned.memory.values.redacted"
WRITERS = "seasoned.memory.writing"
# Who may go past the type checker: a redacted type outside of annotations, and what else could store a plain text.
PASSAGES = {
    "RedactedText": set(),
    "RedactedEpisode": set(),
    "RedactedNote": set(),
    "RedactedFeedback": set(),
    "RedactedQuarantine": set(),
    "Redaction": {"seasoned.memory.session"},  # with the redaction of the caller
    "already_redacted": {
        "seasoned.memory.transfer.merge",  # copies stored records
        "seasoned.memory.pending.inbox",  # derives stored pending episodes
        "seasoned.memory.parts.spool_entries",  # reads spooled writes, which were redacted before
        f"{WRITERS}.typed_feedback",  # makes the note and the answers of redacted feedback, at a stored step
    },
    "Interner": {f"{WRITERS}.episode_writer"},
    "note_row": {f"{WRITERS}.note_records", "seasoned.memory.pending.inbox"},
}
TEXT_FIELDS = {"task", "steps", "final_state", "body", "selection", "reason", "text", "comment", "candidates"}
INSERTING = {
    "seasoned.memory.namespace",  # the name, the encoder, the discount
    "seasoned.memory.retention.copies",  # the paths of exports and backups
    "seasoned.memory.pending.shadow_store",  # copies stored rows
}
# These write no rows at all.
READ_ONLY = {
    "index",
    "memory",
    "session_factory",
    "outage",
    "parts",
    "recall",
    "retrieval",
    "session",
    "stats",
    "values",
    "verify",
}  # no write of rows


# The columns that modules outside of the stores change. `{}` is a name that the statement inserts.
UPDATED = {
    "seasoned.memory.maintenance.replacement": {"namespace.name"},
    "seasoned.memory.pending.inbox": {"namespace.notes"},
    "seasoned.memory.reading.follower": {"namespace.epoch"},
    "seasoned.memory.retention.copies": {"namespace.copies"},
    "seasoned.memory.retention.deletion": {"namespace.removed", "{}.key_id"},
    "seasoned.memory.retention.compaction_mark": {"namespace.compaction_due"},
    "seasoned.memory.transfer.merge": {
        "feedback.checksum",
        "feedback.live",
        "feedback.revoked_at",
        "feedback.seq",
        "feedback.superseded_by",
    },
    "seasoned.memory.writing.episode_writer": {
        "feature_set.digest",
        "feature_set.last_visit",
        "namespace.encoder",
        "namespace.removed",
        "namespace.tokens",
        "namespace.views",
        "state.set_id",
        "step.set_id",
    },
    "seasoned.memory.writing.evidence_views": {"step.feedback"},
    "seasoned.memory.writing.feedback_events": {
        "feedback.checksum",
        "feedback.live",
        "feedback.revoked_at",
        "feedback.superseded_by",
        "namespace.events",
    },
    "seasoned.memory.writing.interning": {"feature_set.last_visit", "namespace.{}"},
    "seasoned.memory.writing.live_steps": {"step.live"},
    "seasoned.memory.writing.namespace_row": {
        "namespace.checksum",
        "namespace.feedback_limits",
        "namespace.feedback_policy",
        "namespace.redaction",
    },
    "seasoned.memory.writing.note_records": {"namespace.notes", "note.checksum", "note.revoked_at"},
    "seasoned.memory.writing.quarantine": {
        "feedback.live",
        "namespace.quarantines",
        "quarantine.checksum",
        "quarantine.lifted_at",
    },
    "seasoned.memory.writing.unjudged_episodes": {"episode.awaiting", "feedback.live"},
}


def stores_of(tree):
    """Return a test of expressions: whether one is a store, by its name or by an assignment of a store to its name."""
    aliases = set()

    def is_store(node):
        text = ast.unparse(node)
        return text.endswith(("store", "target")) or text in aliases

    size = -1
    while size < len(aliases):
        size = len(aliases)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value and is_store(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                aliases |= {ast.unparse(target) for target in targets}
    return is_store


def updates_of(source):
    """Return, each with its line, the columns that statements and `update()` of a store change."""
    tree = parsed(source)
    is_store = stores_of(tree)
    for line, text in sql_of(source):
        changed = re.match(r"\s*(?:UPDATE|\{\})\s+(\S+)\s.*?(\bSET\s.*)", text, re.IGNORECASE | re.DOTALL)
        if changed:
            assignments = re.split(r"\bWHERE\b", changed[2], flags=re.IGNORECASE)[0]
            for column in re.findall(r"(?:\bSET|,)\s+(\w+|\{\})\s*=", assignments, re.IGNORECASE):
                yield line, f"{changed[1]}.{column}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) == "update" and is_store(node.func.value):
            table, columns = node.args[:2]
            names = columns.elts if isinstance(columns, ast.Tuple) else [columns]
            for name in names:
                yield node.lineno, ".".join(text_of(each, {}) or "{}" for each in (table, name))


def redaction_breaches(source, module):
    """Return, each with its line, where a module could store a text of a caller that was not redacted.

    It guards against slips, not against intent: `docs/decisions/0027-rooms-and-names.md` lists its rules.
    """
    tree = parsed(source)
    is_store = stores_of(tree)
    reads_only = not READ_ONLY.isdisjoint(module.split(".")[2:3])
    inserts = module.startswith(f"{WRITERS}.") or module in INSERTING
    refused = {"insert", "upsert", "update"} if reads_only else set() if inserts else {"insert", "upsert"}
    annotations = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    typing_only = {id(part) for each in annotations if isinstance(each, ast.AST) for part in ast.walk(each)}
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
        if name in PASSAGES and id(node) not in typing_only and module not in PASSAGES[name]:
            yield f"line {node.lineno}: {name}"
        if name == "cast" and id(node) not in functions:
            yield f"line {node.lineno}: another name for cast"
        if isinstance(node, ast.Attribute) and name in refused and is_store(node.value):
            yield f"line {node.lineno}: {name}() of a store"
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in {*PASSAGES, "cast"} and alias.asname is not None:
                    yield f"line {node.lineno}: {alias.asname}, another name for {alias.name}"
                if alias.name == "*":
                    yield f"line {node.lineno}: names that are not listed"
        if not isinstance(node, ast.Call):
            continue
        if called(node) == "cast" and "Redacted" in ast.unparse(node):
            yield f"line {node.lineno}: a cast to a redacted type"
        if called(node) in {"replace", "_replace"} and {None, *TEXT_FIELDS} & {each.arg for each in node.keywords}:
            yield f"line {node.lineno}: replace() keeps the redacted type, and changes a text"
        if called(node) in {"setattr", "__setattr__"} and not module.startswith("seasoned.memory.values."):
            yield f"line {node.lineno}: {called(node)}() of a frozen value"
        if (
            called(node) in {"insert", "upsert"} & refused
            and node.args
            and (text_of(node.args[0], {}) or "").split(".")[-1] in TABLES
        ):
            yield f"line {node.lineno}: {called(node)}() of rows of a table"
    for line, text in sql_of(source):
        verb = text.split()[0].upper()
        if verb != "SELECT" and (reads_only or (verb in {"INSERT", "REPLACE", "{}"} and not inserts)):
            yield f"line {line}: {text[:60]!r}"
    for line, column in updates_of(source):
        if column not in UPDATED.get(module, ()):
            yield f"line {line}: changes {column}, which UPDATED does not list"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(note: RedactedNote) -> list[RedactedNote]: ...", False),
        ("notes: list[RedactedNote] = []", False),
        ("RedactedNote(note)", True),
        ("redacted.RedactedNote(note)", True),
        ("list(map(RedactedNote, notes))", True),
        ("cast('RedactedNote', note)", True),
        ("already_redacted(note)", True),
        ("Redaction(None, 9)", True),
        ("replace(note, id='n1')", False),
        ("replace(note, body={})", True),
        ("dataclasses.replace(note, **changes)", True),
        ("self._store.insert('note', rows)", True),
        ("self._store.update('note', ('body',), ('id',), rows)", True),
        ("store.execute('INSERT INTO note VALUES (?)')", True),
        ("store.execute('UPDATE note SET body = ?')", True),
        ("store.execute('SELECT body FROM note')", False),
        ("words.insert(0, 'a')", False),
        ("from seasoned.memory.values.redacted import already_redacted as copied", True),
        ("from seasoned.memory.values.redacted import RedactedNote as Row", True),
        ("from seasoned.memory.values.redacted import *", True),
        ("from typing import cast as as_type", True),
        ("as_type = cast", True),
        ("as_type = typing.cast", True),
        ("from typing import cast\ncast(int, n)", False),
        ("store.execute('insert into note values (?)')", True),
        ("store.execute('update note set body = ?')", True),
        ("store.execute(f'{verb} INTO note VALUES (?)')", True),
        ("store.execute(f'{verb} note SET body = ?')", True),
        ("s = self._store\ns.insert(table, rows)", True),
        ("s: Store = store\nt = s\nt.upsert(table, rows)", True),
        ("put = self._store.insert", True),
        ("s.insert('note', rows)", True),
        ("note._replace(body={})", True),
        ("row._replace(total=1)", False),
        ("object.__setattr__(note, 'body', {})", True),
        ("setattr(note, name, value)", True),
    ],
)
def test_breaches_of_redaction_are_found(source, expected):
    assert bool(list(redaction_breaches(source, "seasoned.memory.parts.feedback_log"))) == expected


@pytest.mark.parametrize("module", ["seasoned.memory.retention.deletion", f"{WRITERS}.quarantine"])
@pytest.mark.parametrize(
    "source",
    [
        "store.execute('UPDATE note SET body = ?')",
        "store.execute('UPDATE note INDEXED BY i SET revoked_at = ?, body = ? WHERE id = ?')",
        "store.execute(f'UPDATE {table} SET {column} = ?')",
        "store.execute('update note set body = ?')",
        "self._store.update('note', ('body',), ('id',), rows)",
        "s = self._store\ns.update(table, columns, keys, rows)",
    ],
)
def test_updates_of_other_columns_than_listed_are_found(source, module):
    assert list(redaction_breaches(source, module))


def test_only_redacted_texts_are_stored():
    """The writers demand redacted types. Nothing else in the memory makes these types, or inserts such rows."""
    refuse(
        [
            f"{module}: {breach}"
            for module, source in SOURCES.items()
            if part_of(module) == "memory" and module != REDACTED and not module.startswith("seasoned.memory.stores.")
            for breach in redaction_breaches(source, module)
        ]
    )


def test_other_packages_do_not_reach_the_writers_of_a_memory():
    within = ("seasoned.memory.writing.", REDACTED, "seasoned.memory.session", "seasoned.memory.stores.base")
    wrong = [
        f"{module} imports {i.target}"
        for module, found in all_imports().items()
        for i in found
        if part_of(module) != "memory" and i.target.startswith(within)
    ]
    assert not wrong, "\n".join(wrong)


# ------------------------------------------------------------------------------- files and names


def test_files_are_small():
    lines = {module: len(source.splitlines()) for module, source in SOURCES.items()}
    refuse(
        [
            f"{module} has {n} lines, at most {MAX_LINES} are allowed; split it"
            for module, n in lines.items()
            if n > MAX_LINES
        ]
    )


def test_formatter_is_never_switched_off():
    folders = [CONTRIBUTING.parent / folder for folder in ("src", "tests", "benchmarks", "examples", "docs")]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    wrong = [str(path) for path in files if re.search(r"#\s*fmt:\s*(?:off|skip)", path.read_text(encoding="utf-8"))]
    assert not wrong, f"the formatter is switched off in {wrong}: let it format them"


def test_folders_are_small():
    sizes = Counter(path.parent for path in FILES if path.stem not in {"__init__", "__main__"})
    refuse([f"{folder} has {n} files: give it rooms" for folder, n in sizes.items() if n > MAX_FILES])


def names_to_change(module):
    """Return the parts of a module's name that are no nouns, or say nothing."""
    for name in module.split(".")[1:]:
        words = name.strip("_").split("_")
        if not BANNED.isdisjoint(words):
            yield f"{module}: {name}: name the thing, as an engineer of the field would search for it"
        if words[-1].endswith("ing") and words[-1] not in GERUNDS:
            yield f"{module}: {name}: a gerund; name the thing"


def test_module_names_are_nouns():
    refuse([line for module in sorted(MODULES) for line in names_to_change(module)])
    assert list(names_to_change("seasoned.memory.row_helpers")) and list(names_to_change("seasoned.adding"))


def test_file_stems_are_unique():
    folders = defaultdict(set)
    for path in FILES:
        if path.stem not in {"__init__", "__main__"}:
            folders[path.stem].add(str(path.parent.relative_to(ROOT)))
    wrong = {stem: sorted(where) for stem, where in folders.items() if len(where) > 1 and stem not in SHARED_STEMS}
    assert not wrong, f"one file name in several folders: {wrong}. Rename, or say in SHARED_STEMS what they share."
    unused = sorted(stem for stem in SHARED_STEMS if len(folders[stem]) < 2)
    assert not unused, f"SHARED_STEMS names {unused}, which no longer occur in several folders. Remove them."


def test_module_docstrings_begin_with_a_noun_phrase():
    interrogatives = {"What", "How", "Which", "Whose", "Who", "Whether", "Where", "When", "Why"}
    docstrings = {module: ast.get_docstring(parsed(source)) or "" for module, source in SOURCES.items()}
    refuse(
        [
            f"{module}: {text[:80]}"
            for module, text in docstrings.items()
            if text.partition(" ")[0].strip("`:,.") in interrogatives
        ]
    )


def public_names(source):
    """Return the classes, functions and constants that a file defines, without commands and type variables."""
    names = set()
    for node in parsed(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not any(re.match(r"[\w.]*command\b", ast.unparse(each)) for each in node.decorator_list):
                names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            variable = isinstance(node.value, ast.Call) and called(node.value) in {"TypeVar", "ParamSpec"}
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {each.id for each in targets if isinstance(each, ast.Name) and not variable}
    return {name for name in names if not name.startswith("_")}


def test_public_names_of_a_file_are_read():
    source = "@click.command()\ndef run(): ...\nT = TypeVar('T')\nclass A: ...\nB = 1\nC: int = 2\n_D = 3\ndef e(): ..."
    assert public_names(source) == {"A", "B", "C", "e"}


def test_public_names_are_defined_once():
    files = defaultdict(list)
    for path in FILES:
        for name in public_names(SOURCES[name_of(path)]):
            files[name].append(str(path.relative_to(ROOT)))
    wrong = {name: where for name, where in files.items() if len(where) > 1 and name not in SHARED_NAMES}
    assert not wrong, f"one name in several files: {wrong}. Rename, or give the reason in SHARED_NAMES."
    unused = sorted(name for name in SHARED_NAMES if len(files[name]) < 2)
    assert not unused, f"SHARED_NAMES names {unused}, which no longer occur in several files. Remove them."
