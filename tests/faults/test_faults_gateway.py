"""Calls through a gateway that is killed, with clients that vanish and an upstream that stalls: none is lost."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from faults_gateway import GUARD_S, Crowd, Restarts, Upstream, end_session
from faults_rounds import attack_rounds

from seasoned import Memory


def attack(zygote, folder, seed, *, n_clients, n_episodes, between_kills):
    """Let clients work through a gateway that is killed at random instants; return all that they did and it stored."""
    path, pid_file, draw = folder / "agent.db", folder / "pid", random.Random(seed)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    crowd = Crowd(port, seed, n_clients, n_episodes, vanishes=0.1)
    restarts, upstream = Restarts(pid_file), Upstream(seed, stalls=0.02, breaks=0.05)

    async def killer():
        while True:
            wanted = crowd.n_acknowledged + draw.randrange(*between_kills)
            while crowd.n_acknowledged < wanted:  # a server that never answers has nothing to lose
                await asyncio.sleep(0.005)
            restarts.kill()

    def serve():
        return zygote.start("faults_gateway:serve_again", str(path), port, upstream.url, str(pid_file))

    async def run():
        async with upstream.serving():
            service = serve()
            killing = asyncio.create_task(killer())
            try:
                await crowd.work()
            finally:
                killing.cancel()
            restarts.stop()
            await asyncio.to_thread(service.answer, GUARD_S)

    asyncio.run(run())
    service = serve()  # what an interrupted end left to do is done now, and what still runs is ended by its client
    for number in range(n_clients):
        end_session(port, f"c{number}")
    restarts.stop()
    service.answer(GUARD_S)
    with Memory.open(path) as memory:
        memory.verify()
        return crowd, upstream, restarts.n_kills, list(memory.episodes())


def check(crowd, episodes):
    """Return the number of acknowledged answers; none is lost, and none is stored twice."""
    stored = Counter(step.action for episode in episodes for step in episode.steps)
    acknowledged = [action for done in crowd.acknowledged.values() for action in done]
    actions = {action: f'{{"arguments":{action.replace(" ", "")},"name":"restart"}}' for action in acknowledged}
    lost = [action for action in acknowledged if not stored[actions[action] if action[0] == "{" else action]]
    twice = [action for action, n in stored.items() if n > 1]
    assert not lost, f"{len(lost)} of {len(acknowledged)} are lost: {lost[:5]}"
    assert not twice, f"{len(twice)} are stored twice: {twice[:5]}"
    return len(acknowledged)


def line(crowd, upstream, n_kills, n_acknowledged):
    """Return what was done, as a line of the report."""
    return (
        f"{crowd.n_clients} streams at once through a gateway, {n_kills} kills, {crowd.n_vanished} clients went, "
        f"{upstream.n_stalled} answers stalled, {upstream.n_broken} broke off, {n_acknowledged} acknowledged answers, "
        "0 lost, 0 stored twice"
    )


def test_killed_gateway_loses_no_acknowledged_answer(tmp_path, zygote, report_line):
    crowd, upstream, n_kills, episodes = attack(zygote, tmp_path, 7, n_clients=12, n_episodes=1, between_kills=(15, 20))
    n_acknowledged = check(crowd, episodes)
    report_line(line(crowd, upstream, n_kills, n_acknowledged), kills=n_kills, lost=0)
    assert n_acknowledged == 12 * 3 and n_kills >= 1


@pytest.mark.slow
def test_gateway_of_200_streams_loses_nothing(tmp_path, zygote, report_line):
    n_rounds = attack_rounds("gateways")
    for number in range(n_rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        crowd, upstream, n_kills, episodes = attack(
            zygote, folder, 100 + number, n_clients=200, n_episodes=2, between_kills=(50, 200)
        )
        n_acknowledged = check(crowd, episodes)
        report_line(line(crowd, upstream, n_kills, n_acknowledged), rounds=1, kills=n_kills, lost=0)
        assert n_acknowledged == 200 * 2 * 3
        # The attack itself must be worth something.
        assert n_kills >= 2 and crowd.n_vanished > 50 and upstream.n_stalled > 5 and upstream.n_broken > 10
