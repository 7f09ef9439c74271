"""Numbers and verdicts as text, for the page, the terminal and the pictures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

from seasoned.lab.analysis.arm_comparison import Claim
from seasoned.lab.analysis.measures import RunMean
from seasoned.lab.analysis.missing_runs import WorstCase

__all__ = [
    "MARKS",
    "WIDTH",
    "changed_code_sentence",
    "claim_sentence",
    "interval_phrase",
    "mean_text",
    "number_text",
    "plural",
    "verdict_badge",
    "worst_case_sentence",
    "wrap_lines",
]

WIDTH = 80
"""The default number of columns of a terminal."""

MARKS = {"better": "▲", "worse": "▼", "no difference shown": "=", "too few runs": "?", "no pair": "–"}
"""A sign for each verdict, for readers without colour."""


def verdict_badge(claim: Claim, role: str) -> tuple[str, str]:
    """Return a claim's verdict as a kind (`better`, `worse`, `alarm`, `no`, `too`), and as a few words with a sign."""
    if role == "placebo" and claim.verdict == "better":
        return "alarm", "! something is wrong"
    words = "no gain" if role == "placebo" and claim.verdict == "no difference shown" else claim.verdict
    return claim.verdict.split()[0], f"{MARKS[claim.verdict]} {words}"


def number_text(value: float, scale: float | None = None, *, signed: bool = False) -> str:
    """Return a number with about three significant figures at the size `scale`, its own size if None.

    Example:
        >>> number_text(0.25), number_text(12345.6), number_text(1.5, 20.0, signed=True)
        ('0.250', '12,346', '+1.5')
    """
    size = abs(value if scale is None else scale)
    decimals = 3 if size < 2.0 else max(0, 2 - int(math.log10(size)))
    text = f"{value:{'+' if signed else ''},.{decimals}f}"
    return text if float(text.replace(",", "")) else f"{0.0:.{decimals}f}"  # no -0.000


def wrap_lines(lines: Iterable[str], width: int | None, indent: str = "  ") -> str:
    r"""Return lines wrapped at `width` columns with indented continuations; None: not wrapped.

    Words joined by a no-break space stay on one line; it is printed as a blank.

    Example:
        >>> wrap_lines(["a bee,", "n\xa0=\xa03: a cat"], 8)
        'a bee,\nn = 3: a\n  cat'
        >>> wrap_lines(["a bee, n\xa0=\xa03"], None)
        'a bee, n = 3'
    """
    output: list[str] = []
    for line in lines:
        first = line[: len(line) - len(line.lstrip(" "))]
        if width is None:
            output.append(line)
        else:
            output += textwrap.wrap(line.lstrip(" "), width, initial_indent=first, subsequent_indent=first + indent)
    return "\n".join(output).replace("\xa0", " ")


def plural(n: int, noun: str) -> str:
    """Return a number with its noun, with thousands separators.

    Example:
        >>> plural(1, "run"), plural(1200, "run")
        ('1 run', '1,200 runs')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def mean_text(mean: RunMean, *, signed: bool = False) -> str:
    """Return the mean with as many decimals as its interval needs."""
    return number_text(mean.mean, _scale(mean), signed=signed)


def interval_phrase(mean: RunMean, *, signed: bool = False) -> str:
    """Return the 95 % interval, or a note that a single run has none.

    Example:
        >>> from seasoned.lab.analysis.measures import run_mean
        >>> interval_phrase(run_mean([0.5]))
        'n = 1, no interval'
    """
    if mean.interval is None:
        return "n = 1, no interval"
    low, high = (number_text(x, _scale(mean), signed=signed) for x in (mean.interval.low, mean.interval.high))
    return f"[{low}, {high}]"


def _scale(mean: RunMean) -> float:
    ends = [] if mean.interval is None else [mean.interval.low, mean.interval.high]
    return max(map(abs, [mean.mean, *ends]))


def claim_sentence(claim: Claim, reference: str, role: str) -> str:
    """Return the verdict on an arm as a sentence with its numbers.

    Args:
        claim: the comparison of the arm with the reference arm.
        reference: the name of the reference arm.
        role: `placebo` for an arm that should show no gain; see `seasoned.lab.analysis.findings.arm_role`.
    """
    return f"{_verdict_text(claim, reference, role)}: {_numbers(claim)}."


def worst_case_sentence(worst: WorstCase) -> str:
    """Return the gain with the worst possible scores for failed runs, as a sentence."""
    gain = worst.gain
    if gain is None:
        return f"{worst.arm} was not played: {plural(worst.runs, 'run')} failed before an episode ended."
    runs = "the failed run" if worst.runs == 1 else f"the {worst.runs} failed runs"
    where = "" if worst.task is None else f" at {worst.task}"
    paired = f"n = {gain.n} paired runs" if gain.interval is not None else "n = 1, no interval"
    interval = f"{interval_phrase(gain, signed=True)} " if gain.interval is not None else ""
    return (
        f"Had {runs} of {worst.arm}{where} scored the worst possible (0, or the least seen): "
        f"{mean_text(gain, signed=True)} {interval}{worst.unit}, {paired}."
    )


def changed_code_sentence(modules: Sequence[str]) -> str:
    """Return a warning that the code of environments changed during the experiment.

    Example:
        >>> changed_code_sentence(["my_shop"])
        'The code of my_shop changed while this was played: not all episodes are of one environment.'
    """
    return f"The code of {', '.join(modules)} changed while this was played: not all episodes are of one environment."


def _verdict_text(claim: Claim, reference: str, role: str) -> str:
    arm, placebo = claim.arm, role == "placebo"
    where = _where(claim)
    if claim.verdict == "better":
        return (
            f"{arm} shows a gain over {reference}: something is wrong" if placebo else f"{arm} beats {reference}{where}"
        )
    if claim.verdict == "worse":
        harm = "shows no gain, as it should; it does harm" if placebo else f"is worse than {reference}"
        return f"{arm} {harm}{where}"
    if claim.verdict == "too few runs":
        return f"{arm} against {reference}: too few paired runs for a verdict, which takes {claim.needed} or more"
    if claim.verdict == "no difference shown":
        return (
            f"{arm} shows no gain, as it should" if placebo else f"no difference between {arm} and {reference} is shown"
        )
    return (
        f"{arm} against {reference}, task by task"
        if _task_verdicts(claim)
        else f"{arm} cannot be compared with {reference}"
    )


def _where(claim: Claim) -> str:
    """Return the number of tasks of a verdict, and the number of tasks with the same verdict of their own."""
    if len(claim.tasks) < 2:
        return ""
    single = sum(each.verdict == claim.verdict for each in claim.tasks)
    return f" over {len(claim.tasks)} tasks, on {single or 'none'} of them by itself"


def _task_verdicts(claim: Claim) -> list[str]:
    return [each.verdict for each in claim.tasks if each.gain is not None]


def _numbers(claim: Claim) -> str:
    if claim.gain is None:
        verdicts = _task_verdicts(claim)
        counted = ", ".join(f"{v} on {verdicts.count(v)}" for v in dict.fromkeys(verdicts))
        return f"{counted}; {claim.why}" if counted else str(claim.why)
    mean = mean_text(claim.gain, signed=True)
    if claim.gain.interval is None:
        return f"{mean} {claim.unit} (n = 1, no interval)"
    return f"{mean} {interval_phrase(claim.gain, signed=True)} {claim.unit}, n = {claim.gain.n} paired runs"
