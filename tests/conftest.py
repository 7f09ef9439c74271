"""What every run of the tests ends with."""

from __future__ import annotations

import pytest


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
