"""A filing agent does small jobs on files, with past successful steps as examples in its prompt.

The jobs are those of `FileTasks`: real commands run in a temporary directory of real files. A job is done if its goal
is reached and no other file is damaged. Jobs of one kind differ in names, words and numbers, so that a successful
command cannot simply be repeated. `prompt` shows past steps to the model (in-context RL); `both` also shifts the
model's own policy, by the returns of the steps that the prompt does not show.
The model is a script. Alone it acts by habit. An example in the prompt applies if the menu has a command of the same
form (equal except for words of the goals). The model follows the applicable example closest to the question, with the
probability FOLLOWS. This probability is an assumption, and the gain depends on it.

Run: python examples/filing_agent.py [--seed 0] [--seeds 10] [--jobs 32]
"""

from __future__ import annotations

import argparse
import re
from contextlib import ExitStack

import numpy as np

from seasoned import Memory
from seasoned.agents import Agent
from seasoned.core import mean_interval
from seasoned.envs import FileTasks
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.protocols import CompletionRequest
from seasoned.states import ALL_MASKS, TokenEncoder
from seasoned.sync import Sync

KINDS = ("config", "count", "rename", "todos")
VARIANTS = 5  # jobs of each kind, with other files
COMMANDS = 3  # per job
FOLLOWS = 0.6  # the probability that the model follows an applicable example
# The model's logit for a command, in nats, by its first word and independent of the goal.
HABITS = {"cat": 1.5, "ls": 1.5, "head": 1.5, "echo": 1.0, "mv": 1.0}


def form(command: str, goal: str) -> tuple[str, ...]:
    """Return a command's words, with each word of the goal replaced by a mark."""
    goal_words = set(re.findall(r"\w+", goal.lower()))
    return tuple("*" if word in goal_words else word for word in re.findall(r"\w+", command.lower()))


def obliging_model(request: CompletionRequest) -> dict[str, float]:
    """Answer with a logprob for each letter of the menu: by habit, and by the last applicable example."""
    prompt = request.messages[-1].content
    menu = re.findall(r"^([A-Z])\) (.+)$", prompt, re.MULTILINE)
    goal = re.findall(r"^Task: (.+)$", prompt, re.MULTILINE)[0]
    weights = np.exp([HABITS.get(command.split()[0], 0.0) for _, command in menu])
    probs = weights / weights.sum()
    for example in reversed(re.split(r"^Example \d+", prompt, flags=re.MULTILINE)[1:]):
        fields = dict(re.findall(r"^(Goal|Action): (.+)$", example.partition("\n\n")[0], re.MULTILINE))
        wanted = form(fields["Action"], fields.get("Goal", goal))  # an example with the present goal has no Goal line
        same_form = np.array([form(command, goal) == wanted for _, command in menu], dtype=float)
        if same_form.any():
            probs = (1.0 - FOLLOWS) * probs + FOLLOWS * same_form / same_form.sum()
            break
    return {letter: float(np.log(prob)) for (letter, _), prob in zip(menu, probs, strict=True)}


def clerk(jobs: list[FileTasks], seed: int, n_jobs: int, *, arm: str) -> tuple[list[bool], str]:
    """Do `n_jobs`, drawn at random from `jobs`; return for each whether it was done, and the last prompt."""
    done: list[bool] = []
    rng = np.random.default_rng(seed)
    llm = ScriptedLLM(obliging_model)
    with Memory.open(":memory:", encoder=TokenEncoder(masks=ALL_MASKS)) as memory:
        mode = "none" if arm == "alone" else arm
        agent = Agent(llm, memory, mode=mode, reader=LabelReader(llm), plan=False, reason=False, seed=seed, arm=arm)
        with Sync(agent) as sync:
            for job in rng.integers(len(jobs), size=n_jobs):
                done.append(sync.train(jobs[job]).score == 1.0)
    return done, llm.requests[-1].messages[-1].content


def main() -> None:
    """Print the share of jobs done in the three arms by block of jobs, and one prompt."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="independent runs, each with its own jobs")
    parser.add_argument("--jobs", type=int, default=32, help="jobs per run")
    options = parser.parse_args()
    if options.seed < 0 or options.seeds < 2 or options.jobs < 4:
        parser.error("--seed is at least 0, --seeds at least 2 for an interval, --jobs at least 4 for four blocks")
    seeds = range(options.seed, options.seed + options.seeds)
    with ExitStack() as stack:
        jobs = [FileTasks(kind, seed=s, max_steps=COMMANDS) for kind in KINDS for s in range(VARIANTS)]
        for job in jobs:
            stack.enter_context(Sync(job))
        runs = {arm: [clerk(jobs, s, options.jobs, arm=arm) for s in seeds] for arm in ("alone", "prompt", "both")}
    done = {arm: np.array([outcomes for outcomes, _ in of_arm], dtype=float) for arm, of_arm in runs.items()}
    print(f"jobs done, {len(seeds)} runs from seed {options.seed}, the same jobs in every column")
    print(f"the scripted model follows an applicable example with probability {FOLLOWS}")
    print("jobs    alone   prompt   both   both - alone, paired by run")
    for block in np.array_split(np.arange(options.jobs), 4):
        alone, prompt, both = (done[arm][:, block].mean(axis=1) for arm in runs)
        means = f"{alone.mean():>6.2f}   {prompt.mean():>6.2f}   {both.mean():>4.2f}"
        print(f"{f'{block[0] + 1}-{block[-1] + 1}':<6} {means}   {mean_interval(both - alone)}")
    print(f"\nprompt - alone, all jobs: {mean_interval((done['prompt'] - done['alone']).mean(axis=1))}")
    print(f"\nThe first run's last prompt:\n\n{runs['prompt'][0][1]}")


if __name__ == "__main__":
    main()
