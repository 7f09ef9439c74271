"""Rule judges: conditions, sums of rewards, and refused rules."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seasoned.errors import InputError
from seasoned.judges import Rule, RuleJudge
from seasoned.protocols import Judge
from seasoned.testing import check_judge
from seasoned.types import Episode, Step

EPISODE = Episode(
    task="checkout",
    steps=[Step("page:cart", "click(pay)"), Step("page:pay", "click(confirm)"), Step("page:error 503", "click(retry)")],
    final_state="page:done",
)


@pytest.mark.parametrize(
    ("when", "steps"),
    [
        ({"state": "pay"}, [1]),
        ({"state": "page"}, [0, 1, 2]),
        ({"action": r"^click\((pay|retry)\)$"}, [0, 2]),
        ({"next_state": r"error 5\d\d"}, [1]),
        ({"next_state": "done"}, [2]),
        ({"previous_state": "page"}, [1, 2]),
        ({"previous_state": "cart", "next_state": "error"}, [1]),
        ({"state": "cart", "next_state": "error"}, []),
        (lambda moment: moment.index == 2, [2]),
        (lambda moment: moment.previous_state is None, [0]),
        (lambda moment: moment.next_state == moment.episode.final_state, [2]),
    ],
)
def test_rule_applies_to_matching_steps(when, steps):
    judge = RuleJudge([Rule("it", when, 2.0)])
    assert judge.score(EPISODE) == dict.fromkeys(steps, 2.0)
    assert judge.explain(EPISODE) == dict.fromkeys(steps, ("it",))


def test_unknown_final_state_matches_no_rule():
    judge = RuleJudge([Rule("any next state", {"next_state": ""}, 1.0)])
    assert judge.score(Episode("t", [Step("a", "x"), Step("b", "y")])) == {0: 1.0}
    assert judge.score(Episode("t", [Step("a", "x")], final_state="end")) == {0: 1.0}


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=5))
def test_rewards_of_several_rules_add_up(rewards):
    everywhere = [Rule(f"rule {i}", {"state": "page"}, reward) for i, reward in enumerate(rewards)]
    scores = RuleJudge([*everywhere, Rule("never", {"state": "nowhere"}, 1000.0)]).score(EPISODE)
    assert scores == {i: pytest.approx(math.fsum(rewards), abs=1e-9) for i in range(3)}


def test_rule_with_reward_zero_applies():
    assert RuleJudge([Rule("seen", {"state": "cart"}, 0.0)]).score(EPISODE) == {0: 0.0}


def test_rule_judge_passes_the_checker():
    judge = RuleJudge([Rule("cart", {"state": "cart"}, 1.0), Rule("late", lambda moment: moment.index > 9, -1.0)])
    assert isinstance(judge, Judge)
    assert judge.source == "rules"
    assert RuleJudge([Rule("cart", {"state": "cart"}, 1.0)], source="policy book").source == "policy book"
    check_judge(judge)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rule("", {"state": "a"}, 1.0),
        lambda: Rule("r", {"state": "a"}, math.nan),
        lambda: Rule("r", {"state": "a"}, math.inf),
        lambda: Rule("r", {"state": "a"}, True),
        lambda: Rule("r", {"state": "("}, 1.0),
        lambda: Rule("r", {"state": 3}, 1.0),
        lambda: Rule("r", {"stat": "a"}, 1.0),
        lambda: Rule("r", {}, 1.0),
        lambda: Rule("r", "a", 1.0),
        lambda: RuleJudge([]),
        lambda: RuleJudge(["r"]),
        lambda: RuleJudge(None),
        lambda: RuleJudge(3),
        lambda: RuleJudge([Rule("r", {"state": "a"}, 1.0)], source=" "),
        lambda: RuleJudge([Rule("r", {"state": "a"}, 1.0), Rule("r", {"state": "b"}, 1.0)]),
        lambda: RuleJudge([Rule("r", lambda moment: 1, 1.0)]).score(EPISODE),
        lambda: RuleJudge([Rule(n, {"state": "page"}, 1.7e308) for n in "ab"]).score(EPISODE),
    ],
)
def test_bad_rules_are_refused(make):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.seen and caught.value.rule and caught.value.next_step


def test_misspelt_field_is_suggested():
    with pytest.raises(InputError, match="Did you mean 'next_state'"):
        Rule("r", {"nextstate": "a"}, 1.0)
