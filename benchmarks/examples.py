"""Every worked example at full size: its learning curves, a picture of four, and a comparison of uses of memory.

Run: python benchmarks/examples.py [--only NAME ...] [--plot docs/how-to/worked-examples.png]

Each example runs as a user runs it, in its own process. The benchmark stores its printed figures: the mean of each arm
in four blocks of the run, over independent seeds, and the gain of the last arm over the first, paired by seed, with its
95 % interval. The jobs of `filing_agent` are played once more with every use of one memory (`WAYS`), all of which may
put the same number of tokens into the prompt. The scripted model of that example uses examples in its prompt, which the
models of the lab's suites do not. Writes `benchmarks/results/examples.json` if all examples run, and the picture with
`--plot`.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from workload import write_result

from seasoned import Memory
from seasoned.agents import Agent
from seasoned.agents.baselines import BySearch, PastSuccesses
from seasoned.core import jaccard, mean_interval
from seasoned.envs import FileTasks
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.policies.examples import Example, ExampleQuery
from seasoned.policies.examples.rendering import fit_to_budget
from seasoned.protocols import Usage
from seasoned.states import ALL_MASKS, TokenEncoder
from seasoned.states.text_budget import estimated_tokens
from seasoned.sync import Sync
from seasoned.types import Episode, Neighbor, Step

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.append(str(EXAMPLES))
import filing_agent  # noqa: E402

PICTURED = {
    "filing_agent": "File-system agent: jobs done",
    "coding_agent": "Coding agent: patches merged",
    "human_choices": "Support triage: right first draws",
    "edits": "Replies: share of a draft that could stay",
}
ROW = re.compile(r"^(\d+)-(\d+) +([\d. ]+?) +([-+]\d\.\d+) \[([-+]\d\.\d+), ([-+]\d\.\d+)\] \(n=(\d+),", re.MULTILINE)
HEAD = re.compile(r"^([a-z]+)   +((?:[a-z]+ +)+)([a-z]+) - ([a-z]+), paired by run$", re.MULTILINE)
WAYS = {"alone": "none", "top-k": "prompt", "prompt": "prompt", "logits": "logits", "both": "both"}
PAIRS = (("prompt", "top-k"), ("both", "prompt"), ("both", "logits"), ("prompt", "alone"))
SEEDS, JOBS = range(50), 32
SHOWN, SHOWN_TOKENS, SHOWN_CHARS = 3, 800, 400  # limits of examples, and of one text, as in `Examples`
EVERY_STEP = 10_000


class TopK:
    """Plain retrieval for an agent: the results of `PastSuccesses` with the most similar goal and state.

    The format and the window are those of `Examples`, so that only the choice of steps differs. The baseline compares
    states alone, so its states begin with the goal.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._finder = BySearch(self._nearest)
        self._past = PastSuccesses(self._finder, success=1.0)

    def learn(self, episode: Episode) -> None:
        """Take in a finished episode."""
        steps = [replace(step, state=f"{episode.task}\n{step.state}") for step in episode.steps]
        asyncio.run(self._past.learn(replace(episode, steps=steps)))

    def retrieve(self, query: ExampleQuery, *, purpose: str, exclude_task: str | None) -> tuple[Example, ...]:
        """Return the steps of past successes most like this moment."""
        del purpose, exclude_task
        found = []
        for number, one in enumerate(self._finder.find(f"{query.goal}\n{query.observation}", SHOWN)):
            goal, _, state = one.state.partition("\n")
            steps, left = (Step(state, one.action, 0.0),), one.return_
            found.append(
                Example(
                    f"found-{number}",
                    0,
                    goal,
                    steps,
                    0,
                    None,
                    None,
                    left,
                    left,
                    left,
                    left,
                    0,
                    "imitate",
                    1.0,
                    same_goal=goal == query.goal,
                )
            )
        return fit_to_budget(found, SHOWN_TOKENS, SHOWN_CHARS, estimated_tokens)

    def _nearest(self, asked: str, k: int) -> list[Neighbor]:
        """Find by the mean of both similarities, among all that is stored, as `Examples` weighs them."""
        goal, _, state = asked.partition("\n")
        features = self._memory.encoder.features
        near = [
            replace(one, similarity=(one.similarity + jaccard(features(goal), features(one.experience.task))) / 2)
            for one in self._memory.search(state, EVERY_STEP, 0.0)
        ]
        return sorted(near, key=lambda one: -one.similarity)[:k]


def filed(jobs: list[FileTasks], seed: int, way: str) -> tuple[list[bool], Usage]:
    """Let the agent of `filing_agent` do its jobs one way; return for each whether it was done, and the prompts."""
    done, usage = list[bool](), Usage()
    rng, llm = np.random.default_rng(seed), ScriptedLLM(filing_agent.obliging_model)
    with Memory.open(":memory:", encoder=TokenEncoder(masks=ALL_MASKS)) as memory:
        plain = TopK(memory)
        agent = Agent(
            llm,
            memory,
            mode=WAYS[way],
            reader=LabelReader(llm),
            plan=False,
            reason=False,
            seed=seed,
            examples=plain if way == "top-k" else None,
        )
        with Sync(agent) as sync:
            for job in rng.integers(len(jobs), size=JOBS):
                result = sync.train(jobs[job])
                plain.learn(result.episode)
                done.append(result.score == 1.0)
                usage += result.usage
    return done, usage


def ways() -> dict[str, Any]:
    """Do the jobs every way; print and return shares by run, tokens a question, and differences paired by run."""
    began = time.perf_counter()
    done, tokens = dict[str, Any](), dict[str, float]()
    with ExitStack() as stack:
        jobs = [
            FileTasks(kind, seed=seed, max_steps=filing_agent.COMMANDS)
            for kind in filing_agent.KINDS
            for seed in range(filing_agent.VARIANTS)
        ]
        for job in jobs:
            stack.enter_context(Sync(job))
        for way in WAYS:
            runs = [filed(jobs, seed, way) for seed in SEEDS]
            done[way] = np.array([outcomes for outcomes, _ in runs], dtype=float)
            asked = sum((usage for _, usage in runs), Usage())
            tokens[way] = asked.prompt_tokens / asked.calls
    spans = {"all jobs": slice(None), "last quarter": slice(-JOBS // 4, None)}
    shares = {span: {way: done[way][:, part].mean(axis=1) for way in WAYS} for span, part in spans.items()}
    print(f"\nfiling_agent, {len(SEEDS)} runs of {JOBS} jobs, at most {SHOWN_TOKENS} tokens of examples in a question")
    for way in WAYS:
        means = ", ".join(f"{shares[span][way].mean():.3f} of {span}" for span in spans)
        print(f"{way:<8}{means}; {tokens[way]:.0f} tokens a question")
    found: dict[str, Any] = {"seeds": list(SEEDS), "jobs": JOBS, "window_tokens": SHOWN_TOKENS, "tokens": tokens}
    for span, of_way in shares.items():
        differences = {f"{one} - {other}": mean_interval(of_way[one] - of_way[other]) for one, other in PAIRS}
        for pair, interval in differences.items():
            print(f"{pair:<16}{interval}, {span}")
        found[span.replace(" ", "_")] = {
            "by_run": {way: values.tolist() for way, values in of_way.items()},
            "differences": {pair: asdict(interval) for pair, interval in differences.items()},
        }
    return found | {"elapsed_s": time.perf_counter() - began}


def measured(name: str) -> dict[str, Any]:
    """Run one example; return its arms, its blocks, and how long it took."""
    began = time.perf_counter()
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    head = HEAD.search(done.stdout)
    if done.returncode or head is None:
        sys.exit(f"{name}: {done.stderr or done.stdout}")
    blocks = [
        {
            "first": int(first),
            "last": int(last),
            "means": [float(mean) for mean in means.split()],
            "gain": float(gain),
            "low": float(low),
            "high": float(high),
            "n": int(n),
        }
        for first, last, means, gain, low, high, n in ROW.findall(done.stdout)
    ]
    return {"unit": head[1], "arms": head[2].split(), "blocks": blocks, "elapsed_s": time.perf_counter() - began}


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw the arms of the four by block, each with its gain at the end."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
    for axis, (name, title) in zip(axes.flat, PICTURED.items(), strict=True):
        blocks, arms = results[name]["blocks"], results[name]["arms"]
        middles = [(block["first"] + block["last"]) / 2 for block in blocks]
        for place, arm in enumerate(arms):
            style = {0: ("#8c8c8c", "--", "s"), len(arms) - 1: ("#0b4f8a", "-", "o")}.get(place, ("#d55e00", ":", "^"))
            means = [block["means"][place] for block in blocks]
            axis.plot(middles, means, color=style[0], linestyle=style[1], marker=style[2], label=arm)
        end = blocks[-1]
        gain = f"{arms[-1]} - {arms[0]} at the end: {end['gain']:+.2f} [{end['low']:+.2f}, {end['high']:+.2f}]"
        axis.set_title(f"{title}\n{gain}", fontsize=10)
        axis.set(xlabel=f"{results[name]['unit']} seen", ylim=(0.0, 1.0), xlim=(0.0, end["last"]))
        axis.legend(frameon=False, loc="best", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    known = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    parser.add_argument("--only", nargs="+", choices=known, default=known, metavar="NAME")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.plot and not set(PICTURED) <= set(options.only):
        parser.error(f"the picture shows {', '.join(PICTURED)}: run them all")
    results: dict[str, Any] = {}
    print(f"{'example':<15}{'blocks, last arm - first':<40}at the end")
    for name in options.only:
        results[name] = measured(name)
        *_, end = blocks = results[name]["blocks"]
        gains = " ".join(f"{block['gain']:+.2f}" for block in blocks)
        interval = f"{end['gain']:+.3f} [{end['low']:+.3f}, {end['high']:+.3f}] (n={end['n']})"
        print(f"{name:<15}{gains:<40}{interval}, {results[name]['elapsed_s']:.0f} s")
    if options.plot:
        draw(results, options.plot)
    compared = ways() if "filing_agent" in options.only else None
    if options.only == known:
        command = " ".join(["python benchmarks/examples.py", *sys.argv[1:]])
        write_result("examples", {"command": command, "examples": results, "ways": compared})


if __name__ == "__main__":
    main()
