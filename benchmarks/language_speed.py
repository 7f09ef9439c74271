"""The time of a decision where states are sentences, by the number of stored ones, beside peers.

Run: python benchmarks/language_speed.py [--states 10000 100000 1000000] [--decisions 300] [--rounds 300] [--folder DIR]

Sentences have ten words (and sixty, at up to `--long-states` states), drawn independently by Zipf's law (`p ~ 1/rank`)
from 50,000. Stores are built once and kept in `--folder`. Each case runs in a fresh process, once with the compiled
kernel (the extra `fast`) and once with NumPy alone:

- opening: the store is opened and one decision made, after a warm-up on a small memory in RAM.
- decisions: `JitRL.decide` of the preset `default` among 8 actions about new sentences. After each, the same
  sentence goes to the preset of the means and to a brute-force scan: a sparse product of all stored vectors (of whole
  words, without subwords) with the query and the 64 best, by scipy where it is installed, else by NumPy. Ratios are
  taken sentence by sentence.
- rounds: decide and learn in a memory in RAM that holds 10,000 rounds; then the means in theirs, and Vowpal Wabbit's
  SquareCB where it is installed.
- candidates: decisions among 1,000 actions at 10,000 states where each was taken.
- sixty words, episodes of 50 steps: opening and first decision at `--opening-states`.

Beside wall-clock times it gives the processor time of the thread, which other work on the machine changes less. Writes
`benchmarks/results/language_speed.json`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from workload import percentiles, timed_s, word_of, write_result

from seasoned import Episode, JitRL, Memory, Step
from seasoned.memory.index.kernel import KERNELS
from seasoned.memory.stores.sqlite_schema import SCHEMA_VERSION

VOCABULARY_WORDS = 50_000
SHORT, LONG = 10, 60
LONG_EPISODE_STEPS = 50
BATCH_STATES = 50_000
BANDIT_STATES = 10_000
N_NEIGHBORS = 64
PRESET = "default"
MEANS = "means"
DESKS = [f"desk {i}" for i in range(8)]
MANY = [f"open item {i} of the list" for i in range(1000)]


class Sentences:
    """Sentences of `n_words` words by Zipf's law, from a seed."""

    def __init__(self, seed: int, n_words: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._n_words = n_words
        weights = np.cumsum(1.0 / np.arange(1, VOCABULARY_WORDS + 1))
        self._cumulative = weights / weights[-1]
        self._words = [word_of(i) for i in range(VOCABULARY_WORDS)]

    def draw(self, n: int) -> list[str]:
        """Return n sentences."""
        ranks = np.searchsorted(self._cumulative, self.rng.random((n, self._n_words)))
        return [" ".join(map(self._words.__getitem__, row)) for row in ranks.tolist()]

    def episodes(self, n_states: int, n_steps: int, actions: list[str], first: int = 0) -> list[Episode]:
        """Return episodes of `n_steps` steps each, with random actions, and rewards 1 in three of ten steps."""
        states = self.draw(n_states)
        chosen = self.rng.integers(len(actions), size=n_states).tolist()
        rewards = (self.rng.random(n_states) < 0.3).astype(float).tolist()
        steps = [Step(state, actions[a], reward) for state, a, reward in zip(states, chosen, rewards, strict=True)]
        return [
            Episode(f"task {at % 50}", steps[at : at + n_steps], id=f"episode-{first + at:08d}")
            for at in range(0, n_states, n_steps)
        ]


def store(folder: Path, n: int, n_words: int, actions: list[str], seed: int) -> Path:
    """Build a store of n states, or find an earlier one."""
    n_steps = 1 if n_words == SHORT else LONG_EPISODE_STEPS
    path = folder / f"language-{n}-{n_words}-{len(actions)}-{seed}-v{SCHEMA_VERSION}.db"
    if not path.with_suffix(".built").exists():
        for left in folder.glob(f"{path.name}*"):
            left.unlink()
        print(f"making {path}", flush=True)
        maker = Sentences(seed, n_words)
        with Memory.open(path) as memory:
            for first in range(0, n, BATCH_STATES):
                memory.add_many(maker.episodes(min(BATCH_STATES, n - first), n_steps, actions, first))
        path.with_suffix(".built").touch()
    return path


def even(actions: list[str]) -> dict[str, float]:
    """Return the uniform prior."""
    return dict.fromkeys(actions, -math.log(len(actions)))


def measured(times: dict[str, list[float]], name: str, call: Callable[..., Any], *arguments: Any, **given: Any) -> Any:
    """Call, and note wall-clock and processor time."""
    began_cpu = time.thread_time()
    took_s, result = timed_s(call, *arguments, **given)
    times.setdefault(f"{name}, processor", []).append(time.thread_time() - began_cpu)
    times.setdefault(name, []).append(took_s)
    return result


def scan_of(sentences: list[str]) -> tuple[str, Callable[[str], Any]]:
    """Return a brute-force search of the most similar sentences, and by which library."""
    number: dict[str, int] = {}
    sets = [sorted({number.setdefault(word, len(number)) for word in text.split()}) for text in sentences]
    sizes = np.array(list(map(len, sets)))
    tokens = np.concatenate(list(map(np.array, sets))).astype(np.int32)
    squared = np.log1p((len(sets) + 1.0) / (np.bincount(tokens) + 1.0)) ** 2
    starts = np.concatenate([[0], np.cumsum(sizes)])
    norms = np.sqrt(np.add.reduceat(squared[tokens], starts[:-1]))
    matrix: Any = None
    if importlib.util.find_spec("scipy"):
        from scipy.sparse import csr_matrix

        values = np.repeat(1.0 / norms, sizes)
        matrix = csr_matrix((values, tokens, starts), shape=(len(sets), len(number)))

    def scan(text: str) -> Any:
        query = np.zeros(len(number))
        known = [number[word] for word in set(text.split()) if word in number]
        query[known] = squared[known]
        near = np.add.reduceat(query[tokens], starts[:-1]) / norms if matrix is None else matrix @ query
        return np.argpartition(near, len(near) - N_NEIGHBORS)[-N_NEIGHBORS:]

    return ("NumPy" if matrix is None else "scipy"), scan


def warm_up(n_words: int) -> None:
    """Import everything, load the kernel, and make one decision in RAM."""
    if importlib.util.find_spec("numba"):
        KERNELS.load("numba")()
    with Memory.open(":memory:") as memory:
        memory.add_many(Sentences(1, n_words).episodes(100, 1, DESKS))
        JitRL.preset(PRESET, memory).decide("warm up", even(DESKS), seed=0)


def open_case(path: Path, n_words: int, actions: list[str], seed: int, decisions: int, peers: int) -> dict[str, Any]:
    """Open, decide once; then decide often."""
    warm_up(n_words)
    texts = Sentences(seed + 1, n_words).draw(decisions + 1)
    began_cpu = time.process_time()
    opened_s, memory = timed_s(Memory.open, path)
    policy, prior = JitRL.preset(PRESET, memory), even(actions)
    first_s, _ = timed_s(policy.decide, texts[0], prior, seed=0)
    found: dict[str, Any] = {
        "open_and_first_decision_s": opened_s + first_s,
        "open_and_first_decision_processor_s": time.process_time() - began_cpu,
    }
    if not decisions:
        return found
    times: dict[str, list[float]] = {}
    for text in texts[1:21]:
        policy.decide(text, prior, seed=0)
    means = JitRL.preset(MEANS, memory)
    means.decide(texts[0], prior, seed=0)
    scan_name, scan = scan_of(stored_sentences(path, n_words, seed)) if peers else ("", None)
    for i, text in enumerate(texts[1:]):
        measured(times, PRESET, policy.decide, text, prior, seed=0)
        measured(times, MEANS, means.decide, text, prior, seed=0)
        if scan is not None and i < peers:
            measured(times, f"scan by {scan_name}", scan, text)
    return {**found, "seconds": times}


def stored_sentences(path: Path, n_words: int, seed: int) -> list[str]:
    """Return the sentences of a store, drawn again."""
    n = int(path.name.split("-")[1])
    maker, sentences = Sentences(seed, n_words), list[str]()
    for first in range(0, n, BATCH_STATES):
        some = min(BATCH_STATES, n - first)
        sentences += [step.state for episode in maker.episodes(some, 1, DESKS) for step in episode.steps]
    return sentences


def bandit_case(seed: int, rounds: int) -> dict[str, Any]:
    """Decide and learn, in memories that hold 10,000 rounds."""
    times: dict[str, list[float]] = {}
    maker = Sentences(seed, SHORT)
    held, texts = maker.episodes(BANDIT_STATES, 1, DESKS), maker.draw(rounds + 20)
    prior = even(DESKS)
    for preset in (PRESET, MEANS):
        with Memory.open(":memory:") as memory:
            memory.add_many(held)
            policy = JitRL.preset(preset, memory)

            def play(number: int, text: str, policy: JitRL = policy, memory: Memory = memory) -> None:
                decision = policy.decide(text, prior, seed=0)
                memory.add(Episode("route", [Step(text, decision.action, float(number % 3 == 0))]))

            for number, text in enumerate(texts):
                measured(times if number >= 20 else {}, preset, play, number, text)
    if importlib.util.find_spec("vowpalwabbit"):
        from vowpalwabbit import Workspace

        model = Workspace(f"--cb_explore {len(DESKS)} --squarecb --ngram w2 -b 18 --quiet")

        def play_vw(number: int, text: str) -> None:
            probs = model.predict(f"| {text}")
            action = int(np.argmax(probs))
            model.learn(f"{action + 1}:{-float(number % 3 == 0)}:{probs[action]} | {text}")

        for number, text in enumerate([episode.steps[0].state for episode in held] + texts):
            measured(times if number >= BANDIT_STATES + 20 else {}, "Vowpal Wabbit", play_vw, number, text)
    return {"seconds": times}


def in_child(kernel: str, name: str, *arguments: Any) -> dict[str, Any]:
    """Run one case in a fresh process."""
    command = [sys.executable, __file__, "--child", json.dumps([kernel, name, *map(str, arguments)])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def child(kernel: str, name: str, *arguments: str) -> dict[str, Any]:
    """Run one case in this process."""
    if kernel == "numpy":
        sys.modules["numba"] = None  # type: ignore[assignment]  # as if the extra were not installed
    if name == "bandit":
        return bandit_case(*map(int, arguments))
    path, n_words, n_actions, seed, decisions, peers = arguments
    actions = DESKS if int(n_actions) == len(DESKS) else MANY
    return open_case(Path(path), int(n_words), actions, int(seed), int(decisions), int(peers))


def report(case: str, kernel: str, found: dict[str, Any]) -> dict[str, Any]:
    """Print the figures of a case, and return them."""
    figures: dict[str, Any] = {"case": case, "kernel": kernel}
    if "open_and_first_decision_s" in found:
        figures |= {name: value for name, value in found.items() if name != "seconds"}
        took = ", ".join(f"{found[name]:.2f} s" for name in found if name != "seconds")
        print(f"{case}, {kernel}: opening and first decision {took} of the processor")
    own = found.get("seconds", {}).get(PRESET, [])
    for name, seconds in found.get("seconds", {}).items():
        figures[name] = percentiles(seconds)
        if name != PRESET and "processor" not in name:
            ratios = [one / ours for one, ours in zip(seconds, own, strict=False)]
            figures[name]["median_ratio_to_process"] = float(np.median(ratios))
        times = " ".join(f"{key[:-2]} {1e3 * figures[name][key]:8.3f}" for key in ("p50_s", "p99_s", "min_s"))
        ratio = figures[name].get("median_ratio_to_process")
        print(f"    {name:<32} n={len(seconds):<5} {times} ms" + (f"   ratio {ratio:.2f}" if ratio else ""), flush=True)
    return figures


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--states", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--long-states", type=int, default=100_000, help="states of sixty words, for decisions")
    parser.add_argument("--opening-states", type=int, default=1_000_000, help="states of sixty words, to be opened")
    parser.add_argument("--decisions", type=int, default=300)
    parser.add_argument("--scans", type=int, default=100, help="decisions with a brute-force scan after them")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--kernels", nargs="*", default=["numba", "numpy"])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*json.loads(options.child))))
        return
    seed, n_decisions, n_scans = options.seed, options.decisions, options.scans
    cases = [(f"{n} states of ten words", n, SHORT, DESKS, n_decisions, n_scans) for n in options.states]
    if options.long_states:
        n = options.long_states
        cases.append((f"{n} states of sixty words", n, LONG, DESKS, n_decisions, n_scans))
    cases.append(("1,000 candidates at 10000 states of ten words", BANDIT_STATES, SHORT, MANY, n_decisions, 0))
    if options.opening_states:
        cases.append((f"{options.opening_states} states of sixty words", options.opening_states, LONG, DESKS, 50, 0))
    results = []
    for kernel in options.kernels:
        for case, n, n_words, actions, decisions, scans in cases:
            path = store(options.folder, n, n_words, actions, seed)
            found = in_child(kernel, "open", path, n_words, len(actions), seed, decisions, scans)
            results.append(report(case, kernel, found))
        found = in_child(kernel, "bandit", seed, options.rounds)
        results.append(report(f"a round at {BANDIT_STATES} rounds", kernel, found))
    command = " ".join(["python benchmarks/language_speed.py", *sys.argv[1:]])
    write_result("language_speed", {"command": command, "seed": seed, "cases": results})


if __name__ == "__main__":
    main()
