"""The later sections of a report's page: wins, flips, splits, what failed, provenance."""

from __future__ import annotations

import json
import time
from html import escape
from typing import Any

from seasoned.lab.experiments.comparing import Win
from seasoned.lab.experiments.findings import Findings, role
from seasoned.lab.experiments.flips import FlipGroup
from seasoned.lab.experiments.report_tables import cell, table
from seasoned.lab.experiments.wording import bounds, mean_text

__all__ = ["flips", "provenance", "splits", "troubles", "wins_table"]

_MOST_TROUBLES = 100
_SHOWN_ELSEWHERE = {"sessions", "versions", "python", "machine", "revision", "began_at", "command"}


def wins_table(found: Findings) -> str:
    """Return the table of every arm against every other."""
    names = [arm.name for arm in found.suite.arms]
    by_pair = {(win.arm, win.other): win for win in found.wins}
    rows = []
    for arm in names:
        cells = [_win(by_pair.get((arm, other))) for other in names]
        rows.append((role(found.suite.arm(arm), found.suite), [f"<th>{escape(arm)}</th>", *cells]))
    return (
        '<h2 id="wins">Wins</h2>'
        "<p class=\"note\">The row's arm against the column's: paired runs won-tied-lost by average score, "
        "tasks likewise by the mean, and the mean difference over seeds with its interval (not adjusted). A bar "
        "at the left: the interval leaves zero out.</p>" + table(["", *names], rows)
    )


def _win(win: Win | None) -> str:
    if win is None:
        return "<td></td>"
    if not win.won + win.tied + win.lost:
        return '<td class="unknown">no pair</td>'
    counts = f"{win.won}-{win.tied}-{win.lost}<small>tasks {win.tasks_won}-{win.tasks_tied}-{win.tasks_lost}</small>"
    side, difference = "", "<small>no common scale</small>"
    if (d := win.difference) is not None:
        kind = "" if d.interval is None else ' class="interval"'
        n = "" if d.interval is None else f", n = {d.n}"
        text = f"{mean_text(d, signed=True)} {bounds(d, signed=True)}{n}"
        difference = f"<small{kind}>{text}</small><small>{win.unit}</small>"
        if d.interval is not None:
            side = ' class="up"' if d.interval.low > 0.0 else ' class="down"' if d.interval.high < 0.0 else ""
    return f"<td{side}>{counts}{difference}</td>"


def flips(found: Findings) -> str:
    """Return how often memory changed the action, and how that turned out."""
    parts = [
        '<h2 id="flips">What memory changed</h2>'
        '<p class="note">A decision is flipped if its likeliest action is another one '
        "with memory than without. Every stored step is decided again on what was known before its episode. "
        "<em>Helped</em>: mean return after a flip where memory's action was taken, less that where the model's was, "
        "over the runs that have both; the two differ in states and times too, so it is a look, not a proof.</p>"
    ]
    if not found.flips:
        parts.append("<p>No arm's memory was replayed; the share of steps flipped in play is in the tables above.</p>")
        return "".join(parts)
    columns = ["decisions", "flips", "share flipped", "took memory's", "took the model's", "helped"]
    totals = [
        (
            role(found.suite.arm(each.arm), found.suite),
            [f"<th>{escape(each.arm)}</th>", f'<td class="left">{escape(each.task)}</td>', *_flip_row(each.total)],
        )
        for each in found.flips
    ]
    parts.append(table(["arm", "task", *columns], totals))
    for each in found.flips:
        left_out = "".join(f" Left out: {escape(why)}." for why in each.left_out)
        rows = [("", [f"<th>{_range(group)}</th>", *_flip_row(group)]) for group in each.groups]
        unfolded = " open" if role(found.suite.arm(each.arm), found.suite) == "ours" else ""
        parts.append(
            f"<details{unfolded}><summary>{escape(each.arm)} at {escape(each.task)}, by number of neighbours</summary>"
            f'<p class="note">{each.runs} runs; {each.ties} ties of the model broken, which are no flips.{left_out}</p>'
            + table(["neighbours", *columns], rows)
            + "</details>"
        )
    return "".join(parts)


def _range(group: FlipGroup) -> str:
    if group.most is None:
        return f"{group.least}+"
    return str(group.least) if group.least == group.most else f"{group.least} to {group.most}"


def _flip_row(group: FlipGroup) -> list[str]:
    counts = [f"<td>{n:,}</td>" for n in (group.decisions, group.flips)]
    took = [f"<td>{n:,}</td>" for n in (group.took_memory, group.took_base)]
    helped = cell(group.helped, None, signed=True) if group.helped is not None else '<td class="unknown">no pair</td>'
    return [*counts, cell(group.share, None), *took, helped]


def splits(found: Findings) -> str:
    """Return each split apart: the end of learning, new slots, held-out tasks."""
    parts = ['<h2 id="splits">Does it carry over?</h2>']
    names = list(dict.fromkeys(row.split for row in found.splits))
    if not names:
        return parts[0] + "<p>The suite asks for no transfer episodes.</p>\n"
    parts.append(
        '<p class="note"><em>Same task</em>: the last quarter of the learning episodes. '
        "The others are played in the end, with "
        "nothing learned from them. Scores in points; differences paired by seed.</p>"
    )
    for split in names:
        rows = []
        for row in (row for row in found.splits if row.split == split):
            reference = row.arm == found.suite.reference
            gain = "<td></td>" if reference else cell(row.gain, row.score.n, signed=True)
            if row.gain is None and not reference:
                gain = '<td class="unknown">no pair</td>'
            rows.append(
                (
                    role(found.suite.arm(row.arm), found.suite),
                    [
                        f"<th>{escape(row.arm)}</th>",
                        f'<td class="left">{escape(row.task)}</td>',
                        f"<td>{row.score.n}</td>",
                        f"<td>{row.episodes}</td>",
                        cell(row.score, row.score.n),
                        gain,
                    ],
                )
            )
        columns = ["arm", "task", "runs", "episodes", "score", f"difference to {found.suite.reference}"]
        parts.append(f"<h3>{escape(split)}</h3>" + table(columns, rows))
    return "".join(parts)


def troubles(found: Findings) -> str:
    """Return what failed, and what did not end."""
    parts = ['<h2 id="troubles">What failed</h2>']
    if found.stopped:
        parts.append(f'<p class="warning">The budget stopped the experiment: {escape(str(found.stopped))}.</p>')
    if not found.troubles:
        return parts[0] + "".join(parts[1:]) + "<p>Nothing: every run finished.</p>\n"
    crashed = [each for each in found.troubles if each.error is not None]
    parts.append(
        f"<p>{len(crashed)} runs broke off with an error; {len(found.troubles) - len(crashed)} did not end.</p>"
    )
    rows = [
        (
            "",
            [
                f"<th>{escape(each.arm)}</th>",
                f'<td class="left">{escape(each.task)}</td><td>{each.seed}</td>',
                f"<td>{each.episodes} of {each.wanted}</td>",
                f'<td class="left error">{escape(each.error) if each.error is not None else "did not end"}</td>',
            ],
        )
        for each in [*crashed, *(each for each in found.troubles if each.error is None)][:_MOST_TROUBLES]
    ]
    parts.append(table(["arm", "task", "seed", "episodes", "why"], rows))
    if len(found.troubles) > _MOST_TROUBLES:
        parts.append(f"<p>And {len(found.troubles) - _MOST_TROUBLES} more: they are in report.json.</p>")
    return "".join(parts)


def provenance(found: Findings) -> str:
    """Return where the numbers come from."""
    record = found.record
    versions = record.get("versions") or {}
    facts: dict[str, Any] = {
        "command": record.get("command"),
        "folder's suite": found.suite.name,
        "revision": record.get("revision") or "not run from a working copy",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "python": record.get("python"),
        "machine": record.get("machine"),
        "began": _when(record.get("began_at")),
        "seeds": ", ".join(map(str, found.suite.seeds)),
    }
    facts |= {key: value for key, value in record.items() if key not in _SHOWN_ELSEWHERE}
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items() if v is not None)
    parts = [f'<h2 id="provenance">Provenance</h2><dl>{listed}</dl>']
    rows = [
        (
            "",
            [
                f"<td>{escape(str(_when(s.get('at'))))}</td><td>{escape(str(s.get('workers', '')))}</td>",
                f"<td>{escape(format(float(s.get('seconds', 0.0)), ',.0f'))}</td>",
                f"<td>{escape(str(s.get('stopped') or 'nothing'))}</td>",
                f"<td>{escape(str(s.get('revision') or '')[:12])}</td>",
            ],
        )
        for s in record.get("sessions") or []
    ]
    if rows:
        parts.append(table(["began", "workers", "seconds", "stopped by", "revision"], rows))
    suite = escape(json.dumps(found.suite.to_json(), indent=2))
    parts.append(f"<details><summary>The suite</summary><pre>{suite}</pre></details>")
    return "".join(parts)


def _when(at: object) -> str | None:
    known = isinstance(at, int | float) and not isinstance(at, bool)
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(float(at))) if known else None  # type: ignore[arg-type]
