"""Comparison of two experiments: paired differences of runs with the same task, arm and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from seasoned.core.statistics import holm
from seasoned.errors import InputError
from seasoned.lab.analysis.arm_comparison import gain_verdict, paired_scores, sign_flip_p_value
from seasoned.lab.analysis.measures import RunMean, run_mean
from seasoned.lab.analysis.result_text import WIDTH, interval_phrase, mean_text, plural, wrap_lines
from seasoned.lab.results.run_results import ExperimentResults

__all__ = ["ArmChange", "ExperimentComparison", "compare_experiments"]

_ALWAYS_DIFFER = {"sessions", "began_at"}


@dataclass(frozen=True, slots=True)
class ArmChange:
    """The change of an arm at a task from the first experiment to the second.

    Args:
        task, arm: their names.
        difference: second less first, of average scores over the episodes that both played, paired by seed, in points.
        p: of the hypothesis that the two are exchangeable, by flipping signs.
        adjusted: for all rows, by Holm.
        verdict: `better` (the second is), `worse`, `no difference shown`, `too few runs`.
        episodes: the smallest and the largest number of episodes that both runs of a pair played.
        longest: the largest number of episodes of any of these runs.
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
        """The compared episodes, in words."""
        least, most = self.episodes
        n = plural(most, "episode") if least == most else f"{least} to {plural(most, 'episode')}"
        if least == self.longest:
            return f"over {n}"
        return f"over the first {'episode' if most == 1 else n} of {self.longest}"


@dataclass(frozen=True, slots=True)
class ExperimentComparison:
    """The comparison of two experiments.

    Args:
        changes: one per arm and task with paired runs.
        differs: a line for each difference between the suites and their records.
        unpaired: arms at tasks that cannot be paired, with the reason.
    """

    changes: tuple[ArmChange, ...]
    differs: tuple[str, ...]
    unpaired: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON data; every mean has its n."""
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
        """Return the comparison as lines of at most `width` columns; None: no line is wrapped."""
        lines = ["average score, the second less the first, in points, paired by seed:"]
        lines += [
            f"{each.task}, {each.arm}: {mean_text(each.difference, signed=True)} "
            f"{interval_phrase(each.difference, signed=True)}, n\xa0=\xa0{each.difference.n}, {each.over}: "
            f"{each.verdict}"
            if each.difference.interval is not None
            else f"{each.task}, {each.arm}: {mean_text(each.difference, signed=True)} (n\xa0=\xa01, no interval), "
            f"{each.over}"
            for each in self.changes
        ]
        lines += (
            ["differences between the suites and their records:", *self.differs]
            if self.differs
            else ["the suites and their records do not differ"]
        )
        lines += ["not paired:", *self.unpaired] if self.unpaired else []
        return wrap_lines(lines, width)


def compare_experiments(a: ExperimentResults, b: ExperimentResults) -> ExperimentComparison:
    """Return the differences, second experiment less first, of runs with the same task, environments, arm and seed.

    Arms are paired by name; differences between their settings are listed. Two tasks with the same name and different
    environments are not paired.

    Args:
        a, b: the first and the second experiment.

    Raises:
        InputError: no run of one can be paired with a run of the other.
    """
    pairings: list[_Pairing] = []
    unpaired: list[str] = []
    for task, arm in dict.fromkeys((run.key.task, run.key.arm) for each in (a, b) for run in each.runs):
        pairing = _pairing(a, b, task, arm)
        if isinstance(pairing, str):
            unpaired.append(f"{task}, {arm}: {pairing}")
        else:
            pairings.append(pairing)
    if not pairings:
        raise InputError(
            f"{a.folder} and {b.folder}: {'; '.join(unpaired[:3])}",
            "runs are compared if task, environments, arm and seed agree",
            "Run both suites on the same tasks and seeds, to the end.",
        )
    p_values = [sign_flip_p_value(each.difference.values) for each in pairings]
    changes = tuple(
        ArmChange(
            pairing.task,
            pairing.arm,
            pairing.difference,
            p,
            adjusted,
            gain_verdict(pairing.difference, adjusted, len(pairings)),
            (min(pairing.episodes), max(pairing.episodes)),
            pairing.longest,
        )
        for pairing, p, adjusted in zip(pairings, p_values, holm(p_values).tolist(), strict=True)
    )
    return ExperimentComparison(changes, tuple(_differs(a, b)), tuple(unpaired))


class _Pairing(NamedTuple):
    """The paired runs of an arm at a task; `episodes` and `longest` as in `ArmChange`, the former for each pair."""

    task: str
    arm: str
    difference: RunMean
    episodes: list[int]
    longest: int


def _pairing(a: ExperimentResults, b: ExperimentResults, task: str, arm: str) -> _Pairing | str:
    """Pair the runs of an arm at a task, or return the reason why there is no pair."""
    envs = [next((t.env for t in each.suite.tasks if t.name == task), None) for each in (a, b)]
    if envs[0] != envs[1]:
        return "its environments differ, or one suite lacks it"
    first = {run.key.seed: run for run in a.of(task, arm)}
    second = {run.key.seed: run for run in b.of(task, arm)}
    shared = sorted(first.keys() & second.keys())
    scores = [paired_scores(second[seed], first[seed]) for seed in shared]
    difference = run_mean([new - old for new, old in scores])
    if difference is None:
        return "no seed has a finished run in both"
    lengths = [(len(first[seed].episodes), len(second[seed].episodes)) for seed in shared]
    return _Pairing(task, arm, difference, [min(pair) for pair in lengths], max(map(max, lengths)))


def _differs(a: ExperimentResults, b: ExperimentResults) -> Iterator[str]:
    yield from _differences("suite", _by_name(a.suite.to_json()), _by_name(b.suite.to_json()))
    records = [{k: v for k, v in each.record.items() if k not in _ALWAYS_DIFFER} for each in (a, b)]
    yield from _differences("record", *records)


def _by_name(suite: Mapping[str, Any]) -> dict[str, Any]:
    return dict(suite) | {key: {each["name"]: each for each in suite[key]} for key in ("tasks", "arms")}


def _differences(where: str, one: Any, two: Any) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for key in dict.fromkeys((*one, *two)):
            yield from _differences(f"{where}, {key}", one.get(key), two.get(key))
    elif (one is None) != (two is None) and isinstance(one or two, Mapping):
        yield f"{where}: only in the {'second' if one is None else 'first'}"
    elif one != two and not (isinstance(one, list | tuple) and isinstance(two, list | tuple) and [*one] == [*two]):
        yield f"{where}: {_short(one)} / {_short(two)}"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
