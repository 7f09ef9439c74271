"""Decisions over HTTP: the time that the service adds, what a kill loses, and CLINC150 beside the same in process.

Run: python benchmarks/decision_service.py [latency] [kills] [routing --data FOLDER] [--decisions 100000]

`latency`: a fake upstream in a process of its own answers `POST /v1/systemone` at once with constant probabilities.
`seasoned serve` stands before it, with N stored decisions at distinct states of 48 to 60 words. 1, 4 and 16 clients ask
about new members of stored families of states, at the rates of a table, with feedback on every other decision, and 16
at last as fast as they can. For each line the same is asked of the upstream itself; the added latency is the difference
of their quantiles. Beside it are the share of the decisions that memory stored, how many those are a second, and the
latency of these alone: beyond what the processor allows the others are answered at once. Clients, upstream and service
share the machine's cores. The service's processor time a decision depends less on other load.

`kills`: 16 clients decide and give feedback while the server is killed (SIGKILL) and started again. Every decision and
every feedback that was acknowledged must be in the file.

`routing`: the sentences and desks of `decisions.py`, one round at a time, decided by the service over HTTP and by a
`seasoned.Decider` in process; the same prior, rounds and seeds, each with its own draws. FOLDER holds CLINC150.

Writes `benchmarks/results/decision_service.json`; parts that do not run keep their figures there.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from workload import HEADER, StateMaker, percentiles, row, timed_s, without_folders, write_result

import decisions as routing
from seasoned import Decider, Episode, Memory, Step
from seasoned.core import mean_interval
from seasoned.decisions import NamedOptions

DESKS = ("billing", "delivery", "returns", "technical", "accounts", "complaints")
PRIOR = dict(zip(DESKS, (0.4, 0.2, 0.15, 0.1, 0.1, 0.05), strict=True))
INSTRUCTIONS = "Send the message to the right desk."
CLIENTS = 16
LINES = ((1, 5.0), (4, 20.0), (16, 20.0), (16, 40.0), (16, 80.0), (16, 160.0), (16, None))
"""Clients of `latency`, and how many decisions a second they ask for together; None: as fast as they can."""

SATURATED_ASKED = 160.0  # decisions for each second of the measurement, where there is no rate
RESULT = Path(__file__).parent / "results" / "decision_service.json"


# ------------------------------------------------------------------------------------------------ servers


class Upstream(BaseHTTPRequestHandler):
    """Answers System One requests with the probabilities that `prior_of` gives to a state."""

    protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", -1, True
    prior_of: Callable[[str], Mapping[str, float]]

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prior = type(self).prior_of(asked["state"])
        best = max(prior, key=lambda option: prior[option])
        answer = {"type": "choice", "choice": best, "probabilities": dict(prior), "confidence": prior[best]}
        body = json.dumps({"model": "fake", "answers": dict.fromkeys(asked["questions"], answer), "usage": {}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A server that many clients may connect to at once."""

    request_queue_size = 128


@contextlib.contextmanager
def upstream_here(prior_of: Callable[[str], Mapping[str, float]]) -> Iterator[str]:
    """Serve the upstream in a thread of this process."""
    kind = type("Upstream", (Upstream,), {"prior_of": staticmethod(prior_of)})
    server = Server(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def serve_constant() -> None:
    """Serve the constant upstream until killed: the process that `--upstream-only` starts."""
    kind = type("Upstream", (Upstream,), {"prior_of": staticmethod(lambda state: PRIOR)})
    server = Server(("127.0.0.1", 0), kind)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


@contextlib.contextmanager
def started(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server, and yield its process and the URL that it prints."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().split(" ")[0].strip().rstrip("/")
            if not url:
                raise SystemExit(f"no server: {' '.join(command)}")
            yield server, url
        finally:
            server.kill()


def service(path: Path, upstream: str, *options: str) -> contextlib.AbstractContextManager[Any]:
    """Start `seasoned serve`."""
    serve = [sys.executable, "-m", "seasoned", "serve", str(path), "--create", "--port", "0", "--quiet"]
    return started([*serve, "--upstream", upstream, "--no-holdout", *options])


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has taken; NaN where the system does not say."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return math.nan
    ticks = stat.read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


class Client:
    """One connection to a server."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)

    def post(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Send a document, and return the answer, with the id of the decision as `id`."""
        body = json.dumps(document)
        self._connection.request("POST", path, body, {"content-type": "application/json"})
        response = self._connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        if response.status >= 400:
            raise SystemExit(f"{path}: {response.status} {answer}")
        stored = response.getheader("x-seasoned-inference-id")
        return answer if stored is None else {**answer, "id": stored}

    def decide(self, state: str, options: Sequence[str] = DESKS, instructions: str = INSTRUCTIONS) -> dict[str, Any]:
        """Ask for a desk."""
        question = {"type": "choice", "instructions": instructions, "criteria": dict.fromkeys(options)}
        return self.post("/v1/systemone", {"model": "fake", "state": state, "questions": {"desk": question}})

    def feedback(self, answer: Mapping[str, Any], reward: float) -> None:
        """Give the reward of a decision."""
        self.post("/v1/feedback", {"inference_id": answer["id"], "reward": reward})


# ------------------------------------------------------------------------------------------------ latency


def build(path: Path, maker: StateMaker, n: int) -> list[list[int]]:
    """Store judged decisions as the service stores them; return the families of their states."""
    states, families = maker.distinct(n)
    logprobs = {desk: math.log(p) for desk, p in PRIOR.items()}
    taken = maker.rng.choice(len(DESKS), size=n, p=list(PRIOR.values()))
    rewards = (maker.rng.random(n) < 0.4).tolist()
    episodes = []
    for state, desk, reward in zip(states, taken.tolist(), rewards, strict=True):
        asked = NamedOptions.of(state, DESKS, name="desk", instructions=INSTRUCTIONS)
        prior = dict(zip(asked.actions, logprobs.values(), strict=True))
        step = Step(asked.state, asked.actions[desk], float(reward), prior, PRIOR[DESKS[desk]])
        episodes.append(Episode(asked.task, [step], model="fake", awaits_feedback=False))
    with Memory.open(path) as memory:
        for start in range(0, n, 5000):
            memory.add_many(episodes[start : start + 5000])
    return families


class Asked(NamedTuple):
    """What clients saw.

    Args:
        seconds: of each decision.
        stored: of each, whether memory stored it.
        shifted: of each, whether memory shifted it.
        spent_s: until the last answer.
    """

    seconds: list[float]
    stored: list[bool]
    shifted: list[bool]
    spent_s: float


def ask(url: str, states: Sequence[str], *, clients: int, rate: float | None, with_feedback: bool) -> Asked:
    """Let clients ask about the states, so many a second together, or as fast as they can."""
    pace_s = 0.0 if rate is None else clients / rate
    seen: list[tuple[float, bool, bool]] = []
    began = time.perf_counter()

    def client(number: int) -> None:
        connection = Client(url)
        due = time.perf_counter() + pace_s * number / clients
        for count, state in enumerate(states[number::clients]):
            time.sleep(max(0.0, due - time.perf_counter()))
            due += pace_s
            spent_s, answer = timed_s(connection.decide, state)
            seen.append((spent_s, "id" in answer, answer.get("x_seasoned", {}).get("mode") == "memory"))
            if with_feedback and count % 2 and "id" in answer:
                connection.feedback(answer, float(count % 4 == 1))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, stored, shifted = map(list, zip(*seen, strict=True))
    return Asked(seconds, stored, shifted, time.perf_counter() - began)


def latency(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the added latency by clients and by rate, and the throughput."""
    maker = StateMaker(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "built.db"
        build_s, families = timed_s(build, path, maker, options.decisions)
        print(f"{options.decisions} decisions, stored in {build_s:.0f} s\n\n{HEADER}")

        def states(n: int) -> list[str]:
            return [maker.member(families[int(at)]) for at in maker.rng.integers(len(families), size=n)]

        with (
            started([sys.executable, __file__, "--upstream-only"]) as (_, upstream),
            service(path, upstream) as (server_process, url),
        ):
            first_s, _ = timed_s(Client(url).decide, states(1)[0])
            figures: dict[str, Any] = {"first_s": first_s, "decisions": options.decisions, "lines": []}
            for clients, rate in LINES:
                n = int((rate or SATURATED_ASKED) * options.seconds)
                bare = ask(upstream, states(n), clients=clients, rate=rate, with_feedback=False)
                cpu_before_s = cpu_s(server_process.pid)
                asked = ask(url, states(n), clients=clients, rate=rate, with_feedback=True)
                cpu_per_s = (cpu_s(server_process.pid) - cpu_before_s) / n
                line = _line(clients, rate, asked, bare) | {"cpu_s_per_decision": cpu_per_s}
                figures["lines"].append(line)
                name = f"{clients} clients, {'as fast as they can' if rate is None else f'{rate:g} a second'}"
                print(row(name, line["service"]))
                print(
                    f"  adds {_in_ms(line['added'])}; stored {line['stored_share']:.0%}, "
                    f"{line['stored_per_s']:.0f} a second, of these p50 {1e3 * line['stored']['p50_s']:.1f} ms, "
                    f"p99 {1e3 * line['stored']['p99_s']:.1f} ms; processor {1e3 * cpu_per_s:.1f} ms a decision",
                    flush=True,
                )
    return figures


def _line(clients: int, rate: float | None, asked: Asked, bare: Asked) -> dict[str, Any]:
    """Return the figures of one line of the table."""
    found, alone = percentiles(asked.seconds), percentiles(bare.seconds)
    of_stored = [spent_s for spent_s, is_stored in zip(asked.seconds, asked.stored, strict=True) if is_stored]
    return {
        "clients": clients,
        "rate_per_s": rate,
        "service": found,
        "upstream": alone,
        "added": {key: found[key] - alone[key] for key in ("p50_s", "p95_s", "p99_s")},
        "stored": percentiles(of_stored or [math.nan]),
        "stored_share": float(np.mean(asked.stored)),
        "shifted_share": float(np.mean(asked.shifted)),
        "stored_per_s": sum(asked.stored) / asked.spent_s,
        "decisions_per_s": len(asked.seconds) / asked.spent_s,
    }


def _in_ms(added: Mapping[str, float]) -> str:
    return ", ".join(f"{1e3 * value:.1f} ms ({key[:3]})" for key, value in added.items())


# ------------------------------------------------------------------------------------------------ kills


def kills(options: argparse.Namespace) -> dict[str, Any]:
    """Kill the service under load, and look for everything that it acknowledged."""
    maker = StateMaker(options.seed)
    decided: list[str] = []
    rated: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        started([sys.executable, __file__, "--upstream-only"]) as (_, upstream),
    ):
        path = Path(folder) / "agent.db"
        families = build(path, maker, 200)
        for _ in range(options.kills):
            states = [maker.member(families[int(at)]) for at in maker.rng.integers(len(families), size=64)]
            with service(path, upstream) as (server, url):

                def client(number: int, url: str = url, states: Sequence[str] = states) -> None:
                    with contextlib.suppress(OSError, http.client.HTTPException, ValueError, SystemExit):
                        connection = Client(url)
                        while True:
                            answer = connection.decide(states[number])
                            if "id" not in answer:  # memory did not answer in time: nothing was acknowledged
                                continue
                            decided.append(answer["id"])
                            connection.feedback(answer, 1.0)
                            rated.append(answer["id"])

                threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
                for thread in threads:
                    thread.start()
                time.sleep(options.uptime)
                os.kill(server.pid, signal.SIGKILL)
                for thread in threads:
                    thread.join()
        with Memory.open(path) as memory:
            summary = memory.verify()
            stored = {episode.id for episode in memory.iter_episodes()}
            judged = {event.episode_id for event in memory.events()}
    lost = [one for one in decided if one.split(":")[0] not in stored]
    unrated = [one for one in rated if one.split(":")[0] not in judged]
    print(
        f"{options.kills} kills: {len(decided)} decisions acknowledged, {len(lost)} lost; {len(rated)} feedbacks, "
        f"{len(unrated)} lost; the file verifies ({summary.hash[:12]})"
    )
    return {
        "kills": options.kills,
        "uptime_s": options.uptime,
        "decisions": len(decided),
        "lost_decisions": len(lost),
        "feedbacks": len(rated),
        "lost_feedbacks": len(unrated),
    }


# ------------------------------------------------------------------------------------------------ routing


def route_over_http(rounds: Sequence[Any], prior_of: routing.PriorOf, names: Sequence[str], question: str) -> Any:
    """Play the rounds by the service, and return the rewards."""

    def probs(state: str) -> dict[str, float]:
        return {option: math.exp(logprob) for option, logprob in prior_of(state).items()}

    rewards, n_unstored = np.zeros(len(rounds)), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        upstream_here(probs) as upstream,
        service(Path(folder) / "agent.db", upstream, "--choose", "sample") as (_, url),
    ):
        client = Client(url)
        for t, each in enumerate(rounds):
            answer = client.decide(each.text, names, question)
            option = answer["answers"]["desk"]["choice"]
            rewards[t] = each.rewards[option]
            if "id" in answer:
                client.feedback(answer, each.observed(option))
            n_unstored += "id" not in answer
    if n_unstored:
        print(f"{n_unstored} decisions without memory: it did not answer in time")
    return rewards


def route_in_process(rounds: Sequence[Any], prior_of: routing.PriorOf, names: Sequence[str], question: str) -> Any:
    """Play the rounds by a `Decider`, and return the rewards."""
    rewards = np.zeros(len(rounds))

    def probs(state: str, options: Sequence[str]) -> dict[str, float]:
        return {option: math.exp(logprob) for option, logprob in prior_of(state).items()}

    with Memory.open(":memory:") as memory, Decider(memory, probs) as decider:
        for t, each in enumerate(rounds):
            decision = decider.decide(each.text, names, question="desk", instructions=question)
            rewards[t] = each.rewards[decision.action]
            decider.learn(decision, each.observed(decision.action))
    return rewards


def route(options: argparse.Namespace) -> dict[str, Any]:
    """Play CLINC150's desks both ways, paired by seed."""
    means: dict[str, list[float]] = {"http": [], "in process": []}
    quarters: dict[str, list[Any]] = {"http": [], "in process": []}
    question = routing.TASKS[options.task][2]
    for seed in range(options.seeds):
        run = routing.Run(options.task, "", seed, options.rounds, options.prior, "")
        names, rounds, prior_of = routing._setting(run, options.data, options.cache)
        for name, play in (("http", route_over_http), ("in process", route_in_process)):
            spent_s, rewards = timed_s(play, rounds, prior_of, names, question)
            means[name].append(float(rewards.mean()))
            quarters[name].append([float(part.mean()) for part in np.array_split(rewards, 4)])
            print(
                f"seed {seed}, {name}: {rewards.mean():.3f}, {1e3 * spent_s / len(rounds):.1f} ms a round", flush=True
            )
    figures: dict[str, Any] = {
        "task": options.task,
        "prior": options.prior,
        "rounds": options.rounds or routing.TASKS[options.task][1],
        "mean_by_seed": means,
        "quarters": {name: np.mean(of_seeds, axis=0).tolist() for name, of_seeds in quarters.items()},
    }
    if options.seeds > 1:
        difference = mean_interval(np.array(means["http"]) - np.array(means["in process"]))
        print(f"http - in process: {difference}")
        figures["difference"] = {"mean": difference.mean, "low": difference.low, "high": difference.high}
    return figures


def main() -> None:
    """Measure, print, write."""
    if sys.argv[1:] == ["--upstream-only"]:
        serve_constant()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("parts", nargs="*", choices=("latency", "kills", "routing", []), help="default: the first two")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--decisions", type=int, default=100_000, help="stored before")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each line of the latency table")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--uptime", type=float, default=2.0, help="seconds between start and kill")
    parser.add_argument("--data", help="folder with CLINC150")
    parser.add_argument("--task", choices=routing.TASKS, default="desks-8", metavar="TASK")
    parser.add_argument("--prior", default="uniform", help="uniform, or a model such as local")
    parser.add_argument("--cache", help="folder for the model's answers")
    parser.add_argument("--rounds", type=int, help="of routing; default: those of the task")
    parser.add_argument("--seeds", type=int, default=5, help="of routing")
    options = parser.parse_args()
    parts = options.parts or ["latency", "kills"]
    if "routing" in parts and options.data is None:
        parser.error("routing needs --data FOLDER")
    figures: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    figures = {name: figures[name] for name in ("latency", "kills", "routing") if name in figures}
    command = without_folders(" ".join(["python benchmarks/decision_service.py", *sys.argv[1:]]))
    for name, measure in (("latency", latency), ("kills", kills), ("routing", route)):
        if name in parts:
            part = {**measure(options), "command": command, "load_average_1min": os.getloadavg()[0]}
            if name == "routing":
                figures[name] = {**figures.get(name, {}), options.prior: part}
            else:
                figures[name] = part
    write_result("decision_service", {"command": command, **figures})


if __name__ == "__main__":
    main()
