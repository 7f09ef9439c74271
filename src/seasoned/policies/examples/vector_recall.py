"""Examples found by meaning: an embedder's vectors beside the memory's own index, for whoever has an embedder."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Literal, Protocol

from seasoned.errors import InputError
from seasoned.policies.examples.example_source import ExampleSource
from seasoned.policies.examples.vector_index import Vector, VectorIndex
from seasoned.protocols import Embedder
from seasoned.types import Episode, Evidence
from seasoned.types.recall import KEYS, Moment, Recall

__all__ = ["VectorRecall"]


_FEW = 16
_NEAREST_TEXTS = 8
_MOMENTS_OF_ONE = 8
_NOTES_A_RECALL = 128  # how many are read in the time of a recall


class VectorSource(ExampleSource, Protocol):
    """What is asked of a memory here."""

    def evidence(self, state: str, *, k: int, unit: Literal["steps", "states"], threshold: float) -> Evidence:
        """Return what is known about the moments most like a state."""
        ...

    def redacted(self, text: str) -> str:
        """Return a text as the memory stores it, and looks it up."""
        ...

    def episodes(self, *, task: str | None = None, last: int | None = None) -> list[Episode]:
        """Return stored episodes, or the last few, in commit order."""
        ...


class VectorRecall:
    """Finds the moments of a memory by meaning as well as by words.

    It goes beside the memory: `Examples(memory, recall=VectorRecall(memory, embedder))`.

    A query's texts are looked up among the stored tasks, states, plans and reasonings by their vectors; what is found
    is recalled from the memory by its own text, beside what the memory finds by words. Every similarity is then the
    cosine of the two texts, 0 where it is below 0. A text without a vector is embedded; so embed through a cache. The
    embedder reads a query as the memory redacts it.

    A text that the embedder refuses (too long for its model, say) is left out: it is found by words alone, and is like
    nothing under its key. `n_refused` counts such texts. A query is refused only if all its texts are.

    What is erased, aborted or set aside is never recalled, since every moment comes from the memory, and no other is
    missed for it: the 8 nearest texts of each key are those that the memory still gives. But the vector of an
    erased text stays in the embedder's cache, under its digest, until `CachedEmbedder.forget` is told of it.

    New episodes are taken in at the next recall, with the plans and reasonings that were noted by then. What is noted
    later is taken in once it was found by words.

    Args:
        memory: a `seasoned.Memory`.
        embedder: makes the vectors.

    Raises:
        InputError: it is no embedder.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
        >>> from seasoned.policies.examples import Examples, ExampleQuery
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add(Episode("buy a lamp", [Step("page cart", "click(pay)", 1.0)], "e1"))
        ...     by_meaning = VectorRecall(memory, ScriptedEmbedder())
        ...     [example] = Examples(memory, recall=by_meaning).retrieve(ExampleQuery("buy a red lamp"))
        >>> example.episode_id, 0.5 < example.similarity < 1.0
        ('e1', True)
    """

    def __init__(self, memory: VectorSource, embedder: Embedder) -> None:
        self._memory = memory
        self._indexes = {key: VectorIndex(embedder) for key in KEYS}
        self._task_of: dict[str, dict[str, dict[str, str]]] = {key: {} for key in KEYS}
        self._embedder = embedder
        self._seen = 0
        self._refused: set[str] = set()
        self._lock = threading.Lock()

    @property
    def n_refused(self) -> int:
        """How many stored texts the embedder has refused so far."""
        return len(self._refused)

    def recall(
        self,
        texts: Mapping[str, str],
        *,
        pool: int = 64,
        whole: bool = False,
        gamma: float | None = None,
        exclude_task: str | None = None,
        with_feedback_totals: bool = False,
    ) -> Recall:
        """Return moments found by words and by meaning, their similarities by meaning; see `Memory.recall`.

        Raises:
            InputError: as for `Memory.recall`; or the embedder refuses every text of the query.
            ModelError: the embedder failed.
        """
        options: dict[str, Any] = {"whole": whole, "gamma": gamma, "exclude_task": exclude_task}
        options["with_feedback_totals"] = with_feedback_totals
        by_words = self._memory.recall(texts, pool=pool, **options)
        with self._lock:
            self._follow(next(iter(texts.values())))
            asked = self._asked({key: self._memory.redacted(text) for key, text in texts.items()})
            found = {moment.place: moment for moment in by_words.moments}
            outside = None if exclude_task is None else self._memory.redacted(exclude_task)
            counting = functools.partial(self._counting, outside=outside, gamma=gamma, lives={})
            for key in asked:
                known = {_written(moment, key) for moment in found.values()}
                n_met = 0
                for near in counting(key, self._nearest(key, asked[key]), known):
                    n_met += near in known
                    if near not in known:
                        there = {name: said for name, said in texts.items() if name == "observation"} | {key: near}
                        more = self._memory.recall(there, pool=min(pool, _MOMENTS_OF_ONE), **options).moments
                        if any(_written(moment, key) == near for moment in more):  # else all of it is set aside
                            n_met += 1
                            found |= {moment.place: moment for moment in more if moment.place not in found}
                    if n_met == _NEAREST_TEXTS:
                        break
            return Recall(self._scored(list(found.values()), list(texts), asked), by_words.highest)

    def _nearest(self, key: str, vector: Vector) -> Iterator[str]:
        """Yield the texts under a key that are like a vector, the most alike first."""
        n_told, wanted = 0, 2 * _NEAREST_TEXTS
        while True:
            near = self._indexes[key].nearest(vector, wanted)
            yield from (text for text, cosine in near[n_told:] if cosine > 0.0)
            if len(near) < wanted or near[-1][1] <= 0.0:
                return
            n_told, wanted = wanted, 4 * wanted

    def _counting(
        self,
        key: str,
        texts: Iterator[str],
        known: Collection[str | None],
        *,
        outside: str | None,
        gamma: float | None,
        lives: dict[str, bool],
    ) -> Iterator[str]:
        """Yield those of these texts that are known to count, or may: in an episode that lives, of no task left out.

        Plans and reasonings may stand where nobody saw them yet: noted late, or back from quarantine. Until reading all
        notes is the quicker way to know, a text that seems not to count is yielded too.
        """
        may_be_elsewhere, n_doubted = key in ("plan", "reasoning"), 0
        while some := list(islice(texts, 2 * _NEAREST_TEXTS)):
            unknown = [text for text in some if text not in known]
            counting = self._living(key, unknown, outside, gamma, lives)
            if may_be_elsewhere and len(counting) < len(unknown):
                if _NOTES_A_RECALL * n_doubted < len(self._indexes[key]):
                    n_doubted += len(unknown) - len(counting)
                    counting = set(unknown)
                else:
                    may_be_elsewhere = False
                    self._read_places(key)
                    counting = self._living(key, unknown, outside, gamma, lives)
            yield from (text for text in some if text in known or text in counting)

    def _living(
        self, key: str, texts: list[str], outside: str | None, gamma: float | None, lives: dict[str, bool]
    ) -> set[str]:
        """Return which texts are of an episode that lives, and of no task left out.

        Which episodes live is asked of the memory, and kept in `lives` for one recall: it changes without a sign.
        """
        found: set[str] = set()
        task_of = self._task_of[key]
        left = {text: iter([id_ for id_, task in reversed(task_of[text].items()) if task != outside]) for text in texts}
        n = 1  # the latest first: one that lives is enough
        while left:
            asked = {text: list(islice(ids, n)) for text, ids in left.items()}
            new = {id_ for ids in asked.values() for id_ in ids}.difference(lives)
            there = self._memory.experiences([(id_, 0) for id_ in new], gamma=gamma) if new else {}
            lives |= {id_: (id_, 0) in there for id_ in new}
            found |= {text for text, ids in asked.items() if any(lives[id_] for id_ in ids)}
            left = {text: left[text] for text, ids in asked.items() if ids and text not in found}
            n *= 8
        return found

    def _read_places(self, key: str) -> None:
        """Take in where known plans or reasonings stand by now."""
        tasks = {id_: task for ids in self._task_of["goal"].values() for id_, task in ids.items()}
        for note in self._memory.notes(kind=key):
            text = note.body.get("text")
            if isinstance(text, str) and text in self._task_of[key] and note.episode_id in tasks:
                self._task_of[key][text][note.episode_id] = tasks[note.episode_id]

    def _asked(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        """Return the vectors of a query's texts, without those that are refused."""
        try:
            return dict(zip(texts, self._embedder.embed(list(texts.values())), strict=True))
        except InputError:
            if len(texts) == 1:
                raise
            found: dict[str, Vector] = {}
            for key, text in texts.items():
                with contextlib.suppress(InputError):
                    found |= self._asked({key: text})
            if not found:
                raise
            return found

    def _follow(self, any_text: str) -> None:
        """Take in the texts of episodes that came since."""
        n = self._memory.evidence(any_text, k=1, unit="states", threshold=1.0).n_episodes
        if n == self._seen:
            return
        new = self._memory.episodes(last=n - self._seen if n > self._seen > 0 else None)
        tasks = {one.id: one.task for one in new if one.id is not None and one.ending != "aborted"}
        if len(tasks) > _FEW:
            notes = [note for kind in ("plan", "reasoning") for note in self._memory.notes(kind=kind)]
        else:
            notes = [note for id_ in tasks for note in self._memory.notes(episode_id=id_)]
        said: dict[str, list[tuple[str, str, str]]] = {key: [] for key in KEYS}
        for one in new:
            if one.id is not None and one.id in tasks:
                said["goal"].append((one.task, one.id, one.task))
                said["observation"] += [(step.state, one.id, one.task) for step in one.steps]
        for note in notes:
            id_, text = note.episode_id, note.body.get("text")
            if note.kind in ("plan", "reasoning") and id_ in tasks and isinstance(text, str) and text.strip():
                said[note.kind].append((text, id_, tasks[id_]))
        for key, texts in said.items():
            self._take(key, texts)
        self._seen = n

    def _take(self, key: str, said: Iterable[tuple[str, str, str]]) -> None:
        """Take in texts, each with the episode that it is of and that one's task."""
        index, task_of = self._indexes[key], self._task_of[key]
        texts: dict[str, None] = {}
        for text, id_, task in said:
            task_of.setdefault(text, {})[id_] = task
            texts[text] = None
        new = [text for text in texts if text not in index and text not in self._refused]
        halves = [new]
        while halves:  # a text that is refused takes those beside it with it; so they are tried apart
            some = halves.pop()
            try:
                index.add_many([(text, text) for text in some])
            except InputError:
                half = len(some) // 2
                if not half:
                    self._refused.update(some)
                else:
                    halves += [some[half:], some[:half]]

    def _scored(self, moments: list[Moment], keys: Sequence[str], asked: Mapping[str, Vector]) -> tuple[Moment, ...]:
        similar: list[dict[str, float]] = [dict.fromkeys(keys, 0.0) for _ in moments]
        for key, vector in asked.items():
            written = [_written(moment, key) for moment in moments]
            seen = [moment.experience for moment in moments]
            self._take(
                key,
                [(said, one.episode_id, one.task) for said, one in zip(written, seen, strict=True) if said is not None],
            )
            there = [said for said in written if said is not None and said in self._indexes[key]]
            cosines = iter(self._indexes[key].cosines(vector, there))
            for row, said in zip(similar, written, strict=True):
                if said is not None and said in self._indexes[key]:
                    row[key] = max(0.0, next(cosines))
        return tuple(replace(moment, similarities=row) for moment, row in zip(moments, similar, strict=True))


def _written(moment: Moment, key: str) -> str | None:
    """What a moment can be found by under a key."""
    seen = moment.experience
    return {"goal": seen.task, "plan": moment.plan, "observation": seen.state, "reasoning": moment.reasoning}[key]
