"""A trie of token sequences: each shared prefix is one node.

Every sequence ends in a leaf of its own, reached by `END`. So a sequence may be a prefix of another one ("open", "open
door"), and the leaves are disjoint events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from seasoned.errors import InputError, excerpt

__all__ = ["END", "TokenTrie"]

END = -1
"""The end of a text, by any end token of the model."""

_ROOT = 0


class TokenTrie:
    """A trie of token sequences. Nodes are numbered from the root, 0, each parent before its children.

    Args:
        sequences: token ids (>= 0) of each text, without the end; at least one, none empty, all different.

    Attributes:
        parents: each node's parent; -1 for the root.
        tokens: the token that leads to each node; `END` for leaves, and for the root.
        depths: each node's distance from the root, in tokens.
        leaves: the leaf of each sequence, in their order.

    Raises:
        InputError: there is no sequence, one is empty, two are equal, or an id is not a whole number >= 0.

    Example:
        >>> trie = TokenTrie([[5, 7], [5], [9]])
        >>> len(trie), dict(trie.children(0)), trie.walk([5, 7]), trie.walk([6])
        (7, {5: 1, 9: 5}, 2, None)
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        if not len(sequences):
            raise InputError("no token sequences", "a trie holds at least one", "Pass the candidates' tokens.")
        parents, tokens, depths = [-1], [END], [0]
        children: list[dict[int, int]] = [{}]
        leaves: list[int] = []
        for position, sequence in enumerate(sequences):
            node = _ROOT
            for token in (*_check_sequence(position, sequence), END):
                child = children[node].get(token)
                if child is None:
                    child = len(parents)
                    children[node][token] = child
                    parents.append(node)
                    tokens.append(token)
                    depths.append(depths[node] + 1)
                    children.append({})
                elif token == END:
                    raise InputError(
                        f"sequences {leaves.index(child)} and {position} = {excerpt(list(sequence))}",
                        "two texts have different tokens",
                        "Pass each candidate once.",
                    )
                node = child
            leaves.append(node)
        self.parents, self.tokens, self.depths = (
            np.array(column, dtype=np.int64) for column in (parents, tokens, depths)
        )
        self.leaves = np.array(leaves, dtype=np.int64)
        self._children = children

    def __len__(self) -> int:
        """Return the number of nodes, the root and the leaves included."""
        return len(self.parents)

    def children(self, node: int) -> Mapping[int, int]:
        """Return the children of `node` by token; `END` is one of the tokens if a sequence ends there."""
        return MappingProxyType(self._children[node])

    def walk(self, tokens: Sequence[int]) -> int | None:
        """Return the node reached from the root by `tokens`, or None if they leave the trie."""
        node = _ROOT
        for token in tokens:
            child = self._children[node].get(int(token))
            if child is None:
                return None
            node = child
        return node

    def path(self, position: int) -> list[int]:
        """Return the nodes of sequence `position`, from the child of the root to its leaf."""
        node, nodes = int(self.leaves[position]), []
        while node != _ROOT:
            nodes.append(node)
            node = int(self.parents[node])
        return nodes[::-1]

    def log_masses(self, leaf_logs: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return `log sum exp` of the leaves at or below each node.

        Args:
            leaf_logs: one value a sequence, in nats; minus infinity for a mass of 0.

        Raises:
            InputError: the number of values is not that of sequences, or a value is NaN or plus infinity.

        Example:
            >>> np.exp(TokenTrie([[5, 7], [5], [9]]).log_masses(np.log([0.5, 0.2, 0.3]))).round(3).tolist()
            [1.0, 0.7, 0.5, 0.5, 0.2, 0.3, 0.3]
        """
        values = np.asarray(leaf_logs, dtype=np.float64)
        if values.shape != self.leaves.shape or not (values < np.inf).all():
            raise InputError(
                f"leaf_logs = {excerpt(values.tolist())}",
                f"there is one value below infinity for each of {len(self.leaves)} sequences",
                "Align them.",
            )
        masses = np.full(len(self), -np.inf)
        masses[self.leaves] = values
        for node in range(len(self) - 1, _ROOT, -1):  # children come after their parents
            parent = self.parents[node]
            masses[parent] = np.logaddexp(masses[parent], masses[node])
        return masses


def _check_sequence(position: int, sequence: Sequence[int]) -> Sequence[int]:
    if not len(sequence):
        raise InputError(f"sequence {position} = []", "a text has at least one token", "Leave the empty text out.")
    for token in sequence:
        if isinstance(token, bool) or not isinstance(token, int | np.integer) or token < 0:
            raise InputError(
                f"token {excerpt(token)} of sequence {position}", "an id is a whole number >= 0", "Tokenise."
            )
    return [int(token) for token in sequence]
