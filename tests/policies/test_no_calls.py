"""Decisions without calls: no setting of a policy opens a socket or starts a program."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import socket, sys
from seasoned import Episode, JitRL, Memory, Step
from seasoned.core import CountBonus, ExplorationBonus, Thompson, UCB
from seasoned.policies import PRESETS, ModelAlone, ShuffledReturns
from seasoned.policies.advice import Advisor
from seasoned.types import Backup

reached = []
FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "urllib.", "http.")
sys.addaudithook(lambda event, args: reached.append(event) if event.startswith(FORBIDDEN) else None)

prior = {"pay": -0.4, "back": -1.2, "wait": -3.0}
memory = Memory.open(sys.argv[1])
for number in range(12):
    action = ("pay", "back", "look")[number % 3]
    memory.add(Episode("buy", [Step("a cart", action, 0.0, prior, 0.5), Step("a form", "pay", number % 2, prior, 0.4)]))
settings = [{"preset": name} for name in PRESETS]
either = [{"backup": Backup(4.0, 0.5)}, {"max_kl_nats": 0.1}, {"clear_only": True}, {"decay": 0.9}]
either += [{"exclude_same_task": True}]
of_means = [{"exploration": rule} for rule in (UCB(), Thompson(), CountBonus(1.0), ExplorationBonus(1.0, 0.5))]
of_means += [{"kappa": None, "levels": "own"}, {"propensity_floor": 0.1}, {"similarity_power": 1.0, "decay": 0.9}]
settings += [{"preset": name, **one} for name in ("default", "means") for one in either]
settings += [{"preset": "means", **one} for one in of_means]
modes = set()
for setting in settings:
    policy = JitRL.preset(setting.pop("preset", "default"), memory, **setting)
    for task in ("buy", "other"):
        modes.add(policy.decide("a cart", prior, admissible="any", task=task, seed=1).mode)
modes.add(JitRL(ShuffledReturns(memory, 0), backup=4.0).decide("a cart", prior, seed=1).mode)
ModelAlone().decide("a cart", prior, seed=1)
Advisor(memory).advise("a cart")
assert modes == {"memory", "base"}, modes
assert not reached, reached
socket.socket().close()
assert reached == ["socket.__new__"], reached  # what looks on does see it
print(len(settings))
"""


def test_decisions_open_no_socket_and_start_no_process(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "a.db")],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 15
