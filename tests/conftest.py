"""What every run of the tests shares, and ends with."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from warm_python import WarmPython

# No test asserts a time: a machine that runs other work beside the tests is no failure. `make test` tries the same
# examples in every run, so that it fails for what changed; `make properties` tries others each time, and more of them.
QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("seasoned", QUICK, max_examples=40, derandomize=True)
settings.register_profile("properties", QUICK, max_examples=400, print_blob=True)
settings.load_profile("seasoned")

LONGEST_FIRST = (
    "test_examples.py",
    "test_docs.py",
    "test_typescript_client.py",
    "lab/test_doctor.py",
    "memory/pending/test_inbox.py",
    "cli/test_cli_run.py",
    "memory/retrieval/test_choice_evidence.py",
    "memory/stores/test_postgres_migrations.py",
    "llms/test_llm_conformance.py",
    "lab/test_runner.py",
    "agents/runs/test_play_run.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no worker plays one at the end while the others wait."""
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Leave the modules and items of the run, which live until its end, out of every garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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


@pytest.fixture
def report_line(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function that adds a line to the summary of the run, and counts, such as `kills=20`, to its last line."""

    def add(line: str, **counts: int) -> None:
        request.node.user_properties.append(("attack", (line, counts)))

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was done to the stores and the service, what became of them, and the sums."""
    attacks = [
        attack
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, attack in report.user_properties
        if name == "attack"
    ]
    if not attacks:
        return
    terminalreporter.section("attacks")
    sums = Counter(dict.fromkeys(("rounds", "kills", "lost", "changed"), 0))
    for line, counts in attacks:
        terminalreporter.line(f"attacks: {line}")
        sums.update(counts)
    terminalreporter.line(f"attacks: in all {', '.join(f'{n:,} {what}' for what, n in sums.items())}")
