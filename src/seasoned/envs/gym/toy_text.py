"""Gymnasium's toy text environments in words: their tasks, states and action names.

The task holds the rules and every constant. A state holds the variables only, in few words that join a name and its
value (`row:2`), so that different situations have different sets of words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seasoned.envs.env_options import Option
from seasoned.errors import InputError
from seasoned.registry import load_extra

__all__ = ["VIEWS", "ToyDescription", "ToyFamily", "toy_family"]

VIEWS = ("position", "near", "map")
"""The state of a walker: its position; that and the four cells around it; or its position, with a map in the task."""

_VIEW = Option("near", choices=VIEWS)
_MOVES = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}
_PLACES = ("red", "green", "yellow", "blue")


@dataclass(frozen=True, slots=True)
class ToyDescription:
    """The texts of one environment: its task, its actions in order, its observations; and its best score."""

    task: str
    actions: tuple[str, ...]
    describe: Callable[[Any], str]
    max_score: float | None


@dataclass(frozen=True, slots=True)
class ToyFamily:
    """One family of environments: its options with defaults, the arguments of `gymnasium.make`, and its description."""

    options: Mapping[str, Option]
    arguments: Callable[[Mapping[str, Any]], dict[str, Any]]
    description: Callable[[Any, Mapping[str, Any]], ToyDescription]


def toy_family(env_id: str) -> ToyFamily | None:
    """Return the family of a registered id, in any version; None for any other environment.

    Example:
        >>> sorted(toy_family("Blackjack-v1").options), toy_family("CartPole-v1")
        (['max_steps', 'natural'], None)
    """
    return _FAMILIES.get(env_id.partition("-v")[0])


def _max_steps(default: int) -> Option:
    return Option(default, low=1)


# ------------------------------------------------------------------------------------------------ walking on a grid


def _cell_text(task: str, rows: Sequence[str], ground: Mapping[str, str], view: str) -> Callable[[Any], str]:
    """Return the text of a cell, `row * width + column`: its position from 1 and, for `near`, the cells around it."""
    width = len(rows[0])

    def kind(row: int, column: int) -> str:
        inside = 0 <= row < len(rows) and 0 <= column < width
        return ground[rows[row][column]] if inside else "edge"

    def describe(observation: Any) -> str:
        row, column = divmod(int(observation), width)
        at = f"row:{row + 1} column:{column + 1}"
        if kind(row, column) in ("goal", "hole"):
            return f"You {'reached the goal' if kind(row, column) == 'goal' else 'fell into a hole'} at {at}"
        if view != "near":
            return f"You are at {at}"
        around = (f"{name}:{kind(row + down, column + right)}" for name, (down, right) in _MOVES.items())
        return f"At {at}. {' '.join(around)}"

    return describe


def _grid_task(goal: str, rows: Sequence[str], ground: Mapping[str, str], view: str) -> str:
    """Return the task with the size of the grid and, by the view, the goal's position or the map."""
    text = f"{goal} Row 1 is the northernmost of {len(rows)}, column 1 the westernmost of {len(rows[0])}."
    if view != "position":
        row, column = next((r, line.index("G")) for r, line in enumerate(rows) if "G" in line)
        text += f" The goal is at row:{row + 1} column:{column + 1}."
    if view == "map":
        key = ", ".join(f"{mark} {name}" for mark, name in ground.items())
        text += f" The map, from north to south ({key}): {' / '.join(rows)}."
    return text


def _lake_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    chosen = [name for name in ("size", "map_seed") if name in values]
    if values["map"] != "random":
        if chosen:
            raise InputError(
                f"{chosen[0]} = {values[chosen[0]]} with map = {values['map']}",
                f"{chosen[0]} is of a random map",
                "Add map=random, or leave it out.",
            )
        return {"map_name": values["map"], "is_slippery": values["slippery"]}
    lake = load_extra("gymnasium.envs.toy_text.frozen_lake", "gymnasium")
    rows = lake.generate_random_map(size=values.get("size", 8), seed=values.get("map_seed", 0))
    return {"desc": rows, "is_slippery": values["slippery"]}


def _lake_description(env: Any, values: Mapping[str, Any]) -> ToyDescription:
    rows = [b"".join(row).decode() for row in env.unwrapped.desc]
    ground = {"S": "ice", "F": "ice", "H": "hole", "G": "goal"}
    goal = "Cross the frozen lake to the goal, and fall into no hole."
    if values["slippery"]:
        goal += " The ice is slippery: a move may go to the left or the right of where it was aimed."
    task = _grid_task(goal, rows, ground, values["view"])
    describe = _cell_text(task, rows, ground, values["view"])
    return ToyDescription(task, ("west", "south", "east", "north"), describe, max_score=1.0)


def _cliff_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"is_slippery": True} if values.get("slippery") else {}


def _cliff_description(env: Any, values: Mapping[str, Any]) -> ToyDescription:
    rows = ["." * 12] * 3 + ["S" + "C" * 10 + "G"]
    ground = {"S": "ground", ".": "ground", "C": "cliff", "G": "goal"}
    goal = (
        "Walk to the goal in as few steps as you can. A step costs 1; a fall from the cliff costs 100 and leads back."
    )
    if getattr(env.unwrapped, "is_slippery", False):
        goal += " The ground is slippery: a step may go to the left or the right of where it was aimed."
    task = _grid_task(goal, rows, ground, values["view"])
    describe = _cell_text(task, rows, ground, values["view"])
    return ToyDescription(task, ("north", "east", "south", "west"), describe, max_score=None)


# ------------------------------------------------------------------------------------------------ taxi and cards


def _taxi_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    given = {"rainy": "is_rainy", "fickle": "fickle_passenger"}
    return {argument: True for name, argument in given.items() if values[name]}


def _taxi_description(env: Any, values: Mapping[str, Any]) -> ToyDescription:
    taxi = env.unwrapped
    places = ", ".join(f"{name} row:{r + 1} column:{c + 1}" for name, (r, c) in zip(_PLACES, taxi.locs, strict=True))
    task = (
        "Drive the taxi to the passenger, pick the passenger up, drive to the destination, and drop the passenger off."
        " A step costs 1, an arrival earns 20. Row 1 is the northernmost of 5, column 1 the westernmost of 5."
        f" The places: {places}."
    )
    task += " It rains: the taxi may drift to one side." if values["rainy"] else ""
    task += " The passenger may change the destination on the way." if values["fickle"] else ""

    def describe(observation: Any) -> str:
        row, column, passenger, destination = taxi.decode(int(observation))
        waits = "in-taxi" if passenger == len(_PLACES) else f"at-{_PLACES[passenger]}"
        return f"Taxi at row:{row + 1} column:{column + 1}. Passenger:{waits} destination:{_PLACES[destination]}"

    actions = ("south", "north", "east", "west", "pick up passenger", "drop off passenger")
    return ToyDescription(task, actions, describe, max_score=None)


def _blackjack_description(env: Any, values: Mapping[str, Any]) -> ToyDescription:
    task = (
        "Win at blackjack: hold more than the dealer, and at most 21. An ace counts 11 while that fits (a usable ace),"
        " else 1. After you stick, the dealer draws up to 17."
    )
    task += " Twenty-one with the first two cards pays 1.5." if values["natural"] else ""

    def describe(observation: Any) -> str:
        hand, dealer, usable = (int(part) for part in observation)
        card = "ace" if dealer == 1 else str(dealer)
        return f"Your hand:{hand} usable-ace:{'yes' if usable else 'no'}. The dealer shows:{card}"

    return ToyDescription(task, ("stick", "hit"), describe, max_score=1.5 if values["natural"] else 1.0)


def _lake(map_name: str, max_steps: int) -> ToyFamily:
    options = {
        "slippery": Option(True),
        "map": Option(map_name, choices=("4x4", "8x8", "random")),
        "size": Option(8, low=2, high=20),
        "map_seed": Option(0),
        "view": _VIEW,
        "max_steps": _max_steps(max_steps),
    }
    return ToyFamily(options, _lake_arguments, _lake_description)


_CLIFF = ToyFamily(
    {"slippery": Option(False), "view": _VIEW, "max_steps": _max_steps(200)}, _cliff_arguments, _cliff_description
)
_FAMILIES: Mapping[str, ToyFamily] = {
    "Blackjack": ToyFamily(
        {"natural": Option(False), "max_steps": _max_steps(50)},
        lambda values: {"natural": True, "sab": False} if values["natural"] else {},
        _blackjack_description,
    ),
    "CliffWalking": _CLIFF,
    "CliffWalkingSlippery": ToyFamily(
        {"view": _VIEW, "max_steps": _max_steps(200)}, _cliff_arguments, _cliff_description
    ),
    "FrozenLake": _lake("4x4", 100),
    "FrozenLake8x8": _lake("8x8", 200),
    "Taxi": ToyFamily(
        {"rainy": Option(False), "fickle": Option(False), "max_steps": _max_steps(200)},
        _taxi_arguments,
        _taxi_description,
    ),
}
