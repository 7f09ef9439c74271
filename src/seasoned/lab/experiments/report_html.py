"""A report as one HTML page: no script, nothing fetched, every text from outside escaped."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from pathlib import Path

from seasoned.lab.experiments.findings import Findings, TaskFindings, role
from seasoned.lab.experiments.report_sections import flips, provenance, splits, troubles, wins_table
from seasoned.lab.experiments.report_style import STYLE
from seasoned.lab.experiments.report_tables import cell, glyph, table
from seasoned.lab.experiments.wording import MARKS, badge, sentence

__all__ = ["render"]

_INTERVAL = 'class="interval"'
_CURVES_NOTE = (
    "Each episode is scored before it is learned from. A band is the 95 % interval of the mean over runs, point by "
    "point: of many points some miss."
)


def render(found: Findings, pictures: Mapping[str, Path], no_pictures: str | None = None) -> str:
    """Return the page.

    Args:
        found: what it says.
        pictures: PNG files by name, put into the page.
        no_pictures: why there is none, if there is none.
    """
    body = "".join(
        [
            _answer(found),
            _curves(found, pictures, no_pictures),
            '<h2 id="tasks">Every arm at every task</h2>',
            *(_task(found, task) for task in found.tasks),
            wins_table(found),
            flips(found),
            splits(found),
            troubles(found),
            provenance(found),
        ]
    )
    note = _intervals_note(found, body.count(_INTERVAL))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(found.suite.name)}: lab report</title><style>{STYLE}</style></head><body>\n"
        f"{_head(found)}{body.replace('<!-- intervals -->', note)}</body></html>\n"
    )


def _head(found: Findings) -> str:
    suite = found.suite
    counts = {"arm": len(suite.arms), "task": len(suite.tasks), "seed": len(suite.seeds)}
    size = ", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items()) + f"; model {suite.model}"
    state = f"{found.done} of {found.runs} runs finished"
    warning = ""
    if found.done < found.runs:
        warning = (
            f'<p class="warning"><strong>{state}.</strong> Means are over finished runs only: '
            '<a href="#troubles">what is missing</a>.</p>'
        )
    links = {"answer": "The answer", "curves": "Curves", "tasks": "Tasks", "wins": "Wins", "flips": "Flips",
             "splits": "Splits", "troubles": "What failed", "provenance": "Provenance"}  # fmt: skip
    nav = "".join(f'<a href="#{key}">{name}</a>' for key, name in links.items())
    return (
        f'<header><h1>{escape(suite.name)}</h1><p class="about">{escape(suite.about)}</p>'
        f"<p>{escape(size)}; {state}.</p>{warning}<nav>{nav}</nav></header>\n"
    )


def _answer(found: Findings) -> str:
    gains = [claim.gain for claim in found.claims if claim.gain is not None]
    ends = [0.0, *(g.mean for g in gains)]
    ends += [end for g in gains if g.interval is not None for end in (g.interval.low, g.interval.high)]
    shared = len({claim.unit for claim in found.claims if claim.gain is not None}) == 1
    items = []
    for claim in sorted(found.claims, key=lambda claim: _order(found, claim.arm)):
        part = role(found.suite.arm(claim.arm), found.suite)
        kind, words = badge(claim, part)
        picture = "" if claim.gain is None or not shared else glyph(claim.gain, min(ends), max(ends), kind)
        counts = f" {_INTERVAL}" if claim.gain is not None and claim.gain.interval is not None else ""
        items.append(
            f'<li class="{part}"><span><span class="verdict {kind}">{words}</span></span>'
            f"<p{counts}>{escape(sentence(claim, found.suite.reference, part))}</p><div>{picture}</div></li>"
        )
    return f'<h2 id="answer">The answer</h2><ul class="answer">{"".join(items)}</ul><!-- intervals -->\n'


def _order(found: Findings, arm: str) -> int:
    """Ours first, the placebo next, the rest as the suite has them."""
    return {"ours": 0, "placebo": 1}.get(role(found.suite.arm(arm), found.suite), 2)


def _intervals_note(found: Findings, n: int) -> str:
    compared = sum(claim.p is not None for claim in found.claims)
    return (
        f'<p class="note">Gain: the average score less that of {escape(found.suite.reference)} on the same '
        "episodes, paired by seed; the dashed line is no gain. A verdict holds at 5&nbsp;% by an exact sign-flip test, "
        f"after Holm's adjustment for {compared} arms compared; at a single task, for the arm's tasks. Intervals are "
        "95&nbsp;% (Student's t below 10 runs, bootstrap from 10 on) and <em>not</em> adjusted: this page shows "
        f"{n}, so about {max(1, round(n / 20))} may miss.</p>"
    )


def _curves(found: Findings, pictures: Mapping[str, Path], no_pictures: str | None) -> str:
    parts = ['<h2 id="curves">Learning curves</h2>', f'<p class="note">{_CURVES_NOTE}</p>']
    if no_pictures is not None:
        parts.append(f'<p class="warning">No pictures: {escape(no_pictures)}</p>')
    elif not any(name.startswith("curves ") for name in pictures):
        parts.append("<p>No run has finished.</p>")
    for task in found.tasks:
        for kind, what in (("curves", "Mean score by episode"), ("arms", "Each arm by itself")):
            path = pictures.get(f"{kind} {task.task}")
            if path is not None:
                data = base64.b64encode(path.read_bytes()).decode("ascii")
                text = escape(f"{what}, {task.task}")
                parts.append(f'<figure><img src="data:image/png;base64,{data}" alt="{text}"></figure>')
    return "".join(parts)


_QUALITY = {"average": "average score", "final": "final score", "area": "area, share of maximum"}
_COST = {
    "tokens": "tokens a run",
    "usd": "dollars a run",
    "decision_ms": "memory, ms a step",
    "steps": "steps an episode",
    "flipped": "steps flipped",
}


def _task(found: Findings, task: TaskFindings) -> str:
    best = "unknown" if task.max_score is None else f"{task.max_score:g}"
    powers = [name for row in task.rows[:1] for name in row.measures if name.startswith("pass^")]
    quality, cost = [], []
    for row in task.rows:
        part = role(found.suite.arm(row.arm), found.suite)
        n = f"{row.n}" if row.n == row.planned else f"{row.n} of {row.planned}"
        head = [f"<th>{escape(row.arm)}</th>", f"<td>{n}</td>"]
        if not row.n:
            width = len(_QUALITY) + len(powers) + 1
            quality.append((part, [*head, f'<td class="unknown left" colspan="{width}">no finished run</td>']))
            cost.append((part, [*head, *["<td></td>"] * len(_COST), f"<td>{row.failed}</td>"]))
            continue
        gain = row.claim.gain if row.claim is not None else None
        verdict = "" if row.claim is None else f"{MARKS[row.claim.verdict]} {row.claim.verdict}"
        gained = "<td></td>" if row.claim is None else cell(gain, row.n, signed=True, note=verdict)
        shown = [cell(row.measures[name], row.n) for name in (*_QUALITY, *powers)]
        quality.append((part, [*head, *shown[: len(_QUALITY)], gained, *shown[len(_QUALITY) :]]))
        cost.append((part, [*head, *(cell(row.measures[name], row.n) for name in _COST), f"<td>{row.failed}</td>"]))
    passes = ["pass@1" if name == "pass^1" else name for name in powers]
    return (
        f'<h3>{escape(task.task)}</h3><p class="note">{task.episodes} episodes; best possible score: {best}; '
        f"{escape(', '.join(task.env))}</p>"
        + table(["arm", "runs", *_QUALITY.values(), f"gain over {found.suite.reference}", *passes], quality)
        + table(["arm", "runs", *_COST.values(), "runs failed"], cost)
    )
