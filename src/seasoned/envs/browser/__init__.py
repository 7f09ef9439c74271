"""Web pages, played in a real Chromium through BrowserGym."""

from seasoned.envs.browser.browser_env import BrowserEnv, open_browser

__all__ = ["BrowserEnv", "open_browser"]
