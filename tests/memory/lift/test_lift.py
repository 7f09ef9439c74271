"""The lift of a memory: from assignments and outcomes as they are stored, by the definition."""

import asyncio
import threading

import numpy as np
import pytest
from postgres_server import postgres  # noqa: F401

from seasoned import Episode, Holdout, JitRL, Memory, ModelAlone, Step
from seasoned.core.lift.assignment import unit_number
from seasoned.core.lift.scores import lift_scores
from seasoned.errors import InputError, IntegrityError, NotFoundError
from seasoned.types.notes import ASSIGNMENT

CANDIDATES = {"click(pay)": -0.1, "click(back)": -2.4}


def play(memory, policy, outcome, *, task="checkout", **fields):
    """Play one episode of one step; `outcome` maps the arm to the reward."""
    with memory.episode(task=task, **fields) as episode:
        decision = policy.decide("page:cart", CANDIDATES, seed=0)
        arm = "control" if decision.mode == "holdout" else "treated"
        episode.record("page:cart", decision, reward=outcome(arm))
    return episode.id, arm


def assignments(memory):
    return {note.body["unit"]: note.body for note in memory.notes(kind=ASSIGNMENT)}


def test_lift_follows_the_definition_and_late_feedback():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:") as memory:
        policy = Holdout(JitRL(memory), memory, bounds=(-1.0, 2.0))
        played = [play(memory, policy, lambda arm: rng.random() + 0.2 * (arm == "treated")) for _ in range(60)]
        memory.feedback(played[3][0], reward=-0.5)  # rated again, and so last
        order = [*range(3), *range(4, 60), 3]
        bodies, episodes = assignments(memory), {one.id: one for one in memory.episodes()}
        outcomes = [episodes[id_].steps[0].reward - 0.5 * (i == 3) for i, (id_, _) in enumerate(played)]
        found = memory.lift("checkout")
        scored = lift_scores(
            np.array([outcomes[i] for i in order]),
            np.array([played[i][1] == "treated" for i in order]),
            np.array([bodies[played[i][0]]["control_share"] for i in order]),
            low=-1.0,
            high=2.0,
        )
        assert found.mean == pytest.approx(3 * scored.scores.mean())
        assert found.low <= found.mean <= found.high
        assert found.n_treated == sum(arm == "treated" for _, arm in played)
        assert found.control.mean == pytest.approx(
            np.mean([outcomes[i] for i in range(60) if played[i][1] == "control"])
        )
        assert (found.state, found.warnings, found.n_mixed) == ("learning", (), 0)
        assert memory.lift() == {"checkout": found}
        with pytest.raises(NotFoundError, match="checkuot"):
            memory.lift("checkuot")


def test_a_second_process_keeps_the_arm_of_a_named_unit(place):
    with Memory.open(place) as first, Memory.open(place) as second:
        here, there = (Holdout(ModelAlone(), memory) for memory in (first, second))
        arms = {f"e{i}": here.assign(task="t", unit=f"e{i}") for i in range(20)}
        assert {one.arm for one in arms.values()} == {"treated", "control"}
        assert first.lift("t").control.n_assigned + first.lift("t").treated.n_assigned == 20
        for unit, assigned in arms.items():
            assert there.assign(task="t", unit=unit) == assigned
            mode = there.decide("page:cart", CANDIDATES, task="t", unit=unit).mode
            assert (mode == "holdout") == (assigned.arm == "control")
        second.add(Episode("t", [Step("page:cart", "click(pay)", 1.0)], "e0"))
        lift = first.lift("t")
        assert (lift.n_treated + lift.n_control, lift.treated.n_aborted + lift.control.n_aborted) == (1, 0)
        recorded = [play(second, there, lambda arm: 0.5, task="t") for _ in range(3)]
        first.feedback(recorded[0][0], reward=0.25)
        lift = first.lift("t")
        assert lift == second.lift("t")
        assert lift.n_treated + lift.n_control == 4
        first.verify()


def test_threads_and_tasks_each_have_their_own_episode():
    with Memory.open(":memory:") as memory:
        policy = Holdout(ModelAlone(), memory)

        async def run(i):
            with memory.episode(task="t", id=f"task-{i}") as episode:
                for _ in range(2):
                    await asyncio.sleep(0)
                    episode.record("page:cart", policy.decide("page:cart", CANDIDATES))

        async def all_of_them():
            await asyncio.gather(*(run(i) for i in range(8)))

        asyncio.run(all_of_them())
        failures = []

        def work():
            try:
                policy.decide("page:cart", CANDIDATES, task="t")
            except InputError as error:
                failures.append(str(error))

        with memory.episode(task="t") as episode:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            episode.record("page:cart", "click(pay)")
        assert len(failures) == 1
        assert "unit=" in failures[0]
        assert set(assignments(memory)) == {f"task-{i}" for i in range(8)}
        arms = {one.id: one.arm for one in memory.episodes() if one.arm}
        assert arms == {unit: body["arm"] for unit, body in assignments(memory).items()}


def test_an_aborted_episode_keeps_its_assignment_and_is_not_rated():
    with Memory.open(":memory:") as memory:
        policy = Holdout(ModelAlone(), memory)
        with pytest.raises(KeyError), memory.episode(task="t"):
            policy.decide("page:cart", CANDIDATES)
            raise KeyError
        lift = memory.lift("t")
        assert lift.treated.n_assigned + lift.control.n_assigned == 1
        assert lift.treated.n_aborted + lift.control.n_aborted == 1
        assert (lift.mean, lift.n_treated + lift.n_control) == (None, 0)


def test_an_episode_that_awaits_feedback_is_rated_by_it():
    with Memory.open(":memory:") as memory:
        policy = Holdout(ModelAlone(), memory)
        id_, arm = play(memory, policy, lambda arm: 0.0, awaits_feedback=True)
        before = memory.lift("checkout")
        assert (before.n_treated + before.n_control, before.mean) == (0, None)
        memory.feedback(id_, reward=1.0)
        after = memory.lift("checkout")
        assert (after.treated if arm == "treated" else after.control).mean == 1.0
        assert after.n_treated + after.n_control == 1


def test_an_outcome_out_of_bounds_counts_as_the_nearer_one_and_is_named(caplog):
    with Memory.open(":memory:") as memory:
        policy = Holdout(ModelAlone(), memory)
        play(memory, policy, lambda arm: 1.0, task="other")
        for i in range(6):
            play(memory, policy, lambda arm, i=i: i / 6, id=f"e{i}")
        memory.feedback("e0", reward=1.5)
        found = memory.lift("checkout")
        assert (found.n_treated + found.n_control, found.n_out_of_bounds) == (6, 1)
        assert found.treated.n_assigned + found.control.n_assigned == 6
        means = [(arm.n_rated, arm.mean or 0.0) for arm in (found.treated, found.control)]
        assert sum(n * mean for n, mean in means) == pytest.approx(1 + 15 / 6)
        [warning] = found.warnings
        assert "1.5" in warning and "'e0'" in warning and "Holdout(bounds=" in warning
        memory.lift()
        assert [record.getMessage() for record in caplog.records] == [f"family 'checkout': {warning}"]  # once
        assert memory.lift("other").warnings == ()
        play(memory, Holdout(ModelAlone(), memory, bounds=(0.0, 2.0)), lambda arm: 1.5)
        wider = memory.lift("checkout")
        assert (wider.n_treated + wider.n_control, wider.n_out_of_bounds) == (1, 0)  # a new epoch


def test_one_outcome_out_of_bounds_does_not_switch_harmful_memory_on():
    with Memory.open(":memory:") as memory:
        policy = Holdout(ModelAlone(), memory)
        played = [play(memory, policy, lambda arm: float(arm == "control")) for _ in range(100)]
        assert memory.lift("checkout").is_off
        last = next(id_ for id_, arm in reversed(played) if arm == "control")  # not of those that showed the harm
        memory.feedback(last, reward=1.0, source="human")
        later = [play(memory, policy, lambda arm: float(arm == "control"))[0] for _ in range(5)]
        assert {assignments_share(memory, id_) for id_ in later} == {0.95}
        assert (memory.lift("checkout").is_off, memory.lift("checkout").n_out_of_bounds) == (True, 1)


def test_epochs_begin_afresh_and_families_are_apart():
    with Memory.open(":memory:") as memory:
        for policy in (Holdout(JitRL(memory), memory), Holdout(JitRL(memory, beta=1.0), memory)):
            for task in ("a", "b", "b"):
                play(memory, policy, lambda arm: 1.0, task=task)
        lifts = memory.lift()
        assert [one.n_treated + one.n_control for one in lifts.values()] == [1, 2]
        assert lifts["a"].epoch == lifts["b"].epoch
        by_length = Holdout(ModelAlone(), memory, family=lambda task: f"{len(task)} letters")
        play(memory, by_length, lambda arm: 1.0, task="abc")
        assert list(memory.lift()) == ["3 letters", "a", "b"]


def test_assignments_survive_export_import_and_a_forged_draw_is_found():
    with Memory.open(":memory:", namespace="shop") as memory:
        policy = Holdout(ModelAlone(), memory)
        for _ in range(12):
            play(memory, policy, lambda arm: float(arm == "treated"))
        lines = list(memory.export())
        lift = memory.lift("checkout")
        for body in assignments(memory).values():
            assert body["u"] == unit_number(body["salt"], "shop", body["unit"])
            assert (body["arm"] == "control") == (body["u"] < body["control_share"])
    with Memory.open(":memory:", namespace="copy") as copy:
        copy.import_lines(lines)
        assert copy.lift("checkout") == lift
        copy.verify()
        episode_id = copy.add(Episode("t", [Step("page:cart", "click(pay)", 1.0)]))
        forged = {**body, "unit": episode_id}
        copy.note(episode_id, ASSIGNMENT, forged)
        with pytest.raises(IntegrityError, match="draws"):
            copy.verify()
        with pytest.raises(InputError, match="exactly if"):
            copy.note(episode_id, ASSIGNMENT, {**forged, "arm": "control" if body["arm"] == "treated" else "treated"})


def test_a_unit_with_two_arms_is_left_out():
    with Memory.open(":memory:") as memory:
        policy = Holdout(ModelAlone(), memory)
        id_, arm = play(memory, policy, lambda arm: 1.0)
        body = assignments(memory)[id_]
        other = {**body, "arm": "control" if arm == "treated" else "treated"}
        other["control_share"] = (body["u"] + 1.0) / 2 if arm == "treated" else body["u"] / 2
        memory.note(id_, ASSIGNMENT, other)
        lift = memory.lift("checkout")
        assert (lift.n_mixed, lift.n_treated + lift.n_control, len(lift.warnings)) == (1, 0, 1)


def test_harmful_memory_goes_off_and_comes_back_when_it_helps():
    rng = np.random.default_rng(0)
    with Memory.open(":memory:") as memory:
        policy, shares = Holdout(ModelAlone(), memory), []

        def until(is_off, outcome, most):
            for number in range(most):
                id_, _ = play(memory, policy, lambda arm: float(rng.random() < outcome[arm]))
                shares.append(assignments_share(memory, id_))
                if number % 25 == 24 and memory.lift("checkout").is_off == is_off:
                    return
            pytest.fail(f"not {is_off} after {most} episodes")

        until(True, {"treated": 0.2, "control": 0.9}, 300)
        assert memory.lift("checkout").state == "harmful"
        for _ in range(20):
            play(memory, policy, lambda arm: float(rng.random() < {"treated": 0.2, "control": 0.9}[arm]))
        id_, _ = play(memory, policy, lambda arm: 1.0)
        assert assignments_share(memory, id_) == 0.95
        until(False, {"treated": 1.0, "control": 0.3}, 1500)
        assert memory.lift("checkout").control_share < 0.95


def test_harmful_memory_goes_off_also_where_the_lift_was_read_before(tmp_path):
    with Memory.open(tmp_path / "agent.db") as memory:
        policy = Holdout(ModelAlone(), memory)
        for _ in range(70):
            play(memory, policy, lambda arm: float(arm == "control"))
        [salt] = {body["salt"] for body in assignments(memory).values()}
    with Memory.open(tmp_path / "agent.db") as memory:  # as a service does when it starts
        assert memory.lift("checkout").is_off
        id_, _ = play(memory, Holdout(ModelAlone(), memory), lambda arm: 1.0)
        assert (assignments_share(memory, id_), assignments(memory)[id_]["salt"]) == (0.95, salt)


def assignments_share(memory, episode_id):
    [note] = memory.notes(kind=ASSIGNMENT, episode_id=episode_id)
    return note.body["control_share"]


def test_history_ends_at_the_lift_and_counts_the_epochs():
    rng = np.random.default_rng(1)
    with Memory.open(":memory:") as memory:
        for epoch, n in (("prompt 1", 10), ("prompt 2", 90)):
            policy = Holdout(JitRL(memory), memory, epoch=epoch, bounds=(0.0, 2.0))
            for _ in range(n):
                play(memory, policy, lambda arm: 1.2 + 0.8 * rng.random() if arm == "treated" else 0.6 * rng.random())
        history = memory.lift_history(points=9)["checkout"]
        assert history.lift == memory.lift("checkout")
        assert [(one.n_assigned, one.n_rated) for one in history.epochs] == [(10, 10), (90, 90)]
        assert [one.n_rated for one in history.points] == [10, 20, 30, 40, 50, 60, 70, 80, 90]
        last = history.points[-1]
        assert last.mean == pytest.approx(history.lift.mean)
        assert history.lift.low - 2 * 0.005 - 1e-9 <= last.low <= history.lift.low + 1e-9
        assert history.points[0].low < last.low  # it was known less well before
        assert memory.lift_history(points=1)["checkout"].points == (last,)
