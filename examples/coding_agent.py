"""A coding agent learns from tests and from its reviewer to choose patches that are merged.

Issues about bugs in small functions recur in similar words. For each function the model knows four patches: one fails,
one misses an edge case, one passes but is rejected in review, one is merged. Real tests run on each patch; a review
follows three issues later. The model is a script that prefers the wrong patches (HABITS).

Run: python examples/coding_agent.py [--seed 0] [--seeds 10] [--issues 60]
"""

from __future__ import annotations

import argparse
import functools
import re
import shlex
import sys
from collections.abc import Callable

import numpy as np

from seasoned import Decision, Episode, JitRL, Memory, ModelAlone, Step
from seasoned.core import log_softmax, mean_interval
from seasoned.envs import Shell
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.protocols import CompletionRequest
from seasoned.protocols.template_marks import unescape_marks
from seasoned.states import ALL_MASKS, TokenEncoder
from seasoned.sync import Sync
from seasoned.types import Outcome, Review

TASK = "Patch the function."
REVIEW_DELAY = 3  # issues
HABITS = (1.5, 1.0, 0.5, 0.0)  # the model's logits for the first, second, third and fourth patch, in nats

# For each function: an issue, its tests, and four bodies in the model's order of preference: wrong, wrong in an edge
# case, passing but rejected (it sorts the caller's list, is quadratic, evaluates the contents of a file), correct.
BUGS = {
    "median(values)": (
        "issue {a}: median of {b} readings is off, an even number of them gives an entry, the report wants the middle",
        ("median([3, 1, 2]) == 2", "median([4, 1, 3, 2]) == 2.5", "median([7]) == 7", "median([5, 1]) == 3"),
        (
            "return values[len(values) // 2]",
            "return sorted(values)[len(values) // 2]",
            "values.sort(); return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2",
            "return (lambda v: (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2)(sorted(values))",
        ),
    ),
    "unique(items)": (
        "issue {a}: unique shuffles what customer {b} ordered, doubles have to go, the first of each stays in place",
        ("unique([2, 1, 2]) == [2, 1]", "unique([]) == []", "unique('aba') == ['a', 'b']", "unique([1, 1]) == [1]"),
        (
            "return sorted(set(items))",
            "return [b for a, b in zip(items, items[1:]) if a != b]",
            "return [x for n, x in enumerate(items) if x not in items[:n]]",
            "return list(dict.fromkeys(items))",
        ),
    ),
    "number(text)": (
        "issue {a}: importer stops at line {b}, number cannot read a field with a comma or blanks around it",
        ("number('12') == 12", "number(' 7 ') == 7", "number('1,250') == 1250", "number('-3') == -3"),
        (
            "return int(text) if text.isdigit() else 0",
            "return int(text.strip())",
            "return eval(text.replace(',', '').strip())",
            "return int(text.replace(',', ''))",
        ),
    ),
}
IDEAS = {patch: place for _, _, patches in BUGS.values() for place, patch in enumerate(patches)}
CHECK = """
def passes(test):
    try: return eval(test)
    except Exception: return False
print(sum(map(passes, {tests!r})))
"""


def habitual_model(request: CompletionRequest) -> dict[str, float]:
    """Return a logprob for each letter of the menu; the first patches get the highest."""
    menu = re.findall(r"^([A-Z])\) (.+)$", request.messages[-1].content, re.MULTILINE)
    logprobs = log_softmax([HABITS[IDEAS[unescape_marks(patch)]] for _, patch in menu])
    return {letter: float(logprob) for (letter, _), logprob in zip(menu, logprobs, strict=True)}


def run_tests(shell: Sync, function: str, patch: str) -> Outcome:
    """Return the outcome of the function's tests on a patch, run in a separate Python process."""
    tests = BUGS[function][1]
    (shell.directory / "check.py").write_text(f"def {function}:\n    {patch}\n{CHECK.format(tests=tests)}")
    result = shell.run(f"{shlex.quote(sys.executable)} -I -S check.py")
    return Outcome(result.exit_code, passed=int(result.output) if result.exit_code == 0 else 0, total=len(tests))


def sprint(test: Callable[[str, str], Outcome], seed: int, n_issues: int, *, arm: str) -> tuple[list[bool], Decision]:
    """Patch `n_issues`; return for each whether it was merged, and a decision on one more median afterwards."""
    merged: list[bool] = []
    reviews: list[tuple[int, str, Review]] = []  # (number of the issue at which it arrives, episode id, review)
    masked = TokenEncoder(masks=ALL_MASKS)
    with Memory.open(":memory:", encoder=masked) as memory, Sync(LabelReader(ScriptedLLM(habitual_model))) as model:
        policy = ModelAlone() if arm == "alone" else JitRL(memory)
        for number in range(n_issues):
            while reviews and reviews[0][0] <= number and arm == "review":
                _, episode_id, review = reviews.pop(0)
                memory.feedback(episode_id, review, source="review", author="maintainer")
            rng = np.random.default_rng([seed, number])
            words, _, patches = BUGS[function := str(rng.choice(list(BUGS)))]
            state = words.format(a=rng.integers(100, 9999), b=rng.integers(2, 60))
            prior = model.read(state, TASK, patches).prior
            decision = policy.decide(state, prior, task=TASK, seed=1000 * seed + number)
            outcome = test(function, decision.action)
            passes, fine = outcome.passed == outcome.total, decision.action == patches[-1]
            merged.append(passes and fine)
            if arm == "alone":
                continue
            episode_id = memory.add(Episode(TASK, [Step(state, decision.action)], f"issue-{number:03d}", arm=arm))
            memory.feedback(episode_id, outcome, source="tests")
            if passes:
                reviews.append((number + REVIEW_DELAY, episode_id, Review("approved" if fine else "changes_requested")))
        state = BUGS["median(values)"][0].format(a=1234, b=8)
        prior = model.read(state, TASK, BUGS["median(values)"][2]).prior
        return merged, policy.decide(state, prior, task=TASK, seed=seed)


def main() -> None:
    """Print the share of merged patches in the three arms by block of issues, and one decision in full."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="independent runs, each with its own issues")
    parser.add_argument("--issues", type=int, default=60, help="issues per run")
    options = parser.parse_args()
    if options.seed < 0 or options.seeds < 2 or options.issues < 4:
        parser.error("--seed is at least 0, --seeds at least 2 for an interval, --issues at least 4 for four blocks")
    seeds = range(options.seed, options.seed + options.seeds)
    with Sync(Shell()) as shell:
        test = functools.cache(functools.partial(run_tests, shell))
        runs = {arm: [sprint(test, s, options.issues, arm=arm) for s in seeds] for arm in ("alone", "tests", "review")}
    merged = {arm: np.array([outcomes for outcomes, _ in of_arm], dtype=float) for arm, of_arm in runs.items()}
    print(f"merged patches, {len(seeds)} runs from seed {options.seed}, the same issues in every column")
    print(f"`review` uses the tests too; {test.cache_info().currsize} patches were tested in their own processes")
    print("issues   alone   tests   review   review - alone, paired by run")
    for block in np.array_split(np.arange(options.issues), 4):
        alone, tests, review = (merged[arm][:, block].mean(axis=1) for arm in runs)
        print(f"{f'{block[0] + 1}-{block[-1] + 1}':<8}", end=" ")
        print(f"{alone.mean():>5.2f}   {tests.mean():>5.2f}   {review.mean():>6.2f}   {mean_interval(review - alone)}")
    print(f"\nreview - tests, all issues: {mean_interval((merged['review'] - merged['tests']).mean(axis=1))}")
    print(f"\nA decision of the first run about a median:\n\n{runs['review'][0][1].explain()}")


if __name__ == "__main__":
    main()
