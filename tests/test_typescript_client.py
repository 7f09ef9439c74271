"""The TypeScript client: its tests by Node's own runner, against a service of this process; and its package."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import seasoned
from seasoned.service import DecisionSettings, make_app
from seasoned.service.server import listen, make_server

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "clients" / "typescript"
OLDEST_NODE = 18
TOKEN = "a-token-of-enough-characters"
NAMESPACES = ("client1", "ai1", "ai2", "ai3", "ai4", "types1")


def node() -> str:
    """Return the path of Node; skip the test without one."""
    path = shutil.which("node")
    if path is None:
        pytest.skip(
            f"Node.js is not on the PATH: the TypeScript client is not tested (it needs {OLDEST_NODE} or newer)"
        )
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").partition(".")[0]) < OLDEST_NODE:
        pytest.skip(f"Node.js {version.strip()} is too old: the TypeScript client needs {OLDEST_NODE} or newer")
    return path


@contextlib.contextmanager
def served(path: Path) -> Iterator[str]:
    """Serve a memory from this process, and yield the address."""
    app = make_app(
        path, namespace=NAMESPACES, token=TOKEN, create=True, decisions=DecisionSettings(holdout=False, choose="sample")
    )
    ready = threading.Event()
    server = make_server(app, ready=ready.set)
    with listen("127.0.0.1", 0, secured=True) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        assert ready.wait(30)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(30)


def test_node_tests_of_the_client_pass(tmp_path):
    command = [node(), "--test", "--test-reporter=tap", *map(str, sorted(CLIENT.glob("tests/*.test.mjs")))]
    with served(tmp_path / "agent.db") as url:
        named = {
            "SEASONED_TEST_URL": url,
            "SEASONED_TEST_TOKEN": TOKEN,
            "SEASONED_TEST_NAMESPACES": ",".join(NAMESPACES),
        }
        env = {**os.environ, **named, "SEASONED_PYTHON": sys.executable}
        ran = subprocess.run(command, cwd=CLIENT, env=env, capture_output=True, text=True, timeout=300, check=False)
    counts = {name: int(count) for name, count in re.findall(r"^# (\w+) (\d+)$", ran.stdout, re.MULTILINE)}
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert counts["fail"] == 0 and counts["pass"] >= 35, counts


def test_blocks_of_the_page_run(tmp_path):
    runner = node()
    page = (ROOT / "docs" / "how-to" / "typescript-client.md").read_text()
    blocks = re.findall(r"^```js\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    (tmp_path / "page.mjs").write_text("\n".join(blocks))
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "seasoned").symlink_to(CLIENT, target_is_directory=True)
    command = tmp_path / "seasoned"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m seasoned "$@"\n')
    command.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        [runner, "page.mjs"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (tmp_path / "agent.db").exists()


def test_package_has_the_version_of_the_python_package_and_no_dependency():
    package = json.loads((CLIENT / "package.json").read_text())
    assert package["version"] == seasoned.__version__
    assert "dependencies" not in package
    assert package["peerDependenciesMeta"] == {name: {"optional": True} for name in package["peerDependencies"]}
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
