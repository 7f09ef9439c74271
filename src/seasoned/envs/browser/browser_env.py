"""Web tasks in a real headless Chromium, through BrowserGym: MiniWoB++, WebArena, WorkArena, or any page."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from seasoned.checks import check_number
from seasoned.envs.browser.action_space import Screen
from seasoned.envs.browser.browser_process import BrowserProcess
from seasoned.envs.browser.installation import check_chromium, find_miniwob, find_task
from seasoned.envs.browser.page import Item
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import Turns, check_whole
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Environment, Observation

__all__ = ["BrowserEnv", "open_browser"]

_SEED_MAX = 2**32 - 1
_MAX_ACTIONS = 200


class BrowserEnv:
    """A BrowserGym task, played by named actions on the page's elements.

    The state is the page's accessibility tree in words: the goal, and a line for each text and element, in order.
    The actions are clicks on, choices from, and texts and keys for the elements that can be acted on, called by role,
    name and place among equals, as `seasoned.actions.Page` calls them: `click(button "Add to Cart" #2)`. Ids, which
    change from page to page, stay inside. BrowserGym and its browser run in a process of their own, which a call that
    takes too long ends.

    The reward comes with the end of the task. MiniWoB++'s is its own, in [-1, 1], without the decay by time; every
    other benchmark's is BrowserGym's, 1 for success. What fails in the page, such as a click on something covered,
    costs a step; `last_action_error` says why.

    Args:
        task_id: a BrowserGym task, such as `miniwob.click-test`, `webarena.4` or `openended`.
        seed: of the task where `reset` gives none, below 2^32. One seed, one page.
        max_steps: the episode is truncated after this many steps.
        success_only: whether MiniWoB++'s reward is BrowserGym's too: 1 for a reward above 0, else 0.
        free_text: whether `step` also takes actions that are not offered, such as `fill(textbox "Name", "any text")`.
        max_actions: how many actions are offered at most, from 8 to 200.
        max_chars: of the state, beyond the goal, from 100.
        wait_s: how long a page may react before it is read, in seconds.
        timeout_s: how long a reset or a step may take before the browser is ended, in seconds.
        start_url: where `openended` begins; needed there, refused elsewhere.
        goal: what to do there, in words.

    Raises:
        InputError: an argument breaks one of these rules, or the benchmark has no such task.
        ConfigError: `MINIWOB_URL` names no folder with MiniWoB++'s pages.
        MissingExtraError: BrowserGym, the benchmark's package or MiniWoB++'s pages are not installed.
    """

    def __init__(
        self,
        task_id: str,
        *,
        seed: int = 0,
        max_steps: int = 10,
        success_only: bool = False,
        free_text: bool = False,
        max_actions: int = 40,
        max_chars: int = 2000,
        wait_s: float = 0.5,
        timeout_s: float = 60.0,
        start_url: str | None = None,
        goal: str | None = None,
    ) -> None:
        if not isinstance(task_id, str) or not task_id.isprintable() or not task_id.strip() == task_id != "":
            raise InputError(f"task {excerpt(task_id)}", "a task is BENCHMARK.TASK", "Try miniwob.click-test.")
        self._task_id = task_id
        self._seed = check_whole("seed", seed, 0, _SEED_MAX)
        self._max_steps = check_whole("max_steps", max_steps, 1)
        self._turns = Turns(max_steps)
        self._success_only, self._free_text = success_only, free_text
        self._max_actions = check_whole("max_actions", max_actions, 8, _MAX_ACTIONS)
        self._max_chars = check_whole("max_chars", max_chars, 100)
        self._wait_s, self._timeout_s = check_number("wait_s", wait_s), check_number("timeout_s", timeout_s)
        if self._wait_s < 0.0 or self._timeout_s <= self._wait_s:
            raise InputError(
                f"wait_s = {wait_s}, timeout_s = {timeout_s}", "0 <= wait_s < timeout_s", "Try 0.5 and 60 seconds."
            )
        self._start_url, self._goal = start_url, goal
        self._check_start()
        find_task(task_id)
        self._env = {"MINIWOB_URL": find_miniwob(task_id)} if task_id.startswith("miniwob.") else {}
        self._process: BrowserProcess | None = None
        self._screen = Screen([])
        self.last_action_error = ""
        """Why the last action failed in the page, in BrowserGym's words; empty if it did not."""

    @property
    def name(self) -> str:
        """The specification that makes it again, with `open_env`."""
        given: dict[str, tuple[object, object]] = {
            "seed": (self._seed, 0),
            "success_only": (int(self._success_only), 0),
            "free_text": (int(self._free_text), 0),
            "max_actions": (self._max_actions, 40),
            "max_chars": (self._max_chars, 2000),
            "wait_s": (self._wait_s, 0.5),
            "timeout_s": (self._timeout_s, 60.0),
            "start_url": (self._start_url, None),
            "goal": (self._goal, None),
        }
        options = [f"{key}={quote(str(value), safe=':/')}" for key, (value, usual) in given.items() if value != usual]
        return f"browser:{self._task_id}?{'&'.join([f'max_steps={self._max_steps}', *options])}"

    @property
    def task(self) -> str:
        """What is attempted, in words. The goal may be another for every seed: it is part of the state."""
        return f"{self._task_id}: reach the goal by acting on the web page."

    @property
    def max_score(self) -> float | None:
        """1, the reward of success; None for `openended`, which rewards nothing."""
        return None if self._task_id == "openended" else 1.0

    def check_installed(self) -> None:
        """Look whether there is a browser to play in, without starting it.

        Raises:
            MissingExtraError: there is no Chromium; the message carries the commands that bring one.
        """
        check_chromium()

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode in a new browser.

        Raises:
            EnvError: the environment was closed, or the task cannot be set up in time.
            MissingExtraError: there is no Chromium; the message carries the commands that bring one.
        """
        self._turns.check_open()
        seed = self._seed if seed is None else check_whole("seed", seed, 0, _SEED_MAX)
        if self._process is None:
            known = {"start_url": self._start_url, "goal": self._goal}
            options = {key: value for key, value in known.items() if value is not None}
            asked = {"task_id": self._task_id, "wait_s": self._wait_s, "task_kwargs": options}
            self._process = BrowserProcess(asked, self._env)
        seen = await self._ask("reset", seed)
        self._look(seen)
        return self._turns.begin(self._screen.state(self._max_chars), self._screen.offers)

    async def step(self, action: str) -> Observation:
        """Carry out an action in the page.

        Raises:
            EnvError: before `reset`, after the end, for an inadmissible action, or the browser is gone or hangs; the
                episode then has no end, and the next reset starts another browser.
        """
        action = self._turns.take(action, free_text=self._free_text)
        call = self._screen.offers.get(action) or self._screen.call(action)
        seen = await self._ask("step", call.name, call.args)
        self._look(seen)
        terminated, reward = seen["terminated"], seen["reward"]
        if seen["raw_reward"] is not None and not self._success_only:
            reward = seen["raw_reward"] if terminated else 0.0
        state = self._screen.state(self._max_chars)
        return self._turns.show(state, self._screen.offers, reward=reward, terminated=terminated)

    async def screenshot(self) -> bytes:
        """Return the page as it was last seen, as a PNG image.

        Raises:
            EnvError: before `reset`, or the browser is gone.
        """
        self._turns.check_open()
        return base64.b64decode((await self._ask("screenshot"))["png"])

    async def aclose(self) -> None:
        """End the browser, its process and everything they left on disk."""
        self._turns.close()
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.close)

    async def _ask(self, request: str, *args: object) -> dict[str, Any]:
        process = self._process
        if process is None:
            raise EnvError(f"{request} without a browser", "an episode ends with its browser", "Call reset first.")
        try:
            return await asyncio.to_thread(process.ask, request, *args, limit_s=self._timeout_s)
        except BaseException:  # a caller who no longer waits, too: the answer would be taken for the next one's
            self._process = None
            process.end()
            raise

    def _look(self, seen: dict[str, Any]) -> None:
        items = [Item.from_json(item) for item in seen["items"]]
        self.last_action_error = seen["error"]
        ends = not self._task_id.startswith("miniwob.")
        self._screen = Screen(items, seen["goal"], max_actions=self._max_actions, ends=ends)

    def _check_start(self) -> None:
        opened = self._task_id == "openended"
        for name, value in (("start_url", self._start_url), ("goal", self._goal)):
            if value is not None and (not isinstance(value, str) or not value.strip() or not opened):
                raise InputError(
                    f"{name} = {excerpt(value)}",
                    f"{name} is a text, for the task openended",
                    "Leave it out, or see there.",
                )
        if opened and self._start_url is None:
            raise InputError(
                "openended without start_url", "it begins at a page", "Pass start_url=https://example.org/."
            )


def open_browser(target: str, given: dict[str, str], _: str | Path | None = None) -> Environment:
    """Return the environment of `browser:TASK?option=value&...`; `start_url` and `goal` are percent-encoded.

    Raises:
        InputError: an unknown option, or one that is not allowed; see `BrowserEnv` for this and the others.
    """
    known = {
        "seed": Option(0, high=_SEED_MAX),
        "max_steps": Option(10, low=1),
        "success_only": Option(False),
        "free_text": Option(False),
        "max_actions": Option(40, low=8, high=_MAX_ACTIONS),
        "max_chars": Option(2000, low=100),
    }
    values = option_values(given, known, ("start_url", "goal"), ("wait_s", "timeout_s"))
    for name in ("start_url", "goal"):
        if name in values:
            values[name] = unquote(values[name])
    return BrowserEnv(target, **values)
