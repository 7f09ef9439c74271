"""The registry of stores: a URL scheme selects the class."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from seasoned import Memory
from seasoned.cli.memory.maintenance import migrate
from seasoned.errors import InputError
from seasoned.memory.maintenance.backup import restore
from seasoned.memory.stores.base import MigrationReport
from seasoned.memory.stores.registry import STORES, display_path, is_file, open_store, store_kind
from seasoned.memory.stores.sqlite import SqliteStore


class TemporaryStore(SqliteStore):
    """A store of another kind."""

    schema_version = 41

    @classmethod
    def migrate(cls, path, tenants=(), passwords=None):
        return MigrationReport(path, cls.schema_version, tuple(tenants), ())

    def __init__(self, url, *, create, read_only):
        super().__init__(url.removeprefix("temporary://"), create=create, read_only=read_only)


@pytest.fixture
def temporary():
    STORES.register("temporary", f"{__name__}:TemporaryStore")
    yield
    STORES._paths.pop("temporary")


def test_a_registered_scheme_opens_its_class(temporary, tmp_path):
    url = f"temporary://{tmp_path}/m.db"
    assert not is_file(url)
    with Memory.open(url) as memory:
        assert (type(memory.session.store).__name__, len(memory)) == ("TemporaryStore", 0)


def test_an_unknown_scheme_is_refused():
    for url in ("mysql://db/agents", "file://agent.db"):
        with pytest.raises(InputError, match=r"a file or postgres://\.\.\. or postgresql://"):
            open_store(url, create=True, read_only=False)


def test_passwords_are_masked_in_urls_of_every_registered_scheme(temporary):
    assert display_path("temporary://ann:secret@db/agents") == "temporary://ann:***@db/agents"
    assert display_path("postgres://ann@db/agents?password=secret&x=1") == "postgres://ann@db/agents?password=***&x=1"
    assert display_path("a:b@c.db") == "a:b@c.db"


def test_the_registered_class_states_its_schema_and_migrates(temporary, tmp_path):
    url = f"temporary://{tmp_path}/m.db"
    assert store_kind(url).schema_version == 41
    answer = CliRunner().invoke(migrate, [url, "--tenant", "shop", "--json"])
    assert (answer.exit_code, json.loads(answer.output)) == (
        0,
        {"path": url, "schema": 41, "tenants": ["shop"], "made": ["shop"], "remarks": []},
    )


def test_a_restore_reports_the_schema_of_the_registered_class(temporary, tmp_path):
    with Memory.open(tmp_path / "a.db"):
        pass
    assert restore(tmp_path / "a.db", f"temporary://{tmp_path}/m.db").schema == 41


def test_the_message_lists_the_registered_schemes(temporary):
    with pytest.raises(InputError, match=r"or temporary://"):
        store_kind("mysql://db/agents")
