"""Robustness of a preset: what outliers, other units, duplicates, chance and change do to its decisions.

Run: python benchmarks/robustness.py [--quick] [--presets default means] [--cases drift intervals] [--processes 1]

Every case is played through `JitRL.decide` and `Memory.add`, and measured for each preset. A case has an aim where the
project has set one; the table marks the measures that miss it. The settings of a preset were not chosen on these cases.
Writes `benchmarks/results/robustness.json`.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from robustness_learning import LEARNING
from robustness_poison import POISON
from workload import write_result

from seasoned.policies import PRESETS

CASES = {case.name: case for case in (*POISON, *LEARNING)}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="Fewer runs and rounds.")
    parser.add_argument("--presets", nargs="+", default=["default", "means"], choices=sorted(PRESETS))
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--processes", type=int, default=1, help="Cases measured at a time.")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.processes) as pool:
        jobs = {
            (name, preset): pool.submit(CASES[name].measure, preset, options.quick)
            for name in options.cases
            for preset in options.presets
        }
        found = {job: done.result() for job, done in jobs.items()}
    rows: list[dict[str, Any]] = []
    print(f"{'case':<14}{'measure':<58}" + "".join(f"{preset:>18}" for preset in options.presets) + "   aim")
    for name in options.cases:
        case = CASES[name]
        for measure in found[name, options.presets[0]]:
            values = {preset: found[name, preset][measure] for preset in options.presets}
            missed = [preset for preset, value in values.items() if case.misses(measure, value)]
            shown = "".join(f"{values[p]:>17.4g}{'!' if p in missed else ' '}" for p in options.presets)
            print(f"{name:<14}{measure:<58}{shown}   {case.aim_of(measure)}")
            rows.append(
                {"case": name, "measure": measure, "values": values, "aim": case.aim_of(measure), "missed_by": missed}
            )
    print("! misses the aim")
    write_result(
        "robustness",
        {"command": " ".join(["python benchmarks/robustness.py", *sys.argv[1:]]), "quick": options.quick, "rows": rows},
    )


if __name__ == "__main__":
    main()
