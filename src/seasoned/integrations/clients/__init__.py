"""Clients of model APIs that record into a memory: `seasoned.wrap` and `seasoned.episode`."""

from typing import TYPE_CHECKING

from seasoned.lazy_names import lazy_names

if TYPE_CHECKING:
    from seasoned.integrations.clients.call_decisions import CallDecisions
    from seasoned.integrations.clients.call_holdout import CallHoldout
    from seasoned.integrations.clients.call_modes import CallVotes
    from seasoned.integrations.clients.episode_scope import CurrentEpisode, episode
    from seasoned.integrations.clients.wrapped_client import Mode, wrap

__all__ = ["CallDecisions", "CallHoldout", "CallVotes", "CurrentEpisode", "Mode", "episode", "wrap"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "seasoned.integrations.clients.call_decisions": ["CallDecisions"],
        "seasoned.integrations.clients.call_holdout": ["CallHoldout"],
        "seasoned.integrations.clients.call_modes": ["CallVotes"],
        "seasoned.integrations.clients.episode_scope": ["CurrentEpisode", "episode"],
        "seasoned.integrations.clients.wrapped_client": ["Mode", "wrap"],
    },
)
