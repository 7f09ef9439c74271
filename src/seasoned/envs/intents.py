"""A contextual bandit over real sentences: route each one to the right option."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from seasoned.checks import check_whole
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.envs.intent_rounds import (
    IntentOptions,
    IntentRound,
    IntentTask,
    draw_rounds,
    intent_options,
    read_intents,
)
from seasoned.protocols import Observation

__all__ = ["IntentRouting", "open_intents"]


class IntentRouting:
    """Shows labelled sentences one after the other. The reward of a step is that of the option chosen for its sentence.

    Args:
        folder: contains `data_full.json` and `domains.json`, in the form of CLINC150 (Larson et al., "An Evaluation
            Dataset for Intent Classification and Out-of-Scope Prediction", EMNLP 2019).
        options: `domains`, `desks` or `intents`; see `IntentTask`.
        desks: the number of desks.
        graded: a desk of the same building earns 0.5.
        noise: the probability, in [0, 0.5), that a reward r is 1 - r. `true_score` is without noise.
        rounds: the number of sentences in an episode, all different. `reset(seed=...)` draws them.
        seed: of the assignment of intents to desks; for `intents`, of the domain.

    Raises:
        NotFoundError: a file is missing.
        InputError: a value breaks one of these rules, or a file has another form.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        options: IntentOptions = "domains",
        desks: int = 8,
        graded: bool = False,
        noise: float = 0.0,
        rounds: int = 1,
        seed: int = 0,
    ) -> None:
        self._rule = IntentTask(options, desks=desks, graded=graded, noise=noise)
        self._rounds = rounds
        self._seed = check_whole("seed", seed, 0, 2**31 - 1)
        self._folder = Path(folder)
        self._data = read_intents(folder)
        self._options = intent_options(self._data, self._rule, seed)
        available = len(draw_rounds(self._data, self._rule, 0, rule_seed=seed))
        check_whole("rounds", rounds, 1, available)
        self._guard = EpisodeGuard(None)
        self._next = 0  # the seed of an episode without one
        self._drawn: list[IntentRound] = []
        self._true_score, self._position = 0.0, 0

    @property
    def name(self) -> str:
        """The specification that opens the same environment with `open_env`."""
        rule = self._rule
        given = {
            "options": (rule.options, "domains"),
            "desks": (rule.desks, 8),
            "graded": (int(rule.graded), 0),
            "noise": (rule.noise, 0.0),
            "rounds": (self._rounds, 1),
            "seed": (self._seed, None),
        }
        query = "&".join(f"{key}={value}" for key, (value, default) in given.items() if value != default)
        return f"intents:{quote(str(self._folder))}?{query}"

    @property
    def task(self) -> str:
        """The task in words."""
        return "Choose the right option for the customer's sentence."

    @property
    def max_score(self) -> float | None:
        """1 a round."""
        return float(self._rounds)

    @property
    def true_score(self) -> float:
        """The sum of the rewards so far, without noise."""
        return self._true_score

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Draw the sentences of this seed, and show the first.

        Raises:
            EnvError: the environment was closed.
        """
        self._guard.check_open()
        drawn_by = self._next if seed is None else check_whole("seed", seed, 0)
        self._next = drawn_by + 1
        self._drawn = draw_rounds(self._data, self._rule, drawn_by, self._rounds, rule_seed=self._seed)
        self._true_score, self._position = 0.0, 0
        return self._guard.begin(self._drawn[0].text, self._options)

    async def step(self, action: str) -> Observation:
        """Choose an option for the sentence.

        Raises:
            EnvError: before `reset`, after the end, or for an inadmissible action.
        """
        option = self._guard.resolve_action(action)
        shown = self._drawn[self._position]
        self._true_score += shown.rewards[option]
        self._position += 1
        ended = self._position == len(self._drawn)
        state = "no sentence is left" if ended else self._drawn[self._position].text
        return self._guard.observe(state, self._options, reward=shown.observed(option), terminated=ended)

    async def aclose(self) -> None:
        """Refuse every later call."""
        self._guard.close()


def open_intents(target: str, options: Mapping[str, str]) -> IntentRouting:
    """Return the environment of `intents:FOLDER?option=value&...`; the options are the arguments of `IntentRouting`.

    Raises:
        NotFoundError: a file is missing.
        InputError: an option is unknown, a value is not allowed, or a file has another form.
    """
    known = {
        "desks": Option(8, low=2),
        "graded": Option(False),
        "rounds": Option(1, low=1),
        "seed": Option(0, high=2**31 - 1),
    }
    return IntentRouting(unquote(target), **option_values(options, known, ("options",), ("noise",)))
