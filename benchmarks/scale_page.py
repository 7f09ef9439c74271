"""The tables of `docs/explanation/scale.md`, from `results/scale.json`, and a check that the page contains them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

__all__ = ["check_page", "render", "write_page"]

_BENCHMARKS = Path(__file__).parent
RESULT = _BENCHMARKS / "results" / "scale.json"
PAGE = _BENCHMARKS.parent / "docs" / "explanation" / "scale.md"
BEGIN, END = "<!-- figures: written by benchmarks/scale.py; do not edit -->", "<!-- end of figures -->"

_BYTES = ("B", "kB", "MB", "GB", "TB", "PB")


def _bytes(n: float) -> str:
    power = min(len(_BYTES) - 1, int(math.log10(max(n, 1)) // 3))
    return f"{n / 1000**power:.3g} {_BYTES[power]}"


def _power(n: float) -> str:
    return f"10^{len(str(int(n))) - 1}" if str(int(n)).strip("0") == "1" else f"{n:.3g}"


def _usd(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:,.0f}"


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return "0 s"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]


def _figures(rows: list[dict[str, Any]]) -> list[str]:
    stores = list(rows[0]["disk_bytes"])
    names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
    head = [
        "experiences",
        "a namespace",
        "distinct states there",
        *(f"{names[one]}, disk" for one in stores),
        "index, all namespaces",
        "writing, core time",
        "first query there",
        "next queries",
        "disk USD/month",
        "memory USD/month",
        "writing USD, once",
    ]
    cells = []
    for row in rows:
        beyond = "" if row["states_a_namespace"] <= row["measured_at_states"] else "*"
        cells.append(
            [
                _power(row["steps"]),
                f"{row['steps_a_namespace']:,.0f}",
                f"{row['states_a_namespace']:,.0f}",
                *(_bytes(row["disk_bytes"][one]) for one in stores),
                _bytes(row["index_bytes"]),
                _duration(row["write_core_s"]),
                _duration(row["load_s"]) + beyond,
                _duration(row["query_s"]) + beyond,
                *(_usd(row["usd"][name]) for name in ("storage_usd_a_month", "memory_usd_a_month", "write_usd")),
            ]
        )
    return _table(head, cells)


def render(result: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    result = json.loads(json.dumps(result))  # as it is read from the file
    constants, growth = result["constants"], result["growth"]
    at = [name for name in ("sqlite_bytes", "postgresql_bytes") if name in constants]
    lines = [
        f"Measured by `{result['command']}`, {result['machine']}, {result['cpu']}, load "
        f"{result['load_average_1min']:.1f}, revision {result['revision'][:12]}.",
        "",
        f"### With `min(n, {growth['c']:g} n^{growth['h']:g})` distinct states after n steps",
        "",
        *_figures(result["figures"]["as measured"]),
        "",
        "### With every state new",
        "",
        *_figures(result["figures"]["all new"]),
        "",
        f"`*`: more states than were measured in one namespace; the load is prolonged in proportion. Memory is for "
        f"{result['hot_share']:.0%} of the namespaces, disk for the larger of the two stores.",
        "",
        "### Constants",
        "",
        *_table(
            ["one", *(name.removesuffix("_bytes") + ", bytes" for name in at), "writing, core time"],
            [
                [
                    kind,
                    *(f"{constants[name][kind]:.0f}" for name in at),
                    _duration(constants["core_seconds"][kind]) if kind in constants["core_seconds"] else "",
                ]
                for kind in constants[at[0]]
            ],
        ),
        "",
        f"Index in memory: {_bytes(constants['index_bytes']['namespace'])} a namespace and "
        f"{constants['index_bytes']['state']:.0f} bytes a distinct state.",
        "",
        *_table(
            ["states in a namespace", "first query (loads it)", "next queries"],
            [
                [n, _duration(seconds), _duration(constants["reading"]["query_s"][n])]
                for n, seconds in constants["reading"]["load_s"].items()
            ],
        ),
        "",
    ]
    if "postgresql_write_s" in constants:
        lines += [f"Batches into PostgreSQL: {_duration(constants['postgresql_write_s'])} a step.", ""]
    lines += ["### Predicted and measured", ""]
    lines += _table(
        ["steps", "namespaces", "what", "predicted", "measured", "error"],
        [
            [
                _power(row["steps"]),
                str(row["namespaces"]),
                name,
                f"{one['predicted']:.4g}",
                f"{one['measured']:.4g}",
                f"{one['error']:+.1%}",
            ]
            for row in result["simulated"]
            for name, one in row["compared"].items()
        ],
    )
    if result["textworld"]:
        seen = result["textworld"]
        lines += [
            "",
            f"Random play of `{seen['environment']}`: {seen['states']} distinct states in {seen['steps']} "
            f"steps, {seen['c']:.2f} n^{seen['h']:.2f}.",
        ]
    lines += ["", "### Prices: assumptions, not facts", ""]
    lines += _table(
        ["price", "USD", "a", "source", "date"],
        [[name, f"{one['usd']:g}", one["unit"], one["source"], one["date"]] for name, one in result["prices"].items()],
    )
    return "\n".join(lines)


def _with(figures: str) -> str:
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{rest.split(END)[1]}"


def write_page(result: dict[str, Any]) -> None:
    """Put the figures between the page's markers."""
    PAGE.write_text(_with(render(result)))
    print(f"wrote {PAGE}")


def check_page() -> str | None:
    """Return the differences between page and results, if any."""
    if PAGE.read_text() == _with(render(json.loads(RESULT.read_text()))):
        return None
    return f"{PAGE} does not hold the figures of {RESULT}. Run: python benchmarks/scale.py --write"
