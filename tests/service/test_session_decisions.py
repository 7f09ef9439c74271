"""Decisions below `/sessions/{id}`: steps of one episode, with one arm, judged together."""

import gc
import shutil
import threading
import tracemalloc

import pytest
from decision_upstream import systemone_answer, systemone_request, upstream_server
from serving import error_of, serving

from seasoned import Decider, Episode, Memory, Step
from seasoned.decisions.named_options import NamedOptions
from seasoned.errors import NotFoundError, StoreBusyError
from seasoned.service import DecisionSettings
from seasoned.service.bearer_tokens import ANYONE, Token
from seasoned.service.decisions.outcome_feedback import add_any_feedback
from seasoned.service.decisions.session_episodes import SessionEpisodes
from seasoned.types import Prior


@pytest.fixture
def upstream():
    with upstream_server() as server:
        yield server


def in_front_of(upstream, path=":memory:", *, holdout=False, **more):
    settings = DecisionSettings(upstream=upstream.url, holdout=holdout, memory_timeout_s=20.0)
    return serving(path, decisions=settings, **more)


def ask(client, session, ticket="ticket: the lamp is broken", *, headers=None, **more):
    body = systemone_request(state=ticket, **more)
    response = client.post(f"/sessions/{session}/v1/systemone", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response.headers


def judge(client, **body):
    response = client.post("/v1/feedback", json=body)
    assert response.status_code == 201, response.text


def test_decisions_of_a_session_are_steps_of_its_episode_until_it_is_judged(upstream, tmp_path):
    path = tmp_path / "desk.db"
    with in_front_of(upstream, path) as client:
        alone = client.post("/v1/systemone", json=systemone_request()).headers
        first, second = ask(client, "run%2F7"), ask(client, "run%2F7", "ticket: the invoice is wrong")
        other = ask(client, "run-8")
        judge(client, episode_id="run/7", metric_name="solved", value=1.0)
        third = ask(client, "run%2F7")
        judge(client, inference_id=third["x-seasoned-inference-id"], reward=0.5)
    assert alone["x-seasoned-episode-id"] == alone["x-seasoned-inference-id"]
    assert [one["x-seasoned-episode-id"] for one in (first, second, other, third)] == [
        "run/7",
        "run/7",
        "run-8",
        "run/7~2",
    ]
    assert len({one["x-seasoned-inference-id"] for one in (first, second, other, third)}) == 4
    with Memory.open(path) as memory:
        stored = {episode.id: episode for episode in memory.episodes()}
        assert [step.state for step in stored["run/7"].steps] == [
            "ticket: the lamp is broken",
            "ticket: the invoice is wrong",
        ]
        assert [(event.episode_id, event.step, event.reward) for event in memory.events()] == [
            ("run/7", 1, 1.0),
            ("run/7~2", 0, 0.5),
        ]
        assert stored["run-8"].ending == "truncated"  # the service ended first
        assert {one.id for one in memory.awaiting()} == {"run-8", alone["x-seasoned-episode-id"]}
        memory.verify()


@pytest.mark.parametrize("model", [None, "uniform"])
def test_an_episode_of_decisions_is_ended_by_its_address(upstream, tmp_path, model):
    path = tmp_path / "desk.db"
    answered_by = {"upstream": upstream.url} if model is None else {"model": model}
    with serving(path, decisions=DecisionSettings(holdout=False, memory_timeout_s=20.0, **answered_by)) as client:
        ask(client, "run%2F7")
        ended = client.post("/v1/episodes/run%2F7/end", json={"ending": "truncated"})
        assert (ended.status_code, ended.json()) == (200, {"ended": ["run/7"]})
        assert client.post("/v1/episodes/run%2F7/end", json={}).status_code == 404
        assert ask(client, "run%2F7")["x-seasoned-episode-id"] == "run/7~2"
    with Memory.open(path) as memory:
        assert memory.get("run/7").ending == "truncated"


@pytest.mark.parametrize("outcome", [{"reward": 1.0}, {"up": True}, {"right": "refunds"}])
def test_an_outcome_of_one_decision_of_a_session_of_several_is_refused(upstream, outcome):
    with in_front_of(upstream) as client:
        first, _ = ask(client, "s"), ask(client, "s")
        response = client.post("/v1/feedback", json={"inference_id": first["x-seasoned-inference-id"], **outcome})
        assert (response.status_code, "one of the 2 decisions" in response.text) == (400, True)
        judge(client, episode_id="s", metric_name="solved", value=1.0)


@pytest.mark.parametrize(
    "refused",
    [
        {"inference_id": "SECOND", "reward": 1.0},
        {"inference_id": "SECOND", "right": "refunds"},
        {"inference_id": "SECOND", "metric_name": "solved", "value": 1.0},
        {"episode_id": "s", "metric_name": "demonstration", "value": "refunds"},
        {"episode_id": "s", "kind": "label", "right": "refunds"},
        {"episode_id": "SECOND", "kind": "thumbs", "up": True},
        {"episode_id": "s", "kind": "thumbs", "up": True, "step": 0},
        {"name": "solved", "value": 1, "data_type": "BOOLEAN", "traceId": "SECOND"},
        {"inference_id": "s", "reward": True},
        {"inference_id": "s", "question": "urgency", "up": True},
        {"inference_id": "s", "revoke": "unknown"},
        {"inference_id": "s", "metric_name": "solved", "value": "yes"},
    ],
)
def test_feedback_that_is_refused_ends_no_session(upstream, refused):
    with in_front_of(upstream) as client:
        ask(client, "s")
        second = ask(client, "s")["x-seasoned-inference-id"]
        body = {name: second if value == "SECOND" else value for name, value in refused.items()}
        response = client.post("/v1/feedback", json=body)
        assert response.status_code in (400, 404), response.text
        assert ask(client, "s")["x-seasoned-episode-id"] == "s"
        judge(client, episode_id="s", metric_name="solved", value=1.0)
        assert ask(client, "s")["x-seasoned-episode-id"] == "s~2"


def test_feedback_of_another_author_ends_no_session(upstream):
    tokens = {name: f"the-token-of-{name}-alone" for name in ("ann", "bob")}
    with in_front_of(upstream, token=[Token(token, name) for name, token in tokens.items()]) as client:
        ann, bob = ({"authorization": f"Bearer {token}"} for token in tokens.values())
        first = ask(client, "s", headers=ann)["x-seasoned-inference-id"]
        for body in ({"inference_id": first, "reward": 1.0}, {"kind": "thumbs", "up": True, "episode_id": "s"}):
            error_of(client.post("/v1/feedback", json=body, headers=bob), 403)
            assert ask(client, "s", headers=ann)["x-seasoned-episode-id"] == "s"
        assert client.post("/v1/episodes/s/end", json={}, headers=ann).status_code == 200
        assert client.post("/v1/feedback", json=body, headers=bob).status_code == 201


def test_a_label_of_no_option_and_a_dry_run_end_no_session(upstream):
    with in_front_of(upstream) as client:
        first = ask(client, "s")["x-seasoned-inference-id"]
        unknown = client.post("/v1/feedback", json={"inference_id": first, "right": "no such desk"})
        assert unknown.status_code == 400
        judge(client, episode_id="s", metric_name="solved", value=1.0, dryrun=True)
        assert ask(client, "s")["x-seasoned-episode-id"] == "s"


def test_the_temperature_of_a_session_s_decision_is_that_of_its_own_question(upstream, tmp_path):
    path = tmp_path / "desk.db"
    upstream.body = systemone_answer(urgent={"type": "noul", "noul": 0.7})
    with in_front_of(upstream, path) as client:
        ask(client, "s", urgent={"type": "noul", "instructions": "Is it urgent?"})
        judge(client, episode_id="s", metric_name="solved", value=1.0)
    with Memory.open(path) as memory:
        [rated] = [one for options in memory.rated_options().by_episode.values() for one in options]
        [episode] = memory.episodes()
        assert [step.action for step in episode.steps] == ["desk: sales", "urgent: yes"]
        assert (episode.task.partition("#")[0], rated.task.partition("#")[0]) == ("desk", "urgent")
        memory.verify()


@pytest.mark.parametrize("outcome", [{"right": "refunds"}, {"up": True}, {"reward": 1.0}])
def test_an_outcome_of_an_episode_without_a_decision_yet_is_refused_and_does_not_end_it(outcome):
    with Memory.open(":memory:") as memory:
        running = SessionEpisodes(memory).episode("s", None, task="desk", subject=None)
        with pytest.raises(NotFoundError):
            add_any_feedback(memory, {"inference_id": "s", **outcome}, ANYONE, {})
        assert not running.is_over


def test_a_session_of_one_decision_takes_its_outcome_and_its_revocation(upstream):
    with in_front_of(upstream) as client:
        first, second = (ask(client, session)["x-seasoned-inference-id"] for session in "st")
        given = client.post("/v1/feedback", json={"inference_id": first, "right": "refunds"}).json()
        assert given["feedback"]["right"] == "desk: refunds"
        assert client.post("/v1/feedback", json={"inference_id": second, "revoke": given["id"]}).status_code == 404
        revoked = client.post("/v1/feedback", json={"inference_id": first, "revoke": given["id"]})
        assert revoked.json() == {"revoked": given["id"]}


OF_ONE_DECISION = [
    {"inference_id": "s", "kind": "label", "right": "refunds"},
    {"episode_id": "FIRST", "kind": "thumbs", "up": True},
    {"episode_id": "s", "kind": "thumbs", "up": True, "step": 0},
    {"name": "solved", "value": 1, "data_type": "BOOLEAN", "traceId": "FIRST"},
]


@pytest.mark.parametrize("n_decisions", [1, 2])
def test_outcome_of_a_stored_decision_is_taken_where_it_is_the_only_one(upstream, n_decisions):
    with in_front_of(upstream) as client:
        first, *_ = [ask(client, "s")["x-seasoned-inference-id"] for _ in range(n_decisions)]
        judge(client, metric_name="seen", value=True, episode_id="s")  # stores the episode
        for outcome in OF_ONE_DECISION:
            body = {name: first if value == "FIRST" else value for name, value in outcome.items()}
            response = client.post("/v1/feedback", json=body)
            assert response.status_code == (201 if n_decisions == 1 else 400), (outcome, response.text)
        judge(client, kind="thumbs", up=True, episode_id="s")
        judge(client, name="solved", value=1, data_type="BOOLEAN", traceId="s")
        judge(client, inference_id="s", reward=0.5)  # as the documentation shows


def test_the_lift_compares_outcomes_within_the_bounds_of_the_service(upstream):
    settings = DecisionSettings(upstream=upstream.url, memory_timeout_s=20.0, bounds=(0.0, 3.0), temperature=True)
    with serving(":memory:", decisions=settings) as client:
        ask(client, "s")
        ask(client, "s")
        judge(client, metric_name="solved", value=2.0, episode_id="s")
        [family] = client.get("/v1/lift").json()["families"]
    assert (family["n_out_of_bounds"], family["n_treated"] + family["n_control"]) == (0, 1)


def test_a_session_has_one_arm_and_its_costs_add_up(upstream):
    with in_front_of(upstream, holdout=True) as client:
        arms = {}
        for number in range(12):
            answers = [ask(client, f"s{number}") for _ in range(3)]
            arms[number] = {one["x-seasoned-arm"] for one in answers}
            judge(client, metric_name="solved", value=1.0, episode_id=f"s{number}")
        [family] = client.get("/v1/lift").json()["families"]
    assert all(len(one) == 1 for one in arms.values())
    assert set.union(*arms.values()) == {"treated", "control"}
    assert (family["n_treated"] + family["n_control"], family["n_mixed"]) == (12, 0)
    assert {one["measure"]: one["treated_mean"] for one in family["costs"]}["tokens"] == 27.0


def test_a_new_episode_of_a_session_waits_for_no_recorder_that_may_wait_for_the_sessions():
    """A recorder of calls that stores feedback settles the sessions."""
    with Memory.open(":memory:") as memory:
        sessions, were_free = SessionEpisodes(memory), []

        class Recorder:
            def settle(self, id_=None):
                asking = threading.Thread(target=sessions.session_episode, args=("run-7", None), daemon=True)
                asking.start()
                asking.join(1.0)
                were_free.append(not asking.is_alive())

            def close(self):
                pass

        memory.session.recorders.append(Recorder())
        sessions.episode("run-7", None, task="desk", subject=None)
        assert all(were_free)


def test_an_idle_episode_is_stored_by_the_next_decision_of_any_session():
    with Memory.open(":memory:") as memory:
        sessions = SessionEpisodes(memory, idle_s=-1.0)
        first = sessions.episode("a", None, task="desk", subject=None)
        first.recorder.record("ticket", "sales")
        second = sessions.episode("a", "ann", task="desk", subject=None)
        assert first.is_over and second.recorder.id == "a~2"
        assert memory.get("a").ending == "truncated"


def decided(sessions, decider, session, state):
    """Decide in a session about a state."""
    asked = NamedOptions.of(state, ["refunds", "sales"])
    running = sessions.episode(session, None, task=asked.task, subject=None)
    step = sessions.decide(running, decider, asked, Prior({"refunds": -0.5, "sales": -1.0}, "decisions", None, ()))
    sessions.record(running, step, f"inference of {state[:20]}")
    return running


def test_no_session_begins_while_the_ids_of_running_episodes_are_read():
    """Another process took the id of an episode, which needs a free one when it is stored."""
    with Memory.open(":memory:") as memory:
        sessions, were_free = SessionEpisodes(memory), []

        class Recorder:
            def __len__(self):
                return 0

            @property
            def id(self):
                asking = threading.Thread(target=sessions.session_episode, args=("s", None), daemon=True)
                asking.start()
                asking.join(0.05)
                were_free.append(not asking.is_alive())
                return "other"

        decided(sessions, Decider(memory), "s", "the lamp is broken")
        sessions.episode("other", None, task="desk", subject=None).recorder = Recorder()
        memory.add(Episode("desk", [Step("a", "b")], "s"))
        sessions.settle("s")
        assert {one.id for one in memory.episodes()} == {"s", "s~2"}
        assert were_free and not any(were_free)


def test_two_ends_that_meet_store_an_episode_once():
    with Memory.open(":memory:") as memory:
        sessions = SessionEpisodes(memory)
        running = decided(sessions, Decider(memory), "s", "the lamp is broken")
        commit, is_committing, may_commit = running.recorder.commit, threading.Event(), threading.Event()

        def slow_commit():
            is_committing.set()
            assert may_commit.wait(10)
            return commit()

        running.recorder.commit = slow_commit
        ends = [threading.Thread(target=sessions.end, args=("s", None, end)) for end in ("terminated", "truncated")]
        ends[0].start()
        assert is_committing.wait(10)
        ends[1].start()
        ends[1].join(0.1)  # it waits for the first
        may_commit.set()
        for end in ends:
            end.join()
        assert [(episode.id, episode.ending) for episode in memory.episodes()] == [("s", "terminated")]


@pytest.mark.parametrize("n_sessions", [1, 20], ids=["one session", "many sessions"])
def test_running_sessions_hold_a_limited_number_of_bytes_and_lose_no_decision(n_sessions):
    n_decisions, state_bytes, max_bytes = 20, 100_000, 500_000
    with Memory.open(":memory:") as memory:
        sessions, decider = SessionEpisodes(memory, max_bytes=max_bytes), Decider(memory)
        decided(sessions, decider, "warm", "warm up")
        sessions.settle("warm")
        tracemalloc.start()
        for number in range(n_decisions):
            decided(sessions, decider, f"s{number % n_sessions}", f"ticket {number} ".ljust(state_bytes, "x"))
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < max_bytes + 6 * state_bytes  # with what reads and caches of the memory hold
        sessions.close()
        states = [step.state[:9] for episode in memory.episodes() for step in episode.steps]
        assert sorted(states) == sorted(["warm up", *(f"ticket {number} "[:9] for number in range(n_decisions))])


def test_decisions_are_refused_while_those_that_wait_for_a_full_disk_leave_no_room(tmp_path):
    with Memory.open(tmp_path / "desk.db") as memory:
        sessions, decider = SessionEpisodes(memory, max_bytes=50_000), Decider(memory)
        memory.session.store.execute("PRAGMA max_page_count = 1")  # as few as there are
        taken = 0
        with pytest.raises(StoreBusyError, match="50000 bytes wait"):
            for number in range(20):
                decided(sessions, decider, f"s{number}", f"ticket {number} ".ljust(100_000, "x"))
                taken += 1
        assert taken == 1
        memory.session.store.execute("PRAGMA max_page_count = 100000")
        decided(sessions, decider, "later", "the disk has room")
        sessions.close()
        assert {episode.id for episode in memory.episodes()} == {"s0", "later"}


def test_another_subject_begins_another_episode_so_that_its_erasure_leaves_no_byte(upstream, tmp_path):
    def decided(client, ticket, **subject):
        body = {**systemone_request(state=ticket), **subject}
        return client.post("/sessions/run/v1/systemone", json=body).headers["x-seasoned-episode-id"]

    path = tmp_path / "desk.db"
    with in_front_of(upstream, path) as client:
        alice = decided(client, "ticket: a lamp", safety_identifier="alice")
        assert decided(client, "ticket: the same lamp") == alice  # an unnamed person is the session's
        bob = decided(client, "ticket: quince marmalade", safety_identifier="bob")
        assert bob != alice
    with Memory.open(path) as memory:
        memory.erase("bob")
        assert [episode.id for episode in memory.episodes()] == [alice]
    assert not any(b"quince" in file.read_bytes() for file in tmp_path.glob("desk.db*") if file.is_file())


def test_running_episodes_of_a_killed_service_are_stored_by_the_next(upstream, tmp_path):
    """Files stay where a killed process leaves them, and the system releases its lock."""
    path, folder = tmp_path / "desk.db", tmp_path / "decisions"
    settings = DecisionSettings(upstream=upstream.url, memory_timeout_s=20.0, sessions=folder)

    def served(after):
        with serving(path, decisions=settings) as client:
            after(client)
        with Memory.open(path) as memory:
            memory.verify()
            return {episode.id: episode for episode in memory.episodes() if episode.steps}, memory.notes()

    upstream.body = systemone_answer(urgent={"type": "noul", "noul": 0.7})
    killed = []

    def decide_and_copy(client):
        for session in ("run-7", "run-7", "run-8"):
            killed.append(ask(client, session, urgent={"type": "noul", "instructions": "Is it urgent?"}))
        shutil.copytree(folder, tmp_path / "as it was")

    whole, notes = served(decide_and_copy)
    assert not list(folder.rglob("*.call")), "what is stored is no longer spooled"
    for file in tmp_path.glob("desk.db*"):
        file.unlink()
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "as it was", folder)

    def judge_and_go_on(client):
        judge(client, episode_id="run-7", metric_name="solved", value=1.0)
        judge(client, inference_id=killed[2]["x-seasoned-inference-id"] + "/desk", metric_name="comment", value="late")
        assert ask(client, "run-7")["x-seasoned-episode-id"] == "run-7~2"

    restored, notes_after = served(judge_and_go_on)
    assert list(restored) == ["run-7", "run-8", "run-7~2"]
    assert [(note.episode_id, note.step) for note in notes_after if note.kind == "comment"] == [("run-8", 0)]
    for id_ in ("run-7", "run-8"):
        assert restored[id_] == whole[id_]
        of_both = [
            [(n.id, n.kind, n.step, n.body) for n in found if n.episode_id == id_ and n.kind != "comment"]
            for found in (notes, notes_after)
        ]
        assert of_both[0] == of_both[1]
    assert {"assignment", "episode.cost", "response"} <= {note.kind for note in notes}


def test_an_episode_that_was_stored_before_the_kill_is_stored_once(upstream, tmp_path):
    folder = tmp_path / "decisions"
    settings = DecisionSettings(upstream=upstream.url, memory_timeout_s=20.0, sessions=folder, holdout=False)
    path = tmp_path / "desk.db"
    with serving(path, decisions=settings) as client:
        ask(client, "run-7")
        shutil.copytree(folder, tmp_path / "as it was")
        judge(client, episode_id="run-7", metric_name="solved", value=1.0)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "as it was", folder)
    with serving(path, decisions=settings):
        pass
    with Memory.open(path) as memory:
        assert [episode.id for episode in memory.episodes()] == ["run-7"]
    assert not list(folder.rglob("*.call"))
