"""Learning to route real sentences from rewards alone: memory, other contextual bandits, and full information.

Run: python benchmarks/decisions.py --data FOLDER [--tasks domains desks-8] [--arms default vw-adf-squarecb full]
     [--seeds 10] [--rounds 500] [--sentences 300] [--prior local?threads=1 --cache FOLDER] [--jobs 2] [--runs FILE]
     [--name decisions]

FOLDER contains CLINC150 (github.com/clinc/oos-eval): `data_full.json` and `domains.json`. A round shows one sentence,
drawn without replacement; an arm picks one option and then learns its reward. The mean reward is of decisions made
before learning from them, always the true reward; regret is the best reward minus the earned one, summed. Every arm
gets the same rounds. With `--sentences` all seeds draw from as many sentences, which a model reads once; intervals then
hold for these sentences alone. `--prior "simulated?lift=2"` is a model that knows something. An arm may be followed by
settings: `default?beta=8&kappa=none`. A finished run is a line in the file of `--runs`, and is not repeated while the
code that it depends on is the same. Writes `results/NAME.json` and `results/NAME.png`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import json
import multiprocessing
import os
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from decision_arms import ARMS, Arm, ArmKind, Choice
from decision_peers import PEERS
from workload import write_result

import seasoned
from seasoned.build import make_reader
from seasoned.core import log_softmax, mean_interval
from seasoned.envs.env_options import parse_query
from seasoned.envs.intent_rounds import IntentData, IntentRound, IntentTask, draw_rounds, intent_options, read_intents

TASKS: dict[str, tuple[IntentTask, int | None, str]] = {
    "domains": (IntentTask("domains"), 2_000, "Choose the domain of the customer's sentence."),
    **{
        f"desks-{n}": (IntentTask("desks", desks=n), 3_000, "Send the customer's sentence to the right desk.")
        for n in (3, 8, 20)
    },
    "graded": (IntentTask("desks", graded=True), 3_000, "Send the customer's sentence to the right desk."),
    "delayed": (IntentTask("desks", max_delay=200), 3_000, "Send the customer's sentence to the right desk."),
    "noisy": (IntentTask("desks", noise=0.1), 3_000, "Send the customer's sentence to the right desk."),
    "intents": (IntentTask("intents"), None, "Choose the intent of the customer's sentence."),
}
"""Name to rule, number of rounds (None: all sentences), and the question to a model. Desks are 8 unless named."""

KINDS = ARMS | PEERS
SKIPPED = ("alone", "likeliest", "snippet", "released-games", "released-web")  # unless named
SLOW: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("linucb", "lints"), ("domains", "desks-8")),
    **dict.fromkeys(("seed", "paper-games", "paper-web", "placebo"), ("domains",)),
}
"""The tasks of slow arms, and of those that say little, unless they are named."""

REFERENCE = "default"
SIMULATED = "simulated"  # the prior of a model that knows something, by its settings `lift` and `deviation`
ROOMS = ("core", "memory", "policies", "states", "types", "actions")  # the code that a decision runs
WINDOW = 200
ARM_STREAM = 4  # the random stream of an arm; those of the rounds are 0 to 3
SENTENCE_STREAM = 5  # of seed 0: the sentences from which every seed draws

PriorOf = Callable[[str], Mapping[str, float]]


class Run(NamedTuple):
    """The key of a run: everything that its rewards depend on. `code` is a hash of the code of the arm."""

    task: str
    arm: str
    seed: int
    rounds: int | None
    prior: str
    code: str
    sentences: int | None = None


class Played(NamedTuple):
    """The true rewards of a run by round, and the mean time of a round, decide and learn, in milliseconds."""

    rewards: np.ndarray[Any, Any]
    ms: float


# ------------------------------------------------------------------------------------------------ one run


def play(rounds: Sequence[IntentRound], arm: Arm, prior_of: PriorOf, seed: int, *, full: bool = False) -> Played:
    """Play the rounds in order: learn from the rewards that have arrived, decide, score."""
    rng = np.random.default_rng([seed, ARM_STREAM])
    due: dict[int, list[Callable[[], None]]] = defaultdict(list)
    rewards, spent_s = np.zeros(len(rounds)), 0.0
    for t, each in enumerate(rounds):
        prior = prior_of(each.text)
        began = time.perf_counter()
        for learn in due.pop(t, ()):
            learn()
        choice = arm.decide(each.text, prior, rng)
        spent_s += time.perf_counter() - began
        rewards[t] = each.rewards[choice.option]
        if full:
            right = max(each.rewards, key=lambda option: each.rewards[option])
            due[t + 1].append(functools.partial(arm.learn, each.text, prior, Choice(right, 1.0), 1.0))
        else:
            observed = each.observed(choice.option)
            due[t + each.delay].append(functools.partial(arm.learn, each.text, prior, choice, observed))
    return Played(rewards, 1e3 * spent_s / len(rounds))


def play_run(run: Run, data: str, cache: str | None) -> Played:
    """Draw the rounds of a run, make its arm, and play."""
    options, rounds, prior_of = _setting(run, data, cache)
    kind, settings = arm_of(run.arm)
    return play(rounds, kind.make(options, run.seed, **settings), prior_of, run.seed, full=kind.full)


def _setting(run: Run, data: str, cache: str | None) -> tuple[tuple[str, ...], list[IntentRound], PriorOf]:
    """Return the options, the rounds and the prior of a run, which are the same for every arm."""
    task, rounds, question = TASKS[run.task]
    labelled = _data(data) if run.sentences is None else _some(_data(data), run.sentences)
    options = intent_options(labelled, task, run.seed)
    drawn = draw_rounds(labelled, task, run.seed, rounds if run.rounds is None else run.rounds)
    name, settings = _settings_of(run.prior)
    if name == "uniform":
        prior_of = _uniform(options)
    elif name == SIMULATED:
        prior_of = _simulated(options, drawn, **settings)
    else:
        prior_of = _model_prior(run.prior, cache, question, options)
    return options, drawn, prior_of


_data = functools.lru_cache(maxsize=1)(read_intents)


def _some(data: IntentData, n: int) -> IntentData:
    """Return n of the sentences: the same ones at every seed, and the first of any larger number."""
    order = np.random.default_rng([0, SENTENCE_STREAM]).permutation(len(data.sentences))[:n]
    return data._replace(sentences=tuple(data.sentences[i] for i in order.tolist()))


def _uniform(options: Sequence[str]) -> PriorOf:
    prior = dict.fromkeys(options, -float(np.log(len(options))))
    return lambda text: prior


def _simulated(options: Sequence[str], rounds: Sequence[IntentRound], lift: float, deviation: float = 1.5) -> PriorOf:
    """Return the prior of a model with normal logits, the right option's larger by `lift`; the same in every run."""
    priors = {}
    for each in rounds:
        logits = np.random.default_rng(zlib.crc32(each.text.encode())).normal(0.0, deviation, len(options))
        logits += lift * np.array([each.rewards[option] == 1.0 for option in options])
        priors[each.text] = dict(zip(options, log_softmax(logits).tolist(), strict=True))
    return priors.__getitem__


def _model_prior(model: str, cache: str | None, question: str, options: Sequence[str]) -> PriorOf:
    reader = _reader(model, cache)
    return lambda text: dict(_loop().run(reader.read(text, question, list(options))).prior)


@functools.cache
def _reader(model: str, cache: str | None) -> Any:
    name, settings = _settings_of(model)
    return make_reader(name, method="label", cache=None if cache is None else Path(cache) / "answers.db", **settings)


@functools.cache
def _loop() -> asyncio.Runner:
    return asyncio.Runner()


def arm_of(specification: str) -> tuple[ArmKind, dict[str, Any]]:
    """Return the kind and the settings of `NAME?setting=value&...`; a value is JSON, else text."""
    name, settings = _settings_of(specification)
    if name not in KINDS:
        raise SystemExit(f"arm {name!r}: known are {', '.join(KINDS)}")
    return KINDS[name], settings


def _settings_of(specification: str) -> tuple[str, dict[str, Any]]:
    name, _, query = specification.partition("?")
    return name, {key: _value(text) for key, text in parse_query(query).items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# ------------------------------------------------------------------------------------------------ all runs


def play_all(
    runs: Iterable[Run], data: str, *, file: Path, jobs: int = 1, cache: str | None = None
) -> dict[Run, Played]:
    """Play the runs that the file does not contain, append each when it ends, and return all of them."""
    wanted = list(dict.fromkeys(runs))
    known = read_runs(file)
    missing = [run for run in wanted if run not in known]
    if missing:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a+", encoding="utf-8") as lines:
            lines.seek(0)
            if not lines.read().endswith("\n") and lines.tell():
                lines.write("\n")  # after a line that an interruption cut
            _read_priors(missing, data, cache)
            for count, (run, played) in enumerate(_play_in_processes(missing, data, cache, jobs), 1):
                known[run] = played
                text = "".join(str(round(2 * reward)) for reward in played.rewards)  # 0, 0.5 and 1 as 0, 1 and 2
                lines.write(json.dumps({**run._asdict(), "ms": played.ms, "rewards": text}) + "\n")
                lines.flush()
                name = f"{run.task} {run.arm} {run.seed}"
                print(f"{count}/{len(missing)} {name}: {played.rewards.mean():.3f}, {played.ms:.2f} ms", flush=True)
    return {run: known[run] for run in wanted}


def _read_priors(runs: Sequence[Run], data: str, cache: str | None) -> None:
    """Read the model's priors of all rounds into the cache, once and in one process: a model uses every core."""
    models = [run._replace(arm="", code="") for run in runs if _is_read(run.prior)]
    for run in dict.fromkeys(models):
        _, rounds, prior_of = _setting(run, data, cache)
        for each in rounds:
            prior_of(each.text)
        print(f"{run.task} {run.seed}: {len(rounds)} priors read", flush=True)


def _is_read(prior: str) -> bool:
    return _settings_of(prior)[0] not in ("uniform", SIMULATED)


def _play_in_processes(runs: list[Run], data: str, cache: str | None, jobs: int) -> Iterator[tuple[Run, Played]]:
    if jobs == 1:
        for run in runs:
            yield run, play_run(run, data, cache)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(play_run, run, data, cache): run for run in runs}
        for future in as_completed(futures):
            yield futures[future], future.result()


def read_runs(file: Path) -> dict[Run, Played]:
    """Return the runs in a file; a line that an interruption cut is skipped."""
    known: dict[Run, Played] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rewards = np.array([int(digit) / 2 for digit in row.pop("rewards")])
        played = Played(rewards, row.pop("ms"))
        known[Run(**row)] = played
    return known


def code_of(kind: ArmKind) -> str:
    """Return a hash of the code and the libraries that the rewards of an arm depend on."""
    home, root = Path(__file__).parent, Path(seasoned.__file__).parent
    files = [root / "envs" / "intent_rounds.py"]
    if kind.needs:
        files.append(home / "decision_peers.py")
    else:
        files += [home / "decision_arms.py", *(file for room in ROOMS for file in sorted((root / room).rglob("*.py")))]
    digest = hashlib.sha256(inspect.getsource(play).encode())
    for file in files:
        digest.update(file.read_bytes())
    digest.update(str([importlib.metadata.version(name) for name in kind.needs]).encode())
    return digest.hexdigest()[:16]


# ------------------------------------------------------------------------------------------------ summary


def summary(played: Mapping[Run, Played]) -> list[dict[str, Any]]:
    """Return a row per task and arm: means over seeds with intervals, and the reference compared, paired by seed."""
    by_cell: dict[tuple[str, str], dict[int, Played]] = defaultdict(dict)
    for run, result in played.items():
        by_cell[run.task, run.arm][run.seed] = result
    rows = []
    for (task, arm), by_seed in by_cell.items():
        rewards = [by_seed[seed].rewards for seed in sorted(by_seed)]
        means = [each.mean() for each in rewards]
        row: dict[str, Any] = {
            "task": task,
            "arm": arm,
            "rounds": sorted({len(each) for each in rewards}),
            "mean": _interval(means),
            "quarters": np.mean([[q.mean() for q in np.array_split(each, 4)] for each in rewards], axis=0).tolist(),
            "regret": _interval([(1.0 - each).sum() for each in rewards]),
            "regret_by_tenth": np.mean([_by_tenth(np.cumsum(1.0 - each)) for each in rewards], axis=0).tolist(),
            "ms": float(np.mean([each.ms for each in by_seed.values()])),
            "by_seed": {seed: float(by_seed[seed].rewards.mean()) for seed in sorted(by_seed)},
        }
        reference = by_cell.get((task, REFERENCE), {})
        paired = [(reference[s].rewards.mean(), by_seed[s].rewards.mean()) for s in sorted(by_seed) if s in reference]
        if arm != REFERENCE and paired:
            row["reference_minus_arm"] = _interval([ours - theirs for ours, theirs in paired])
            if all(theirs > 0 for _, theirs in paired):
                row["reference_over_arm"] = _interval([ours / theirs for ours, theirs in paired])
        rows.append(row)
    return rows


def _interval(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean of independent runs, with its 95 % interval if there are two runs or more."""
    if len(values) < 2:
        return {"mean": float(values[0]), "n": 1}
    return dataclasses.asdict(mean_interval(values))


def _by_tenth(sums: np.ndarray[Any, Any]) -> list[float]:
    """Return cumulative sums after each tenth of the rounds."""
    return [float(sums[-(-len(sums) * tenth // 10) - 1]) for tenth in range(1, 11)]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as a Markdown table, best arm of each task first."""
    lines = [
        f"| task | arm | mean reward | by quarter | regret | {REFERENCE} / arm | ms a round |",
        "|---|---|---|---|---|---|---|",
    ]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    for row in sorted(rows, key=lambda row: (tasks.index(row["task"]), -row["mean"]["mean"])):
        quarters = " ".join(f"{quarter:.2f}" for quarter in row["quarters"])
        ratio = _cell(row["reference_over_arm"], 2) if "reference_over_arm" in row else ""
        lines.append(
            f"| {row['task']} | {row['arm']} | {_cell(row['mean'], 3)} | {quarters} "
            f"| {row['regret']['mean']:,.0f} | {ratio} | {row['ms']:.2f} |"
        )
    return "\n".join(lines)


def _cell(interval: Mapping[str, Any], digits: int) -> str:
    mean = f"{interval['mean']:.{digits}f}"
    return f"{mean} [{interval['low']:.{digits}f}, {interval['high']:.{digits}f}]" if "low" in interval else mean


def plot(played: Mapping[Run, Played], path: Path) -> None:
    """Draw the moving mean of the reward by round, a panel per task, a line per arm: the mean over seeds."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    tasks, arms = (list(dict.fromkeys(getattr(run, name) for run in played)) for name in ("task", "arm"))
    columns = min(4, len(tasks))
    figure, axes = plt.subplots(
        -(-len(tasks) // columns),
        columns,
        figsize=(4.5 * columns + 2, 3.6 * -(-len(tasks) // columns)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    palette = itertools.cycle(mpl.colormaps["tab20"].colors)
    color_of = {arm: "black" if arm == REFERENCE else next(palette) for arm in arms}
    for axis, task in zip(axes.flat, tasks, strict=False):
        for arm in arms:
            curves = [result.rewards for run, result in played.items() if (run.task, run.arm) == (task, arm)]
            shortest = min((len(curve) for curve in curves), default=0)
            if not shortest:
                continue
            mean = np.mean([curve[:shortest] for curve in curves], axis=0)
            window = min(WINDOW, shortest)
            moving = np.convolve(mean, np.ones(window) / window, mode="valid")
            axis.plot(
                np.arange(window, shortest + 1),
                moving,
                label=arm,
                color=color_of[arm],
                linewidth=2.5 if arm == REFERENCE else 1.2,
                linestyle="--" if arm.startswith("full") else "-",
            )
        axis.set(title=task, xlabel="round", ylim=(0, 1))
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(tasks) :]:
        axis.set_visible(False)
    axes[0, 0].set_ylabel(f"mean reward, last {WINDOW} rounds")
    handles = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=110)


# ------------------------------------------------------------------------------------------------ command


def installed_arms(specifications: Sequence[str]) -> list[str]:
    """Return the arms whose libraries are installed, and print how to install those of the others."""
    missing = {
        name for arm in specifications for name in arm_of(arm)[0].needs if importlib.util.find_spec(name) is None
    }
    arms = [arm for arm in specifications if not missing & set(arm_of(arm)[0].needs)]
    if missing:
        left = [arm for arm in specifications if arm not in arms]
        print(f"left out: {', '.join(left)}. pip install {' '.join(name for name in sorted(missing))}")
    return arms


def main() -> None:
    """Play, print, write."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes: one run uses one core
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n", maxsplit=1)[0],
        epilog="arms: " + "; ".join(f"{name}: {kind.about}" for name, kind in KINDS.items()),
    )
    parser.add_argument("--data", required=True, help="folder with data_full.json and domains.json")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--arms", nargs="+", help=f"all but {', '.join(SKIPPED)}; slow ones at some tasks only")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, help="at most this many rounds of every task")
    parser.add_argument("--sentences", type=int, help="draw from this many sentences, the same at every seed")
    parser.add_argument(
        "--prior", default="uniform", help="uniform, simulated?lift=2, or a model such as local?threads=1"
    )
    parser.add_argument("--cache", help="folder for the model's answers; needed with a model")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs/decisions.jsonl"))
    parser.add_argument("--name", default="decisions", help="of the files in results/")
    options = parser.parse_args()
    if _is_read(options.prior) and options.cache is None:
        parser.error("--prior with a model needs --cache FOLDER")
    arms = installed_arms(options.arms or [name for name in KINDS if name not in SKIPPED])
    if options.prior != "uniform" and "alone" not in arms:
        arms.append("alone")
    codes = {arm: code_of(arm_of(arm)[0]) for arm in arms}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    runs = [
        Run(task, arm, seed, options.rounds, options.prior, codes[arm], options.sentences)
        for task in options.tasks
        for seed in seeds
        for arm in arms
        if options.arms or task in SLOW.get(arm, TASKS)
    ]
    played = play_all(runs, options.data, file=options.runs, jobs=options.jobs, cache=options.cache)
    rows = summary(played)
    print(table(rows))
    write_result(
        options.name,
        {
            "command": " ".join(["python benchmarks/decisions.py", *sys.argv[1:]]),
            "seeds": list(seeds),
            "prior": options.prior,
            "libraries": {name: importlib.metadata.version(name) for arm in arms for name in arm_of(arm)[0].needs},
            "rows": rows,
        },
    )
    plot(played, Path(__file__).parent / "results" / f"{options.name}.png")


if __name__ == "__main__":
    main()
