"""The arm `cascade`: the player of each episode, the decider of each step, notes, costs, refusals."""

from __future__ import annotations

import asyncio
import textwrap

import pytest

from seasoned import JitRL, Memory
from seasoned.agents import UniformReader, play_run
from seasoned.envs import ContextualBandit, Grid
from seasoned.errors import InputError, SeasonedError, UnknownNameError
from seasoned.lab.arms.cascade_arm import cascade_arm
from seasoned.lab.arms.registry import build_arm, check_arm
from seasoned.lab.arms.teachers import close_teacher, open_teacher
from seasoned.lab.results.run_results import load_results
from seasoned.lab.runner.experiment import Experiment
from seasoned.lab.runner.learning_run import Workbench
from seasoned.lab.suites.suite import ArmSpec
from seasoned.lab.suites.suite_toml import read_suite
from seasoned.llms import LLMS, CachedLLM, LabelReader, ScriptedLLM
from seasoned.protocols import PriorReading, Usage
from seasoned.types import Prior

HERE = "seasoned.agents:UniformReader"
DOORS = ContextualBandit({"doors": {"east": 1.0, "north": 0.0, "south": 0.0}}, rounds=3, noise="none")
TEACHER = """
    from seasoned.protocols import PriorReading, Usage
    from seasoned.types import Prior

    made = []

    class Teacher:
        name = "teacher"

        def __init__(self, best="east"):
            self.best, self.closed = best, 0
            made.append(self)

        async def read(self, state, task, candidates):
            p = {each: -9.0 for each in candidates} | {self.best: -0.001}
            prior = Prior({each: p[each] for each in candidates}, model="teacher")
            return PriorReading(prior, Usage(calls=1, prompt_tokens=10, cost_usd=0.5))

        async def aclose(self):
            self.closed += 1

    other = "not to be called"

    def number():
        return 3
"""


@pytest.fixture(scope="module")
def teacher_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("teachers") / "my_teacher.py"
    file.write_text(textwrap.dedent(TEACHER))
    return file


@pytest.fixture(scope="module")
def spec(teacher_file):
    return f"python:{teacher_file}:Teacher"


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


def undecided(request):
    return dict.fromkeys("ABCD", -1.4)


def build(memory, llm=True, kind="cascade", **settings):
    model = ScriptedLLM(undecided) if llm is True else llm
    reader = UniformReader() if model is None else LabelReader(model)
    return build_arm(ArmSpec("it", kind, settings), memory=memory, llm=model, reader=reader, seed=0)


def play(arm, memory, episodes, environment=DOORS, run_id="r"):
    return asyncio.run(
        play_run(
            environment,
            arm.policy,
            arm.reader,
            memory=memory,
            episodes=episodes,
            seed=1,
            run_id=run_id,
            play=arm.play,
            learn=arm.learn,
            arm="it",
        )
    )


def decided(memory):
    """Return the deciders of the steps, by episode."""
    deciders = {}
    for note in memory.notes(kind="decided"):
        deciders.setdefault(note.episode_id, []).append(note.body["by"])
    return [deciders[episode.id] for episode in memory.episodes()]


class Sure:
    """A teacher that records the states of its requests."""

    name = "sure"

    def __init__(self, best):
        self.best, self.states = best, []

    async def read(self, state, task, candidates):
        self.states.append(state)
        p = {each: 0.0 if each == self.best else -40.0 for each in candidates}
        return PriorReading(Prior(p, model=self.name), Usage(calls=1, prompt_tokens=10, cost_usd=0.5))


# ------------------------------------------------------------------------------------- who plays


def test_teacher_plays_the_first_episodes_at_its_cost(spec, memory):
    results = play(build(memory, llm=None, teacher=spec, fill_episodes=2, mode="logits"), memory, 4)
    assert decided(memory)[:2] == [["teacher"] * 3] * 2
    assert [step.action for episode in memory.episodes()[:2] for step in episode.steps] == ["east"] * 6
    assert [result.usage.cost_usd for result in results[:2]] == [1.5, 1.5]
    assert "episode 1 of 2 to fill" in {note.body["reason"] for note in memory.notes(kind="decided")}


def shifted(memory):
    return JitRL(memory, beta=8.0)


def taught(memory, best, episodes):
    """Play with a teacher: an undecided student asks at every step."""
    teacher = Sure(best)
    arm = cascade_arm(UniformReader(), teacher, memory)
    play(arm, memory, episodes, run_id=best)
    assert len(teacher.states) == 3 * episodes


def test_confidence_of_the_student_includes_its_memory(memory):
    """Without evidence it asks at every step, with clear evidence at none."""
    taught(memory, "south", 3)
    taught(memory, "east", 9)
    teacher = Sure("north")
    results = play(cascade_arm(UniformReader(), teacher, memory, policy=shifted), memory, 4)
    assert not teacher.states
    assert [result.memory_steps for result in results] == [3] * 4
    assert {step.action for e in memory.episodes() if e.id.startswith("r-") for step in e.steps} == {"east"}


def test_answer_of_the_teacher_is_not_shifted(memory):
    """Memory prefers east; the teacher answers north, and north is taken."""
    taught(memory, "south", 3)
    taught(memory, "east", 9)
    arm = cascade_arm(UniformReader(), Sure("north"), memory, policy=shifted, agreement=1.0)
    [result] = play(arm, memory, 1)
    assert [step.action for step in memory.get("r-00000").steps] == ["north"] * 3
    assert (result.memory_steps, result.kl_nats) == (0, 0.0)


@pytest.mark.parametrize(
    ("mode", "kind", "settings"),
    [
        (
            "logits",
            "jitrl",
            {"preset": "means", "exploration": {"rule": "ExplorationBonus", "alpha": 0.5, "rate": 0.5}, "k": 4},
        ),
        ("prompt", "prompt", {"window_tokens": 300, "k": 2}),
        ("both", "both", {"window_tokens": 300, "beta": 2.0}),
    ],
)
def test_always_confident_student_plays_like_the_arm_without_a_teacher(spec, mode, kind, settings):
    """Every draw and every shift is equal to those of the plain arm."""
    world = Grid(["S..", "..G"], max_steps=6, slip=0.2)
    with Memory.open(":memory:") as one, Memory.open(":memory:") as other:
        cascade = play(build(one, teacher=spec, mode=mode, agreement=1e-9, **settings), one, 6, world)
        alone = play(build(other, kind=kind, **settings), other, 6, world)
        assert [e.steps for e in one.episodes()] == [e.steps for e in other.episodes()]
        facts = [
            [(r.score, r.flips, r.kl_nats, r.memory_steps, r.usage) for r in results] for results in (cascade, alone)
        ]
        assert facts[0] == facts[1]
        shown = [[(n.episode_id, n.step, n.body) for n in m.notes(kind="shown")] for m in (one, other)]
        assert shown[0] == shown[1]
        assert bool(shown[0]) == (mode != "logits")
        assert {by for each in decided(one) for by in each} == {"student"}
        assert {e.policy for e in one.episodes()} == {e.policy for e in other.episodes()}


@pytest.mark.parametrize("mode", ["prompt", "logits", "both"])
@pytest.mark.parametrize("broken_after", [1, 3])
def test_resumed_run_ends_like_an_uninterrupted_one(spec, mode, broken_after):
    """The interruption is among the teacher's episodes, or after them."""
    world = Grid(["S..", "..G"], max_steps=6, slip=0.2)
    settings = {"teacher": spec, "mode": mode, "fill_episodes": 2, "samples": 2, "agreement": 0.3, "min_evidence": 4.0}
    with Memory.open(":memory:") as whole, Memory.open(":memory:") as broken:
        unbroken = play(build(whole, **settings), whole, 5, world)
        play(build(broken, **settings), broken, broken_after, world)
        resumed = play(build(broken, **settings), broken, 5, world)

        def facts(memory, results):
            notes = [(n.kind, n.episode_id, n.step, n.body) for n in memory.notes()]
            return [e.steps for e in memory.episodes()], notes, [(r.score, r.usage) for r in results[broken_after:]]

        assert facts(whole, unbroken) == facts(broken, resumed)
        assert len({by for each in decided(whole)[2:] for by in each}) == 2, "both decide, or this shows little"


# ------------------------------------------------------------------------------------- what is noted


def test_examples_are_credited_with_the_steps_of_the_student_only(spec, memory):
    """The teacher does not see the examples, so its steps are no evidence about them."""
    llm = ScriptedLLM(lambda request: {"A": -0.01, "B": -5.0, "C": -5.0} if request.seed else undecided(request))
    arm = build(memory, llm, teacher=spec, fill_episodes=1, samples=2, min_evidence=2.0, window_tokens=300)
    world = Grid(["S..", "..G"], max_steps=6, slip=0.2)
    play(arm, memory, 6, world)
    by = {(n.episode_id, n.step): n.body["by"] for n in memory.notes(kind="decided")}
    shown = {(n.episode_id, n.step) for n in memory.notes(kind="shown")}
    assert set(by) == {(e.id, step) for e in memory.episodes() for step in range(len(e.steps))}
    assert all(by[place] == "student" for place in shown)
    assert shown
    assert set(by.values()) == {"student", "teacher"}


def test_usage_of_both_models_is_counted(memory):
    """The student's reading counts also where the teacher decides."""
    teacher = Sure("east")
    llm = ScriptedLLM(undecided)
    [result] = play(cascade_arm(LabelReader(llm), teacher, memory), memory, 1)
    assert len(teacher.states) == 3
    assert result.usage.calls == 3 + len(llm.requests)
    assert result.usage.cost_usd == 1.5


# ------------------------------------------------------------------------------------- the teacher


def test_teacher_is_closed_with_its_arm(spec, memory):
    arm = build(memory, teacher=spec, fill_episodes=1)
    play(arm, memory, 2)
    assert arm.reader.teacher.closed == 0
    asyncio.run(arm.reader.aclose())
    assert arm.reader.teacher.closed == 1


def test_model_of_a_teacher_is_closed():
    class Noticed(ScriptedLLM):
        closed = False

        async def aclose(self):
            self.closed = True

    model = Noticed([])
    asyncio.run(close_teacher(LabelReader(model)))
    assert model.closed


def test_teacher_comes_from_a_model_a_module_or_a_file(spec, teacher_file, monkeypatch):
    assert open_teacher("uniform").name == open_teacher(f"python:{HERE}").name == "uniform"
    assert open_teacher(f"{spec}?best=north").best == "north"
    assert open_teacher(spec, settings={"best": "south"}).best == "south"
    assert type(open_teacher(spec)) is type(open_teacher(spec)), "a file is loaded once"
    monkeypatch.chdir(teacher_file.parent)
    assert open_teacher("python:my_teacher.py:Teacher").name == "teacher"
    model = open_teacher("openai:large", settings={"base_url": "http://localhost:1/v1", "api_key": "none"})
    assert "large" in model.name
    asyncio.run(close_teacher(model))


def sure_model(name):
    """Register a model that counts its requests."""
    ASKED.append(ScriptedLLM(lambda request: {"A": -0.01, "B": -5.0, "C": -5.0}, name=name))
    return ASKED[-1]


ASKED = []


def test_teacher_shares_the_cache_of_its_student(tmp_path, memory):
    LLMS.register("sure", f"{__name__}:sure_model")  # as a program adds a kind of model
    ASKED.clear()
    for run in ("one", "two"):  # with one file of answers
        student = CachedLLM(ScriptedLLM(undecided), tmp_path / "answers.db")
        play(build(memory, llm=student, teacher="sure:large", fill_episodes=1), memory, 1, run_id=run)
    first, again = ASKED
    assert len(memory.episodes()) == 2
    assert first.requests
    assert not again.requests


def test_suite_without_an_episode_for_the_student_is_refused(tmp_path):
    suite = {
        "name": "taught",
        "seeds": 1,
        "model": "uniform",
        "tasks": [{"name": "corridor", "env": "grid:S..G", "episodes": 4}],
        "arms": [{"name": "alone"}, {"name": "taught", "kind": "cascade", "settings": LOGITS | {"fill_episodes": 3}}],
    }
    Experiment.begin(tmp_path / "two", read_suite(suite))
    suite["arms"][1]["episodes"] = 3
    with pytest.raises(InputError, match=r"fill_episodes = 3, with 3 episodes of corridor.*must be less"):
        Experiment.begin(tmp_path / "three", read_suite(suite))
    assert not (tmp_path / "three").exists()


LOGITS = {"teacher": "uniform", "mode": "logits"}


@pytest.mark.parametrize(
    ("settings", "error", "seen"),
    [
        ({}, InputError, "teacher = None"),
        ({"teacher": 3}, InputError, "teacher = 3"),
        ({"teacher": "unifrom"}, UnknownNameError, "Did you mean 'uniform'"),
        ({"teacher": "python:"}, InputError, "a callable in it"),
        ({"teacher": "python:no_such_module:make"}, InputError, "no_such_module"),
        ({"teacher": "python:no_such_file.py:make"}, InputError, "no file"),
        ({"teacher": "python:seasoned.agents:NoReader"}, InputError, "NoReader"),
        ({"teacher": "FILE:other"}, InputError, "not callable"),
        ({"teacher": "FILE:number"}, InputError, "reads no policy|a teacher is a reader"),
        ({"teacher": "FILE:Teacher?worst=east"}, InputError, "worst"),
        ({"teacher": "FILE:Teacher?best"}, InputError, "name=value"),
        ({"teacher": "FILE:Teacher", "teacher_reader": "votes"}, InputError, "has no reading method"),
        ({"teacher": "uniform", "teacher_settings": "free"}, InputError, "teacher_settings = 'free'"),
        ({"teacher": "uniform", "teacher_settings": {"base_url": "x"}}, InputError, "'uniform' has no settings"),
        ({"teacher": "uniform", "mode": "promt"}, InputError, "Did you mean 'prompt'"),
        ({"teacher": "uniform", "samples": 1}, InputError, "samples = 1"),
        ({"teacher": "uniform", "agreement": 2.0}, InputError, "agreement = 2.0"),
        ({"teacher": "uniform", "min_evidence": -1.0}, InputError, "min_evidence = -1.0"),
        ({"teacher": "uniform", "fill_episodes": -1}, InputError, "fill_episodes = -1"),
        ({"teacher": "uniform", "fill_episode": 1}, InputError, "Did you mean 'fill_episodes'"),
        ({"teacher": "uniform", "beta": 2.0}, InputError, "beta with mode = 'prompt'"),
        ({"teacher": "uniform", "window_tokens": 1}, InputError, "budget_tokens = 1"),
        (LOGITS | {"window_tokens": 300}, InputError, "window_tokens with mode = 'logits'"),
        (LOGITS | {"preset": "defualt"}, UnknownNameError, "Did you mean 'default'"),
        (LOGITS | {"gamma": 1.5}, InputError, "gamma"),
    ],
)
def test_bad_settings_are_refused_before_the_first_episode(settings, error, seen, memory, teacher_file):
    settings = {
        n: v.replace("FILE", f"python:{teacher_file}") if n == "teacher" and isinstance(v, str) else v
        for n, v in settings.items()
    }
    for attempt in (lambda: check_arm(ArmSpec("a", "cascade", settings)), lambda: build(memory, **settings)):
        with pytest.raises(error, match=seen) as caught:
            attempt()
        assert caught.value.next_step


def test_examples_need_a_prompt(memory):
    for mode in ("prompt", "both"):
        with pytest.raises(SeasonedError, match="with the model uniform"):
            build(memory, llm=None, teacher="uniform", mode=mode)


# ------------------------------------------------------------------------------------- in the lab


def test_suite_with_a_teacher_is_played(spec, tmp_path):
    suite = read_suite(
        {
            "name": "taught",
            "seeds": 1,
            "model": "uniform",
            "tasks": [{"name": "corridor", "env": "grid:S...G?max_steps=12", "episodes": 4}],
            "arms": [
                {"name": "alone"},
                {"name": "cascade", "settings": {"teacher": spec, "mode": "logits", "fill_episodes": 1}},
            ],
        }
    )
    Experiment.begin(tmp_path / "lab", suite)
    bench = Workbench(tmp_path / "lab", tmp_path / "answers.db")
    try:
        bench.check_arms()
        for cell in suite.runs():
            assert bench.play(cell, lambda *_: None)
    finally:
        bench.close()
    played = {str(each.key): each for each in load_results(tmp_path / "lab").runs}
    assert all(cell.done for cell in played.values())
    first = played["corridor/cascade/0"].episodes[0]
    assert (first.score, first.usage.cost_usd) == (1.0, 2.0)
