"""Texts become numbers: each state, feature, action and prior of a namespace is stored once."""

from __future__ import annotations

from typing import Any

import numpy as np

from seasoned.canonical import canonical_json
from seasoned.memory.canonical import text_digest
from seasoned.memory.database import Database
from seasoned.memory.reader import Reader, chunks, marks
from seasoned.protocols import StateEncoder
from seasoned.types import normalize_action

__all__ = ["Interner"]

_COUNTERS = ("episodes", "states", "feature_sets", "tokens", "actions", "priors", "views", "events")


class Interner:
    """Numbers what one namespace holds, from 1 without gaps. Every method runs inside one transaction of the caller.

    Load the counters before anything is numbered, and save them after.
    """

    def __init__(self, database: Database, namespace_id: int, encoder: StateEncoder) -> None:
        self._db = database
        self._ns = namespace_id
        self._encoder = encoder
        self.counters: dict[str, int] = {}

    def load_counters(self) -> None:
        """Read how far each kind is numbered. EncoderMismatchError if the namespace was encoded anew meanwhile."""
        Reader(self._db, self._ns).check_encoder(self._encoder.identity)
        row = self._row(f"SELECT {', '.join(_COUNTERS)} FROM namespace WHERE id = ?")
        self.counters = dict(zip(_COUNTERS, row, strict=True))

    def save_counters(self) -> None:
        """Write how far each kind is numbered."""
        assignments = ", ".join(f"{name} = ?" for name in _COUNTERS)
        self._db.execute(
            f"UPDATE namespace SET {assignments} WHERE id = ?",
            (*(self.counters[name] for name in _COUNTERS), self._ns),
        )

    def next(self, counter: str) -> int:
        """Return the next number of a kind."""
        self.counters[counter] += 1
        return self.counters[counter]

    def state(self, text: str) -> tuple[int, int]:
        """Return the ids of a state and of its feature set."""
        key = text_digest(text)
        row = self._row("SELECT id, set_id FROM state WHERE namespace_id = ? AND digest = ?", key)
        if row:
            return row[0], row[1]
        set_id = self.feature_set(text)
        state_id = self.next("states")
        self._db.execute("INSERT INTO state VALUES (?, ?, ?, ?, ?)", (self._ns, state_id, text, key, set_id))
        return state_id, set_id

    def feature_set(self, text: str) -> int:
        """Return the id of a state's feature set."""
        tokens = np.array(sorted(self._tokens(self._encoder.features(text))), dtype="<u4").tobytes()
        key = text_digest(tokens)
        row = self._row("SELECT id FROM feature_set WHERE namespace_id = ? AND digest = ?", key)
        if row:
            return int(row[0])
        set_id = self.next("feature_sets")
        self._db.execute("INSERT INTO feature_set VALUES (?, ?, ?, ?, NULL)", (self._ns, set_id, tokens, key))
        return set_id

    def _tokens(self, features: frozenset[str]) -> list[int]:
        known = self._db.looked_up.setdefault(self._ns, {})
        # Sorted, so that a store's content does not depend on Python's hash seed.
        missing = sorted(feature for feature in features if feature not in known)
        for chunk in chunks(missing):
            known.update(
                self._db.execute(
                    f"SELECT text, id FROM token WHERE namespace_id = ? AND text IN ({marks(chunk)})",
                    (self._ns, *chunk),
                )
            )
        new = [(self._ns, self.next("tokens"), feature) for feature in missing if feature not in known]
        self._db.execute_many("INSERT INTO token VALUES (?, ?, ?)", new)
        known.update((text, token_id) for _, token_id, text in new)
        return [known[feature] for feature in features]

    def action(self, text: str) -> tuple[int, int]:
        """Return the ids of an action and of its first spelling."""
        row = self._row("SELECT id, key_id FROM action WHERE namespace_id = ? AND text = ?", text)
        if row:
            return row[0], row[1]
        key = normalize_action(text)
        action_id = self.next("actions")
        first = self._row("SELECT key_id FROM action WHERE namespace_id = ? AND key = ? ORDER BY id LIMIT 1", key)
        key_id = first[0] if first else action_id
        self._db.execute("INSERT INTO action VALUES (?, ?, ?, ?, ?)", (self._ns, action_id, text, key_id, key))
        return action_id, key_id

    def prior(self, logprobs: dict[str, float]) -> int:
        """Return the id of a prior."""
        text = canonical_json(logprobs)
        key = text_digest(text)
        row = self._row("SELECT id FROM prior WHERE namespace_id = ? AND digest = ?", key)
        if row:
            return int(row[0])
        prior_id = self.next("priors")
        self._db.execute("INSERT INTO prior VALUES (?, ?, ?, ?)", (self._ns, prior_id, text, key))
        return prior_id

    def _row(self, sql: str, *parameters: object) -> Any:
        return self._db.execute(sql, (self._ns, *parameters)).fetchone()
