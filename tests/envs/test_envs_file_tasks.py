"""File tasks: the tree of a directory, subgoals and invariants, and the agent's state."""

from __future__ import annotations

import os
import random
import time

import pytest

from seasoned.envs.files.file_goals import FILE_GOALS, draw_goal
from seasoned.envs.files.file_tasks import FileTasks, open_files
from seasoned.envs.files.file_tree import FileTree, read_tree, write_tree
from seasoned.errors import EnvError, InputError
from seasoned.sync import Sync
from seasoned.testing import check_environment


@pytest.fixture(scope="module")
def free():
    with Sync(FileTasks("largest-log", level=2, seed=1, free_text=True, history=2)) as env:
        yield env


# ------------------------------------------------------------------------------------------------ trees


def test_tree_matches_the_directory(tmp_path):
    write_tree(tmp_path, {"a.txt": "1\n", "b/c.txt": "2\n"}, ("empty",))
    (tmp_path / "b/link").symlink_to("/etc/passwd")
    (tmp_path / "etc").symlink_to("/etc")
    os.link(tmp_path / "a.txt", tmp_path / "hard")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"x" * ((1 << 20) + 1))
    (tmp_path / "od\nd").write_text("3")
    tree = read_tree(tmp_path)
    assert tree.files == {"b/c.txt": b"2\n", "od?d": b"3"}
    assert tree.listing() == ("a.txt@", "b/c.txt", "b/link@", "empty/", "etc@", "hard@", "long@", "od?d", "pipe@")
    (tmp_path.parent / "alias").symlink_to(tmp_path)
    assert read_tree(tmp_path.parent / "alias") == FileTree()
    assert read_tree(tmp_path, max_entries=3).truncated


# ------------------------------------------------------------------------------------------------ goals

GOALS = [(kind, level, seed) for kind in FILE_GOALS for level in (1, 2, 3) for seed in range(6)]


def first_tree(goal):
    folders = {parent for path in goal.files if (parent := path.rpartition("/")[0])}
    return FileTree({path: text.encode() for path, text in goal.files.items()}, frozenset({*folders, *goal.folders}))


@pytest.mark.parametrize("kind", FILE_GOALS)
def test_initial_score_is_zero_with_no_subgoal_reached(kind):
    for level in (1, 2, 3):
        for seed in range(30):
            goal = draw_goal(kind, level=level, seed=seed)
            tree = first_tree(goal)
            assert not any(check(tree) for check in goal.subgoals)
            assert all(check(tree) for check in goal.invariants)
            assert goal.score(tree) == 0.0
            menu = goal.menu(tree)
            assert len(menu) <= 24
            assert len({" ".join(command.split()).casefold() for command in menu}) == len(menu)
            assert set(menu) - set(goal.solution), "a menu has wrong commands as well"


def test_seeds_and_levels_differ():
    for kind in FILE_GOALS:
        drawn = [draw_goal(kind, level=level, seed=seed) for level in (1, 3) for seed in range(5)]
        assert len({repr(sorted(goal.files.items())) for goal in drawn}) == len(drawn)
        assert len(drawn[-1].subgoals) >= len(drawn[0].subgoals)


def solved(kind, level, seed):
    with Sync(FileTasks(kind, level=level, seed=seed)) as env:
        seen, rewards = env.reset(), []
        for command in env.solution:
            assert not seen.terminated
            assert command in seen.admissible
            seen = env.step(command)
            rewards.append(seen.reward)
        assert all(reward > 0.0 for reward in rewards), "every step of a solution is a sub-goal"
        return seen.score, seen.terminated, env.max_score


@pytest.mark.parametrize("kind", ["config", "largest-log", "todos"])
def test_solution_reaches_the_best_score(kind):
    assert solved(kind, 2, 5) == (pytest.approx(1.0), True, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "level", "seed"), GOALS)
def test_every_solution_reaches_the_best_score(kind, level, seed):
    assert solved(kind, level, seed) == (pytest.approx(1.0), True, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILE_GOALS)
def test_random_play_is_worse_than_the_best(kind):
    scores = []
    with Sync(FileTasks(kind, level=3, seed=1)) as env:
        for episode in range(6):
            rng, seen = random.Random(episode), env.reset()
            while not (seen.terminated or seen.truncated):
                seen = env.step(rng.choice(seen.admissible))
            scores.append(seen.score)
    assert sum(scores) / len(scores) < 0.95
    assert min(scores) >= -1.0


# ------------------------------------------------------------------------------------------------ playing


@pytest.mark.parametrize(("kind", "free_text"), [("largest-log", False), ("config", True)])
def test_file_tasks_conform_to_the_protocol(kind, free_text):
    env = lambda: FileTasks(kind, level=2, seed=4, max_steps=5, free_text=free_text)
    check_environment(env, episodes=1)


def test_undone_subgoals_and_broken_invariants_lower_the_score(free):
    log = free.solution[1].split()[1]
    special = [path for path in free.reset().state.split() if path.startswith("logs/") and path != log]
    assert free.step("mkdir archive").reward == pytest.approx(1 / 2)
    assert free.step(f"cp {log} archive/").reward == 0.0  # copied is not moved
    assert free.step("rmdir archive; rm -r archive").reward == pytest.approx(-1 / 2)
    seen = free.step(f"rm {special[0]}")
    assert seen.reward == pytest.approx(-1 / len(special))
    assert seen.state.splitlines()[1:] == [f"done: rmdir archive; rm -r archive; rm {special[0]}", "last: exit 0"]


def test_link_satisfies_no_goal_and_is_not_followed(free):
    log = free.solution[1].split()[1]
    free.reset()
    for command in (
        f"mkdir archive; cp {log} keep; mv {log} ..; ln -s ../../{log[5:]} archive/{log[5:]}",
        f"ln -f keep archive/{log[5:]}",
    ):
        seen = free.step(command)
        assert not seen.terminated
        assert seen.score == pytest.approx(1 / 2)  # the folder alone
        assert f"archive/{log[5:]}@" in seen.state
    assert "root" not in free.step("ln -s /etc/passwd readme").state


def test_paths_and_times_are_masked(free):
    free.reset()
    for command in (
        "pwd; echo $HOME; env | sort",
        "touch new; ls -l",
        "date; date +%Y-%m-%d; date -u +%Y-%m-%dT%H:%M:%S",
    ):
        texts = []
        for _ in range(2):
            free.reset()
            texts.append(free.step(command).state)
            time.sleep(0.01)
        assert texts[0] == texts[1]
        assert "seasoned-" not in texts[0]
        assert time.strftime("%Y-%m-%d", time.gmtime()) not in texts[0]
    assert texts[0].endswith("last: exit 0\n<now>\n<now>\n<now>")


def test_timeout_of_a_command_is_in_the_state():
    with Sync(FileTasks("count", free_text=True, timeout_s=0.1)) as env:
        env.reset()
        assert env.step("sleep 100").state.endswith("last: killed by the timeout limit")


def test_state_of_a_huge_tree_is_short():
    with Sync(FileTasks("count", free_text=True, timeout_s=60.0)) as env:
        first = env.reset()
        assert env.step("mkdir d; cd d; seq 100 | xargs touch").state.splitlines()[0].endswith(" and 63 more")
        seen = env.step("seq 1500 | xargs touch")
        assert seen.state.startswith("files: too many to list\n")
        assert not seen.terminated
        assert len(env.step("cat logs/*").state) < 600
        seen = env.step("seq 900 | sed s/^/f/ | xargs touch")
        assert seen.terminated
        assert seen.state.endswith("last: killed by the disk limit")
        assert env.reset() == first


@pytest.mark.parametrize(
    ("target", "given", "name"),
    [
        ("count", {}, "files:count?level=1&seed=0&max_steps=15"),
        (
            "todos",
            {"level": "3", "seed": "9", "free_text": "1", "history": "2", "timeout_s": "2.5", "max_steps": "4"},
            "files:todos?level=3&seed=9&max_steps=4&history=2&timeout_s=2.5&free_text=1",
        ),
    ],
)
def test_specification_opens_the_same_task(target, given, name):
    env = open_files(target, given)
    assert env.name == name
    kind, _, query = name.removeprefix("files:").partition("?")
    again = open_files(kind, dict(pair.split("=") for pair in query.split("&")))
    assert (again.name, again.task) == (env.name, env.task)


def test_kind_any_draws_a_task_by_seed():
    names = {open_files("any", {"seed": str(seed)}).name.partition("?")[0] for seed in range(60)}
    assert names == {f"files:{kind}" for kind in FILE_GOALS}
    env = open_files("any", {"seed": "5"})
    again = open_files(env.name.removeprefix("files:").partition("?")[0], {"seed": "5"})
    assert (again.name, again.task) == (env.name, env.task)


def test_task_continues_after_its_shell_was_killed(free):
    first = free.reset()
    with pytest.raises(EnvError, match="supervisor ended"):
        free.step("kill -9 $PPID")
    with pytest.raises(EnvError, match="Call reset"):
        free.step("ls")
    assert free.reset() == first


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("target", "given", "message"),
    [
        ("cuont", {}, "Did you mean 'count'"),
        ("count", {"level": "4"}, "at least 1 and at most 3"),
        ("count", {"sead": "4"}, "Did you mean 'seed'"),
        ("rename", {"level": "3", "max_steps": "3"}, "at least 4"),
        ("count", {"timeout_s": "0"}, "above 0"),
        ("count", {"timeout_s": "soon"}, "is a number"),
        ("count", {"free_text": "maybe"}, "on or off"),
        ("count", {"history": "11"}, "at least 0 and at most 10"),
    ],
)
def test_error_names_the_mistake_in_a_task(target, given, message):
    with pytest.raises(InputError, match=message):
        open_files(target, given)
