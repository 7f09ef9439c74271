"""A coding assistant does chores in a repository with house rules, and learns which commands work there.

Each run has a repository of its own: of four scripts that could run the tests, one works, and so for the formatter and
the types. The assistant is that of `seasoned chat`; its commands run in a real shell. The model is a script with
habits: it tries two commands for a chore, in an order of its own, and does not remember. But it reads its prompt: a
command that an example shows as good comes first, one to avoid comes last. So all learning comes from the memory.

Run: python examples/repository_chores.py [--seed 0] [--seeds 10] [--chores 24]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from pathlib import Path

import numpy as np

from seasoned.chat import ScriptScreen, open_assistant
from seasoned.core import mean_interval
from seasoned.llms import ScriptedLLM
from seasoned.protocols import Completion, CompletionRequest, ToolCall, Usage

TRIES = 2
MODULES = ("cart", "search", "login", "billing", "stock")
WAYS = {
    "run the tests": ("sh ci/tests.sh", "sh tools/pytest.sh", "sh bin/check.sh", "sh scripts/test.sh"),
    "format the code": ("sh tools/black.sh", "sh ci/format.sh", "sh scripts/style.sh", "sh bin/fmt.sh"),
    "check the types": ("sh scripts/mypy.sh", "sh bin/types.sh", "sh ci/typing.sh", "sh tools/pyright.sh"),
}


class House:
    """A repository: which command works for each kind of chore, and the chores in their order."""

    def __init__(self, seed: int, n_chores: int) -> None:
        rng = np.random.default_rng(seed)
        self.rules = {kind: str(rng.choice(ways)) for kind, ways in WAYS.items()}
        self.habits = {kind: [str(way) for way in rng.permutation(ways)] for kind, ways in WAYS.items()}
        self.chores = [(str(rng.choice(list(WAYS))), str(rng.choice(MODULES))) for _ in range(n_chores)]

    def build(self, root: Path) -> None:
        """Write the scripts; those of another house end with an error."""
        (root / ".git").mkdir(parents=True)
        for kind, ways in WAYS.items():
            for way in ways:
                works = way == self.rules[kind]
                said = ("3 passed in 0.02s" if kind == "run the tests" else "all is well") if works else "not set up"
                script = root / way.split()[1]
                script.parent.mkdir(exist_ok=True)
                script.write_text(f"echo '{said}'\nexit {int(not works)}\n")


class HabitualModel:
    """Tries the commands of a chore by habit, unless an example in the prompt says better."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._kind, self._module, self._tried = "", "", []
        self.is_done = False

    def begin(self, kind: str, module: str) -> str:
        """Begin a chore, and return the request for it."""
        self._kind, self._module, self._tried, self.is_done = kind, module, [], False
        return f"{kind} of {module}"

    def __call__(self, request: CompletionRequest) -> Completion | str:
        """Answer with the next command, or with the end of the chore."""
        result, _, records = request.messages[-1].content.partition("[records of earlier episodes]")
        self.is_done = self._tried != [] and "exit code: 0" in result
        if self.is_done or len(self._tried) == TRIES:
            return "It is done." if self.is_done else "I give up."
        way = min((way for way in self._house.habits[self._kind] if way not in self._tried), key=self._rank(records))
        self._tried.append(way)
        call = ToolCall("call", "run", json.dumps({"command": f"{way} {self._module}"}))
        return Completion("", "scripted", Usage(1, cost_usd=0.0), "tool_calls", (), (call,))

    def _rank(self, records: str):
        """Return the key of a command's rank: first what an example likes, last what one avoids, else by habit."""
        parts = re.split(r"What went (best|worse) before", records)
        best = "".join(text for verdict, text in zip(parts[1::2], parts[2::2], strict=True) if verdict == "best")
        worse = "".join(text for verdict, text in zip(parts[1::2], parts[2::2], strict=True) if verdict == "worse")
        liked = " ".join(line for line in best.splitlines() if line.startswith("Action:"))
        shunned = " ".join(line for line in worse.splitlines() if "ction:" in line or "avoid:" in line)
        return lambda way: ((way in shunned) - 2 * (way in liked), self._house.habits[self._kind].index(way))


async def work(seed: int, n_chores: int, *, recalls: bool) -> tuple[list[bool], str]:
    """Do the chores; return which were done, and what was recalled for the last one."""
    house = House(seed, n_chores)
    model = HabitualModel(house)
    with tempfile.TemporaryDirectory() as folder:
        house.build(Path(folder, "shop"))
        places = {"folder": Path(folder, "shop"), "memory_path": Path(folder, "chat.db")}
        with open_assistant(
            ScriptedLLM(model), ScriptScreen(), granted=["run"], recalls=recalls, **places
        ) as assistant:
            done = []
            for kind, module in house.chores:
                report = await assistant.turn(model.begin(kind, module))
                done.append(model.is_done)
            await assistant.toolbox.aclose()
            return done, f"{report.calls[0]['call']}\nrecalled: {report.recalled[0].summary or 'nothing'}"


def main() -> None:
    """Print the share of chores that were done, with and without memory, by block of chores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="independent runs, each with its own repository")
    parser.add_argument("--chores", type=int, default=24, help="chores per run")
    options = parser.parse_args()
    if options.seed < 0 or options.seeds < 2 or options.chores < 4:
        parser.error("--seed is at least 0, --seeds at least 2 for an interval, --chores at least 4 for four blocks")
    seeds = range(options.seed, options.seed + options.seeds)
    alone = np.array([asyncio.run(work(seed, options.chores, recalls=False))[0] for seed in seeds])
    runs = [asyncio.run(work(seed, options.chores, recalls=True)) for seed in seeds]
    memory = np.array([done for done, _ in runs])
    print(
        f"chores done within {TRIES} commands, {len(seeds)} repositories from seed {options.seed}, both columns alike"
    )
    print("chores      alone   memory   memory - alone, paired by run")
    for block in np.array_split(np.arange(options.chores), 4):
        difference = mean_interval((memory.astype(float) - alone)[:, block].mean(axis=1))
        span = f"{block[0] + 1}-{block[-1] + 1}"
        print(f"{span:<10} {alone[:, block].mean():>6.2f}   {memory[:, block].mean():>6.2f}   {difference}")
    print(f"\nThe first command of the first run's last chore:\n{runs[0][1]}")


if __name__ == "__main__":
    main()
