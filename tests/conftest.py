"""What every run of the tests shares, and ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warm_python import WarmPython


@pytest.fixture(scope="session")
def warm_python() -> Iterator[list[str]]:
    """What to start in place of `sys.executable`, where a cold start is not the point."""
    warm = WarmPython()
    yield warm.command
    warm.close()


@pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.slow)])
def share(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """How many of a dear property's examples to try: a third, and all of them among the slow tests."""
    return (lambda n_examples: n_examples) if request.param == "all" else (lambda n_examples: n_examples // 3)


@pytest.fixture(scope="module", params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path | str:
    """Where a memory is: in a file, and again on a server, by the `postgres` that the test module imports."""
    if request.param == "server":
        return request.getfixturevalue("postgres").fresh()
    return tmp_path_factory.mktemp("memory") / "agent.db"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was done to the stores, and what became of them."""
    lines = [
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, text in report.user_properties
        if name == "faults"
    ]
    if lines:
        terminalreporter.section("faults")
    for line in lines:
        terminalreporter.line(f"faults: {line}")
