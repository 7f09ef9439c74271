"""A support desk with hidden routing rules and delayed rewards."""

from seasoned.envs.support.support_desk import SupportTriage, open_support

__all__ = ["SupportTriage", "open_support"]
