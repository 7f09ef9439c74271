"""Web tasks in a headless Chromium, through BrowserGym: MiniWoB++, WebArena, WorkArena, or any page."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from seasoned.checks import check_number, check_whole
from seasoned.envs.browser.action_space import PageView
from seasoned.envs.browser.browser_process import BrowserProcess
from seasoned.envs.browser.installation import check_chromium, find_miniwob, find_task
from seasoned.envs.browser.page import PageItem
from seasoned.envs.env_options import Option, option_values
from seasoned.envs.episode_guard import EpisodeGuard
from seasoned.errors import EnvError, InputError, excerpt
from seasoned.protocols import Environment, Observation

__all__ = ["BrowserEnv", "open_browser"]

_SEED_MAX = 2**32 - 1
_MAX_ACTIONS = 200


class BrowserEnv:
    """A BrowserGym task with named actions on the page's elements.

    The state is the page's accessibility tree in words: the goal, and a line for each text and element, in order.
    The actions are clicks, choices, texts and keys on elements, which are named by role, name and position among equals
    as in `seasoned.actions.Page`: `click(button "Add to Cart" #2)`. Element ids, which change from page to page, are
    internal. BrowserGym and its browser run in a separate process, which is killed if a call takes too long.

    The reward is given at the end of the task. MiniWoB++ has its own reward in [-1, 1], here without its decay by time;
    for other benchmarks it is BrowserGym's, 1 for success. An action that fails in the page, such as a click on a
    covered element, costs a step; `last_action_error` is the reason.

    Args:
        task_id: a BrowserGym task, such as `miniwob.click-test`, `webarena.4` or `openended`.
        seed: the seed of the task if `reset` gets none, below 2^32. A seed determines the page.
        max_steps: the episode is truncated after this many steps.
        success_only: whether MiniWoB++'s reward is BrowserGym's as well: 1 for a reward above 0, else 0.
        free_text: whether `step` also accepts free actions, such as `fill(textbox "Name", "any text")`.
        max_actions: the largest number of admissible actions, from 8 to 200.
        max_chars: the largest length of the state without the goal, at least 100.
        wait_s: the time between an action and the reading of the page, in seconds.
        timeout_s: the time limit of a reset or a step, in seconds; beyond it the browser is killed.
        start_url: the first page of `openended`; required there, refused elsewhere.
        goal: the goal of `openended`, in words.

    Raises:
        InputError: an argument breaks one of these rules, or the benchmark has no such task.
        ConfigError: `MINIWOB_URL` is not a folder with MiniWoB++'s pages.
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
        self._guard = EpisodeGuard(max_steps)
        self._success_only, self._free_text = success_only, free_text
        self._max_actions = check_whole("max_actions", max_actions, 8, _MAX_ACTIONS)
        self._max_chars = check_whole("max_chars", max_chars, 100)
        self._wait_s = check_number("wait_s", wait_s, at_least=0.0)
        self._timeout_s = check_number("timeout_s", timeout_s, above=self._wait_s, next_step="Try 60 seconds.")
        self._start_url, self._goal = start_url, goal
        self._check_start()
        find_task(task_id)
        self._env = {"MINIWOB_URL": find_miniwob(task_id)} if task_id.startswith("miniwob.") else {}
        self._process: BrowserProcess | None = None
        self._view = PageView([])
        self.last_action_error = ""
        """BrowserGym's message about the last action if it failed in the page, else empty."""

    @property
    def name(self) -> str:
        """The specification that opens the same environment with `open_env`."""
        settings: dict[str, tuple[object, object]] = {
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
        options = [
            f"{key}={quote(str(value), safe=':/')}" for key, (value, default) in settings.items() if value != default
        ]
        return f"browser:{self._task_id}?{'&'.join([f'max_steps={self._max_steps}', *options])}"

    @property
    def task(self) -> str:
        """The task in words. The goal may differ between seeds: it is part of the state."""
        return f"{self._task_id}: reach the goal by acting on the web page."

    @property
    def max_score(self) -> float | None:
        """1, the reward of success; None for `openended`, which has no reward."""
        return None if self._task_id == "openended" else 1.0

    def check_installed(self) -> None:
        """Check that a browser is installed, without starting it.

        Raises:
            MissingExtraError: there is no Chromium; the message has the commands that install it.
        """
        check_chromium()

    async def reset(self, *, seed: int | None = None) -> Observation:
        """Begin an episode in a new browser.

        Raises:
            EnvError: the environment was closed, or the task cannot be set up in time.
            MissingExtraError: there is no Chromium; the message has the commands that install it.
        """
        self._guard.check_open()
        seed = self._seed if seed is None else check_whole("seed", seed, 0, _SEED_MAX)
        if self._process is None:
            known = {"start_url": self._start_url, "goal": self._goal}
            task_kwargs = {key: value for key, value in known.items() if value is not None}
            settings = {"task_id": self._task_id, "wait_s": self._wait_s, "task_kwargs": task_kwargs}
            self._process = BrowserProcess(settings, self._env)
        observed = await self._request("reset", seed)
        self._read_view(observed)
        return self._guard.begin(self._view.state(self._max_chars), self._view.actions)

    async def step(self, action: str) -> Observation:
        """Execute an action in the page.

        Raises:
            EnvError: before `reset`, after the end, for an inadmissible action, or the browser has ended or hangs; the
                episode then has no end, and the next reset starts another browser.
        """
        action = self._guard.resolve_action(action, free_text=self._free_text)
        call = self._view.actions.get(action) or self._view.free_call(action)
        observed = await self._request("step", call.name, call.args)
        self._read_view(observed)
        terminated, reward = observed["terminated"], observed["reward"]
        if observed["raw_reward"] is not None and not self._success_only:
            reward = observed["raw_reward"] if terminated else 0.0
        state = self._view.state(self._max_chars)
        return self._guard.observe(state, self._view.actions, reward=reward, terminated=terminated)

    async def screenshot(self) -> bytes:
        """Return the last observed page as a PNG image.

        Raises:
            EnvError: before `reset`, or the browser has ended.
        """
        self._guard.check_open()
        return base64.b64decode((await self._request("screenshot"))["png"])

    async def aclose(self) -> None:
        """End the browser and its process, and delete their files."""
        self._guard.close()
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.close)

    async def _request(self, request: str, *args: object) -> dict[str, Any]:
        process = self._process
        if process is None:
            raise EnvError(f"{request} without a browser", "an episode ends with its browser", "Call reset first.")
        try:
            return await asyncio.to_thread(process.request, request, *args, limit_s=self._timeout_s)
        except BaseException:  # cancelled callers as well: the next call would read this call's answer
            self._process = None
            process.end()
            raise

    def _read_view(self, observed: dict[str, Any]) -> None:
        items = [PageItem.from_json(item) for item in observed["items"]]
        self.last_action_error = observed["error"]
        ends = not self._task_id.startswith("miniwob.")
        self._view = PageView(items, observed["goal"], max_actions=self._max_actions, ends=ends)

    def _check_start(self) -> None:
        is_open_ended = self._task_id == "openended"
        for name, value in (("start_url", self._start_url), ("goal", self._goal)):
            if value is not None and (not isinstance(value, str) or not value.strip() or not is_open_ended):
                raise InputError(
                    f"{name} = {excerpt(value)}",
                    f"{name} is a text, for the task openended",
                    "Leave it out, or open the task openended.",
                )
        if is_open_ended and self._start_url is None:
            raise InputError(
                "openended without start_url",
                "the task openended begins at a page",
                "Pass start_url=https://example.org/.",
            )


def open_browser(target: str, options: Mapping[str, str]) -> Environment:
    """Return the environment of `browser:TASK?option=value&...`; `start_url` and `goal` are percent-encoded.

    Raises:
        InputError: an option is unknown, or its value is not allowed; see `BrowserEnv` for this and other errors.
    """
    known = {
        "seed": Option(0, high=_SEED_MAX),
        "max_steps": Option(10, low=1),
        "success_only": Option(False),
        "free_text": Option(False),
        "max_actions": Option(40, low=8, high=_MAX_ACTIONS),
        "max_chars": Option(2000, low=100),
    }
    values = option_values(options, known, ("start_url", "goal"), ("wait_s", "timeout_s"))
    for name in ("start_url", "goal"):
        if name in values:
            values[name] = unquote(values[name])
    return BrowserEnv(target, **values)
