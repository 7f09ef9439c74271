"""Torn, truncated and overwritten files: a `SeasonedError` or exactly the committed content."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest
from faults_content import episode
from faults_damage import DAMAGES, make_image
from faults_rounds import attack_rounds

from seasoned import Memory
from seasoned.errors import SeasonedError


@pytest.fixture(scope="module")
def image():
    in_ram = Path("/dev/shm")  # hundreds of files are written and thrown away
    with tempfile.TemporaryDirectory(prefix="seasoned-image-", dir=in_ram if in_ram.is_dir() else None) as folder:
        make_image(Path(folder))
        yield Path(folder)


@pytest.fixture(scope="module")
def damaged(zygote, image):
    """A function that inspects the stores of one kind of damage, once, and returns the outcomes."""

    @functools.cache
    def look(kind, seed, n, timeout_s):
        log = image / f"log-{kind}-{seed}"
        try:
            return zygote.start("faults_damage:inspect", str(image), kind, seed, n, str(log)).answer(timeout_s)
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"a crash or a hang at {log.read_text().splitlines()[-1]}") from error

    return look


def line(kind, result):
    counts = result["counts"]
    return (
        f"{kind}: {counts['inspected']} damaged stores, {counts['detected']} refused, {counts['earlier']} at an "
        f"earlier commit, {counts['unharmed']} unharmed, {len(result['wrong'])} wrong ones that verify calls clean"
    )


FEW = pytest.param((1, 8, 120), id="few")
MANY = pytest.param((2, attack_rounds("damages"), 3600), id="many", marks=pytest.mark.slow)


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("amount", [FEW, MANY])
def test_damage_is_detected_or_harmless(damaged, report_line, kind, amount):
    result = damaged(kind, *amount)
    report_line(line(kind, result), rounds=result["counts"]["inspected"], changed=len(result["wrong"]))
    assert not result["wrong"], "\n".join(result["wrong"])
    assert result["counts"]["detected"] if kind != "log" else result["counts"]["earlier"]


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("amount", [FEW, MANY])
def test_reading_a_damaged_store_raises_only_seasoned_errors(damaged, kind, amount):
    stray = damaged(kind, *amount)["stray"]
    assert not stray, "\n".join(stray)


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({}, False),
        ({"create": False}, False),
        ({"read_only": True}, False),
        ({}, True),
        ({"create": False}, True),
        ({"read_only": True}, True),
    ],
    ids=str,
)
def test_empty_or_missing_file_with_a_log_is_refused(tmp_path, options, missing):
    """The log still holds the committed content: it must not be deleted, and the store must not appear empty."""
    with Memory.open(tmp_path / "source.db") as memory:
        memory.add(episode("committed"))
        log = (tmp_path / "source.db-wal").read_bytes()
    path = tmp_path / "agent.db"
    (tmp_path / "agent.db-wal").write_bytes(log)
    if not missing:
        path.touch()
    with pytest.raises(SeasonedError), Memory.open(path, **options):
        pass
    assert (tmp_path / "agent.db-wal").read_bytes() == log
