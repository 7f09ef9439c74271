"""The report of an experiment: an HTML page, PNG pictures, a JSON file of all numbers, and a summary."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from seasoned.errors import InputError, MissingExtraError
from seasoned.lab.analysis.findings import AuditedArms, Findings, analyze, arm_role
from seasoned.lab.analysis.result_text import (
    WIDTH,
    changed_code_sentence,
    claim_sentence,
    plural,
    worst_case_sentence,
    wrap_lines,
)
from seasoned.lab.report.html_page import render_page
from seasoned.lab.report.plots import draw_pictures
from seasoned.lab.results.run_results import ExperimentResults
from seasoned.lab.runner.sessions import early_end_sentence

__all__ = ["Report", "write_report"]

_REPORT_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Report:
    """The files of a report, and its content.

    Args:
        html, data: the page and the JSON file.
        pictures: PNG files by name; empty if the extra `plot` is missing, which the summary then states.
        summary: the text for a terminal.
        findings: the numbers.
    """

    html: Path
    data: Path
    pictures: Mapping[str, Path]
    summary: str
    findings: Findings


def write_report(
    results: ExperimentResults,
    out: Path,
    *,
    audited: AuditedArms = "ours",
    progress: Callable[[str], None] = lambda line: None,
    width: int | None = WIDTH,
) -> Report:
    """Write `report.html`, `report.json` and the pictures into the folder `out`.

    The page is one file: the pictures are embedded, nothing is fetched, no script runs.

    Args:
        results: of an experiment; finished runs are reported, the others are listed.
        out: created if it does not exist; an earlier report there is replaced.
        audited: the arms of the kind `jitrl` whose memories are replayed for the flip audit by number of neighbours:
            `none`, `ours` or `all`; the first replay takes some milliseconds per stored step.
        progress: called with a line about each run that is replayed after the first 10 seconds.
        width: columns of the summary; None: no line is wrapped.

    Raises:
        InputError: `out` cannot be written, or `audited` is not one of its values.

    Example:
        >>> from seasoned.lab.results.run_results import load_results
        >>> write_report(load_results(Path("lab/quick")), Path("lab/quick")).summary  # doctest: +SKIP
    """
    findings = analyze(results, audited, progress)
    pictures: dict[str, Path] = {}
    no_pictures = None
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            pictures = draw_pictures(findings, out)
        except MissingExtraError as error:
            no_pictures = error.next_step
        html, data = out / "report.html", out / "report.json"
        content = {"format": _REPORT_FORMAT, "interval": "95 %, not adjusted for being many", **findings.to_json()}
        data.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        # The text of an error can hold lone surrogates, from a file name that is not UTF-8.
        html.write_text(render_page(findings, pictures, no_pictures), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"{out}: {error}", "a report is written into a folder", "Choose another folder.") from error
    return Report(html, data, pictures, _summary(findings, no_pictures, width), findings)


def _summary(findings: Findings, no_pictures: str | None, width: int | None) -> str:
    lines = [f"{findings.suite.name}: {findings.done} of {plural(findings.runs, 'run')} finished"]
    for claim in findings.claims:
        lines.append(
            claim_sentence(claim, findings.suite.reference, arm_role(findings.suite.arm(claim.arm), findings.suite))
        )
        lines += [f"  {each}" for each in findings.caveats_of(claim.arm).remarks]
        lines += [f"  {worst_case_sentence(each)}" for each in findings.worst if each.arm == claim.arm]
    if findings.unread:
        lines.append(f"{plural(len(findings.unread), 'file')} could not be read; the first: {findings.unread[0]}")
    if findings.changed_code:
        lines.append(changed_code_sentence(findings.changed_code))
    if (stopped := early_end_sentence(findings.stopped)) is not None:
        lines.append(stopped)
    if crashed := [each for each in findings.troubles if each.error is not None]:
        first = crashed[0]
        run = f"{first.task}, {first.arm}, seed {first.seed}"
        lines.append(f"{len(crashed)} of {plural(findings.runs, 'run')} broke off; the first: {run}: {first.error}")
    if no_pictures is not None:
        lines.append(f"No pictures: {no_pictures}")
    indents = ["  " if line.startswith("  ") else "" for line in lines]
    whole = (indent + _plain(line).replace("n = ", "n\xa0=\xa0") for indent, line in zip(indents, lines, strict=True))
    return wrap_lines(whole, width)


def _plain(text: str) -> str:
    """Return the text as one line, without control characters of a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
