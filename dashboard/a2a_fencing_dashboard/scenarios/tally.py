"""Figures out of facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from a2a_fencing import conventions as c
from a2a_fencing.checker import check
from a2a_fencing.facts import Fact


def conflicts(facts: Iterable[Fact]) -> int:
    """Writes that were refused because somebody else had written."""
    return sum(fact.kind == c.WRITE and fact.outcome == c.CONFLICT for fact in facts)


def terminal_rejected(facts: Iterable[Fact]) -> int:
    """Writes that were refused because the task was finished."""
    return sum(fact.kind == c.WRITE and fact.outcome == c.TERMINAL_REJECTED for fact in facts)


def dropped(facts: Iterable[Fact]) -> int:
    """Events that reached nobody."""
    return sum(fact.kind == c.DROPPED for fact in facts)


def overwritten(facts: Sequence[Fact]) -> int:
    """Proven findings that a terminal state was replaced by another."""
    return sum(
        finding.rule == c.TERMINAL_OVERWRITTEN and finding.certainty == c.PROVEN
        for finding in check(facts).findings
    )


def evidence(facts: Iterable[Fact]) -> str | None:
    """Outcome of the last attempt on record; one that began and of whose end nothing is known is
    unknown. None when there is no attempt.
    """
    outcome = None
    for fact in facts:
        if fact.kind == c.DISPATCH:
            outcome = fact.outcome if fact.phase == c.ENDED else c.UNKNOWN
    return outcome
