"""Cases of `robustness.py` in which a fixed memory is decided on: outliers, units, duplicates, single steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from robustness_case import Case, Measures

from seasoned import Decision, Episode, JitRL, Memory, Step

Steps = Iterable[tuple[str, str, str, float]]
"""(task, state, action, reward), each an episode of one step."""

EVEN = {"good": math.log(0.5), "bad": math.log(0.5)}


def filled(memory: Memory, steps: Steps) -> None:
    """Add episodes of one step."""
    memory.add_many([Episode(task, [Step(state, action, reward)]) for task, state, action, reward in steps])


def decided(
    preset: str, steps: Steps, state: str, prior: Mapping[str, float], *, task: str | None = None, **given: Any
) -> Decision:
    """Return the decision of a preset after these episodes."""
    with Memory.open(":memory:") as memory:
        filled(memory, steps)
        return JitRL.preset(preset, memory).decide(state, prior, task=task, seed=0, **given)


def pages(n: int, unit: float = 1.0, offset: float = 0.0, visits: int = 5, task: str = "t") -> list[Any]:
    """Return steps at n states without a common word, `good` one unit above `bad`."""
    return [
        (task, f"{task}{page}", action, offset + unit * (action == "good"))
        for page in range(n)
        for _ in range(visits)
        for action in ("good", "bad")
    ]


def outlier(preset: str, quick: bool) -> Measures:
    """Absurd rewards at an unrelated state: how far another decision, of no task, moves."""
    found = {}
    for n in (2, 50, 500):
        steps = pages(n)
        before = decided(preset, steps, "t0", EVEN).probs["good"]
        for n_absurd, reward in ((1, 1e3), (1, -1e3), (1, 1e6), (1, 1e100), (2, 1e3), (5, -1e6), (20, 1e3)):
            absurd = [("poison", "elsewhere", "junk", reward)] * n_absurd
            after = decided(preset, [*steps, *absurd], "t0", EVEN).probs["good"]
            times = "one reward" if n_absurd == 1 else f"{n_absurd} rewards"
            found[f"|move| of P(good), {2 * n} pairs, {times} of {reward:g}"] = abs(after - before)
    return found


def unrelated(preset: str, quick: bool) -> Measures:
    """The largest move of a decision by one unrelated step, by its reward."""
    prior = {"pay": -2.4, "back": -0.1}
    steps = [("shop", f"state {s} zz{s}", "pay" if i % 2 else "back", float(i % 2)) for s in range(8) for i in range(6)]
    before = [decided(preset, steps, f"state {s} zz{s}", prior).probs["pay"] for s in range(8)]
    found = {}
    for reward in (0.0, 1.0, -1.0, 10.0, -1e3, 1e6, -1e100):
        poisoned = [*steps, ("poison", "unrelated q", "junk", reward)]
        after = [decided(preset, poisoned, f"state {s} zz{s}", prior).probs["pay"] for s in range(8)]
        found[f"largest |move| of 8 decisions, a step of reward {reward:g}"] = max(
            abs(a - b) for a, b in zip(after, before, strict=True)
        )
    return found


def units(preset: str, quick: bool) -> Measures:
    """Tasks and offsets of other units: P(good) after five visits each, which no unit should change."""
    found = {}
    for share in (0.01, 0.05, 0.5):
        n_small = 100 if share < 0.5 else 50
        n_big = max(1, round(n_small * share / (1 - share)))
        levels = [
            ("big", f"big{page}", action, 340.0 * page / max(1, n_big - 1) + 10.0 * (action == "good"))
            for page in range(n_big)
            for _ in range(5)
            for action in ("good", "bad")
        ]
        steps = [*pages(n_small), *levels]
        for name, state in (("t", "t0"), ("big", f"big{n_big // 2}")):
            decision = decided(preset, steps, state, EVEN, task=name)
            label = "0..1" if name == "t" else "0..350"
            found[f"P(good), task of {label}, {share:.0%} of pairs of 0..350"] = decision.probs["good"]
    for offset, unit in ((0.0, 1.0), (1e3, 1.0), (10.0, 0.01), (1e6, 100.0), (0.0, 1e-100), (0.0, 1e99), (-1.0, 1.0)):
        decision = decided(preset, pages(20, unit, offset), "t0", EVEN)
        found[f"P(good), returns {offset:g} + {{0, {unit:g}}}"] = decision.probs["good"]
    return found


def rare_success(preset: str, quick: bool) -> Measures:
    """`a` fails ten times at each state, `b` is tried once at each and succeeds at one: the shift of `b` there."""
    prior = {"a": math.log(0.999), "b": math.log(0.001)}
    found = {}
    for n in (2, 10, 50, 200) if quick else (2, 10, 50, 200, 2000):
        steps = [("t", f"s{s}", "a", 0.0) for s in range(n // 2) for _ in range(10)]
        steps += [("t", f"s{s}", "b", float(s == 0)) for s in range(n // 2)]
        decision = decided(preset, steps, "s0", prior)
        apart = decision.advantages["b"] - decision.advantages["a"]
        found[f"nats of b over a, {n} pairs, one success"] = decision.beta * apart
        found[f"P(b) at prior 0.001, {n} pairs"] = decision.probs["b"]
    return found


def equal_rewards(preset: str, quick: bool) -> Measures:
    """All rewards equal: no shift."""
    found = {}
    for reward in (0.0, 1.0, 0.1, -0.7, 1e-300, 1e100):
        steps = [("t", "s", action, reward) for action in ("good", "bad", "bad") for _ in range(3)]
        decision = decided(preset, steps, "s", EVEN)
        found[f"|P(good) - 0.5|, all rewards {reward:g}"] = abs(decision.probs["good"] - 0.5)
    return found


def near_duplicates(preset: str, quick: bool) -> Measures:
    """Ten near-duplicates with 20 contradicting episodes against 1,000 good ones: the move of P(pay)."""
    page = " ".join(f"w{i}" for i in range(40))
    prior = {"pay": -0.1, "back": -2.4}
    good = [("t", page, "pay" if i % 2 else "back", float(i % 2)) for i in range(1000)]
    beside = [("t", f"other{i} page{i}", "pay" if j else "back", float(j)) for i in range(100) for j in (0, 1)]
    found = {}
    for label, around in (("alone", []), ("among 100 states", beside)):
        poison = [
            ("t", f"{page} extra z{j}", action, reward)
            for j in range(10)
            for action, reward in (("back", 1.0), ("pay", 0.0))
        ]
        for asked, state in (("the page", page), ("the page with the shared word", f"{page} extra")):
            before = decided(preset, [*good, *around], state, prior).probs["pay"]
            after = decided(preset, [*good, *around, *poison], state, prior).probs["pay"]
            found[f"move of P(pay) at {asked}, {label}"] = before - after
    # Own evidence against a near state of other worth.
    near = "".join(f"w{i} " for i in range(39)) + "new"
    for n in (20, 100, 1000):
        steps = [("t", page, "pay" if i % 2 else "back", float(i % 2)) for i in range(20)]
        steps += [("t", near, "pay" if i % 2 else "back", float(1 - i % 2)) for i in range(n)]
        found[f"P(pay) at 20 own steps, {n} opposite ones at a near page"] = decided(
            preset, steps, page, {"pay": math.log(0.5), "back": math.log(0.5)}
        ).probs["pay"]
    return found


def one_step(preset: str, quick: bool) -> Measures:
    """Steps of an action never tried, against n steps that pay: its probability at a prior of 0.1 for all new ones."""
    prior = {"pay": -0.1, "back": -2.4}
    found = {}
    others = [("t", f"state {s} zz{s}", "pay" if i % 2 else "back", float(i % 2)) for s in range(20) for i in (0, 1)]
    for n in (10, 100, 1000):
        good = [("t", "page", "pay" if i % 2 else "back", float(i % 2)) for i in range(n)]
        base = [*good, *others]
        for reward in (1.0, 10.0, 1000.0):
            poisoned = [*base, ("t", "page", "evil", reward)]
            decision = decided(preset, poisoned, "page", prior, admissible="any")
            found[f"P(new action), one step of {reward:g} against {n}"] = decision.probs.get("evil", 0.0)
        with Memory.open(":memory:") as memory:
            filled(memory, base)
            memory.add(Episode("t", [Step("page", "evil", 1.0)] * 2))
            decision = JitRL.preset(preset, memory).decide("page", prior, admissible="any", seed=0)
        found[f"P(new action), one episode of it twice at 1, against {n}"] = decision.probs.get("evil", 0.0)
        worse = decided(preset, [*base, ("t", "page", "pay", -1000.0)], "page", prior)
        found[f"P(pay) after one pay of -1000 against {n}"] = worse.probs["pay"]
    return found


POISON = (
    Case("outlier", outlier, {"": ("<=", 0.05)}),
    Case("unrelated", unrelated, {"": ("<=", 0.05)}),
    Case("units", units, {"": (">=", 0.9)}),
    Case("rare-success", rare_success, {"nats": ("<=", 11.0)}),
    Case("equal-rewards", equal_rewards, {"": ("<=", 1e-6)}),
    Case("duplicates", near_duplicates, {"move": ("<=", 0.1), "P(pay)": (">=", 0.5)}),
    Case("one-step", one_step, {"P(new": ("<=", 0.5), "P(pay)": (">=", 0.5)}),
)
