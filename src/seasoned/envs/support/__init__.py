"""A support desk with hidden rules, and customers who answer late."""

from seasoned.envs.support.support_desk import SupportTriage, open_support

__all__ = ["SupportTriage", "open_support"]
