"""The worker process that runs BrowserGym; `seasoned.envs.browser.browser_process` starts it and sends JSON lines.

It is a separate process because BrowserGym has one Playwright per process, bound to one thread, and because a page that
hangs blocks its caller: a process can be killed, a thread cannot.
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

_CLOSE_TIMEOUT_S = 10.0
_TRIES = 3
_REPEATABLE = ("click", "fill", "select_option")


class _TextChat:
    """BrowserGym's chat without its window, which would be a second browser for every episode."""

    def __init__(self, **_: Any) -> None:
        self.messages: list[dict[str, Any]] = []

    def add_message(self, role: str, msg: str) -> None:
        if role != "info":
            self.messages.append({"role": role, "timestamp": time.time(), "message": msg})

    def close(self) -> None:
        """Do nothing: no window is open."""


class _Worker:
    """One BrowserGym environment."""

    def __init__(self, settings: dict[str, Any]) -> None:
        core = load_extra("browsergym.core", "browser")
        vars(load_extra("browsergym.core.env", "browser"))["Chat"] = _TextChat
        self._playwright = load_extra("playwright.sync_api", "browser").sync_playwright().start()
        chromium = self._playwright.chromium
        chromium.launch = partial(chromium.launch, executable_path=find_chromium(chromium.executable_path))
        core._set_global_playwright(self._playwright)
        gymnasium = load_extra("gymnasium", "browser")
        self._env = gymnasium.make(
            find_task(settings["task_id"]),
            disable_env_checker=True,
            headless=True,
            slow_mo=0,
            pre_observation_delay=settings["wait_s"],
            **({"task_kwargs": settings["task_kwargs"]} if settings["task_kwargs"] else {}),
        ).unwrapped
        self._observed: dict[str, Any] = {}

    def reset(self, seed: int) -> dict[str, Any]:
        self._observed, info = self._env.reset(seed=seed)
        return self._observation(0.0, False, info)

    def step(self, name: str, args: list[Any]) -> dict[str, Any]:
        action = f"{name}({', '.join(map(repr, args))})"
        for _ in range(_TRIES):
            self._observed, reward, terminated, _, info = self._env.step(action)
            if terminated or not (name in _REPEATABLE and _was_not_ready(str(self._observed["last_action_error"]))):
                break
        return self._observation(float(reward), bool(terminated), info)

    def screenshot(self) -> dict[str, Any]:
        image = io.BytesIO()
        load_extra("PIL.Image", "browser").fromarray(self._observed["screenshot"]).save(image, format="PNG")
        return {"png": base64.b64encode(image.getvalue()).decode()}

    def close(self) -> dict[str, Any]:
        self._env.close()
        self._playwright.stop()
        return {}

    def _observation(self, reward: float, terminated: bool, info: dict[str, Any]) -> dict[str, Any]:
        raw = (info.get("task_info") or {}).get("RAW_REWARD_GLOBAL")
        return {
            "items": read_page(self._observed["axtree_object"], self._observed["extra_element_properties"]),
            "goal": str(self._observed["goal"] or ""),
            "error": str(self._observed["last_action_error"]),
            "reward": reward,
            "raw_reward": None if raw is None else float(raw),
            "terminated": terminated,
        }


def _was_not_ready(error: str) -> bool:
    """Return whether the element was not ready within BrowserGym's half second, and the action did nothing.

    Such an action is repeated, so that a busy machine does not change its effect; a covered element stays covered.
    """
    return error.startswith("TimeoutError") and "performing" not in error


def _main_line(message: str) -> str:
    """Return the line of a browser's log with the reason of its end, or the first line."""
    lines = message.splitlines() or [""]
    return next((line for line in lines if "FATAL" in line or "shared libraries" in line), lines[0])


def _read_requests(requests: queue.SimpleQueue[str]) -> None:
    """Queue the lines of the input; after the last one, exit even if a page hangs."""
    for line in sys.stdin:
        requests.put(line)
    requests.put("")
    time.sleep(_CLOSE_TIMEOUT_S)
    _exit(1)


def _exit(status: int) -> None:
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os._exit(status)  # at once: a normal exit would wait for the threads of a hung page


def main() -> None:
    """Answer each line of the input with a line, until the input ends."""
    logging.disable(logging.ERROR)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the output of a task goes to the log
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    worker: _Worker | None = None
    with contextlib.suppress(BrokenPipeError):  # the parent process has ended
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
    with contextlib.suppress(Exception):  # the browser may have ended
        if worker is not None:
            worker.close()
    _exit(0)


if __name__ == "__main__":
    main()
