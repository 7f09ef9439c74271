"""The lab's own time per step, without model and environment, compared with one model call.

    python benchmarks/lab.py

Plays a text game by the arms `alone` and `default`, one round per seed. The first round calls the model, and times a
call; the other rounds are answered from its cache, so that their remaining time is the lab's own: prompts, the cache,
the policy and its memory, commits, records. The share refers to a step whose answer is not in the cache.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from seasoned.agents import provenance
from seasoned.core import mean_interval
from seasoned.lab.runner.experiment import Experiment
from seasoned.lab.suites.suite_toml import load_suite, read_suite

RESULTS = Path(__file__).parent / "results" / "lab.json"


def episodes_of(results):
    return [episode for cell in results.runs for episode in cell.episodes]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=10)
    rounds = arguments.parse_args().rounds
    data = load_suite("development").to_json()
    data["arms"] = [arm for arm in data["arms"] if arm["name"] in ("alone", "default")]
    data["tasks"] = [task | {"transfer": []} for task in data["tasks"] if task["name"] == "treasure"]
    shares, own = [], []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "answers.db"
        latency_s, calls = 0.0, 0
        for number in range(rounds + 1):
            experiment = Experiment.begin(Path(folder) / str(number), read_suite(data | {"seeds": [number]}))
            began = time.perf_counter()
            played = episodes_of(experiment.run(cache=cache))
            wall_s = time.perf_counter() - began
            asked_s = sum(episode.usage.latency_s for episode in played)
            latency_s, calls = latency_s + asked_s, calls + sum(episode.usage.calls for episode in played)
            if number:  # the first round opens the model and asks nearly everything
                steps = sum(episode.steps for episode in played)
                rest_s = wall_s - asked_s - sum(episode.environment_s for episode in played)
                own.append(rest_s / steps)
        call_s = latency_s / calls
        shares = [each / (each + call_s) for each in own]
    share, each = mean_interval(shares), mean_interval(own)
    print(f"a model call: {call_s * 1e3:.0f} ms (mean of {calls} calls)")
    print(f"the lab's own time a step: {each.mean * 1e3:.2f} ms [{each.low * 1e3:.2f}, {each.high * 1e3:.2f}]")
    print(f"share of a step that asks: {share.mean:.2%} [{share.low:.2%}, {share.high:.2%}], n = {share.n} rounds")
    RESULTS.write_text(
        json.dumps({"call_s": call_s, "calls": calls, "own_s": own, "shares": shares, **provenance()}, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
