"""A bug in a search is raised as it is; a damaged row is an IntegrityError with the store's path."""

from __future__ import annotations

import pytest

from seasoned import Episode, Memory, Step
from seasoned.errors import IntegrityError
from seasoned.memory.index.kernel import KERNELS
from seasoned.memory.index.kernel_numpy import NumpyKernel
from seasoned.types import Backup, EvidenceQuery, RecallQuery

NUMPY = "seasoned.memory.index.kernel_numpy:NumpyKernel"
EPISODE = Episode("t", [Step("a b", "go", 1.0, {"go": -0.1}, 0.5), Step("b c", "stay", 0.5)], "e", "end", "truncated")


class BrokenKernel(NumpyKernel):
    """A kernel with a bug."""

    def search(self, blocks, asked, k, in_query):
        return {}["a bug"]


@pytest.fixture
def broken_kernel():
    KERNELS.register("numpy", f"{__name__}:BrokenKernel")
    yield
    KERNELS.register("numpy", NUMPY)


READS = {
    "search": lambda memory: memory.search("a b", k=3),
    "search outside a task": lambda memory: memory.search("a b", k=3, exclude_task="other"),
    "evidence of states": lambda memory: memory.evidence(EvidenceQuery("a b", k=3, unit="states", threshold=0.0)),
    "evidence of steps": lambda memory: memory.evidence(EvidenceQuery("a b", k=3, unit="steps", threshold=0.0)),
    "evidence by propensity": lambda memory: memory.evidence(
        EvidenceQuery("a b", k=3, unit="states", threshold=0.0, propensity_floor=0.1)
    ),
    "evidence of a graph": lambda memory: memory.evidence(
        EvidenceQuery("a b", k=3, unit="states", threshold=0.0, backup=Backup(4.0))
    ),
    "recall": lambda memory: memory.recall(RecallQuery({"observation": "a b", "goal": "t"})),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_exception_of_a_search_kernel_is_raised_unchanged(broken_kernel, read):
    with Memory.open(":memory:") as memory:
        memory.add(EPISODE)
        with pytest.raises(KeyError, match="a bug"):
            read(memory)


def test_exception_of_an_encoder_is_raised_unchanged():
    class Failing:
        identity = "test/failing"

        def features(self, state):
            return {"a b": frozenset("ab"), "b c": frozenset("bc"), "end": frozenset()}[state]

    with Memory.open(":memory:", encoder=Failing()) as memory:
        memory.add(EPISODE)
        for read in (
            lambda: memory.search("d", k=1),
            lambda: memory.evidence(EvidenceQuery("d", k=1, unit="states", threshold=0.0)),
            lambda: memory.recall(RecallQuery({"goal": "d", "observation": "a b"})),
        ):
            with pytest.raises(KeyError, match=r"t|d"):
                read()


DAMAGE = {
    "a text for a sum": ("UPDATE evidence SET total = 'x'", {"evidence of states", "evidence of a graph"}),
    "an infinite sum": ("UPDATE evidence SET squares = 9e999", {"evidence of states", "evidence of a graph"}),
    "evidence of an episode to come": ("UPDATE evidence SET ordinal = 99", {"evidence of states"}),
    "a text for a return": ("UPDATE value SET return_ = 'x'", {"search", "evidence of steps", "recall"}),
    "no return": ("DELETE FROM value", {"search", "evidence of steps", "evidence of states"}),
    "no texts of actions": ("DELETE FROM action", {"search", "evidence of states"}),
    "bytes for a state": ("UPDATE state SET text = x'00'", {"search", "evidence of states", "recall"}),
    "cut tokens": ("UPDATE feature_set SET tokens = substr(tokens, 1, 3)", set(READS)),
    "tokens as text": ("UPDATE feature_set SET tokens = 'abcd'", set(READS)),
    "huge tokens": ("UPDATE feature_set SET tokens = x'ffffffff'", set(READS)),
    "a visit as text": ("UPDATE feature_set SET last_visit = 'x'", set(READS)),
    "a visit as a real number": ("UPDATE feature_set SET last_visit = 0.5", set(READS)),
    "a token as bytes": ("UPDATE token SET text = x'00'", set(READS)),
    "a distribution of text": (
        "UPDATE OR REPLACE distribution SET mean = 'x'",
        {"evidence of states", "evidence of steps"},
    ),
    "a negative count": ("UPDATE distribution SET count = -1", {"evidence of states", "evidence of steps"}),
    "a prior that is no JSON": ("UPDATE prior SET logprobs = '{'", {"evidence of a graph"}),
    "a prior of texts": ("""UPDATE prior SET logprobs = '{"go": "x"}'""", {"evidence of a graph"}),
    "a positive prior": ("""UPDATE prior SET logprobs = '{"go": 9.0}'""", {"evidence of a graph"}),
    "a reward as text": ("UPDATE step SET reward = 'x'", {"search", "evidence of a graph", "recall"}),
    "feedback as bytes": ("UPDATE step SET feedback = x'00'", {"search", "evidence of a graph", "recall"}),
    "no namespace": ("DELETE FROM namespace", set(READS)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_row_is_named_with_its_store(tmp_path, damage):
    """A read of damaged rows raises, or returns the answer from the rows as they were written."""
    statement, refused = DAMAGE[damage]
    with Memory.open(tmp_path / "m.db") as memory:
        memory.add(EPISODE)
    for name, read in READS.items():
        with Memory.open(tmp_path / "m.db") as memory:
            written = repr(read(memory))
        with Memory.open(tmp_path / "m.db") as memory:
            store = memory.session.store
            store.execute("PRAGMA foreign_keys = OFF")
            store.execute("BEGIN")
            store.execute(statement)
            try:
                assert repr(read(memory)) == written, name
                assert name not in refused
            except IntegrityError as error:
                assert str(tmp_path / "m.db") in error.seen and "verify" in error.next_step
            store.execute("ROLLBACK")


def test_a_view_at_a_new_discount_is_not_derived_from_damaged_rewards(tmp_path):
    with Memory.open(tmp_path / "m.db") as memory:
        memory.add(EPISODE)
        memory.session.store.execute("UPDATE step SET feedback = 'x'")
        with pytest.raises(IntegrityError, match="feedback is str"):
            memory.search("a b", k=3, gamma=0.5)
