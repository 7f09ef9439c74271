"""A small grid world with exact values by dynamic programming."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from seasoned.checks import check_number, check_whole
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.envs.mdp_solver import ExactValues, prior_at, solve_bellman
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Observation

__all__ = ["Grid", "open_grid"]

_MOVES = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}
_SIDES = {"north": ("west", "east"), "east": ("north", "south"), "south": ("east", "west"), "west": ("south", "north")}

_Cell = tuple[int, int]


class Grid:
    """A grid to cross from S to G. Every step costs `step_cost`; with probability `slip` a move goes to one side.

    Args:
        rows: text rows of equal length: `S` start (one), `G` goal (at least one), `T` trap, `#` wall, `.` floor. Goals
            and traps end the episode. A move is admissible unless it enters a wall; a slip into a wall does not move.
        goal_reward: the reward of entering a goal, above 0, in reward units.
        trap_reward: the reward of entering a trap, at most 0.
        step_cost: subtracted from the reward of every step, at least 0.
        slip: the probability, in [0, 1), that a move goes to the left or right of its direction, half each.
        max_steps: the episode is truncated after this many steps; at least the distance of the nearest goal.
        seed: the seed of the slips across episodes; `reset(seed=...)` starts a new random sequence.

    Raises:
        InputError: a value breaks one of these rules, or no goal can be reached.

    Example:
        >>> grid = Grid(["S.G"])
        >>> grid.exact_values(gamma=0.5).v["cell:0,0 open:east"]
        0.5
    """

    def __init__(
        self,
        rows: Sequence[str],
        *,
        goal_reward: float = 1.0,
        trap_reward: float = -1.0,
        step_cost: float = 0.0,
        slip: float = 0.0,
        max_steps: int = 100,
        seed: int = 0,
    ) -> None:
        self._rows = _check_rows(rows)
        self._rewards = {
            "G": check_number("goal_reward", goal_reward, above=0.0),
            "T": check_number("trap_reward", trap_reward, at_most=0.0),
        }
        self._step_cost = check_number("step_cost", step_cost, at_least=0.0)
        self._slip = check_number("slip", slip, at_least=0.0, below=1.0)
        self._cells = [(r, c) for r, row in enumerate(self._rows) for c, mark in enumerate(row) if mark != "#"]
        self._start = next(cell for cell in self._cells if self._mark(cell) == "S")
        distance = self._distances()
        nearest = min((distance[cell] for cell in distance if self._mark(cell) == "G"), default=None)
        if nearest is None:
            raise InputError(f"rows = {excerpt(list(self._rows))}", "a goal can be reached from S", "Open a way.")
        self._max_steps = check_whole("max_steps", max_steps, nearest)
        self._seed = check_whole("seed", seed, 0)
        self._max_score = max(
            self._rewards[self._mark(c)] - self._step_cost * d for c, d in distance.items() if self._ends(c)
        )
        self._rng = np.random.default_rng(seed)
        self._guard = EpisodeGuard(max_steps)
        self._cell = self._start

    @property
    def name(self) -> str:
        """The specification that opens the same environment with `open_env`."""
        given = {
            "goal_reward": (self._rewards["G"], 1.0),
            "trap_reward": (self._rewards["T"], -1.0),
            "step_cost": (self._step_cost, 0.0),
            "slip": (self._slip, 0.0),
            "seed": (self._seed, 0),
        }
        options = [f"{name}={value}" for name, (value, default) in given.items() if value != default]
        return f"grid:{'/'.join(self._rows)}?{'&'.join([*options, f'max_steps={self._max_steps}'])}"

    @property
    def task(self) -> str:
        """The task in words."""
        return "Reach the goal in as few steps as you can."

    @property
    def max_score(self) -> float | None:
        """The best possible score: of the best ending, by its shortest path."""
        return self._max_score

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode at S.

        Raises:
            EnvError: the environment was closed.
        """
        if seed is not None:
            self._rng = np.random.default_rng(check_whole("seed", seed, 0))
        self._cell = self._start
        return self._guard.begin(self._text(self._cell), self._open(self._cell))

    async def step(self, action: str) -> Observation:
        """Move one cell.

        Raises:
            EnvError: before `reset`, after the end, or for a move into a wall.
        """
        outcomes = self._outcomes(self._cell, self._guard.resolve_action(action))
        drawn = self._rng.choice(len(outcomes), p=list(outcomes.values())) if len(outcomes) > 1 else 0
        self._cell = list(outcomes)[int(drawn)]
        return self._guard.observe(
            self._text(self._cell),
            self._open(self._cell),
            reward=self._reward(self._cell),
            terminated=self._ends(self._cell),
        )

    async def aclose(self) -> None:
        """Refuse every later call."""
        self._guard.close()

    def exact_values(self, gamma: float) -> ExactValues:
        """Return the optimal values: `Q*(s,a) = E[r + gamma V*(s')]`, `V*(s) = max_a Q*(s,a)`, without the step limit.

        Source: value iteration (Bellman 1957), to 1e-12 in the sup norm.

        Args:
            gamma: discount in [0, 1).

        Raises:
            InputError: gamma is outside its range.
        """
        return self._solve(gamma, None, None)

    def exact_kl_values(
        self, gamma: float, beta: float, prior: Mapping[str, Mapping[str, float]] | None = None
    ) -> ExactValues:
        """Return the exact values of KL-regularised control, without the step limit.

        `V(s) = (1/beta) log sum_a pi(a|s) exp(beta Q(s,a))`, `Q(s,a) = E[r + gamma V(s')]`; at beta 0 the limit, the
        value of the prior itself: `V(s) = sum_a pi(a|s) Q(s,a)`.

        Args:
            gamma: discount in [0, 1).
            beta: nats per unit of reward, at least 0.
            prior: pi, state to action to probability; uniform over the admissible actions if None.

        Raises:
            InputError: a value is outside its range, or the prior lacks a state or an action, or does not sum to 1.
        """
        return self._solve(gamma, check_number("beta", beta, at_least=0.0, next_step="Try 1 nat per unit."), prior)

    def states(self) -> dict[str, tuple[str, ...]]:
        """Return every state with admissible actions, and these actions."""
        return {self._text(cell): self._open(cell) for cell in self._cells if not self._ends(cell) and self._open(cell)}

    def _solve(self, gamma: float, beta: float | None, prior: Mapping[str, Mapping[str, float]] | None) -> ExactValues:
        """Solve the grid as arrays; without `beta`, V is the maximum over actions."""
        check_number("gamma", gamma, at_least=0.0, below=1.0, next_step="Try 0.95: below 1, values are finite.")
        live = [cell for cell in self._cells if not self._ends(cell) and self._open(cell)]
        index = {cell: i for i, cell in enumerate(self._cells)}
        names = list(_MOVES)
        transition = np.zeros((len(self._cells), len(names), len(self._cells)))
        policy = np.zeros((len(self._cells), len(names)))
        for cell in live:
            weights = prior_at(self._text(cell), self._open(cell), prior)
            for action in self._open(cell):
                policy[index[cell], names.index(action)] = weights[action]
                for landing, probability in self._outcomes(cell, action).items():
                    transition[index[cell], names.index(action), index[landing]] += probability
        rewards = transition @ np.array([self._reward(cell) for cell in self._cells])
        q, v = solve_bellman(transition, rewards, policy, gamma, beta)
        return ExactValues(
            q={self._text(cell): {a: float(q[index[cell], names.index(a)]) for a in self._open(cell)} for cell in live},
            v={self._text(cell): float(v[index[cell]]) for cell in live},
        )

    def _mark(self, cell: _Cell) -> str:
        r, c = cell
        return self._rows[r][c] if 0 <= r < len(self._rows) and 0 <= c < len(self._rows[0]) else "#"

    def _ends(self, cell: _Cell) -> bool:
        return self._mark(cell) in self._rewards

    def _reward(self, landing: _Cell) -> float:
        return self._rewards.get(self._mark(landing), 0.0) - self._step_cost

    def _open(self, cell: _Cell) -> tuple[str, ...]:
        return tuple(name for name, move in _MOVES.items() if self._mark(_shift(cell, move)) != "#")

    def _text(self, cell: _Cell) -> str:
        mark = self._mark(cell)
        if mark in self._rewards:
            return f"cell:{cell[0]},{cell[1]} {'goal' if mark == 'G' else 'trap'}"
        return f"cell:{cell[0]},{cell[1]} open:{','.join(self._open(cell))}"

    def _outcomes(self, cell: _Cell, action: str) -> dict[_Cell, float]:
        """Return the probability of each landing cell; a wall leaves the position unchanged."""
        left, right = _SIDES[action]
        outcomes: dict[_Cell, float] = {}
        for name, probability in ((action, 1.0 - self._slip), (left, self._slip / 2), (right, self._slip / 2)):
            landing = _shift(cell, _MOVES[name])
            landing = cell if self._mark(landing) == "#" else landing
            if probability > 0.0:
                outcomes[landing] = outcomes.get(landing, 0.0) + probability
        return outcomes

    def _distances(self) -> dict[_Cell, int]:
        """Return the steps from the start to each cell, through cells that do not end the episode."""
        distance = {self._start: 0}
        queue = deque([self._start])
        while queue:
            cell = queue.popleft()
            for action in () if self._ends(cell) else self._open(cell):
                if (landing := _shift(cell, _MOVES[action])) not in distance:
                    distance[landing] = distance[cell] + 1
                    queue.append(landing)
        return distance


def open_grid(target: str, options: Mapping[str, str]) -> Grid:
    """Return the grid of `grid:ROWS?option=value&...`; the rows are separated by `/`.

    Raises:
        InputError: the rows break a rule, an option is unknown, or a value is not allowed.
    """
    known = {"seed": Option(0, high=2**31 - 1), "max_steps": Option(100, low=1)}
    numbers = ("goal_reward", "trap_reward", "step_cost", "slip")
    return Grid(target.split("/"), **option_values(options, known, numbers=numbers))


def _shift(cell: _Cell, move: _Cell) -> _Cell:
    return cell[0] + move[0], cell[1] + move[1]


def _check_rows(rows: Sequence[str]) -> tuple[str, ...]:
    """Return the rows, checked."""
    seen = f"rows = {excerpt(rows)}"
    if isinstance(rows, str) or not rows or not all(isinstance(row, str) and row for row in rows):
        raise InputError(seen, "rows are a list of texts, none empty", 'Pass ["S.G"], say.')
    if len({len(row) for row in rows}) > 1:
        raise InputError(seen, "all rows have the same length", "Fill the short ones with '#'.")
    if stray := set("".join(rows)) - set("SGT#."):
        raise InputError(f"{seen} with {sorted(stray)}", "a cell is one of S G T # .", "Replace the others.")
    if "".join(rows).count("S") != 1:
        raise InputError(seen, "there is exactly one start S", "Mark one cell with S.")
    return tuple(rows)
