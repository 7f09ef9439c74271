"""The on-call agent of `examples/oncall`, unchanged but for its base URL: what each mode of the gateway brings.

Run: python benchmarks/oncall_gateway.py [--runs 10] [--tickets 100] [--lift 600] [--plot FILE]

The agent is `examples/oncall/agent.py` with the official client of OpenAI: eight native tools, a hidden rule, verdicts
three tickets late. `seasoned serve` stands between it and the scripted model, in this process; a verdict is a
`POST /v1/feedback` with the id of the model's last reply. Every way meets the same tickets and, as far as the requests
are equal, the same luck of the model. The ways:

- `alone`: the agent calls the model itself.
- `majority`: the same, with four answers to each call, of which the client takes the most common one: the tokens of
  `rerank`, without a memory.
- `observe`, `examples`, `advise`, `steer`, `rerank`, `decide`: the modes, without a holdout, from an empty memory on.
- `placebo examples`, `placebo decide`: the modes, but each ticket gets the verdict of a random ticket judged so far.

Printed and stored: the mean return of each quarter and its difference to `alone`, paired by run, with its 95 %
interval; calls and tokens; and the mean return of the tickets that the tokens of `alone` pay for (`equal tokens`), less
that of `alone`. `--lift N` runs each mode once more with the holdout on, N tickets of one seed, and prints what the
service says of the lift. A call waits 5 s for memory, so that the load of the machine changes nothing. Writes
`results/oncall_gateway.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from oncall import draw, quarters, summary
from openai import OpenAI
from workload import write_result

from seasoned.core import mean_interval
from seasoned.service import DecisionSettings, GatewaySettings, make_app
from seasoned.service.server import listen, make_server

ONCALL = Path(__file__).parents[1] / "examples" / "oncall"
sys.path.append(str(ONCALL))
from agent_with_memory import handle  # noqa: E402
from server import ModelServer  # noqa: E402
from world import Monitor, Ticket, open_tickets  # noqa: E402

MODES = ("observe", "examples", "advise", "steer", "rerank", "decide")
PLACEBOS = {"placebo examples": "examples", "placebo decide": "decide"}
WAYS = ("alone", "majority", *MODES, *PLACEBOS)
N_ANSWERS, TASK, WAIT_S = 4, "oncall", 5.0


class CountingServer(ModelServer):
    """The scripted model, which adds up the tokens that it bills."""

    n_tokens = 0

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a chat completion."""
        completed = super().complete(request)
        self.n_tokens += completed["usage"]["total_tokens"]
        return completed


class Majority:
    """A client that asks for several answers, and takes the first of the most common tool."""

    def __init__(self, client: OpenAI) -> None:
        self._client = client
        self.chat = self.completions = self

    def create(self, **options: Any) -> Any:
        """Make the call."""
        reply = self._client.chat.completions.create(n=N_ANSWERS, **options)
        names = [choice.message.tool_calls[0].function.name for choice in reply.choices]
        reply.choices = [reply.choices[names.index(Counter(names).most_common(1)[0][0])]]
        return reply


@contextlib.contextmanager
def gateway(upstream: str, path: Path, mode: str, *, holdout: bool) -> Iterator[str]:
    """Serve a gateway before a server, and return its URL."""
    modes: Any = {TASK: mode} if mode != "observe" else {}
    calls = GatewaySettings(modes=modes, holdout=holdout, mode_wait_s=WAIT_S, n_answers=N_ANSWERS)
    app = make_app(path, create=True, decisions=DecisionSettings(upstream=upstream), gateway=calls)
    ready, listening = threading.Event(), listen("127.0.0.1", 0, secured=False)
    server = make_server(app, ready=ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        ready.wait()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def posted(url: str, body: dict[str, Any]) -> None:
    """Post a JSON document."""
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as response:
        response.read()


def play(way: str, seed: int, n_tickets: int, *, holdout: bool = False) -> dict[str, Any]:
    """Work on the tickets of a seed one way; return returns, tokens so far, time, calls, steps, and the lift if any."""
    rng, rewards, mode = np.random.default_rng([seed, 1]), list[float](), PLACEBOS.get(way, way)
    returns, spent, n_steps, lift = np.zeros(n_tickets), np.zeros(n_tickets), 0, None
    with tempfile.TemporaryDirectory() as folder, CountingServer(seed) as model, contextlib.ExitStack() as stack:
        url, client = model.url, Any
        if mode in MODES:
            served = gateway(model.url.removesuffix("/v1"), Path(folder) / "oncall.db", mode, holdout=holdout)
            url = f"{stack.enter_context(served)}/v1"
        client = OpenAI(base_url=url, api_key="unused", default_headers={"x-seasoned-task": TASK})
        agent: Any = Majority(client) if way == "majority" else client
        monitor, began_s = Monitor(), time.perf_counter()
        for ticket in open_tickets(seed, n_tickets):
            handle(agent, ticket)
            returns[ticket.number], spent[ticket.number] = ticket.reward, model.n_tokens
            n_steps += len(ticket.tools)
            for judged, reward in monitor.verdicts_after(ticket):
                rewards.append(reward)
                if mode in MODES:
                    said = float(rng.choice(rewards)) if way in PLACEBOS else reward
                    judge(url, judged, said)
        elapsed_s = time.perf_counter() - began_s
        if holdout:
            with urllib.request.urlopen(f"{url}/lift") as response:
                lift = json.load(response)
        client.close()
    figures = {"returns": returns.tolist(), "tokens": spent.tolist(), "elapsed_s": elapsed_s}
    return {**figures, "calls": model.n_calls, "steps": n_steps, "lift": lift}


def judge(url: str, ticket: Ticket, reward: float) -> None:
    """Give the verdict on a ticket."""
    posted(f"{url}/feedback", {"inference_id": ticket.reply_id, "reward": reward, "source": "slo-monitor"})


def at_equal_tokens(runs: Sequence[dict[str, Any]], alone: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the mean return of the tickets that the tokens of `alone` pay for, less that of `alone`."""
    differences = []
    for one, plain in zip(runs, alone, strict=True):
        n_paid = int(np.searchsorted(one["tokens"], plain["tokens"][-1], side="right"))
        differences.append(float(np.mean(one["returns"][:n_paid]) - np.mean(plain["returns"])))
    interval = mean_interval(differences)
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def shown(gain: dict[str, float]) -> str:
    """Return a difference with its interval as text."""
    return f"{gain['mean']:+.2f} [{gain['low']:+.2f}, {gain['high']:+.2f}]"


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=10, help="the seeds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tickets", type=int, default=100)
    parser.add_argument("--lift", type=int, default=0, metavar="N", help="tickets of a run with the holdout on")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.runs)
    print(f"{options.runs} runs of {options.tickets} tickets, seeds {seeds}")
    print(
        f"{'way':<17}{'calls a step':>13}{'tokens':>8}   at equal tokens        mean return by quarter, and less alone"
    )
    plain = [play("alone", seed, options.tickets) for seed in seeds]
    ways: dict[str, dict[str, Any]] = {}
    for way in options.ways:
        runs = plain if way == "alone" else [play(way, seed, options.tickets) for seed in seeds]
        figures = summary(runs, plain, options.tickets)
        figures["tokens_a_ticket"] = float(np.mean([one["tokens"][-1] for one in runs])) / options.tickets
        figures["at_equal_tokens"] = at_equal_tokens(runs, plain)
        ways[way] = figures
        cells = [
            f"{mean:+.2f}" + ("" if way == "alone" else f" {shown(gain)}")
            for mean, gain in zip(figures["returns"], figures["gains"], strict=True)
        ]
        head = f"{way:<17}{figures['calls_a_step']:>13.2f}{figures['tokens_a_ticket']:>8.0f}"
        print(f"{head}   {shown(figures['at_equal_tokens'])}   {'   '.join(cells)}", flush=True)
    lifts = {}
    for mode in [one for one in MODES if one != "observe" and one in options.ways] if options.lift else ():
        one = play(mode, options.first_seed, options.lift, holdout=True)
        lifts[mode] = {"lift": one["lift"], "last_quarter": float(quarters([one])[0, -1])}
        print(f"lift of {mode}: {json.dumps(one['lift'])}", flush=True)
    if options.plot:
        draw(ways, options.plot)
    told = {
        "tickets": options.tickets,
        "seeds": list(seeds),
        "ways": ways,
        "lift_tickets": options.lift,
        "lifts": lifts,
    }
    write_result(
        "oncall_gateway", {"command": " ".join(["python benchmarks/oncall_gateway.py", *sys.argv[1:]]), **told}
    )


if __name__ == "__main__":
    main()
