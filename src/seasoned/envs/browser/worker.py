"""The process that runs BrowserGym; `seasoned.envs.browser.browser_process` starts it and sends it JSON lines.

A process of its own, since BrowserGym keeps one Playwright per process, bound to one thread, and since a page that
hangs hangs whoever waits for it: a process can be ended, a thread cannot.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import os
import queue
import shutil
import sys
import threading
import time
from functools import partial
from typing import Any

from seasoned.envs.browser.installation import find_chromium, find_task
from seasoned.envs.browser.page import read_page
from seasoned.errors import SeasonedError
from seasoned.registry import load_extra

__all__ = ["main"]

_PATIENCE_S = 10.0
_TRIES = 3
_REPEATABLE = ("click", "fill", "select_option")


class _TextChat:
    """What BrowserGym's chat remembers, without its window: that is a second browser, started for every episode."""

    def __init__(self, **_: Any) -> None:
        self.messages: list[dict[str, Any]] = []

    def add_message(self, role: str, msg: str) -> None:
        if role != "info":
            self.messages.append({"role": role, "timestamp": time.time(), "message": msg})

    def close(self) -> None:
        """Nothing is open."""


class _Worker:
    """One BrowserGym environment."""

    def __init__(self, asked: dict[str, Any]) -> None:
        core = load_extra("browsergym.core", "browser")
        vars(load_extra("browsergym.core.env", "browser"))["Chat"] = _TextChat
        self._playwright = load_extra("playwright.sync_api", "browser").sync_playwright().start()
        chromium = self._playwright.chromium
        chromium.launch = partial(chromium.launch, executable_path=find_chromium(chromium.executable_path))
        core._set_global_playwright(self._playwright)
        gymnasium = load_extra("gymnasium", "browser")
        self._env = gymnasium.make(
            find_task(asked["task_id"]),
            disable_env_checker=True,
            headless=True,
            slow_mo=0,
            pre_observation_delay=asked["wait_s"],
            **({"task_kwargs": asked["task_kwargs"]} if asked["task_kwargs"] else {}),
        ).unwrapped
        self._seen: dict[str, Any] = {}

    def reset(self, seed: int) -> dict[str, Any]:
        self._seen, info = self._env.reset(seed=seed)
        return self._told(0.0, False, info)

    def step(self, name: str, args: list[Any]) -> dict[str, Any]:
        action = f"{name}({', '.join(map(repr, args))})"
        for _ in range(_TRIES):
            self._seen, reward, terminated, _, info = self._env.step(action)
            if terminated or not (name in _REPEATABLE and _came_late(str(self._seen["last_action_error"]))):
                break
        return self._told(float(reward), bool(terminated), info)

    def screenshot(self) -> dict[str, Any]:
        image = io.BytesIO()
        load_extra("PIL.Image", "browser").fromarray(self._seen["screenshot"]).save(image, format="PNG")
        return {"png": base64.b64encode(image.getvalue()).decode()}

    def close(self) -> dict[str, Any]:
        self._env.close()
        self._playwright.stop()
        return {}

    def _told(self, reward: float, terminated: bool, info: dict[str, Any]) -> dict[str, Any]:
        raw = (info.get("task_info") or {}).get("RAW_REWARD_GLOBAL")
        return {
            "items": read_page(self._seen["axtree_object"], self._seen["extra_element_properties"]),
            "goal": str(self._seen["goal"] or ""),
            "error": str(self._seen["last_action_error"]),
            "reward": reward,
            "raw_reward": None if raw is None else float(raw),
            "terminated": terminated,
        }


def _came_late(error: str) -> bool:
    """Whether the element was not ready in BrowserGym's half second, and nothing was done to it.

    A busy machine must not decide what a click does; an element that is covered stays so.
    """
    return error.startswith("TimeoutError") and "performing" not in error


def _main_line(message: str) -> str:
    """Of a browser's long log, the line that says why it ended; else the first line."""
    lines = message.splitlines() or [""]
    return next((line for line in lines if "FATAL" in line or "shared libraries" in line), lines[0])


def _listen(requests: queue.SimpleQueue[str]) -> None:
    """Pass lines on; after the last, a page that hangs keeps this process no longer than a while."""
    for line in sys.stdin:
        requests.put(line)
    requests.put("")
    time.sleep(_PATIENCE_S)
    _leave(1)


def _leave(status: int) -> None:
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os._exit(status)  # at once: threads of a hung page would be waited for


def main() -> None:
    """Answer each line with a line, until there are no more."""
    logging.disable(logging.ERROR)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a task prints is no answer
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    worker: _Worker | None = None
    with contextlib.suppress(BrokenPipeError):  # whoever asked is gone
        while line := requests.get():
            name, *args = json.loads(line)
            try:
                if worker is None:
                    worker, answer = _Worker(*args), {}
                else:
                    answer = getattr(worker, name)(*args)
            except SeasonedError as error:
                answer = {"refused": [type(error).__name__, *error.args]}
            except Exception as error:
                answer = {"failed": f"{type(error).__name__}: {_main_line(str(error))}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    with contextlib.suppress(Exception):  # a browser that is gone cannot be closed
        if worker is not None:
            worker.close()
    _leave(0)


if __name__ == "__main__":
    main()
