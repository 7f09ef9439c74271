"""`seasoned serve`: its address, its token file, its encoder, its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

from seasoned import Episode, Memory, Step
from seasoned.cli.main import cli
from seasoned.errors import ConfigError
from seasoned.service import make_app
from seasoned.service.server import listen, serve
from seasoned.states import ALL_MASKS, TokenEncoder

pytest.importorskip("uvicorn", reason="needs the extra serve")

TOKEN = "a-token-of-enough-characters"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "agent.db"
    with Memory.open(path, namespace="shop") as memory:
        memory.add(Episode("t", [Step("s", "a")], "e1"))
    return path


@pytest.fixture
def token_file(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    return file


def seasoned(*args):
    return CliRunner().invoke(cli, ["serve", *map(str, args)])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])
def test_public_address_without_a_token_is_refused(path, host):
    result = seasoned(path, "--host", host, "--port", 0)
    assert result.exit_code == 2
    assert "token" in result.stderr or "address" in result.stderr
    assert result.stdout == ""


def test_public_address_with_a_token_is_allowed():
    with listen("0.0.0.0", 0, secured=True) as listening:
        assert listening.getsockname()[1] > 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.9.9.9"])
def test_loopback_address_needs_no_token(host):
    with listen(host, 0, secured=False) as listening:
        assert listening.getsockname()[0].startswith(("127.", "::1"))


def test_accepted_connections_send_small_answers_at_once():
    async def accepted_option():
        found = asyncio.get_running_loop().create_future()

        async def answer(_, writer):
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listen("127.0.0.1", 0, secured=False) as listening:
            server = await asyncio.start_server(answer, sock=listening)
            _, writer = await asyncio.open_connection(*listening.getsockname())
            option = await found
            writer.close()
            server.close()
            return option

    assert asyncio.run(accepted_option()) != 0


def test_taken_port_and_unknown_host_are_refused():
    with listen("127.0.0.1", 0, secured=False) as first, pytest.raises(ConfigError, match="port must be free"):
        listen("127.0.0.1", first.getsockname()[1], secured=False)
    with pytest.raises(ConfigError, match="address"):
        listen("no.such.host.invalid", 0, secured=True)


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 30, b"two lines\nof a token file\n"])
def test_token_file_without_a_token_is_refused(path, tmp_path, content):
    file = tmp_path / "bad"
    file.write_bytes(content)
    result = seasoned(path, "--token-file", file, "--port", 0)
    assert result.exit_code == 2
    assert "token" in result.stderr
    assert seasoned(path, "--token-file", tmp_path / "none", "--port", 0).exit_code == 2


def test_missing_memory_is_refused_without_create(tmp_path):
    result = seasoned(tmp_path / "none.db", "--port", 0)
    assert result.exit_code == 3
    assert not (tmp_path / "none.db").exists()


ENCODERS = {
    "words": TokenEncoder(),
    "masked": TokenEncoder(masks=ALL_MASKS),
    TokenEncoder(ngram=2).identity: TokenEncoder(ngram=2),
}


@pytest.mark.parametrize("named", ENCODERS)
def test_new_memory_gets_the_named_encoder(tmp_path, monkeypatch, named):
    monkeypatch.setitem(sys.modules, "uvicorn", None)  # so that it ends where it would begin to answer
    path = tmp_path / "made.db"
    seasoned(path, "--create", "--port", 0, "--encoder", named)
    assert Memory.namespaces(path) == {"default": ENCODERS[named].identity}


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--create", "--encoder", "letters"], 2, "words, masked, subwords"),
        (["--encoder", "masked"], 2, "--create"),
        (["--create", "--encoder", "masked"], 4, "never mixed"),
    ],
)
def test_wrong_encoder_is_refused(path, options, code, message):
    result = seasoned(path, "--port", 0, *options)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_missing_library_is_reported_with_its_install_line(path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)  # as if it were not installed
    result = seasoned(path, "--port", 0)
    assert result.exit_code == 2
    assert "pip install 'fastapi>=" in result.stderr


@pytest.mark.parametrize("stop", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_server_stops_on_a_signal_and_keeps_the_stored_episodes(path, token_file, stop):
    command = [sys.executable, "-m", "seasoned", "serve", str(path), "--port", "0", "--token-file", str(token_file)]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        line = server.stdout.readline()
        url = line.split()[0]
        assert server.stdout.readline().split()[0] == f"{url}operations"
        body = json.dumps({"kind": "thumbs", "up": True, "episode_id": "e1", "author": "ann"}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"{url}v1/feedback", data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            assert response.status == 201
        del headers["Authorization"]
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(f"{url}v1/stats", headers=headers), timeout=20)
        assert caught.value.code == 401
        port = int(url.rstrip("/").rpartition(":")[2])
        # A client that says nothing is no reason to stay.
        with socket.create_connection(("127.0.0.1", port), timeout=20):
            server.send_signal(stop)
            assert server.wait(30) == 0
        log = server.stderr.read()
    finally:
        server.kill()
        server.wait()
    assert "stopped" in log
    assert "POST /v1/feedback 201" in log
    assert TOKEN not in log + line
    with Memory.open(path, namespace="shop", create=False) as memory:
        assert [one.author for one in memory.feedback_records()] == ["ann"]
        memory.verify()


def test_server_stops_when_its_lifeline_ends(path):
    mine, its = os.pipe()
    listening = listen("127.0.0.1", 0, secured=False)
    is_ready, interval_s = threading.Event(), sys.getswitchinterval()
    how = {"ready": is_ready.set, "lifeline": mine}
    server = threading.Thread(target=serve, args=(make_app(path), listening), kwargs=how, daemon=True)
    server.start()
    assert is_ready.wait(20)
    os.write(its, b"what is written is ignored")
    server.join(0.05)
    assert server.is_alive()
    os.close(its)
    server.join(20)
    os.close(mine)
    sys.setswitchinterval(interval_s)
    assert not server.is_alive()


@pytest.mark.slow
def test_service_stops_at_the_end_of_standard_input(path):
    command = [sys.executable, "-m", "seasoned", "serve", str(path), "--port", "0", "--stop-with-stdin"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **streams) as server:
        url = server.stdout.readline().split()[0].decode()
        with urllib.request.urlopen(f"{url}healthz", timeout=20) as answer:
            assert json.load(answer) == {"status": "ok"}
        server.stdin.close()
        assert server.wait(20) == 0
        assert b"stopped" in server.stderr.read()
