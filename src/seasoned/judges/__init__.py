"""Where rewards come from besides the environment."""

from seasoned.judges.rules import Moment, Rule, RuleJudge

__all__ = ["Moment", "Rule", "RuleJudge"]
