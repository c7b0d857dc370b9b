"""The outside world: dispatch-after-terminal, double-effect."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_fencing import conventions as c
from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.conclusion import (
    Check,
    Conclusion,
    Rule,
    by_the_clocks,
    state_at,
)
from a2a_fencing.checker.dispatches import Attempt
from a2a_fencing.checker.incarnation import DISPATCH, EFFECTS, Incarnation
from a2a_fencing.checker.versions import at_or_after, by_number, executes
from a2a_fencing.facts import Fact

AFTER_TERMINAL = Rule(
    c.DISPATCH_AFTER_TERMINAL,
    c.WARNING,
    "a dispatch attempt began after another writer finished the task; accepted: critical",
    "a finished task acts no more",
)
DOUBLE_EFFECT = Rule(
    c.DOUBLE_EFFECT,
    c.CRITICAL,
    "one logical key was accepted twice",
    "a logical action takes effect once",
)


def judge_attempt(life: Incarnation, attempt: Attempt, cluster: Cluster) -> Iterable[Conclusion]:
    """Compares the beginning of an attempt with the end of its task by another writer."""
    start = attempt.start
    if start is None or not life.endings.seen:
        return ()
    by_order = _ended_by_order(life, start)
    ended = by_order or _ended_by_clocks(life, start, cluster)
    if ended is None:
        return ()
    accepted = attempt.accepted
    told = attempt.told()
    how = (told[0].outcome if told else None) or "outcome unknown"
    clocks = "" if by_order else f", {by_the_clocks(cluster, ended, start)}"
    author = _author(life, ended)
    witness = (author, *(() if author is ended else (ended,)), start, *told)
    return (
        Conclusion(
            AFTER_TERMINAL,
            attempt.id,
            witness,
            f"{cluster.name(start.replica)} dispatched {start.name or 'a request'} ({how}) after the"
            f" task was {state_at(cluster, author.state, author)}{clocks}",
            severity=c.CRITICAL if accepted else c.WARNING,
            suspected=by_order is None or bool(start.unparented),
            if_complete=True,
        ),
    )


def _author(life: Incarnation, ended: Fact) -> Fact:
    """Who finished the task, when the dispatching replica only read that it was."""
    at = life.versions.get(ended.version) if ended.version is not None else None
    author = at.write if at is not None else None
    return author if author is not None and author.state == ended.state else ended


def _ended_by_order(life: Incarnation, start: Fact) -> Fact | None:
    """A terminal state that was stored before, as the dispatching replica itself knew."""
    candidates = [
        ended
        for ended in _ends(life, start)
        if (ended.replica == start.replica and ended.n < start.n)
        or at_or_after(start.version, ended.version)
    ]
    seen = life.endings.seen.get(start.replica)
    if seen is not None and seen.kind != c.WRITE and seen.n < start.n and not _may_be_own(life, seen):
        candidates.append(seen)
    return min(candidates, key=_when, default=None)


def _may_be_own(life: Incarnation, seen: Fact) -> bool:
    """Whether a terminal state that a replica read may be its own executor's doing."""
    if _own_end(life, seen) is not None:
        return True
    return any(
        write.replica == seen.replica and executes(write) and write.state == seen.state
        for write in life.indeterminate.writes
    )


def _ended_by_clocks(life: Incarnation, start: Fact, cluster: Cluster) -> Fact | None:
    candidates = [
        ended
        for ended in _ends(life, start)
        if ended.replica != start.replica and cluster.before(ended, start)
    ]
    return min(candidates, key=_when, default=None)


def _ends(life: Incarnation, start: Fact) -> list[Fact]:
    """Terminal writes by anybody but the executor that dispatched, unless it had finished the task."""
    own = _own_end(life, start)
    return [
        write
        for write in life.endings.written.values()
        if not (write.replica == start.replica and executes(write))
        and not (own is not None and _follows(write, own))
    ]


def _own_end(life: Incarnation, start: Fact) -> Fact | None:
    """The terminal state that the dispatching replica's executor wrote itself."""
    written = life.endings.written.items()
    writes = (write for (replica, own, _), write in written if own and replica == start.replica)
    return min((write for write in writes if write.n < start.n), key=by_number, default=None)


def _follows(write: Fact, own: Fact) -> bool:
    if write.version is None or own.version is None:
        return write.replica == own.replica and own.n < write.n
    return at_or_after(write.version, own.version)


def _when(fact: Fact) -> tuple[int, str]:
    return fact.time_unix_nano, fact.id


def judge_effects(life: Incarnation, _: str, cluster: Cluster) -> Iterable[Conclusion]:
    """Looks for logical keys that took effect more than once."""
    dispatches = life.dispatches
    if not dispatches.repeated:
        return ()
    return [
        Conclusion(
            DOUBLE_EFFECT,
            f"{name} {key}",
            tuple(fact for fact, _ in effects),
            f"{name or 'a request'} with key {key} was accepted twice:"
            f" by {' and by '.join(cluster.name(replica) for _, replica in effects)}",
        )
        for name, key in sorted(dispatches.repeated)
        if (effects := _first_two(dispatches.effects[name, key].values()))
    ]


def _first_two(attempts: Iterable[Attempt]) -> list[tuple[Fact, str]]:
    """Effects and the replicas they are of, earliest first."""
    effects = [
        (effect, attempt.replica or effect.replica)
        for attempt in attempts
        if (effect := attempt.effect) is not None
    ]
    return sorted(effects, key=lambda found: _when(found[0]))[:2]


CHECKS = (
    Check(AFTER_TERMINAL, DISPATCH, judge_attempt),
    Check(DOUBLE_EFFECT, EFFECTS, judge_effects),
)
