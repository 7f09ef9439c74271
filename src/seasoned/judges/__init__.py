"""Where rewards come from besides the environment."""

from seasoned.judges.agreement import Agreement, Correlation, agreement
from seasoned.judges.bradley_terry import bradley_terry
from seasoned.judges.episode_view import View
from seasoned.judges.judge_feedback import add_judgement, judge_episode
from seasoned.judges.llm_judge import LLMJudge
from seasoned.judges.preference_judge import Preference, PreferenceJudge, Ranking
from seasoned.judges.prompt_fence import Fenced, fence, shorten
from seasoned.judges.rule_judge import Moment, Rule, RuleJudge
from seasoned.judges.vote_pool import Pooled, pool

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
    "add_judgement",
    "agreement",
    "bradley_terry",
    "fence",
    "judge_episode",
    "pool",
    "shorten",
]
