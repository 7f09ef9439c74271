"""Twenty chores in a repository with house rules, by `seasoned chat` with memory, without it, and with a placebo.

Run: python benchmarks/chores.py [--runs 10] [--tries 3]

A run has a repository of its own with four house rules, drawn by its seed: which command runs the tests, which one
formats, which one checks types, and in which folder pages go. A chore is one of the four for one of five modules, in an
order drawn by the seed. The wrong commands end with an error; a page in a wrong folder is refused by `make docs`.

The model is scripted. It has habits, an order of the commands drawn by the seed, and it reads its prompt: of the
commands that it has not tried in this chore it takes first one that an example in the prompt did, and last one that the
prompt says to avoid. It knows nothing else. A chore is done when a command is green; after `--tries` that are not, the
model gives up. `commands` counts the tries until green, and one more than all where there was none.

Arms, each with the same repository, chores and habits: `on`; `off`, nothing is recalled; `placebo`, recalled from a
memory with the same steps whose rewards are permuted over all of them after each chore. Differences are paired;
intervals: 95 %, bootstrap over runs (`seasoned.core.mean_interval`). Writes `benchmarks/results/chores.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sys
import tempfile
from pathlib import Path

from workload import write_result

from seasoned import Episode, Memory, Step
from seasoned.chat import Assistant, ScriptScreen, open_assistant
from seasoned.core import mean_interval
from seasoned.llms import ScriptedLLM
from seasoned.protocols import Completion, CompletionRequest, ToolCall, Usage
from seasoned.states.encoder_names import ENCODERS

ARMS = ("on", "off", "placebo")
MODULES = ("cart", "search", "login", "billing", "stock")
WAYS = {
    "run the tests of {}": ("pytest tests/{}", "tox -e {}", "nox -s {}", "make test-{}", "sh run_tests.sh {}"),
    "format the code of {}": ("ruff format {}", "black {}", "prettier {}", "make fmt-{}", "sh style.sh {}"),
    "check the types of {}": ("mypy {}", "pyright {}", "pytype {}", "make types-{}", "sh types.sh {}"),
    "write a page about {}": ("docs/{}.md", "doc/{}.md", "wiki/{}.md", "notes/{}.md", "pages/{}.md"),
}
PAGES = "write a page about {}"
_GREEN = {"run the tests of {}": "===== 3 passed in 0.02s ====="}


class House:
    """The rules of one repository, the habits of the model and the order of the chores, by a seed."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.rules = {kind: draw.choice(ways) for kind, ways in WAYS.items()}
        self.habits = {kind: draw.sample(ways, len(ways)) for kind, ways in WAYS.items()}
        self.chores = [(kind, module) for kind in WAYS for module in MODULES]
        draw.shuffle(self.chores)

    def build(self, root: Path) -> None:
        """Write the repository, and the programs that its commands find on PATH."""
        (root / ".git").mkdir(parents=True)
        programs = root / "bin"
        programs.mkdir()
        for kind, ways in WAYS.items():
            if kind == PAGES:
                continue
            for way in ways:
                first = way.split()[0]
                said = _GREEN.get(kind, "all is well") if way == self.rules[kind] else "error: not set up here"
                line = f"echo '{said}'; exit {0 if way == self.rules[kind] else 1}"
                if first == "make":
                    target = way.split()[1].split("-")[0]
                    with (root / "make_cases").open("a") as cases:
                        cases.write(f"{target}-*) {line};;\n")
                elif first == "sh":
                    (root / way.split()[1]).write_text(line + "\n")
                elif kind.startswith("run") or not (programs / first).exists():
                    (programs / first).write_text(f"#!/bin/sh\n{line}\n")
        folder = self.rules[PAGES].split("/")[0]
        check = f'for f in */*.md; do case $f in {folder}/*) ;; *) echo "error: $f is no page"; exit 1;; esac; done'
        cases = (root / "make_cases").read_text() if (root / "make_cases").exists() else ""
        (programs / "make").write_text(f"#!/bin/sh\ncase $1 in\n{cases}docs) {check}; echo ok;;\nesac\n")
        for program in programs.iterdir():
            program.chmod(0o755)


class ReadingModel:
    """A scripted model with habits, which reads the examples in its prompt."""

    def __init__(self, house: House, root: Path, tries: int) -> None:
        self._house, self._root, self._tries = house, root, tries
        self.kind, self.module, self.tried, self.is_green = PAGES, MODULES[0], [], False

    def begin(self, kind: str, module: str) -> None:
        """Begin a chore."""
        self.kind, self.module, self.tried, self.is_green = kind, module, [], False

    def __call__(self, request: CompletionRequest) -> Completion | str:
        """Return the next call, or the end of the chore."""
        result, prompt = request.messages[-1], request.messages[-1].content
        if result.role == "tool" and result.name == "run":
            said = prompt.partition("[records of")[0]
            if "exit code: 0" in said:
                self.is_green = True
                return "Done."
            if self.kind == PAGES:  # the page in the wrong folder goes
                (self._root / self.tried[-1].format(self.module)).unlink(missing_ok=True)
        elif result.role == "tool":
            return _call("run", {"command": "make docs"})
        if len(self.tried) == self._tries:
            return "I give up."
        way = self._next(prompt)
        self.tried.append(way)
        text = way.format(self.module)
        if self.kind == PAGES:
            return _call("write_file", {"path": text, "content": f"# {self.module}\n"})
        return _call("run", {"command": text})

    def _next(self, prompt: str) -> str:
        heads = re.split(r"What went (best|worse) before", prompt)
        liked = "".join(heads[at + 1] for at, head in enumerate(heads) if head == "best")
        shunned = "".join(heads[at + 1] for at, head in enumerate(heads) if head == "worse")

        def rank(way: str) -> tuple[int, int]:
            name = re.escape(way).replace(r"\{\}", r"[a-z]+")
            likes = any(re.search(name, line) for line in liked.splitlines() if line.startswith("Action:"))
            shuns = any(re.search(name, line) for line in shunned.splitlines() if "ction:" in line or "avoid:" in line)
            return shuns - 2 * likes, self._house.habits[self.kind].index(way)

        left = [way for way in WAYS[self.kind] if way not in self.tried] or list(WAYS[self.kind])
        return min(left, key=rank)


def _call(name: str, arguments: dict[str, str]) -> Completion:
    return Completion(
        "", "scripted", Usage(1, cost_usd=0.0), "tool_calls", (), (ToolCall("c", name, json.dumps(arguments)),)
    )


def placebo_of(memory: Memory, seed: int) -> Memory:
    """Return a memory with the same steps, the rewards permuted over all of them."""
    waiting = {episode.id for episode in memory.awaiting()}
    episodes = [episode for episode in memory.episodes() if episode.id not in waiting]
    places = [(str(episode.id), at) for episode in episodes for at in range(len(episode.steps))]
    found = memory.experiences(places)
    rewards = [found[place].reward for place in places]
    random.Random(seed).shuffle(rewards)
    shuffled = dict(zip(places, rewards, strict=True))
    placebo = Memory.open(":memory:", gamma=memory.gamma, encoder=ENCODERS["masked"])
    placebo.add_many(
        Episode(
            episode.task,
            [Step(step.state, step.action, shuffled[str(episode.id), at]) for at, step in enumerate(episode.steps)],
            ending=episode.ending,
        )
        for episode in episodes
    )
    return placebo


async def play(assistant: Assistant, model: ReadingModel, house: House, arm: str, seed: int, tries: int) -> list[int]:
    """Do the chores; return the number of commands until each was green, `tries` + 1 where none was."""
    commands = []
    for number, (kind, module) in enumerate(house.chores):
        model.begin(kind, module)
        if arm == "placebo":
            assistant.recall_from(placebo_of(assistant.memory, 1000 * seed + number))
        await assistant.turn(kind.format(module))
        commands.append(len(model.tried) if model.is_green else tries + 1)
    await assistant.toolbox.aclose()
    return commands


def run(seed: int, arm: str, tries: int) -> list[int]:
    """Play one run of one arm in a new repository."""
    house = House(seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "shop"
        house.build(root)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{root / 'bin'}:/usr/bin:/bin"
        model = ReadingModel(house, root, tries)
        settings = {"recalls": arm != "off", "max_calls": 3 * tries}
        try:
            with open_assistant(
                ScriptedLLM(model),
                ScriptScreen(),
                folder=root,
                memory_path=Path(folder) / "chat.db",
                granted=["edit", "run"],
                **settings,
            ) as assistant:
                return asyncio.run(play(assistant, model, house, arm, seed, tries))
        finally:
            os.environ["PATH"] = before


def main() -> None:
    """Run the arms, print the figures, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--tries", type=int, default=3)
    options = parser.parse_args()
    commands = {arm: [run(seed, arm, options.tries) for seed in range(options.runs)] for arm in ARMS}
    figures: dict[str, object] = {"command": " ".join(["python", *sys.argv]), "runs": options.runs, "arms": {}}
    for arm in ARMS:
        mean = [sum(each) / len(each) for each in commands[arm]]
        done = [sum(n <= options.tries for n in each) / len(each) for each in commands[arm]]
        last = [sum(each[10:]) / 10 for each in commands[arm]]
        row = {}
        for name, values in (("commands", mean), ("commands in the last ten", last), ("done", done)):
            found = mean_interval(values)
            row[name] = [round(found.mean, 3), round(found.low, 3), round(found.high, 3)]
        if arm != "off":
            alone = [sum(each) / len(each) for each in commands["off"]]
            gain = mean_interval([one - other for one, other in zip(mean, alone, strict=True)])
            row["commands less off"] = [round(gain.mean, 3), round(gain.low, 3), round(gain.high, 3)]
        row["curve"] = [round(sum(each[at] for each in commands[arm]) / options.runs, 2) for at in range(20)]
        figures["arms"][arm] = row
        print(arm, row)
    write_result("chores", figures)


if __name__ == "__main__":
    main()
