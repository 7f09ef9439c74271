"""The score and the cost of a cascade that asks a teacher if the student is unsure.

Run: python benchmarks/cascade.py [--student uniform] [--mode logits] [--game coins treasure] [--seeds 10]

TextWorld games of the suite `development`. The teacher replaces a large model: with probability 0.9 it takes the action
of TextWorld's own solver, else it draws uniformly. The student has a uniform prior (`uniform`), or is a model that
`seasoned` opens (`local`). The prices per reading are assumptions: see TEACHER_USD and STUDENT_USD. Four arms play the
same seeds: the teacher alone; the student alone; the student with a memory of the teacher's first episodes (`filled`);
and the same student with the option to ask the teacher (`cascade`). Both use the same filling, whose episodes count
only in the break-even point. One run is one number, so intervals are over runs. Settings are the defaults. Writes
`benchmarks/results/cascade-STUDENT-MODE.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import textworld
from workload import write_result

from seasoned import JitRL, Memory
from seasoned.agents import Arm, EpisodeResult, play_run
from seasoned.agents.runs.cost_ledger import Ledger
from seasoned.build import close_reader, make_reader
from seasoned.core import mean_interval
from seasoned.envs import TextWorldEnv
from seasoned.envs.textworld_games import challenge_options, game_file, quiet
from seasoned.lab.arms.cascade_arm import cascade_arm
from seasoned.policies import ModelAlone
from seasoned.policies.examples import ExampleMemory, Examples
from seasoned.protocols import Observation, PriorReader, PriorReading, Usage
from seasoned.types import Prior

TEACHER_USD, STUDENT_USD = 0.01, 0.0003
RIGHT = 0.9
SEED = 31
EXCLUDE = ("close", "drop", "examine", "insert", "inventory", "look", "put")
GAMES = {"coins": ("coin_collector", {"level": 105}), "treasure": ("treasure_hunter", {"level": 21})}
NEVER = 1e-9
"""An agreement that every student reaches: it asks nobody."""


class Guided:
    """A game and a copy of it, for which TextWorld's solver returns the winning action."""

    def __init__(self, challenge: str, options: dict[str, Any], max_steps: int) -> None:
        self._played = TextWorldEnv(challenge, seed=SEED, max_steps=max_steps, exclude=EXCLUDE, **options)
        with quiet():
            file = game_file(challenge, challenge_options(challenge, options), SEED, None)
            self._twin = textworld.start(str(file), textworld.EnvInfos(policy_commands=True))
        self.name, self.task, self.max_score = self._played.name, self._played.task, self._played.max_score
        self.best: str | None = None

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode of both."""
        return self._see(await self._played.reset(seed=seed), self._twin.reset())

    async def step(self, action: str) -> Observation:
        """Take a step in both."""
        return self._see(await self._played.step(action), self._twin.step(action)[0])

    async def aclose(self) -> None:
        """End both."""
        await self._played.aclose()
        self._twin.close()

    def _see(self, seen: Observation, twin: Any) -> Observation:
        offered = seen.admissible or ()
        self.best = next((command for command in twin.policy_commands or () if command in offered), None)
        return seen


class Expert:
    """The teacher: right with probability RIGHT, else any action; where the solver has no answer, any action."""

    name = f"expert-{RIGHT:g}"

    def __init__(self, game: Guided) -> None:
        self._game = game
        self.at_a_loss = 0

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return its policy; one call."""
        best = self._game.best
        self.at_a_loss += best not in candidates
        known = RIGHT if best in candidates else 0.0
        p = {each: (1.0 - known) / len(candidates) + known * (each == best) for each in candidates}
        prior = Prior({each: float(np.log(value)) for each, value in p.items()}, model=self.name, method="expert")
        return PriorReading(prior, Usage(calls=1, cost_usd=TEACHER_USD))


class Priced:
    """The student, at its price for a reading."""

    def __init__(self, reader: PriorReader) -> None:
        self._reader = reader
        self.name = reader.name

    async def read(self, state: str, task: str, candidates: Sequence[str]) -> PriorReading:
        """Return its policy."""
        found = await self._reader.read(state, task, candidates)
        return PriorReading(found.prior, dataclasses.replace(found.usage, cost_usd=STUDENT_USD, cached_usd=0.0))


def arm(name: str, student: PriorReader, expert: Expert, memory: Memory, mode: str, fill: int) -> Arm:
    """Return an arm."""
    if name in ("teacher", "student"):
        return Arm(ModelAlone(), expert if name == "teacher" else student)
    return cascade_arm(
        student,
        expert,
        memory,
        knowledge=None if mode == "logits" else ExampleMemory(Examples(memory, budget_tokens=200, window=0)),
        policy=None if mode == "prompt" else JitRL,
        fill_episodes=fill,
        agreement=NEVER if name == "filled" else None,
    )


async def run(
    name: str, game: Guided, student: PriorReader, mode: str, fill: int, episodes: int, seed: int
) -> tuple[list[EpisodeResult], int, int]:
    """Play one run; return its results, how many steps the teacher decided, and at how many it was at a loss."""
    expert = Expert(game)
    with Memory.open(":memory:") as memory:
        built = arm(name, student, expert, memory, mode, fill)
        results = await play_run(
            game,
            built.policy,
            built.reader,
            memory=memory,
            episodes=fill + episodes,
            seed=seed,
            run_id="r",
            play=built.play,
            learn=built.learn,
        )
        later = {f"r-{number:05d}" for number in range(fill, fill + episodes)}
        notes = memory.notes(kind="decided")
        by_teacher = sum(note.body["by"] == "teacher" for note in notes if note.episode_id in later)
    steps = sum(result.steps for result in results[fill:])
    return results, {"teacher": steps, "student": 0}.get(name, by_teacher), expert.at_a_loss


def usd(results: Sequence[EpisodeResult]) -> float:
    """Return the usage of episodes."""
    return sum(result.usage.cost_usd or 0.0 for result in results)


async def compare(label: str, student: PriorReader, options: argparse.Namespace) -> dict[str, Any]:
    """Play all arms at one game, print and return the figures."""
    challenge, given = GAMES[label]
    game = Guided(challenge, given, options.max_steps)
    ledger, lost, fillings = Ledger(), 0, list[float]()
    shares: dict[str, list[float]] = {}
    ended = time.monotonic() + options.minutes * 60
    seeds = []
    try:
        for seed in range(options.seeds):
            rows = {}
            for name in ("teacher", "student", "filled", "cascade"):
                rows[name] = await run(name, game, student, options.mode, options.fill, options.episodes, seed)
                lost += rows[name][2]
                if time.monotonic() > ended:
                    break
            if len(rows) < 4:  # a run that is not paired counts in no arm
                break
            seeds.append(seed)
            for name, (results, by_teacher, _) in rows.items():
                counted = results[options.fill :]
                won = float(np.mean([result.score >= (result.max_score or 1.0) for result in counted]))
                shares.setdefault(name, []).append(won)
                spent = Usage(calls=1, cost_usd=usd(counted) / len(counted))
                steps = sum(result.steps for result in counted)
                ledger.add(name, str(seed), won, spent, steps=steps, teacher_steps=by_teacher)
            fillings.append(usd(rows["cascade"][0][: options.fill]))
            if time.monotonic() > ended:
                break
    finally:
        await game.aclose()
    print(
        f"\n{label}: {game.name}\n{len(seeds)} of {options.seeds} runs of {options.episodes} episodes an arm, "
        f"after {options.fill} of the teacher's; the solver had no answer at {lost} readings"
    )
    found: dict[str, Any] = {"game": game.name, "runs": len(seeds), "no_answer": lost, "arms": {}}
    if not seeds:
        print("not one run of every arm was finished in time")
        return found
    ledger.fill(Usage(calls=1, cost_usd=float(np.mean(fillings))))
    print(ledger.report())
    for name, values in shares.items():
        costs = ledger.costs(name)
        interval = dataclasses.asdict(mean_interval(values)) if len(values) > 1 else None
        found["arms"][name] = {
            "success": float(np.mean(values)),
            "by_run": values,
            "interval": interval,
            "usd_per_episode": str(costs.usd_per_episode),
            "usd_per_success": str(costs.usd_per_success),
            "teacher_share": str(costs.teacher_share),
        }
        print(f"{name:<8} success over runs: {mean_interval(values) if interval else np.mean(values)}")
    for name in ("filled", "cascade"):
        for per in ("episode", "success"):
            point = str(ledger.break_even(name, per=per))
            found["arms"][name][f"break_even_per_{per}"] = point
            print(f"break-even of {name} with the teacher alone, per {per}: {point}")
        for other in ("teacher", "student"):
            gain = np.array(shares[name]) - np.array(shares[other])
            if len(gain) > 1:
                found["arms"][name][f"success_minus_{other}"] = dataclasses.asdict(mean_interval(gain))
                print(f"success of {name} less that of {other}: {mean_interval(gain)}")
    found["filling_usd"] = float(np.mean(fillings))
    return found


async def main_async(options: argparse.Namespace) -> dict[str, Any]:
    """Open the student, play, close it."""
    if options.student == "uniform":
        reader: Any = make_reader("uniform")
    else:
        reader = make_reader(options.student, method="label", cache=options.cache)
    try:
        return {label: await compare(label, Priced(reader), options) for label in options.game}
    finally:
        await close_reader(reader)


def main() -> None:
    """Play, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--student", default="uniform", help="uniform, or a model such as local")
    parser.add_argument("--mode", choices=("logits", "prompt", "both"), default="logits", help="the student's memory")
    parser.add_argument("--game", nargs="+", choices=sorted(GAMES), default=sorted(GAMES))
    parser.add_argument("--seeds", type=int, default=10, help="at least 10 for a published number")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--fill", type=int, default=5, help="the teacher's episodes beforehand")
    parser.add_argument("--max-steps", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=60.0, help="no run is begun after that, for each game")
    parser.add_argument("--cache", type=Path, default=Path("cascade-answers.db"), help="the student's answers")
    options = parser.parse_args()
    if options.mode != "logits" and options.student == "uniform":
        parser.error("a student without a prompt has --mode logits")
    print(
        f"assumed: {TEACHER_USD} USD a reading of the teacher, {STUDENT_USD} USD one of the student; "
        f"the teacher is right with probability {RIGHT}"
    )
    found = asyncio.run(main_async(options))
    write_result(
        f"cascade-{options.student.partition(':')[0]}-{options.mode}",
        {
            "command": " ".join(["python benchmarks/cascade.py", *sys.argv[1:]]),
            "episodes": options.episodes,
            "fill": options.fill,
            "max_steps": options.max_steps,
            "seeds": options.seeds,
            "teacher_usd": TEACHER_USD,
            "student_usd": STUDENT_USD,
            "right": RIGHT,
            "games": found,
        },
    )


if __name__ == "__main__":
    main()
