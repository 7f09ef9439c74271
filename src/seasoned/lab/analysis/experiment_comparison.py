"""Two experiments compared: what differs between them, and by how much, paired where task, arm and seed agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from seasoned.core.statistics import holm
from seasoned.errors import InputError
from seasoned.lab.analysis.arm_comparison import gain_verdict, paired_scores, sign_flip_p_value
from seasoned.lab.analysis.measures import RunMean, run_mean
from seasoned.lab.analysis.phrases import WIDTH, interval_text, mean_text, plural, wrap_lines
from seasoned.lab.results.run_results import ExperimentResults

__all__ = ["ArmChange", "ExperimentComparison", "compare_experiments"]

_ALWAYS_DIFFER = {"sessions", "began_at"}


@dataclass(frozen=True, slots=True)
class ArmChange:
    """An arm at a task in the second experiment less the same in the first.

    Args:
        task, arm: which.
        difference: of average scores over the episodes that both played, paired by seed, in points.
        p, adjusted: by flipping signs, and adjusted for all rows by Holm.
        verdict: `better` (the second is), `worse`, `no difference shown`, `too few runs`.
        episodes: how many of each pair were compared, the least and the most: those that both runs played.
        longest: the most that any of these runs played.
    """

    task: str
    arm: str
    difference: RunMean
    p: float
    adjusted: float
    verdict: str
    episodes: tuple[int, int]
    longest: int

    @property
    def over(self) -> str:
        """What was compared, in words."""
        least, most = self.episodes
        n = plural(most, "episode") if least == most else f"{least} to {plural(most, 'episode')}"
        if least == self.longest:
            return f"over {n}"
        return f"over the first {'episode' if most == 1 else n} of {self.longest}"


@dataclass(frozen=True, slots=True)
class ExperimentComparison:
    """Two experiments.

    Args:
        changes: the second less the first, where runs can be paired.
        differs: what differs between the suites and their records, a line each.
        unpaired: arms at tasks that cannot be paired, with the reason.
    """

    changes: tuple[ArmChange, ...]
    differs: tuple[str, ...]
    unpaired: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data; every mean has its n."""
        rows = [
            {
                "task": each.task,
                "arm": each.arm,
                "difference": each.difference.to_json(),
                "p": each.p,
                "adjusted": each.adjusted,
                "verdict": each.verdict,
                "episodes": list(each.episodes),
                "longest": each.longest,
            }
            for each in self.changes
        ]
        return {"changes": rows, "differs": list(self.differs), "unpaired": list(self.unpaired)}

    def __str__(self) -> str:
        return self.text(WIDTH)

    def text(self, width: int | None = None) -> str:
        """Return it in lines, at most `width` columns wide; None: no line is wrapped."""
        lines = ["average score, the second less the first, in points, paired by seed:"]
        lines += [
            f"{each.task}, {each.arm}: {mean_text(each.difference, signed=True)} "
            f"{interval_text(each.difference, signed=True)}, n\xa0=\xa0{each.difference.n}, {each.over}: {each.verdict}"
            if each.difference.interval is not None
            else f"{each.task}, {each.arm}: {mean_text(each.difference, signed=True)} (n\xa0=\xa01, no interval), "
            f"{each.over}"
            for each in self.changes
        ]
        lines += ["what differs:", *self.differs] if self.differs else ["the suites and their records do not differ"]
        lines += ["not paired:", *self.unpaired] if self.unpaired else []
        return wrap_lines(lines, width)


def compare_experiments(a: ExperimentResults, b: ExperimentResults) -> ExperimentComparison:
    """Return the second experiment less the first, run by run where task, environments, arm and seed agree.

    Arms are paired by name: what an arm of that name is may differ, and is then listed. A task whose environments
    differ is another task, whatever its name.

    Args:
        a, b: the first and the second experiment.

    Raises:
        InputError: no run of one can be paired with a run of the other.
    """
    raw: list[tuple[str, str, RunMean, list[int], int]] = []
    unpaired: list[str] = []
    for task, arm in dict.fromkeys((run.key.task, run.key.arm) for each in (a, b) for run in each.runs):
        differences, compared, longest, why = _differences(a, b, task, arm)
        found = run_mean(differences)
        if found is None:
            unpaired.append(f"{task}, {arm}: {why}")
        else:
            raw.append((task, arm, found, compared, longest))
    if not raw:
        raise InputError(
            f"{a.folder} and {b.folder}: {'; '.join(unpaired[:3])}",
            "runs are compared where task, environments, arm and seed agree",
            "Run both suites on the same tasks and seeds, to the end.",
        )
    p = [sign_flip_p_value(found.values) for _, _, found, _, _ in raw]
    changes = tuple(
        ArmChange(task, arm, found, each, adjusted, gain_verdict(found, adjusted, len(raw)), (min(n), max(n)), longest)
        for (task, arm, found, n, longest), each, adjusted in zip(raw, p, holm(p).tolist(), strict=True)
    )
    return ExperimentComparison(changes, tuple(_differs(a, b)), tuple(unpaired))


def _differences(
    a: ExperimentResults, b: ExperimentResults, task: str, arm: str
) -> tuple[list[float], list[int], int, str]:
    """Return by seed the difference and over how many episodes; the most of any run; and why there is none."""
    envs = [next((t.env for t in each.suite.tasks if t.name == task), None) for each in (a, b)]
    if envs[0] != envs[1]:
        return [], [], 0, "its environments differ, or one suite lacks it"
    first = {run.key.seed: run for run in a.of(task, arm)}
    second = {run.key.seed: run for run in b.of(task, arm)}
    shared = sorted(first.keys() & second.keys())
    pairs = [paired_scores(second[seed], first[seed]) for seed in shared]
    played = [(len(first[seed].episodes), len(second[seed].episodes)) for seed in shared]
    compared, longest = [min(pair) for pair in played], max(map(max, played), default=0)
    return [ours - theirs for ours, theirs in pairs], compared, longest, "no seed has a finished run in both"


def _differs(a: ExperimentResults, b: ExperimentResults) -> Iterator[str]:
    yield from _unlike("suite", _by_name(a.suite.to_json()), _by_name(b.suite.to_json()))
    records = [{k: v for k, v in each.record.items() if k not in _ALWAYS_DIFFER} for each in (a, b)]
    yield from _unlike("record", *records)


def _by_name(suite: Mapping[str, Any]) -> dict[str, Any]:
    return dict(suite) | {key: {each["name"]: each for each in suite[key]} for key in ("tasks", "arms")}


def _unlike(where: str, one: Any, two: Any) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for key in dict.fromkeys((*one, *two)):
            yield from _unlike(f"{where}, {key}", one.get(key), two.get(key))
    elif (one is None) != (two is None) and isinstance(one or two, Mapping):
        yield f"{where}: only in the {'second' if one is None else 'first'}"
    elif one != two and not (isinstance(one, list | tuple) and isinstance(two, list | tuple) and [*one] == [*two]):
        yield f"{where}: {_short(one)} / {_short(two)}"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
