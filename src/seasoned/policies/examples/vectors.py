"""Examples found by meaning: an embedder's vectors beside the memory's own index, for whoever has an embedder."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from seasoned.core.vectors import CosineIndex
from seasoned.errors import EncoderMismatchError, InputError, excerpt
from seasoned.policies.examples.source import ExampleSource
from seasoned.protocols.models import Embedder
from seasoned.types import Episode, Evidence, Experience, Note
from seasoned.types.moment import KEYS, Moment, Recall
from seasoned.types.showing import Beside, Showing

__all__ = ["VectorIndex", "VectorRecall"]

Vector = npt.NDArray[np.float32]

_FEW = 16
_NEAREST_TEXTS = 8
_MOMENTS_OF_ONE = 8


class VectorIndex:
    """Texts by key, found by what they mean: exact cosine over an embedder's vectors (`seasoned.core.vectors`).

    Args:
        embedder: makes the vectors; a `CachedEmbedder`, so that opening does not embed again.

    Raises:
        InputError: it is no embedder.

    Example:
        >>> from seasoned.llms.embedding import ScriptedEmbedder
        >>> index = VectorIndex(ScriptedEmbedder())
        >>> index.add_many([("e1", "page cart"), ("e2", "a red lamp")])
        >>> index.search("page cart total", k=1)[0][0]
        'e1'
    """

    def __init__(self, embedder: Embedder) -> None:
        if not isinstance(embedder, Embedder):
            raise InputError(f"embedder = {excerpt(embedder)}", "it has identity, dimensions and embed", "Pass one.")
        self._embedder = embedder
        self.identity = embedder.identity
        self._index: CosineIndex | None = None

    def __len__(self) -> int:
        return 0 if self._index is None else len(self._index)

    def __contains__(self, key: object) -> bool:
        return self._index is not None and key in self._index

    def add(self, key: str, text: str) -> None:
        """Add a text; a key that is there already gets the new one. Raises what `add_many` raises."""
        self.add_many([(key, text)])

    def add_many(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add (key, text) pairs, embedded together.

        Raises:
            InputError: a text is blank, or a key is there twice.
            EncoderMismatchError: the embedder is another one now.
            ModelError: it failed; nothing was added.
        """
        added = list(pairs)
        if not added:
            return
        self._check_embedder()
        rows = self._embedder.embed([text for _, text in added])
        if self._index is None:
            self._index = CosineIndex(rows.shape[1])
        self._index.add([key for key, _ in added], rows)

    def remove(self, key: str) -> None:
        """Take a text out.

        Raises:
            InputError: no text has this key.
        """
        if self._index is None:
            raise InputError(f"key = {excerpt(key)}", "it is in the index", "Add it first.")
        self._index.remove(key)

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return the k keys whose texts are most like this one, best first, with cosines; equal ones: the newest first.

        Raises:
            InputError: the text is blank, or k is below 1.
            EncoderMismatchError: the embedder is another one now.
            ModelError: it failed.
        """
        self._check_embedder()
        return self.nearest(self._embedder.embed([text])[0], k)

    def nearest(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """Return what `search` does, for a text whose vector is known."""
        return [] if self._index is None else self._index.search(vector, k)

    def cosines(self, vector: Vector, keys: Sequence[str]) -> list[float]:
        """Return how like a vector those of some keys are, in their order.

        Raises:
            InputError: no text has one of the keys.
        """
        return self._index.cosines(vector, keys) if self._index is not None and keys else []

    def _check_embedder(self) -> None:
        if self._embedder.identity != self.identity:
            raise EncoderMismatchError(
                f"vectors of {self.identity!r}, and the embedder {self._embedder.identity!r}",
                "vectors of two embedders are never compared",
                "Make the index again.",
            )


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
    """A memory whose moments are found by meaning as well as by words: `Examples(VectorRecall(memory, embedder))`.

    A query's texts are looked up among the stored tasks, states, plans and reasonings by their vectors; what is found
    is recalled from the memory by its own text, beside what the memory finds by words. Every similarity is then the
    cosine of the two texts, 0 where it is below 0. A text without a vector is embedded; so embed through a cache. The
    embedder reads a query as the memory redacts it.

    A text that the embedder refuses (too long for its model, say) is left out: it is found by words alone, and is like
    nothing under its key. `n_refused` counts such texts. A query is refused only if all its texts are.

    What is erased, aborted or set aside is never recalled, since every moment comes from the memory, and no other is
    missed for it: the 8 nearest texts of each key are those that the memory still gives. But the vector of an
    erased text stays in the embedder's cache, under its digest, until `CachedEmbedder.forget` is told of it.

    New episodes are taken in at the next recall, with the plans and reasonings that were noted by then.

    Args:
        memory: a `seasoned.Memory`.
        embedder: makes the vectors.

    Raises:
        InputError: it is no embedder.

    Example:
        >>> from seasoned import Episode, Memory, Step
        >>> from seasoned.llms.embedding import ScriptedEmbedder
        >>> from seasoned.policies.examples import Examples, Query
        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.add(Episode("buy a lamp", [Step("page cart", "click(pay)", 1.0)], "e1"))
        ...     [example] = Examples(VectorRecall(memory, ScriptedEmbedder())).retrieve(Query("buy a red lamp"))
        >>> example.episode_id, 0.5 < example.similarity < 1.0
        ('e1', True)
    """

    def __init__(self, memory: VectorSource, embedder: Embedder) -> None:
        self._memory = memory
        self._indexes = {key: VectorIndex(embedder) for key in KEYS}
        self._embedder = embedder
        self._seen = 0
        self._refused: set[str] = set()
        self._lock = threading.Lock()
        self.gamma, self.encoder = memory.gamma, memory.encoder

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
        with_credits: bool = False,
    ) -> Recall:
        """Return moments found by words and by meaning, their similarities by meaning; see `Memory.recall`.

        Raises:
            InputError: as for `Memory.recall`; or the embedder refuses every text of the query.
            ModelError: the embedder failed.
        """
        options: dict[str, Any] = {"whole": whole, "gamma": gamma, "exclude_task": exclude_task}
        options["with_credits"] = with_credits
        by_words = self._memory.recall(texts, pool=pool, **options)
        with self._lock:
            self._follow(next(iter(texts.values())))
            asked = self._asked({key: self._memory.redacted(text) for key, text in texts.items()})
            found = {moment.place: moment for moment in by_words.moments}
            for key in asked:
                known = {_written(moment, key) for moment in found.values()}
                n_met = 0
                for near in self._nearest(key, asked[key]):
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
        ids = {one.id for one in new if one.ending != "aborted"}
        if len(ids) > _FEW:
            notes = [note for kind in ("plan", "reasoning") for note in self._memory.notes(kind=kind)]
        else:
            notes = [note for id_ in ids for note in self._memory.notes(episode_id=id_)]
        said: dict[str, list[str]] = {key: [] for key in KEYS}
        for one in new:
            if one.id in ids:
                said["goal"].append(one.task)
                said["observation"] += [step.state for step in one.steps]
        for note in notes:
            text = note.body.get("text")
            if note.kind in ("plan", "reasoning") and note.episode_id in ids and isinstance(text, str) and text.strip():
                said[note.kind].append(text)
        for key, texts in said.items():
            self._take(key, texts)
        self._seen = n

    def _take(self, key: str, texts: Iterable[str]) -> None:
        index = self._indexes[key]
        new = [text for text in dict.fromkeys(texts) if text not in index and text not in self._refused]
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
            self._take(key, [said for said in written if said is not None])
            there = [said for said in written if said is not None and said in self._indexes[key]]
            cosines = iter(self._indexes[key].cosines(vector, there))
            for row, said in zip(similar, written, strict=True):
                if said is not None and said in self._indexes[key]:
                    row[key] = max(0.0, next(cosines))
        return tuple(replace(moment, similarities=row) for moment, row in zip(moments, similar, strict=True))

    # ------------------------------------------------------------------------------------------ as the memory says

    def experiences(
        self, places: Collection[tuple[str, int]], *, gamma: float | None = None
    ) -> dict[tuple[str, int], Experience]:
        """Return stored steps by their places."""
        return self._memory.experiences(places, gamma=gamma)

    def median_return(self, *, gamma: float | None = None) -> float | None:
        """Return the namespace's median return."""
        return self._memory.median_return(gamma=gamma)

    def showings(
        self,
        places: Collection[tuple[str, int]] | None,
        *,
        alike: bool = False,
        gamma: float | None = None,
        exclude_task: str | None = None,
        most: int | None = None,
    ) -> list[Showing]:
        """Return at which steps some were shown."""
        return self._memory.showings(places, alike=alike, gamma=gamma, exclude_task=exclude_task, most=most)

    def beside(
        self, places: Collection[tuple[str, int]], *, gamma: float | None = None, exclude_task: str | None = None
    ) -> dict[tuple[str, int], Beside]:
        """Return steps' returns beside those of the others at their distinct states."""
        return self._memory.beside(places, gamma=gamma, exclude_task=exclude_task)

    def alongside(
        self,
        places: Collection[tuple[str, int]],
        *,
        gamma: float | None = None,
        exclude_task: str | None = None,
        most: int = 256,
    ) -> dict[tuple[str, int], list[tuple[str, float]]]:
        """Return the latest others at the distinct states of some steps."""
        return self._memory.alongside(places, gamma=gamma, exclude_task=exclude_task, most=most)

    def credits(self, episode_ids: Collection[str]) -> dict[str, dict[str, float]]:
        """Return by episode and source what unrevoked feedback adds up to."""
        return self._memory.credits(episode_ids)

    def step_credits(self, episode_ids: Collection[str]) -> dict[str, dict[int, float]]:
        """Return by episode and step what unrevoked feedback adds up to."""
        return self._memory.step_credits(episode_ids)

    def get(self, episode_id: str) -> Episode:
        """Return a stored episode."""
        return self._memory.get(episode_id)

    def notes(self, *, kind: str | None = None, episode_id: str | None = None) -> list[Note]:
        """Return unrevoked notes, in order."""
        return self._memory.notes(kind=kind, episode_id=episode_id)

    def note(
        self,
        episode_id: str,
        kind: str,
        body: Mapping[str, Any],
        *,
        step: int | None = None,
        source: str = "agent",
        author: str | None = None,
    ) -> str:
        """Append a note, and return its id."""
        return self._memory.note(episode_id, kind, body, step=step, source=source, author=author)


def _written(moment: Moment, key: str) -> str | None:
    """What a moment can be found by under a key."""
    seen = moment.experience
    return {"goal": seen.task, "plan": moment.plan, "observation": seen.state, "reasoning": moment.reasoning}[key]
