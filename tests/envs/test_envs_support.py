"""The support desk: routing rules, delayed and noisy rewards, and the true rewards."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from seasoned import Episode, Memory, Step
from seasoned.envs.support.routing_rules import (
    PRODUCTS,
    TEAMS,
    TICKET_PROBLEMS,
    RoutingRule,
    RoutingRules,
    TicketFacts,
    draw_rules,
)
from seasoned.envs.support.support_desk import ASK, SupportTriage, open_support
from seasoned.envs.support.tickets import draw_ticket
from seasoned.errors import EnvError, InputError
from seasoned.protocols import DelayedFeedback
from seasoned.sync import Sync
from seasoned.testing import check_environment


def play(desk, choose, seed=0):
    """The state, action and reward of every step; `choose` takes the desk and the observation."""
    seen, steps = desk.reset(seed=seed), []
    while not seen.terminated:
        action = choose(desk, seen)
        state, seen = seen.state, desk.step(action)
        steps.append((state, action, seen.reward))
    return steps, seen


def oracle(desk, seen):
    return desk.right_team


def by_chance(seed):
    rng = random.Random(seed)
    return lambda desk, seen: rng.choice(seen.admissible)


def within(count, n, p):
    """Whether a binomial count is less than 4.5 standard deviations from n p."""
    return abs(count - n * p) <= 4.5 * math.sqrt(n * p * (1.0 - p)) + 1e-9


# ------------------------------------------------------------------------------------------------ rules


def test_first_matching_rule_applies():
    rules = RoutingRules(
        (
            RoutingRule("refund", "finance", above_usd=500),
            RoutingRule("refund", "legal", region="EU", plan="pro"),
            RoutingRule("refund", "success", product="Atlas"),
            RoutingRule("refund", "billing"),
        )
    )
    for facts, team in (
        (TicketFacts("Atlas", "refund", "pro", "EU", 501), "finance"),
        (TicketFacts("Atlas", "refund", "pro", "EU", 500), "legal"),
        (TicketFacts("Atlas", "refund", "free", "EU", 500), "success"),
        (TicketFacts("Cargo", "refund", "pro", "US", 29), "billing"),
    ):
        assert rules.team(facts) == team


@pytest.mark.parametrize("seed", range(4))
def test_rules_are_determined_by_their_seed_with_bounded_shares(seed):
    rules = draw_rules(seed)
    assert rules == draw_rules(seed)
    assert rules != draw_rules(seed + 1)
    shares = rules.shares()
    assert set(shares) == set(TEAMS)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert all(0.05 <= share <= 0.35 for share in shares.values())
    assert rules.difference(draw_rules(seed, heldout=True)) >= 0.3
    for rule in rules.rules[-len(TICKET_PROBLEMS) :]:
        assert rule == RoutingRule(rule.problem, rule.team)  # the last cover every problem
    assert {rule.problem for rule in rules.rules[-len(TICKET_PROBLEMS) :]} == set(TICKET_PROBLEMS)


def test_ticket_frequencies_match_the_exact_shares():
    rules, rng, n = draw_rules(2), random.Random(0), 4_000
    drawn = [draw_ticket(rng).facts for _ in range(n)]
    teams = Counter(rules.team(facts) for facts in drawn)
    for team, share in rules.shares().items():
        assert within(teams[team], n, share), team
    problems = Counter(facts.problem for facts in drawn)
    assert all(within(problems[problem], n, weight / 30) for problem, weight in TICKET_PROBLEMS.items())
    assert all((facts.amount_usd is None) == (facts.problem not in {"refund", "invoice"}) for facts in drawn)


# ------------------------------------------------------------------------------------------------ tickets


def test_texts_are_distinct_and_forms_recur():
    rng = random.Random(1)
    tickets = [draw_ticket(rng) for _ in range(3_000)]
    assert len({ticket.body for ticket in tickets}) == len(tickets)
    assert len({ticket.state(body=False, complete=True) for ticket in tickets}) < 0.7 * len(tickets)
    assert all(5 <= len(ticket.body.split()) <= 55 for ticket in tickets)
    for ticket in tickets[:200]:
        state, facts = ticket.state(body=True, complete=True), ticket.facts
        assert f"product:{facts.product} plan:{facts.plan} region:{facts.region}" in state
        assert (f"amount_usd:{facts.amount_usd}" in state) == (facts.amount_usd is not None)
        assert facts.product in ticket.subject


def test_subjects_identify_problems():
    """A subject line belongs to one problem, which the form does not name."""
    rng, of = random.Random(2), {}
    for _ in range(3_000):
        ticket = draw_ticket(rng)
        wording = ticket.subject.replace(ticket.facts.product, "")
        assert of.setdefault(wording, ticket.facts.problem) == ticket.facts.problem
    assert len(of) == 5 * len(TICKET_PROBLEMS)
    assert len(PRODUCTS) == 5


def test_shifts_are_determined_by_seeds_and_splits():
    def states(seed, **options):
        with Sync(SupportTriage(tickets=8, **options)) as desk:
            return [state for state, _, _ in play(desk, oracle, seed)[0]]

    same = states(3)
    assert same == states(3)
    others = [states(4), states(3, tickets_seed=1), states(3, split="new"), states(4, split="new")]
    assert all(not set(same) & set(other) for other in others)
    assert states(3, split="heldout") == states(3, split="new")  # the tickets alike, the rules not
    assert states(3, rules_seed=9) == same
    desks = {split: SupportTriage(split=split) for split in ("same", "new", "heldout")}
    assert desks["same"].rules == desks["new"].rules != desks["heldout"].rules


def test_reset_without_a_seed_begins_the_next_shift():
    with Sync(SupportTriage(tickets=2)) as desk:
        seeds = [desk.reset(seed=seed) for seed in (0, 1, 2)]
        desk.reset(seed=0)
        assert [desk.reset(), desk.reset()] == seeds[1:]
    with Sync(SupportTriage(tickets=2)) as desk:
        assert [desk.reset(), desk.reset()] == seeds[:2]


# ------------------------------------------------------------------------------------------------ rewards


@pytest.mark.parametrize(("delay", "tickets"), [(0, 5), (1, 5), (3, 10), (10, 10), (99, 4)])
def test_answers_arrive_after_the_delay(delay, tickets):
    with Sync(SupportTriage(tickets=tickets, delay=delay, noise=0.0)) as desk:
        steps, seen = play(desk, lambda desk, seen: by_parity(desk))
        earned = [float(action == right) for (_, action, _), right in zip(steps, routed(desk, steps), strict=True)]
        assert desk.true_rewards == tuple(earned)
        for step, (_, _, reward) in enumerate(steps):
            due = [i for i in range(tickets) if (i + delay if i + delay < tickets else tickets - 1) == step]
            assert reward == sum(earned[i] for i in due)
        assert [late.step for late in desk.late_rewards()] == list(range(tickets))
        assert all(late.arrived == min(late.step + delay, tickets - 1) for late in desk.late_rewards())
        assert seen.score == desk.true_score == sum(earned)  # without noise


def by_parity(desk):
    """Right on every second ticket."""
    team = desk.right_team
    return team if len(desk.true_rewards) % 2 else TEAMS[(TEAMS.index(team) + 1) % len(TEAMS)]


def routed(desk, steps):
    """The right team of each step, by playing the same shift again."""
    right = []
    play(desk, lambda desk, seen: right.append(desk.right_team) or by_parity(desk))
    return right


@pytest.mark.parametrize("options", [{}, {"delay": 0}, {"delay": 50}, {"ask": True, "delay": 2}])
def test_feedback_moves_each_reward_to_the_step_that_earned_it(options):
    with Sync(SupportTriage(tickets=12, noise=0.2, **options)) as desk, Memory.open(":memory:", gamma=0.0) as memory:
        assert isinstance(desk._target, DelayedFeedback)
        steps, seen = play(desk, by_chance(5))
        episode = Episode(desk.task, [Step(*step) for step in steps], final_state=seen.state)
        episode_id = memory.add(episode)
        corrections = desk.feedback()
        assert sum(reward for _, reward in corrections) == pytest.approx(0.0)
        for step, reward in corrections:
            memory.feedback(episode_id, reward=reward, step=step, source="customer")
        answers = {late.step: late.reward for late in desk.late_rewards()}
        assert set(answers.values()) <= {0.0, 1.0}
        for step, (state, action, _) in enumerate(steps):
            stored = [n.experience for n in memory.search(state, k=50) if n.experience.step == step]
            assert [one.reward for one in stored] == [pytest.approx(-0.2 if action == ASK else answers[step])]


def test_feedback_during_a_shift_covers_arrived_answers():
    with Sync(SupportTriage(tickets=6, delay=2, noise=0.0)) as desk:
        desk.reset(seed=0)
        seen = [desk.step(desk.right_team).reward for _ in range(4)]
        assert seen == [0.0, 0.0, 1.0, 1.0]
        assert desk.feedback() == ((0, 1.0), (1, 1.0), (2, -1.0), (3, -1.0))
        assert (desk.true_score, desk.regret) == (4.0, 0.0)


def test_answers_are_wrong_with_the_noise_probability():
    n, noise = 1_000, 0.1
    with Sync(SupportTriage(tickets=n, noise=noise)) as desk:
        for choose in (oracle, by_chance(0)):
            play(desk, choose, seed=7)
            wrong = [late.step for late in desk.late_rewards() if late.reward != desk.true_rewards[late.step]]
            assert within(len(wrong), n, noise)


def test_noise_does_not_depend_on_the_policy():
    flips = []
    for choose in (oracle, by_chance(1)):
        with Sync(SupportTriage(tickets=200, noise=0.2)) as desk:
            play(desk, choose, seed=3)
            flips.append([late.reward != desk.true_rewards[late.step] for late in desk.late_rewards()])
    assert flips[0] == flips[1]
    assert any(flips[0])


def test_perfect_policy_earns_everything_and_random_one_in_seven():
    n = 700
    with Sync(SupportTriage(tickets=n, noise=0.3)) as desk:
        _, seen = play(desk, oracle)
        assert (desk.true_score, desk.max_score, desk.regret) == (n, n, 0.0)
        assert within(seen.score, n, 0.7)  # the observed score is noisy
        play(desk, by_chance(0))
        assert within(desk.true_score, n, 1 / len(TEAMS))
        assert desk.regret == n - desk.true_score
        for team in TEAMS[:2]:
            play(desk, lambda desk, seen, team=team: team)
            assert within(desk.true_score, n, desk.rules.shares()[team])


# ------------------------------------------------------------------------------------------------ asking


def test_asking_reveals_the_missing_fact_once_at_a_cost():
    with Sync(SupportTriage(tickets=60, ask=True, ask_cost=0.25, delay=0, noise=0.0)) as desk:
        seen, n_questions, missing = desk.reset(seed=0), 0, 0
        while not seen.terminated:
            assert ASK in seen.admissible
            if ":unknown" in seen.state:
                missing += 1
                before = seen.state
                seen = desk.step(ASK)
                n_questions += 1
                assert (seen.reward, ASK in seen.admissible) == (-0.25, False)
                assert len([1 for a, b in zip(before.split(), seen.state.split(), strict=True) if a != b]) == 1
                assert ":unknown" not in seen.state
                with pytest.raises(EnvError):
                    desk.step(ASK)
            seen = desk.step(desk.right_team)
            assert seen.reward == 1.0
        assert 5 <= missing <= 30
        assert desk.true_score == pytest.approx(60 - 0.25 * n_questions)
        assert desk.regret == pytest.approx(0.25 * n_questions)
        assert len(desk.true_rewards) == 60 + n_questions
    with Sync(SupportTriage(tickets=60)) as desk:
        steps, _ = play(desk, oracle)
        assert not any("unknown" in state for state, _, _ in steps)


# ------------------------------------------------------------------------------------------------ the protocol


@pytest.mark.parametrize("options", [{}, {"ask": True, "body": False, "delay": 0}, {"split": "heldout", "delay": 9}])
def test_desk_conforms_to_the_protocol(options):
    check_environment(lambda: SupportTriage(tickets=6, noise=0.3, **options), episodes=3)


@pytest.mark.parametrize(
    "options",
    [{}, {"split": "new", "ask": True, "ask_cost": 0.5, "body": False}, {"rules_seed": 4, "noise": 0.25, "delay": 0}],
)
def test_name_opens_the_same_desk(options):
    desk = SupportTriage(**options)
    target, _, query = desk.name.removeprefix("support:").partition("?")
    again = open_support(target, dict(pair.split("=") for pair in query.split("&")))
    assert (again.name, again.task, again.max_score, again.rules) == (desk.name, desk.task, desk.max_score, desk.rules)
    with Sync(desk) as one, Sync(again) as two:
        assert play(one, by_chance(0), 5) == play(two, by_chance(0), 5)


def test_seed_is_the_default_of_both_seeds():
    assert (
        open_support("triage", {"seed": "3"}).name
        == open_support("triage", {"rules_seed": "3", "tickets_seed": "3"}).name
    )
    assert "rules_seed=1&tickets_seed=3" in open_support("triage", {"seed": "3", "rules_seed": "1"}).name


def test_right_team_needs_a_shown_ticket():
    with Sync(SupportTriage(tickets=1)) as desk:
        for _ in range(2):
            with pytest.raises(EnvError, match="no ticket is shown"):
                desk.right_team  # noqa: B018
            play(desk, oracle)


@pytest.mark.parametrize(
    ("target", "given", "message"),
    [
        ("triag", {}, "Did you mean 'triage'"),
        ("triage", {"split": "news"}, "Did you mean 'new'"),
        ("triage", {"noise": "0.5"}, "at least 0 and below 0.5"),
        ("triage", {"noise": "-0.1"}, "at least 0 and below 0.5"),
        ("triage", {"noise": "nan"}, "finite"),
        ("triage", {"ask_cost": "1.5"}, "at least 0 and at most 1"),
        ("triage", {"tickets": "0"}, "at least 1"),
        ("triage", {"delay": "-1"}, "whole number"),
        ("triage", {"rules_sed": "1"}, "Did you mean 'rules_seed'"),
        ("triage", {"ask": "maybe"}, "on or off"),
        ("triage", {"seed": "x"}, "whole number"),
    ],
)
def test_error_names_the_mistake_in_a_desk(target, given, message):
    with pytest.raises(InputError, match=message) as caught:
        open_support(target, given)
    assert all((caught.value.seen, caught.value.rule, caught.value.next_step))
