"""Batches of episodes, verification, and the agent as an arm of a comparison."""

from __future__ import annotations

import asyncio
import math

import pytest

from seasoned import JitRL, Memory
from seasoned.agents import Agent, VerifyResult, play_run
from seasoned.envs import ContextualBandit, Grid, SupportTriage
from seasoned.errors import EnvError, InputError, ModelUnavailableError
from seasoned.llms import LabelReader, ScriptedLLM
from seasoned.policies.examples import Examples

BANDIT = {"red": {"left": 0.0, "right": 1.0}}


class Gathering:
    """A model that answers only if `n` episodes wait for it, so that it hangs without concurrency."""

    name = "gathering"

    def __init__(self, n, script=lambda request: "Action: east"):
        self.n, self.script = n, script
        self.waiting = self.most = 0
        self.all_here = asyncio.Event()

    async def complete(self, request):
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting >= self.n:
            self.all_here.set()
        async with asyncio.timeout(10):
            await self.all_here.wait()
        await asyncio.sleep(0)
        self.waiting -= 1
        return await ScriptedLLM(self.script).complete(request)

    async def capabilities(self):
        return await ScriptedLLM([]).capabilities()

    async def aclose(self):
        pass


def simple(llm, memory=None, **options):
    return Agent(llm, memory, **{"plan": False, "reason": False} | options)


def east(**options):
    return ScriptedLLM(lambda request: "Action: east", **options)


# ------------------------------------------------------------------------------------------ at the same time


def test_concurrency_is_used_and_limited():
    llm = Gathering(3)
    results = asyncio.run(simple(llm).run_many(lambda n: Grid(["S.G"]), list(range(9)), concurrency=3))
    assert llm.most == 3
    assert [result.seed for result in results] == list(range(9))
    assert all(result.error is None and result.score == 1.0 for result in results)


class Numbered(Grid):
    """A grid with its number in its task; some of them fail, and all record whether they were closed."""

    def __init__(self, number, broken=()):
        super().__init__(["S.G"])
        self.number, self.broken, self.closed = number, broken, False

    @property
    def task(self):
        return f"task {self.number}"

    async def step(self, action):
        if self.number in self.broken:
            raise EnvError(f"environment {self.number}", "it works", "Mend it.")
        return await super().step(action)

    async def aclose(self):
        self.closed = True


def test_results_are_in_order_and_failures_are_independent():
    made = []

    async def make(number):
        if number == 4:
            raise ModelUnavailableError("no room", "there is room", "Wait.")
        made.append(Numbered(number, broken=(1, 3)))
        return made[-1]

    with Memory.open(":memory:") as memory:
        results = asyncio.run(simple(east(), memory).train_many(make, episodes=6, concurrency=3))
        assert [result.error is None for result in results] == [True, False, True, False, False, True]
        assert [result.ending for result in results] == [
            "terminated",
            "aborted",
            "terminated",
            "aborted",
            "aborted",
            "terminated",
        ]
        for number in (0, 1, 2, 3, 5):
            assert memory.get(results[number].episode_id).task == f"task {number}"
        assert memory.get(results[1].episode_id).ending == "aborted"
        assert isinstance(results[4].error, ModelUnavailableError) and results[4].episode_id is None
        assert len(memory.episodes()) == 5 and len(memory) == 6
    assert all(environment.closed for environment in made)


class Unclosed(Grid):
    """A grid that raises an error when it is closed."""

    async def aclose(self):
        raise EnvError("the window stays", "it closes", "Push.")


class Unplayable(Unclosed):
    """A grid that also raises an error at its first step."""

    async def step(self, action):
        raise EnvError("the page is gone", "a page stays", "Open it again.")


def test_error_of_closing_leaves_the_result_unchanged():
    with Memory.open(":memory:") as memory:
        agent = simple(east(), memory, verify=lambda episode: VerifyResult(success=True))
        played, broken = asyncio.run(
            agent.train_many(lambda n: (Unclosed, Unplayable)[n](["S.G"]), seeds=[0, 1], concurrency=1)
        )
        assert (played.ending, played.score, played.steps, played.error) == ("terminated", 1.0, 2, None)
        assert memory.get(played.episode_id).ending == "terminated" and played.verification.success
        assert (played.usage.calls, str(played.close_error)[:16]) == (2, "the window stays")
        assert (broken.ending, str(broken.error)[:16]) == ("aborted", "the page is gone")
        assert str(broken.close_error)[:16] == "the window stays" and broken.episode_id is not None


def test_listed_environments_stay_open():
    given = [Numbered(0), Numbered(1)]
    asyncio.run(simple(east()).run_many(given))
    assert not any(environment.closed for environment in given)


def test_impressions_are_credited_to_their_own_episode():
    """Two episodes wait for each other at every call; each gets the examples of its own task."""

    def script(request):
        return "Action: right"

    with Memory.open(":memory:") as memory:
        asyncio.run(simple(ScriptedLLM(script), memory).train_many([Told("red"), Told("blue")], concurrency=1))
        seen = {}

        def look(event):
            seen.setdefault(event.task, []).extend(one for shown in event.impressions for one in shown.examples)

        agent = simple(Gathering(2, script), memory, on_step=look, examples=Examples(memory, k=1))
        both = asyncio.run(agent.train_many([Told("red"), Told("blue")], concurrency=2))
        for result in both:
            [note] = memory.notes(kind="shown", episode_id=result.episode_id)
            assert [tuple(one) for one in note.body["examples"]] == seen[result.episode.task]
            [(source, _)] = seen[result.episode.task]
            assert memory.get(source).task == result.episode.task


class Told(ContextualBandit):
    """A bandit of one colour, with the colour in its task."""

    def __init__(self, colour):
        super().__init__({f"{colour} {colour}ish": BANDIT["red"]})
        self.colour = colour

    @property
    def task(self):
        return f"Bet on {self.colour}."


def test_ctrl_c_aborts_and_stores_all_running_episodes():
    def stop(event):
        if event.task == "task 2":
            raise KeyboardInterrupt

    with Memory.open(":memory:") as memory:
        agent = simple(east(), memory, on_step=stop)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(agent.train_many([Numbered(n) for n in range(3)], concurrency=3))
        stored = memory.episodes()
        assert len(stored) == 3 and {episode.ending for episode in stored} >= {"aborted"}


@pytest.mark.parametrize(
    ("environments", "options", "says"),
    [
        (lambda n: Grid(["SG"]), {}, "episodes=10"),
        (lambda n: Grid(["SG"]), {"seeds": [1, 2], "episodes": 3}, "one seed"),
        ([Grid(["SG"])], {"seeds": [1, 2]}, "each episode needs one"),
        ([Grid(["SG"])] * 2, {"concurrency": 2}, "concurrency=1"),
        ([Grid(["SG"])], {"concurrency": 0}, "concurrency"),
        (lambda n: Grid(["SG"]), {"episodes": 0}, "episodes"),
        ("grid:SG", {"episodes": 1}, "must be a list, or a function"),
        ([Grid(["SG"])], {"seeds": "1"}, "list"),
        ([Grid(["SG"])], {"seeds": [-1]}, "at least 0"),
    ],
)
def test_contradictory_batch_is_refused_before_playing(environments, options, says):
    llm = east()
    with pytest.raises(InputError, match=says):
        asyncio.run(simple(llm).run_many(environments, **options))
    assert not llm.requests


def test_one_environment_can_be_listed_twice_without_concurrency():
    results = asyncio.run(simple(east()).run_many([Grid(["S.G"])] * 3, concurrency=1))
    assert [result.score for result in results] == [1.0] * 3


# ------------------------------------------------------------------------------------------ checks


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("verdict", "reward", "source"),
    [
        (VerifyResult(success=True), 1.0, "verification"),
        (VerifyResult(success=False, source="tests"), -1.0, "tests"),
        (VerifyResult(reward=0.25), 0.25, "verification"),
        (VerifyResult(success=True, reward=5.0), 5.0, "verification"),
    ],
)
def test_verification_becomes_feedback_on_the_last_step(verdict, reward, source, is_async):
    verified = []

    def check(episode):
        verified.append(episode)
        return verdict

    async def check_later(episode):
        await asyncio.sleep(0)
        return check(episode)

    with Memory.open(":memory:") as memory:
        agent = simple(east(), memory, verify=check_later if is_async else check)
        result = asyncio.run(agent.train(Grid(["S.G"])))
        [event] = memory.events()
        assert (event.episode_id, event.step, event.reward, event.source) == (result.episode_id, 1, reward, source)
        assert result.verification == verdict and result.verify_error is None
        [episode] = verified
        assert (episode.id, episode.steps) == (result.episode_id, memory.get(result.episode_id).steps)
        [last] = memory.search("cell:0,1 open:east,west", 1, 1.0)
        assert last.experience.return_ == 1.0 + reward


@pytest.mark.parametrize("returned", ["error", "passed", True, 1.0])
def test_error_of_verify_is_reported_without_feedback(returned):
    def check(episode):
        if returned == "error":
            raise OSError("the sandbox is gone")
        return returned

    with Memory.open(":memory:") as memory:
        result = asyncio.run(simple(east(), memory, verify=check).train(Grid(["S.G"])))
        assert isinstance(result.verify_error, OSError if returned == "error" else InputError)
        assert result.verification is None and result.error is None and memory.events() == []
        assert memory.get(result.episode_id).ending == "terminated"


def test_verify_may_return_none_and_skips_aborted_episodes():
    verified = []
    with Memory.open(":memory:") as memory:
        agent = simple(east(), memory, verify=verified.append)
        results = asyncio.run(agent.train_many([Numbered(0, broken=(0,)), Grid(["S.G"])]))
        assert [episode.id for episode in verified] == [results[1].episode_id]
        assert results[1].verification is None and results[1].verify_error is None and memory.events() == []


@pytest.mark.parametrize(
    "wrong", [{}, {"success": "yes"}, {"success": 1}, {"reward": math.nan}, {"success": True, "source": " "}]
)
def test_verification_needs_a_success_or_a_reward(wrong):
    with pytest.raises(InputError):
        VerifyResult(**wrong)


def test_late_rewards_are_added_to_their_steps():
    desk = SupportTriage(tickets=3, delay=1, noise=0.0)
    with Memory.open(":memory:", gamma=0.0) as memory:
        llm = ScriptedLLM(lambda request: f"Action: {desk.right_team}")
        result = asyncio.run(simple(llm, memory).train(desk, 0))
        assert [step.reward for step in memory.get(result.episode_id).steps] == [0.0, 1.0, 2.0]
        assert dict(result.late_rewards) == {0: 1.0, 1: 0.0, 2: -1.0}
        assert [n.experience.reward for n in memory.search("x", 9, 0.0)] == [1.0] * 3
        assert result.score == 3.0


# ------------------------------------------------------------------------------------------ in a comparison


@pytest.mark.parametrize("mode", ["none", "prompt", "logits", "both"])
def test_run_plays_and_resumes_the_agent_as_an_arm(mode):
    labels = LabelReader(ScriptedLLM(lambda request: {"A": math.log(0.5), "B": math.log(0.5)}))
    llm = ScriptedLLM(lambda request: "Right is best.")
    with Memory.open(":memory:") as memory:
        agent = Agent(llm, memory, mode=mode, reader=labels, policy=lambda known: JitRL(known, beta=8.0))
        arm = agent.as_arm()
        assert (arm.policy.name, arm.reader.name) == ("base" if mode in ("none", "prompt") else "default+", "scripted")
        options = {"memory": memory, "seed": 0, "run_id": "r", "play": arm.play}
        first = asyncio.run(play_run(ContextualBandit(BANDIT), arm.policy, arm.reader, episodes=4, **options))
        results = asyncio.run(play_run(ContextualBandit(BANDIT), arm.policy, arm.reader, episodes=14, **options))
        assert [result.score for result in results[:4]] == [result.score for result in first]
        assert sum(result.memory_steps for result in results[10:]) == (4 if mode in ("logits", "both") else 0)
        assert {note.kind for note in memory.notes()} == {"plan", "reasoning"} | (
            {"shown"} if mode in ("prompt", "both") else set()
        )
        assert all(result.usage.calls == 3 for result in results[4:])


def test_agent_with_seed_or_verify_is_refused_as_an_arm():
    for options in ({"seed": 0}, {"verify": lambda episode: None}):
        with Memory.open(":memory:") as memory, pytest.raises(InputError, match="play_run"):
            simple(east(), memory, **options).as_arm()
    arm = simple(east()).as_arm()
    assert arm.reader.name == "scripted"
    with pytest.raises(InputError, match="reader"):
        asyncio.run(arm.reader.read("s", "t", ["a"]))
