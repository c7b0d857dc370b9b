"""The first line of the first page: is anything violated, and how sure is that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import Overview, ReplicaRow
from a2a_fencing_dashboard.ui.queries import is_silent
from a2a_fencing_dashboard.ui.words import (
    RULE_MEANINGS,
    Names,
    clock,
    count,
    gravest_first,
    replica_name,
    shown,
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict as a person reads it.

    Attributes:
        kind: ``"violated"``, ``"unknown"`` or ``"fine"``.
        headline: One sentence.
        doubts: Why more cannot be said; empty when the history is complete.
        completeness: How many of the facts that were numbered have arrived.
    """

    kind: str
    headline: str
    doubts: tuple[str, ...]
    completeness: str


def judge(
    overview: Overview,
    replicas: Sequence[ReplicaRow],
    names: Names,
    now_unix_nano: int,
    zone: str | None,
) -> Judgement:
    """Puts the store's verdict into words.

    A replica that fell silent in the middle of its work may have done something that nobody has told
    yet: this turns *fine* into *unknown*, which the store cannot know, as it does not watch the clock.
    """
    doubts = tuple(_doubts(replicas, names, now_unix_nano, zone))
    completeness = _completeness(replicas)
    if overview.verdict == c.VIOLATED:
        return Judgement(c.VIOLATED, _violated(overview), doubts, completeness)
    if overview.verdict == c.UNKNOWN or doubts:
        if not overview.tasks:
            return Judgement(
                c.UNKNOWN, "No task was reported in this run and time range.", doubts, completeness
            )
        headline = "No violation in what has arrived, but that is not everything."
        return Judgement(c.UNKNOWN, headline, doubts or (_UNDECIDED,), completeness)
    return Judgement(c.FINE, f"No violation in {count(overview.tasks, 'task')}.", (), completeness)


_UNDECIDED: Final = "For some tasks, facts that decide are missing."


def _violated(overview: Overview) -> str:
    gravest = next(iter(gravest_first(overview.violations)), "")
    meaning = RULE_MEANINGS.get(gravest) or shown(gravest, 60)
    tasks = f"{count(overview.violated_tasks)} of {count(overview.tasks, 'task')} broke a rule"
    muted = f" ({count(overview.muted_tasks)} of these muted)" if overview.muted_tasks else ""
    return f"{tasks}{muted}; the gravest: {meaning}."


def _completeness(replicas: Sequence[ReplicaRow]) -> str:
    arrived = sum(replica.facts for replica in replicas)
    missing = sum(replica.missing for replica in replicas)
    if not missing:
        return f"History complete: {count(arrived)} of {count(arrived, 'fact')}."
    return f"History incomplete: {count(arrived)} of {count(arrived + missing, 'fact')}."


def _doubts(replicas: Sequence[ReplicaRow], names: Names, now: int, zone: str | None) -> list[str]:
    doubts = []
    for replica in replicas:
        name = replica_name(names, replica.replica)
        if replica.missing:
            doubts.append(f"{count(replica.missing, 'fact')} of {name} never arrived.")
        if replica.executing and is_silent(replica, now):
            since, running = clock(replica.last_seen_unix_nano, zone), count(replica.executing, "task")
            doubts.append(f"{name} has been silent since {since}; it was executing {running}.")
    return doubts
