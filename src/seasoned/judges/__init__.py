"""Judges: rewards from rules, models and votes, besides the environment's."""

from seasoned.judges.agreement import Correlation, JudgeAgreement, agreement
from seasoned.judges.bradley_terry import bradley_terry
from seasoned.judges.episode_view import EpisodeView
from seasoned.judges.judge_feedback import add_judgement, judge_episode
from seasoned.judges.llm_judge import LLMJudge
from seasoned.judges.preference_judge import Preference, PreferenceJudge, Ranking
from seasoned.judges.prompt_fence import FencedData, fence, shorten
from seasoned.judges.rule_judge import Rule, RuleContext, RuleJudge
from seasoned.judges.vote_pool import PooledVote, pool

__all__ = [
    "Correlation",
    "EpisodeView",
    "FencedData",
    "JudgeAgreement",
    "LLMJudge",
    "PooledVote",
    "Preference",
    "PreferenceJudge",
    "Ranking",
    "Rule",
    "RuleContext",
    "RuleJudge",
    "add_judgement",
    "agreement",
    "bradley_terry",
    "fence",
    "judge_episode",
    "pool",
    "shorten",
]
