"""What the fault kit shares, and the lines that it ends with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults_disks import Disk, small_disk
from faults_zygote import Zygote


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """Starts children."""
    zygote = Zygote(tmp_path_factory.mktemp("zygote"))
    yield zygote
    zygote.close()


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A file system of a few megabytes of its own."""
    with tempfile.TemporaryDirectory(prefix="seasoned-disk-") as folder, small_disk(Path(folder)) as disk:
        yield disk


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Puts a line into the summary at the end of the run."""
    return lambda line: request.node.user_properties.append(("faults", line))
