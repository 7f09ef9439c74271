"""Where rewards come from besides the environment."""

from seasoned.judges.agreement import Agreement, Correlation, agreement
from seasoned.judges.fencing import Fenced, fence, shorten
from seasoned.judges.judging import give_feedback, judge_episode
from seasoned.judges.model import LLMJudge
from seasoned.judges.preferences import Preference, PreferenceJudge, Ranking
from seasoned.judges.ranking import bradley_terry
from seasoned.judges.rules import Moment, Rule, RuleJudge
from seasoned.judges.showing import View
from seasoned.judges.voting import Pooled, pool

__all__ = [
    "Agreement",
    "Correlation",
    "Fenced",
    "LLMJudge",
    "Moment",
    "Pooled",
    "Preference",
    "PreferenceJudge",
    "Ranking",
    "Rule",
    "RuleJudge",
    "View",
    "agreement",
    "bradley_terry",
    "fence",
    "give_feedback",
    "judge_episode",
    "pool",
    "shorten",
]
