"""What a memory must answer, computed the slow way: Python sets, fractions, raw episodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from seasoned import Episode


class HashtagBlind:
    """The words of a text that do not start with `#`: `"# #x"` has the empty feature set."""

    identity = "test/hashtag-blind"

    def features(self, state: str) -> frozenset[str]:
        return frozenset(word for word in state.split() if not word.startswith("#"))


class FirstLetters:
    """Another encoder, so that reindexing changes sets, merges some and splits none."""

    identity = "test/first-letters"

    def features(self, state: str) -> frozenset[str]:
        return frozenset(word[0] for word in state.split())


def similarity(a, b) -> Fraction:
    union = len(a | b)
    return Fraction(len(a & b), union) if union else Fraction(1)


def returns(rewards, gamma):
    """`G[t] = sum_{u >= t} gamma^(u-t) r[u]`, in fractions."""
    gamma = Fraction(gamma)
    return [
        sum((gamma ** (u - t) * Fraction(rewards[u]) for u in range(t, len(rewards))), Fraction(0))
        for t in range(len(rewards))
    ]


@dataclass
class RawMemory:
    """Episodes in commit order, and what feedback currently adds to each step, by who said it."""

    encoder: object
    episodes: list[Episode] = field(default_factory=list)
    said: dict[tuple[int, int, str, str | None], float] = field(default_factory=dict)

    def rewards(self, at: int):
        extra = [Fraction(0)] * len(self.episodes[at].steps)
        for (episode, step, _, _), value in self.said.items():
            if episode == at:
                extra[step] += Fraction(value)
        return [Fraction(step.reward) + more for step, more in zip(self.episodes[at].steps, extra, strict=True)]

    def live(self, state: str, threshold=Fraction(0), exclude_task=None):
        """(similarity, episode, step) of each step that may be found, best first, then the most recent first."""
        query = self.encoder.features(state)
        found = [
            (similarity(query, self.encoder.features(step.state)), at, index)
            for at, episode in enumerate(self.episodes)
            if episode.ending != "aborted" and episode.task != exclude_task
            for index, step in enumerate(episode.steps)
        ]
        return sorted((row for row in found if row[0] >= threshold), reverse=True)

    def at_nearest_states(self, state: str, k: int, threshold, exclude_task):
        """All steps at the k nearest distinct states; of equally near ones, those visited last."""
        kept: list[frozenset[str]] = []
        rows = self.live(state, threshold, exclude_task)
        for _, at, index in rows:
            features = self.encoder.features(self.episodes[at].steps[index].state)
            if features not in kept and len(kept) < k:
                kept.append(features)
        return [row for row in rows if self.encoder.features(self.episodes[row[1]].steps[row[2]].state) in kept]

    def by_state(self, state, *, k, unit, threshold, gamma, similarity_power, decay, exclude_task):
        """Per (rank of the distinct state, action): (count, weight, total, squares), plus the number of states."""
        if unit == "steps":
            rows = self.live(state, threshold, exclude_task)[:k]
        else:
            rows = self.at_nearest_states(state, k, threshold, exclude_task)
        table: dict[tuple[int, str], list[float]] = {}
        rank: dict[frozenset[str], int] = {}
        derived = [returns(self.rewards(at), gamma) for at in range(len(self.episodes))]
        for near, at, index in rows:
            weight = float(near) ** similarity_power * decay ** (len(self.episodes) - 1 - at)
            return_ = float(derived[at][index])
            step = self.episodes[at].steps[index]
            features = self.encoder.features(step.state)
            cell = rank.setdefault(features, len(rank)), " ".join(step.action.split()).casefold()
            entry = table.setdefault(cell, [0.0] * 4)
            for i, amount in enumerate((1, weight, weight * return_, weight * return_**2)):
                entry[i] += amount
        return table, len(rank)

    def evidence(self, state, **question):
        """Per action: (count, weight, total, squares), plus the number of distinct states."""
        cells, n_states = self.by_state(state, **question)
        table: dict[str, list[float]] = {}
        for (_, action), row in cells.items():
            table[action] = [sum(pair) for pair in zip(table.get(action, [0.0] * 4), row, strict=True)]
        return table, n_states

    def mean_returns(self, gamma):
        """The mean return of every pair of a distinct state and an action."""
        pairs: dict[tuple[frozenset[str], str], list[float]] = {}
        for at, episode in enumerate(self.episodes):
            if episode.ending != "aborted":
                for step, value in zip(episode.steps, returns(self.rewards(at), gamma), strict=True):
                    pair = self.encoder.features(step.state), " ".join(step.action.split()).casefold()
                    pairs.setdefault(pair, []).append(float(value))
        return [sum(values) / len(values) for values in pairs.values()]
