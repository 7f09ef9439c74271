"""A small grid world whose values are known exactly, by dynamic programming."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from seasoned.checks import check_number
from seasoned.envs.episode_guard import Turns, check_whole
from seasoned.envs.mdp_solver import ExactValues, prior_at, solve
from seasoned.errors import InputError, excerpt
from seasoned.protocols import Observation

__all__ = ["Grid"]

_MOVES = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}
_SIDES = {"north": ("west", "east"), "east": ("north", "south"), "south": ("east", "west"), "west": ("south", "north")}

Cell = tuple[int, int]


class Grid:
    """Walk from S to G. Every step costs; with probability `slip` the move goes to one side instead.

    Args:
        rows: text rows of equal length: `S` start (one), `G` goal (at least one), `T` trap, `#` wall, `.` floor. Goals
            and traps end the episode. An action is admissible where its cell is no wall; a slip into a wall stays.
        goal_reward: for entering a goal, above 0, in reward units.
        trap_reward: for entering a trap, at most 0.
        step_cost: taken from the reward of every step, at least 0.
        slip: probability, in [0, 1), that a move goes left or right of where it was aimed, half each.
        max_steps: the episode is truncated after this many steps, and no sooner than the goal can be reached.
        seed: of the slips, from one episode to the next; `reset(seed=...)` starts a sequence of its own.

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
        self._rewards = {"G": check_number("goal_reward", goal_reward), "T": check_number("trap_reward", trap_reward)}
        self._step_cost = check_number("step_cost", step_cost)
        self._slip = check_number("slip", slip)
        for wrong, seen, rule in (
            (self._rewards["G"] <= 0.0, f"goal_reward = {goal_reward}", "goal_reward is above 0"),
            (self._rewards["T"] > 0.0, f"trap_reward = {trap_reward}", "trap_reward is at most 0"),
            (self._step_cost < 0.0, f"step_cost = {step_cost}", "step_cost is at least 0"),
            (not 0.0 <= self._slip < 1.0, f"slip = {slip}", "slip is a probability in [0, 1)"),
        ):
            if wrong:
                raise InputError(seen, rule, "Change it, or leave it out.")
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
        self._turns = Turns(max_steps)
        self._cell = self._start

    @property
    def name(self) -> str:
        """The specification that makes it again, with `open_env`."""
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
        """What is attempted, in words."""
        return "Reach the goal in as few steps as you can."

    @property
    def max_score(self) -> float | None:
        """The best possible score: the best ending by its shortest way."""
        return self._max_score

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode at S.

        Raises:
            EnvError: the environment was closed.
        """
        if seed is not None:
            self._rng = np.random.default_rng(check_whole("seed", seed, 0))
        self._cell = self._start
        return self._turns.begin(self._text(self._cell), self._open(self._cell))

    async def step(self, action: str) -> Observation:
        """Move one cell.

        Raises:
            EnvError: before `reset`, after the end, or for a move into a wall.
        """
        outcomes = self._outcomes(self._cell, self._turns.take(action))
        drawn = self._rng.choice(len(outcomes), p=list(outcomes.values())) if len(outcomes) > 1 else 0
        self._cell = list(outcomes)[int(drawn)]
        return self._turns.show(
            self._text(self._cell),
            self._open(self._cell),
            reward=self._reward(self._cell),
            terminated=self._ends(self._cell),
        )

    async def aclose(self) -> None:
        """Refuse every later call."""
        self._turns.close()

    def exact_values(self, gamma: float) -> ExactValues:
        """Return the optimal values: `Q*(s,a) = E[r + gamma V*(s')]`, `V*(s) = max_a Q*(s,a)`, without the step limit.

        Source: value iteration (Bellman 1957), to 1e-12 in the sup norm.

        Args:
            gamma: discount in [0, 1).

        Raises:
            InputError: gamma is outside.
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
            InputError: a value is outside, or the prior misses a state or an action or does not sum to 1.
        """
        if check_number("beta", beta) < 0.0:
            raise InputError(f"beta = {beta}", "beta is at least 0 nats per unit of reward", "Try 1.")
        return self._solve(gamma, float(beta), prior)

    def states(self) -> dict[str, tuple[str, ...]]:
        """Return every state in which an action can be taken, with its admissible actions."""
        return {self._text(cell): self._open(cell) for cell in self._cells if not self._ends(cell) and self._open(cell)}

    def _solve(self, gamma: float, beta: float | None, prior: Mapping[str, Mapping[str, float]] | None) -> ExactValues:
        """The grid as arrays, solved. `beta` None takes the maximum."""
        if not 0.0 <= check_number("gamma", gamma) < 1.0:
            raise InputError(f"gamma = {gamma}", "gamma is in [0, 1), so that values are finite", "Try 0.95.")
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
        q, v = solve(transition, rewards, policy, gamma, beta)
        return ExactValues(
            q={self._text(cell): {a: float(q[index[cell], names.index(a)]) for a in self._open(cell)} for cell in live},
            v={self._text(cell): float(v[index[cell]]) for cell in live},
        )

    def _mark(self, cell: Cell) -> str:
        r, c = cell
        return self._rows[r][c] if 0 <= r < len(self._rows) and 0 <= c < len(self._rows[0]) else "#"

    def _ends(self, cell: Cell) -> bool:
        return self._mark(cell) in self._rewards

    def _reward(self, landing: Cell) -> float:
        return self._rewards.get(self._mark(landing), 0.0) - self._step_cost

    def _open(self, cell: Cell) -> tuple[str, ...]:
        return tuple(name for name, move in _MOVES.items() if self._mark(_shift(cell, move)) != "#")

    def _text(self, cell: Cell) -> str:
        mark = self._mark(cell)
        if mark in self._rewards:
            return f"cell:{cell[0]},{cell[1]} {'goal' if mark == 'G' else 'trap'}"
        return f"cell:{cell[0]},{cell[1]} open:{','.join(self._open(cell))}"

    def _outcomes(self, cell: Cell, action: str) -> dict[Cell, float]:
        """Where a move lands, with probabilities; a wall leaves it in place."""
        left, right = _SIDES[action]
        outcomes: dict[Cell, float] = {}
        for name, probability in ((action, 1.0 - self._slip), (left, self._slip / 2), (right, self._slip / 2)):
            landing = _shift(cell, _MOVES[name])
            landing = cell if self._mark(landing) == "#" else landing
            if probability > 0.0:
                outcomes[landing] = outcomes.get(landing, 0.0) + probability
        return outcomes

    def _distances(self) -> dict[Cell, int]:
        """Steps from the start, along cells that do not end the episode."""
        distance = {self._start: 0}
        queue = deque([self._start])
        while queue:
            cell = queue.popleft()
            for action in () if self._ends(cell) else self._open(cell):
                if (landing := _shift(cell, _MOVES[action])) not in distance:
                    distance[landing] = distance[cell] + 1
                    queue.append(landing)
        return distance


def _shift(cell: Cell, move: Cell) -> Cell:
    return cell[0] + move[0], cell[1] + move[1]


def _check_rows(rows: Sequence[str]) -> tuple[str, ...]:
    """The rows, checked."""
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
