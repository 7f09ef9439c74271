"""`seasoned memory feedback`, `revoke` and `notes`: what people and tests say of an episode."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import click

from seasoned.cli.format.feedback_text import REWARD, bare_rewards, find_said, in_words, reward_in_words
from seasoned.cli.format.output import echo_json, echo_table, echo_text, one_line
from seasoned.cli.format.signed_number import SignedNumber
from seasoned.cli.format.time_text import shown_time
from seasoned.cli.memory.common_options import (
    example,
    find_episode,
    json_option,
    memory_argument,
    namespace_option,
    reading,
    state_text,
    writing,
)
from seasoned.errors import InputError
from seasoned.memory import Memory
from seasoned.memory.values.derived_ids import original_event_id
from seasoned.memory.values.events import Event
from seasoned.types import (
    Choice,
    Correction,
    Edit,
    Feedback,
    FeedbackRecord,
    Note,
    Outcome,
    OwnAnswer,
    Review,
    Score,
    Thumbs,
)

__all__ = ["feedback", "notes", "revoke"]

_TESTS = re.compile(r"(\d+)/(\d+)")


# A reward may begin with a minus; a misspelt option is then refused as one argument too many.
@click.command(
    epilog=example(
        "seasoned memory feedback agent.db 4f2a -1.0 --step 3 --source human --author ada",
        "seasoned memory feedback agent.db 4f2a --thumbs down --comment 'the wrong page'",
        "seasoned memory feedback agent.db 4f2a --candidate 'Dear Ann' --candidate Hi --chosen 0 --author ada",
        "seasoned memory feedback agent.db 4f2a --tests 11/12 --source tests",
    ),
    context_settings={"ignore_unknown_options": True},
)
@memory_argument
@click.argument("episode_id")
@click.argument("reward", type=SignedNumber(), required=False)
@click.option("--thumbs", type=click.Choice(["up", "down"]), help="+1 or -1.")
@click.option("--score", type=float, metavar="X", help="A number on --scale, as -1 to 1.")
@click.option("--scale", type=float, nargs=2, metavar="LOW HIGH", help="Of --score. Default: -1 1.")
@click.option("--candidate", "candidates", multiple=True, metavar="TEXT", help="An answer that was shown; repeat it.")
@click.option("--chosen", type=int, metavar="N", help="Which candidate is the best, or was edited, from 0.")
@click.option(
    "--edit", metavar="TEXT", help="What was made of the answer, or of the chosen candidate. `-` reads stdin."
)
@click.option("--own-answer", metavar="TEXT", help="What would have been a good answer. `-` reads stdin.")
@click.option("--correction", metavar="TEXT", help="What was wrong: -1. `-` reads stdin.")
@click.option("--exit-code", type=int, metavar="N", help="0 is +1, any other -1.")
@click.option("--tests", metavar="PASSED/TOTAL", help="2 x passed / total - 1.")
@click.option("--built/--not-built", default=None, help="+1 or -1.")
@click.option("--review", type=click.Choice(["approved", "changes_requested", "comment"]), help="+1, -1, nothing.")
@click.option("--comment", metavar="TEXT", help="Why; kept beside any of these.")
@click.option("--step", type=int, metavar="N", help="Which step, from 0. Default: the last.")
@click.option("--source", default="human", show_default=True, help="Who speaks.")
@click.option("--author", metavar="NAME", help="Which one of them.")
@click.option("--weight", type=float, default=1.0, show_default=True, help="How much it counts.")
@namespace_option
@json_option
def feedback(
    path: str,
    episode_id: str,
    reward: float | None,
    step: int | None,
    source: str,
    author: str | None,
    weight: float,
    namespace: str | None,
    as_json: bool,
    **said: Any,
) -> None:
    """Say how a step turned out.

    Prints the id that takes it back. A bare REWARD, or one kind of feedback by its options. The same source and author
    supersedes what it said before of the same step in the same kind; different ones add up. An answer that was not
    executed becomes an episode of its own.
    """
    typed = _feedback(said)
    if (reward is None) == (typed is None):
        raise click.UsageError("give a REWARD, or one kind of feedback, such as --thumbs up")
    if not weight > 0.0:
        raise InputError(
            f"--weight {weight:g}",
            "a weight must be greater than 0",
            "Say the opposite instead, such as --thumbs down.",
        )
    with writing(path, namespace) as memory:
        full_id = str(find_episode(memory, episode_id).id)
        if typed is None:
            event_id = memory.feedback(full_id, float(reward or 0.0), step, source, author=author, weight=weight)
            document: dict[str, Any] = {"event_id": event_id, "episode_id": full_id}
        else:
            event_id = memory.feedback(full_id, typed, step, source, author=author, weight=weight)
            document = _record_document(memory.feedback_records(id=event_id)[0])
    if as_json:
        echo_json(document)
    else:
        echo_text(event_id)


def _feedback(said: dict[str, Any]) -> Feedback | None:
    """Return the feedback that the options say; None if they say nothing."""
    comment, scale, texts = said["comment"], said["scale"], said["candidates"]
    found: list[Feedback] = []
    if said["thumbs"] is not None:
        found.append(Thumbs(said["thumbs"] == "up", comment))
    if said["score"] is not None:
        low, high = scale or (-1.0, 1.0)
        found.append(Score(said["score"], low, high, comment))
    elif scale:
        raise click.UsageError("--scale is of a --score; give both")
    if (said["chosen"] is None) == bool(texts):
        raise click.UsageError("a choice is between --candidate texts, and --chosen says which; give both")
    if said["edit"] is not None:
        shown = (tuple(texts), said["chosen"]) if texts else (None, None)
        found.append(Edit(state_text(said["edit"]), comment, *shown))
    elif texts:
        found.append(Choice(texts, said["chosen"], comment))
    for name, kind in (("own_answer", OwnAnswer), ("correction", Correction)):
        if said[name] is not None:
            found.append(kind(state_text(said[name]), comment))
    if (said["exit_code"], said["tests"], said["built"]) != (None, None, None):
        passed, total = (None, None) if said["tests"] is None else _counts(said["tests"])
        found.append(Outcome(said["exit_code"], passed, total, said["built"], comment))
    if said["review"] is not None:
        found.append(Review(said["review"], comment))
    if len(found) > 1:
        raise click.UsageError(f"one kind of feedback at a time, not {' and '.join(one.kind for one in found)}")
    if not found and comment is not None:
        raise click.UsageError("a --comment stands beside a kind of feedback, such as --review comment")
    return found[0] if found else None


def _counts(text: str) -> tuple[int, int]:
    found = _TESTS.fullmatch(text)
    if not found:
        raise InputError(f"--tests {text}", "tests must be counted as PASSED/TOTAL", "Write 11/12, say.")
    return int(found[1]), int(found[2])


def _record_document(record: FeedbackRecord) -> dict[str, Any]:
    return {"kind": record.feedback.kind, **dataclasses.asdict(record)}


@click.command(epilog=example("seasoned memory revoke agent.db 0c9d5f6e"))
@memory_argument
@click.argument("said_id", metavar="ID")
@namespace_option
@json_option
def revoke(path: str, said_id: str, namespace: str | None, as_json: bool) -> None:
    """Take back feedback or a note; returns follow.

    ID is what `feedback` printed and `notes` lists, or its beginning where that means one. The answers that the
    feedback brought in are set aside. Revoking twice changes nothing.
    """
    with writing(path, namespace) as memory:
        full_id = find_said(memory, said_id)
        memory.revoke(full_id)
    if as_json:
        echo_json({"event_id": full_id})
    else:
        echo_text(f"revoked {full_id}")


@click.command(epilog=example("seasoned memory notes agent.db --kind reasoning", "seasoned memory notes agent.db 4f2a"))
@memory_argument
@click.argument("episode_id", required=False)
@click.option("--kind", metavar="KIND", help="Only of this kind: plan, reasoning, shown, thumbs, reward, ...")
@click.option("--quarantined", is_flag=True, help="Also those that a quarantine holds.")
@namespace_option
@json_option
def notes(
    path: str, episode_id: str | None, kind: str | None, quarantined: bool, namespace: str | None, as_json: bool
) -> None:
    """List what was said or thought about episodes.

    What stands, the oldest first: plans, reasoning, what a prompt has shown, and feedback; a bare reward is of the
    kind `reward`. Bodies are cut to a line; --json has them whole. `revoke` takes the ids, short ones too.
    """

    def ask(memory: Memory) -> tuple[list[Note], list[Event], set[str]]:
        full_id = None if episode_id is None else str(find_episode(memory, episode_id).id)
        found = memory.notes(kind=kind, episode_id=full_id, quarantined=quarantined)
        rewards = bare_rewards(memory, full_id, quarantined=quarantined)
        if found or kind is None or (kind == REWARD and rewards):
            return found, rewards if kind in (None, REWARD) else [], set()
        every = memory.notes(episode_id=full_id, quarantined=quarantined)
        return [], [], {note.kind for note in every} | ({REWARD} if rewards else set())

    found, rewards, kinds = reading(path, namespace, ask)
    if as_json:
        echo_json({"notes": list(map(dataclasses.asdict, found)), "rewards": list(map(dataclasses.asdict, rewards))})
        return
    if not found and not rewards:
        there = f" of kind {one_line(str(kind), 40)}; there are: {', '.join(sorted(kinds))}" if kinds else ""
        echo_text(f"no notes{there}")
        return
    said: list[tuple[Note | Event, str, str, str]]
    said = [(note, note.kind, in_words(note), note.id) for note in found]
    said += [(event, REWARD, reward_in_words(event), original_event_id(event.id)) for event in rewards]
    rows = [
        [
            about.episode_id,
            "-" if about.step is None else str(about.step),
            what,
            one_line(about.source, 20),
            one_line(about.author or "-", 20),
            shown_time(about.created_at),
            one_line(words),
            id_,
        ]
        for about, what, words, id_ in sorted(said, key=lambda one: one[0].created_at)
    ]
    echo_table(["episode", "step", "kind", "source", "author", "said", "body", "note"], rows, right=("step",))
