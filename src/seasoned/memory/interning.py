"""Texts become numbers: each state, feature, action and prior of a namespace is stored once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from seasoned.memory.canonical import text_digest
from seasoned.memory.reader import Reader
from seasoned.memory.schema import COUNTERS
from seasoned.memory.store import Store
from seasoned.protocols import StateEncoder
from seasoned.types import normalize_action

__all__ = ["Interner"]

Row = tuple[Any, ...]


class Interner:
    """Numbers what one namespace holds, upwards from 1. Every method runs inside one transaction of the caller.

    `load` first; then ask for the numbers of texts, any number at once; `save` writes what was new, and the counters.
    """

    def __init__(self, store: Store, namespace_id: int, encoder: StateEncoder) -> None:
        self._store = store
        self._ns = namespace_id
        self._encoder = encoder
        self._new: defaultdict[str, list[Row]] = defaultdict(list)
        self.counters: dict[str, int] = {}
        self.new_sets: set[int] = set()

    def load(self) -> None:
        """Read how far each kind is numbered. EncoderMismatchError if the namespace was encoded anew meanwhile."""
        Reader(self._store, self._ns).check_encoder(self._encoder.identity)
        row = self._store.execute(f"SELECT {', '.join(COUNTERS)} FROM namespace WHERE id = ?", (self._ns,)).fetchone()
        self.counters = dict(zip(COUNTERS, row, strict=True))
        self._new.clear()
        self.new_sets.clear()

    def save(self, last_visits: dict[int, int] | None = None) -> None:
        """Write what is new, how far each kind is numbered, and the latest visits to feature sets."""
        visits = dict(last_visits or {})
        sets = [(ns, set_id, tokens, key, visits.pop(set_id, None)) for ns, set_id, tokens, key in self._new["sets"]]
        rows = {"token": self._new["token"], "feature_set": sets}
        for table in ("state", "action", "prior"):
            rows[table] = self._new[table]
        for table, new in rows.items():
            if new:
                self._store.insert(table, new)
        if visits:
            moved = [(visit, self._ns, set_id) for set_id, visit in visits.items()]
            self._store.update("feature_set", ("last_visit",), ("namespace_id", "id"), moved)
        self._new.clear()
        self._store.update("namespace", COUNTERS, ("id",), [(*(self.counters[name] for name in COUNTERS), self._ns)])

    def next(self, counter: str) -> int:
        """Return the next number of a kind."""
        self.counters[counter] += 1
        return self.counters[counter]

    def states(self, texts: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the ids of each state and of its feature set."""
        keys = {text_digest(text): text for text in dict.fromkeys(texts)}
        found = {keys[key]: (id_, set_id) for key, id_, set_id in self._known("state", "id, set_id", keys)}
        new = [text for text in keys.values() if text not in found]
        for text, set_id in zip(new, self.feature_sets(new), strict=True):
            found[text] = self.next("states"), set_id
            self._new["state"].append((self._ns, found[text][0], text, text_digest(text), set_id))
        return found

    def feature_sets(self, texts: list[str]) -> list[int]:
        """Return the id of each state's feature set."""
        features = [self._encoder.features(text) for text in texts]
        token_ids = self._tokens(frozenset().union(*features))
        members = [np.array(sorted(map(token_ids.__getitem__, one)), dtype="<u4").tobytes() for one in features]
        keys = [text_digest(tokens) for tokens in members]
        found = dict(self._known("feature_set", "id", dict.fromkeys(keys)))
        for key, tokens in zip(keys, members, strict=True):
            if key not in found:
                found[key] = self.next("feature_sets")
                self.new_sets.add(found[key])
                self._new["sets"].append((self._ns, found[key], tokens, key))
        return [found[key] for key in keys]

    def _tokens(self, features: frozenset[str]) -> dict[str, int]:
        known = self._store.looked_up.setdefault(self._ns, {})
        # Sorted, so that a store's content does not depend on Python's hash seed.
        keys = {text_digest(feature): feature for feature in sorted(features - known.keys())}
        known.update((keys[key], id_) for key, id_ in self._known("token", "id", keys))
        for key, feature in keys.items():
            if feature not in known:
                known[feature] = self.next("tokens")
                self._new["token"].append((self._ns, known[feature], feature, key))
        return known

    def actions(self, texts: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the ids of each action and of its first spelling."""
        digests = {text_digest(text): text for text in dict.fromkeys(texts)}
        found = {digests[key]: (id_, key_id) for key, id_, key_id in self._known("action", "id, key_id", digests)}
        new = {text: text_digest(normalize_action(text)) for text in digests.values() if text not in found}
        first = dict(
            self._store.execute_in(
                "SELECT key_digest, min(id) FROM action WHERE namespace_id = ? AND key_digest IN {values} "
                "GROUP BY key_digest",
                (self._ns,), list(dict.fromkeys(new.values())),
            )
        )  # fmt: skip
        for text, key in new.items():
            action_id = self.next("actions")
            found[text] = action_id, first.setdefault(key, action_id)
            self._new["action"].append((self._ns, action_id, text, text_digest(text), found[text][1], key))
        return found

    def priors(self, texts: Iterable[str]) -> dict[str, int]:
        """Return the id of each prior, given in its canonical form."""
        keys = {text_digest(text): text for text in dict.fromkeys(texts)}
        found = {keys[key]: id_ for key, id_ in self._known("prior", "id", keys)}
        for key, text in keys.items():
            if text not in found:
                found[text] = self.next("priors")
                self._new["prior"].append((self._ns, found[text], text, key))
        return found

    def _known(self, table: str, columns: str, keys: dict[bytes, Any]) -> list[Any]:
        """Return (digest, *columns) of the rows of a table that have one of these digests."""
        return self._store.execute_in(
            f"SELECT digest, {columns} FROM {table} WHERE namespace_id = ? AND digest IN {{values}}",
            (self._ns,), list(keys),
        )  # fmt: skip
