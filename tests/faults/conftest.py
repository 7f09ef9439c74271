"""Fixtures of the fault kit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults_disks import Disk, small_disk
from faults_zygote import Zygote


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """A process that forks children for the tests."""
    zygote = Zygote(tmp_path_factory.mktemp("zygote"))
    yield zygote
    zygote.close()


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A separate file system of a few megabytes."""
    with tempfile.TemporaryDirectory(prefix="seasoned-disk-") as folder, small_disk(Path(folder)) as disk:
        yield disk
