"""Web tasks in a Chromium browser, through BrowserGym."""

from seasoned.envs.browser.browser_env import BrowserEnv, open_browser

__all__ = ["BrowserEnv", "open_browser"]
