"""The ledger of a chat's changes: what several chats append, and how little of it is read again."""

from __future__ import annotations

import contextlib
import itertools
import tracemalloc

from seasoned.chat import ChangeLedger, Repository
from seasoned.chat.code_outcomes import user_outcomes
from seasoned.chat.file_change import FileChange

MADE = {"session": "s", "episode": "e", "step": 0, "head": None}


def opened(folder):
    return contextlib.closing(ChangeLedger(folder / "sessions"))


def test_texts_of_earlier_changes_are_not_read_again(tmp_path):
    repository, texts = Repository(tmp_path), [f"{number}\n" * 20_000 for number in range(101)]
    (tmp_path / "a.txt").write_text(texts[-1])
    with opened(tmp_path) as ledger:
        for before, after in itertools.pairwise(texts):
            ledger.add(FileChange("a.txt", before, after), **MADE)
        tracemalloc.start()
        try:
            assert user_outcomes(repository, ledger) == [] and ledger.paths() == {"a.txt"}
            assert ledger.last("s").change.after == texts[-1] and len(ledger.entries(last=2)) == 2
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 4_000_000  # all of them have 11 MB


def test_chats_of_one_repository_read_what_the_others_append(tmp_path):
    with opened(tmp_path) as one, opened(tmp_path) as other:
        first = one.add(FileChange("a.txt", None, "one"), **MADE)
        assert other.is_own("a.txt", "one") and other.last("s").change.after == "one"
        other.see("a.txt", "formatted")
        assert one.is_own("a.txt", "formatted") and not one.is_own("b.txt", "one")
        one.skip(first)
        assert other.last("s") is None and len(other.entries()) == 1
        one.undo(first)
        assert other.entries() == [] and other.last("s") is None
        (tmp_path / "sessions" / "changes.jsonl").open("ab").write(b'{"kind": "chan')
        other.add(FileChange("b.txt", None, "two"), **MADE)
    with opened(tmp_path) as ledger:
        assert ledger.paths() == set()  # its line is that of a killed process
