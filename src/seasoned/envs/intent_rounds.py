"""Rounds of a contextual bandit from sentences that are labelled with intents, drawn by seed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from seasoned.checks import check_flag, check_number, check_one_of, check_text, check_whole
from seasoned.errors import InputError, NotFoundError, excerpt
from seasoned.types import normalize_action

__all__ = ["IntentData", "IntentOptions", "IntentRound", "IntentTask", "draw_rounds", "intent_options", "read_intents"]

IntentOptions = Literal["domains", "desks", "intents"]
"""The options of a task: the domains; desks, to which a seed assigns the intents; or the intents of one domain."""

_ORDER, _DESKS, _FLIPS, _DELAYS = range(4)  # the random streams of a seed


class IntentData(NamedTuple):
    """Labelled sentences.

    Args:
        sentences: (text, intent), in the order of the file.
        domain_of: intent to domain.
    """

    sentences: tuple[tuple[str, str], ...]
    domain_of: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class IntentTask:
    """The rule of a task.

    Args:
        options: what is chosen from.
        desks: the number of desks, for `desks`. Each gets the same number of intents, up to one.
        graded: for `desks`: another desk of the same building earns 0.5. Desks 1 and 2 share a building, and so on;
            since desks get their intents at random, so do buildings.
        noise: the probability that an observed reward r is 1 - r.
        max_delay: the largest delay of a reward, in rounds. A delay is uniform from 1, which is before the next round.

    Raises:
        InputError: a value breaks one of these rules.
    """

    options: IntentOptions
    desks: int = 8
    graded: bool = False
    noise: float = 0.0
    max_delay: int = 1

    def __post_init__(self) -> None:
        check_one_of("options", self.options, get_args(IntentOptions))
        check_whole("desks", self.desks, 2)
        check_flag("graded", self.graded)
        check_number("noise", self.noise, at_least=0.0, below=0.5)
        check_whole("max_delay", self.max_delay, 1)


class IntentRound(NamedTuple):
    """One round of a task.

    Args:
        text: the sentence.
        rewards: option to true reward; the best is 1.
        flipped: whether the observed reward is 1 minus the true one.
        delay: the reward of round t arrives before the decision of round t + delay.
    """

    text: str
    rewards: Mapping[str, float]
    flipped: bool
    delay: int

    def observed(self, option: str) -> float:
        """Return the observed reward of an option."""
        return 1.0 - self.rewards[option] if self.flipped else self.rewards[option]


def read_intents(folder: str | Path) -> IntentData:
    """Return the labelled sentences in a folder with two files in the form of CLINC150.

    `data_full.json` maps the name of each split to its [text, intent] pairs, `domains.json` maps each domain to its
    intents. All splits are read. Sentences whose intent has no domain (out of scope) are left out.

    Raises:
        NotFoundError: a file is missing.
        InputError: a file has another form, an intent has two domains, or no sentence is left.
    """
    home = Path(folder)
    domains, splits = (_read_json(home / name) for name in ("domains.json", "data_full.json"))
    domain_of: dict[str, str] = {}
    for domain, intents in domains.items():
        for intent in _list_of(f"domains.json, {excerpt(domain)}", intents):
            if domain_of.setdefault(check_text("intent", intent), domain) != domain:
                raise InputError(f"intent {excerpt(intent)}", "an intent has one domain", "Correct domains.json.")
    sentences: list[tuple[str, str]] = []
    for split, pairs in splits.items():
        for pair in _list_of(f"data_full.json, {excerpt(split)}", pairs):
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str):
                raise InputError(f"data_full.json: {excerpt(pair)}", "a sentence is [text, intent]", "Correct it.")
            if pair[1] in domain_of:
                sentences.append((check_text("text", pair[0]), pair[1]))
    if not sentences or any(len({normalize_action(name) for name in names}) < 2 for names in (domains, domain_of)):
        raise InputError(
            f"{home}: {len(sentences)} sentences, {len(domains)} domains, {len(domain_of)} intents",
            "a task needs sentences and two domains or more",
            "Correct the files.",
        )
    return IntentData(tuple(sentences), domain_of)


def intent_options(data: IntentData, task: IntentTask, seed: int) -> tuple[str, ...]:
    """Return the options of a task, in their order.

    With `intents`, the domain is number `seed` of the sorted domains, modulo their number.
    """
    if task.options == "desks":
        return tuple(f"desk {number}" for number in range(1, task.desks + 1))
    domains = sorted(set(data.domain_of.values()))
    if task.options == "domains":
        return tuple(domains)
    chosen = domains[seed % len(domains)]
    return tuple(sorted(intent for intent, domain in data.domain_of.items() if domain == chosen))


def draw_rounds(
    data: IntentData, task: IntentTask, seed: int, rounds: int | None = None, *, rule_seed: int | None = None
) -> list[IntentRound]:
    """Return the rounds of a task at a seed: different sentences in random order, and the reward of each option.

    Order, desks, noise and delays have random streams of their own. So tasks of one seed have the same sentences in the
    same order, and fewer rounds are the first of more.

    Args:
        data: the sentences.
        task: the rule.
        seed: of the draw.
        rounds: at most this many rounds; None: all sentences of the task.
        rule_seed: the seed of the assignment to desks and of the domain of `intents`; None: `seed`.

    Raises:
        InputError: a value breaks one of these rules.

    Example:
        >>> data = IntentData((("pay my card", "pay"), ("hello", "greet")), {"pay": "bank", "greet": "talk"})
        >>> sorted((round.text, round.rewards) for round in draw_rounds(data, IntentTask("domains"), seed=0))
        [('hello', {'bank': 0.0, 'talk': 1.0}), ('pay my card', {'bank': 1.0, 'talk': 0.0})]
    """
    check_whole("seed", seed, 0)
    rule_seed = seed if rule_seed is None else check_whole("rule_seed", rule_seed, 0)
    rewards_of = _rewards_by_intent(data, task, rule_seed)
    order = np.random.default_rng([seed, _ORDER]).permutation(len(data.sentences))
    sentences = (data.sentences[i] for i in order.tolist() if data.sentences[i][1] in rewards_of)
    drawn = list(itertools.islice(sentences, None if rounds is None else check_whole("rounds", rounds, 1)))
    flips = np.random.default_rng([seed, _FLIPS]).random(len(drawn)) < task.noise
    delays = np.random.default_rng([seed, _DELAYS]).integers(1, task.max_delay + 1, len(drawn))
    return [
        IntentRound(text, rewards_of[intent], flipped, delay)
        for (text, intent), flipped, delay in zip(drawn, flips.tolist(), delays.tolist(), strict=True)
    ]


def _rewards_by_intent(data: IntentData, task: IntentTask, seed: int) -> dict[str, dict[str, float]]:
    """Return, for each intent of the task, the true reward of each option."""
    options = intent_options(data, task, seed)
    if task.options == "intents":
        return {intent: {option: float(option == intent) for option in options} for intent in options}
    if task.options == "domains":
        return {
            intent: {option: float(option == domain) for option in options} for intent, domain in data.domain_of.items()
        }
    intents = sorted(data.domain_of)
    order = np.random.default_rng([seed, _DESKS]).permutation(len(intents)).tolist()
    rewards_of = {}
    for position, i in enumerate(order):
        right = position % task.desks
        near = 0.5 if task.graded else 0.0
        rewards_of[intents[i]] = {
            option: 1.0 if desk == right else near if desk // 2 == right // 2 else 0.0
            for desk, option in enumerate(options)
        }
    return rewards_of


def _read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotFoundError(
            f"{path}: {error}", "the folder has data_full.json and domains.json", "Pass the folder of the data."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}", "the file is JSON in UTF-8", "Get the file again.") from error
    if not isinstance(data, dict):
        raise InputError(f"{path}: {excerpt(data)}", "the file is a JSON object", "Get the file again.")
    return data


def _list_of(where: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where}: {excerpt(value)}", "it is a list", "Correct it.")
    return value
