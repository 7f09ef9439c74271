"""Code survival of commits and patches, in real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import InputError, NotFoundError, SeasonedError
from seasoned.lab.code_survival.survival import code_survival
from seasoned.lab.code_survival.unified_diff import read_patch, same_line

WRITTEN = (
    "def area(r):\n    pi = 3.14159\n\n    return pi * r * r\n\n\ndef name():\n    return 'disc'\n"  # 5 lines of text
)


class Repo:
    """A git repository in a folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self("init", "--initial-branch=main")

    def __call__(self, *arguments):
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run([*command, *arguments], cwd=self.folder, check=True, capture_output=True)
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def commit(self, **files):
        return self.commit_files(files)

    def commit_files(self, files):
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self("add", "--all")
        self("commit", "--allow-empty", "-m", "a change")
        return self("rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


@pytest.fixture
def written(repo):
    repo.commit_files({"other.txt": "x\n"})
    return repo.commit_files({"disc.py": WRITTEN})


def test_all_lines_survive_at_their_own_commit(repo, written):
    survival = code_survival(repo.folder, written)
    assert (survival.added, survival.alive, survival.share) == (5, 5, 1.0)
    assert [(one.path, one.now) for one in survival.files] == [("disc.py", "disc.py")]


def test_changed_lines_are_lost_and_changed_blanks_are_not(repo, written):
    later = WRITTEN.replace("3.14159", "math.pi").replace("    return pi * r * r", "\treturn  pi*r*r")
    repo.commit_files({"disc.py": later})
    assert code_survival(repo.folder, written).alive == 4


def test_renames_are_followed_and_deleted_files_are_lost(repo, written):
    repo("mv", "disc.py", "shape.py")
    repo("commit", "-m", "moved")
    (repo.folder / "geo").mkdir()
    repo("mv", "shape.py", "geo/shape.py")
    repo("commit", "-m", "moved again")
    survival = code_survival(repo.folder, written)
    assert (survival.alive, survival.files[0].now) == (5, "geo/shape.py")
    repo("rm", "geo/shape.py")
    repo("commit", "-m", "gone")
    survival = code_survival(repo.folder, written)
    assert (survival.share, survival.files[0].now) == (0.0, None)
    assert code_survival(repo.folder, written, at="HEAD~1").share == 1.0


def test_rewritten_lines_are_lost_for_a_commit_and_alive_for_a_patch(repo, written):
    patch = repo("diff", f"{written}~1", written) + "\n"
    repo.commit_files({"disc.py": "nothing\n"})
    assert code_survival(repo.folder, written).alive == code_survival(repo.folder, patch=patch).alive == 0
    repo.commit_files({"disc.py": WRITTEN})
    assert code_survival(repo.folder, written).alive == 0
    assert code_survival(repo.folder, patch=patch).share == 1.0


def test_line_of_a_patch_counts_at_most_as_often_as_it_was_added(repo, written):
    patch = "--- /dev/null\n+++ b/disc.py\n@@ -0,0 +1,3 @@\n+def area( r ):\n+def area(r):\n+never\n"
    assert (code_survival(repo.folder, patch=patch).added, code_survival(repo.folder, patch=patch).alive) == (3, 1)
    repo("mv", "disc.py", "shape.py")
    repo("commit", "-m", "moved")
    assert code_survival(repo.folder, patch=patch.encode()).files[0].now == "shape.py"


def test_only_added_lines_of_an_old_file_count(repo, written):
    grown = repo.commit_files({"disc.py": WRITTEN + "\n\ndef more():\n    return 1\n"})
    assert code_survival(repo.folder, grown).added == 2
    repo.commit_files({"disc.py": "def more():\n    return 1\n"})
    assert (code_survival(repo.folder, grown).alive, code_survival(repo.folder, written).alive) == (2, 0)


def test_first_commit_is_counted(repo):
    first = repo.commit_files({"a.txt": "one\ntwo\n"})
    assert code_survival(repo.folder, first).share == 1.0


HOSTILE = ["--output=x", "-p", "a b\tc.py", 'quo"te.py', "new\nline.py", "b/b.py", "*.py", ":(top)x", "ü/é.py"]


def test_hostile_file_names_are_read(repo):
    repo.commit_files({"other.txt": "x\n"})
    written = repo.commit_files(dict.fromkeys(HOSTILE, "one\ntwo\n"))
    diff = ["git", "diff", f"{written}~1", written]
    patch = subprocess.run(diff, cwd=repo.folder, check=True, capture_output=True).stdout
    repo.commit_files(dict.fromkeys(HOSTILE, "one\n2\n"))
    for survival in (code_survival(repo.folder, written), code_survival(repo.folder, patch=patch)):
        assert {one.path: one.alive for one in survival.files} == dict.fromkeys(HOSTILE, 1)


def test_file_name_outside_utf8_is_counted(repo):
    repo.commit_files({"other.txt": "x\n"})
    (repo.folder / os.fsdecode(b"\xff.py")).write_bytes(b"caf\xe9\n")
    written = repo.commit_files({})
    survival = code_survival(repo.folder, written)
    assert (survival.files[0].path, survival.share) == ("\\xff.py", 1.0)


def test_binary_files_are_not_counted(repo, written):
    both = repo.commit_files({"logo.png": b"\0\1\2" * 50, "note.txt": "a line\n"})
    survival = code_survival(repo.folder, both)
    assert (survival.added, survival.binary) == (1, ("logo.png",))
    only = repo.commit_files({"other.png": b"\0\1\3" * 50})
    with pytest.raises(InputError, match=r"other\.png.*counts added lines.*Name another"):
        code_survival(repo.folder, only)


def test_unusable_change_is_refused(repo, written, tmp_path_factory):
    repo("checkout", "--quiet", "-b", "side", f"{written}~1")
    aside = repo.commit_files({"aside.txt": "a\n"})
    repo("checkout", "--quiet", "main")
    cases = [
        ({"commit": aside}, InputError, "not in the history.*squashed or rebased"),
        ({"commit": "nonsense"}, NotFoundError, "no commit of.*git log"),
        ({"commit": "--all"}, InputError, "without a leading dash"),
        ({"commit": written, "at": "nowhere"}, NotFoundError, "no commit"),
        ({}, InputError, "a commit or a patch.*Give one"),
        ({"commit": written, "patch": "x"}, InputError, "a commit or a patch.*Give one"),
        ({"patch": "no patch at all"}, InputError, r"unified diff.*Pass `git diff`"),
        ({"patch": "+++ b/x\n@@ -0,0 +1,3 @@\n+a\n"}, InputError, "as many lines as its header states"),
        ({"patch": 7}, InputError, "text of a unified diff"),
    ]
    for arguments, error, message in cases:
        with pytest.raises(error, match=f"(?s){message}"):
            code_survival(repo.folder, **arguments)
    repo("merge", "--no-ff", "--no-edit", "side")
    with pytest.raises(InputError, match="is a merge"):
        code_survival(repo.folder, "HEAD")
    assert code_survival(repo.folder, aside).share == 1.0  # through the merge
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for path, message in ((elsewhere / "no", "does not exist"), (elsewhere, "git repository")):
        with pytest.raises(NotFoundError, match=message):
            code_survival(path, written)
    shallow = elsewhere / "shallow"
    repo("clone", "--quiet", "--depth=1", repo.folder.as_uri(), str(shallow))
    with pytest.raises(InputError, match=r"shallow clone.*git fetch --unshallow"):
        code_survival(shallow, "HEAD")


def test_settings_of_the_repository_start_no_program(repo, written):
    ran = repo.folder / "ran"
    for name in ("diff.x.textconv", "diff.external", "core.fsmonitor", "core.pager", "diff.x.command"):
        repo("config", name, f"touch {ran}; cat")
    (repo.folder / ".git" / "info" / "attributes").write_text("* diff=x\n")
    assert code_survival(repo.folder, written).share == 1.0
    assert not ran.exists()


def test_survival_is_feedback(repo, written):
    repo.commit_files({"disc.py": WRITTEN.replace("3.14159", "3")})
    score = code_survival(repo.folder, written).feedback()
    assert (score.value, score.low, score.high) == (0.8, 0.0, 1.0)
    assert "4 of 5 lines" in score.comment
    with Memory.open(":memory:") as memory:
        memory.add(Episode("write area()", [Step("an empty file", "write disc.py")], id="e1"))
        memory.feedback("e1", score, source="code-survival")
        assert memory.search("an empty file")[0].experience.reward == pytest.approx(2 * 0.8 - 1)


def test_same_line_ignores_blanks_only():
    assert same_line(b"a  b\t") == same_line(b" ab") != same_line(b"aB")


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_cut_patch_is_read_or_refused(cut):
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-b\n+++ not a header\n+-- nor this\n"
    patch += "@@ -9 +10 @@\n-c\n+d\n"
    try:
        read_patch(patch[:cut])
    except SeasonedError as error:
        assert error.rule and error.next_step
    assert read_patch(patch)[0].lines == (b"++ not a header", b"-- nor this", b"d")


@pytest.mark.parametrize("told_by", ["commit", "patch"])
def test_history_is_read_once_for_any_number_of_files(tmp_path, monkeypatch, told_by):
    repo = Repo(tmp_path / "repo")
    written = repo.commit_files({f"{n}.py": f"x = {n}\n" for n in range(6)})
    patch = repo("show", written) + "\n"
    repo("mv", "0.py", "zero.py")
    repo("mv", "1.py", "one.py")
    repo.commit_files({})
    bin_, log = tmp_path / "bin", tmp_path / "asked"
    bin_.mkdir()
    (bin_ / "git").write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("git")} "$@"\n')
    (bin_ / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
    survival = code_survival(repo.folder, written) if told_by == "commit" else code_survival(repo.folder, patch=patch)
    assert [(one.now, one.alive) for one in survival.files][:3] == [("zero.py", 1), ("one.py", 1), ("2.py", 1)]
    assert log.read_text().count(" log ") == 1
