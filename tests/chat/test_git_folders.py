"""Git of linked worktrees and submodules: their git folder lies outside of the repository that the chat works in."""

from __future__ import annotations

import asyncio
import json
import subprocess

import pytest
from chat_scripts import Answers

from seasoned.chat import Permissions, Repository, Toolbox
from seasoned.chat.repository import git_folders
from seasoned.envs.shell.supervisor import landlock_version
from seasoned.protocols import ToolCall

GIT = ["git", "-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@b"]


def git(folder, *arguments):
    subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def main(tmp_path):
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@b")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def linked(main, kind):
    if kind == "worktree":
        git(main, "worktree", "add", "-q", "../linked")
        return main.parent / "linked"
    git(main, "submodule", "--quiet", "add", str(main), "part")
    git(main / "part", "config", "user.name", "a")
    git(main / "part", "config", "user.email", "a@b")
    return main / "part"


def results(root, *commands):
    async def go():
        toolbox = Toolbox(Repository(root), Permissions(["run"]), Answers(), timeout_s=20.0)
        try:
            return [await toolbox.call(ToolCall("c", "run", json.dumps({"command": each}))) for each in commands]
        finally:
            await toolbox.aclose()

    return asyncio.run(go())


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_git_alone_writes_to_its_folder_outside(main, kind):
    root = linked(main, kind)
    (root / "a.txt").write_text("a\n")
    (root / "tool.sh").write_text(f"cd {git_folders(root)[0]} && touch made\n")
    added, committed, tool, mixed = results(
        root, "git add a.txt", "git commit -q -m second", "sh tool.sh", "git status && sh tool.sh"
    )
    assert (added.exit_code, committed.exit_code) == (0, 0), added.text + committed.text
    assert tool.exit_code != 0 and mixed.exit_code != 0
    assert not (git_folders(root)[0] / "made").exists()


def test_hooks_and_configuration_of_the_main_repository_stay_closed(main):
    root = linked(main, "worktree")
    common = main / ".git"
    assert git_folders(root) == (
        common / "worktrees" / "linked",
        *(common / each for each in ("objects", "refs", "logs")),
    )
    assert git_folders(main) == ()


def test_folder_that_does_not_name_the_repository_opens_nothing(main):
    linked(main, "worktree")
    other = main.parent / "other"
    other.mkdir()
    for folder in (main / ".git" / "worktrees" / "linked", main / ".git", main.parent):
        (other / ".git").write_text(f"gitdir: {folder}\n")
        assert git_folders(other) == ()
