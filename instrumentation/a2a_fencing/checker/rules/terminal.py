"""A terminal state is final: terminal-overwritten, terminal-mutated."""

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
from a2a_fencing.checker.incarnation import VERSION, WRITE, WRITERS, Incarnation
from a2a_fencing.checker.predecessor import Replaced, replaced
from a2a_fencing.checker.sequence import overlap
from a2a_fencing.checker.versions import StoredVersion
from a2a_fencing.facts import Fact

OVERWRITTEN = Rule(
    c.TERMINAL_OVERWRITTEN,
    c.CRITICAL,
    "an accepted write replaced a terminal state by a different state",
    "a terminal state is final",
)
MUTATED = Rule(
    c.TERMINAL_MUTATED,
    c.INFO,
    "an accepted write on a terminal task kept its state",
    "nothing is broken: the state stayed, though the task was written after it had ended",
)


def judge_version(life: Incarnation, at: StoredVersion, cluster: Cluster) -> Iterable[Conclusion]:
    """Judges the writes that made a version against what they replaced."""
    author = at.author
    if author is None:
        return ()
    found = _judge_write(life, at, author, f"v{at.version}", cluster)
    if at.others:
        found = list(found)
        for other in at.others:
            found += _judge_write(life, at, other, f"v{at.version} {other.id}", cluster)
    return found


def _judge_write(
    life: Incarnation, at: StoredVersion, write: Fact, key: str, cluster: Cluster
) -> Iterable[Conclusion]:
    before = replaced(life, at, write)
    if before is None or not before.terminal:
        return ()
    return _versioned(life, at, write, before, key, cluster)


def _versioned(
    life: Incarnation,
    at: StoredVersion,
    write: Fact,
    before: Replaced,
    key: str,
    cluster: Cluster,
) -> Iterable[Conclusion]:
    rule = OVERWRITTEN if before.state != write.state else MUTATED
    if rule is MUTATED and _entered_earlier(life, before):
        return ()
    landed = write.version is None
    writers = " or ".join(cluster.name(one.replica) for one in (write, *at.rivals))
    version = f"v{at.version}, {writers}"
    verb = "overwritten by" if rule is OVERWRITTEN else "saved again as"
    outcome = ", whose writer did not learn that it was stored" if landed else ""
    return (
        Conclusion(
            rule,
            key,
            _facts(before.fact, write, *at.rivals),
            f"{_named(cluster, before)} was {verb} {write.state} ({version}){outcome}",
            suspected=not before.certain or bool(at.rivals) or (landed and not _seen(at, write)),
            if_complete=landed or not before.own,
        ),
    )


def _named(cluster: Cluster, before: Replaced) -> str:
    if before.fact is None and before.version is not None:
        return f"{before.state} (v{before.version})"
    return state_at(cluster, before.state, before.fact)


def _entered_earlier(life: Incarnation, before: Replaced) -> bool:
    """Whether what a write repeats was itself a repetition: only the first is told."""
    at = life.versions.get(before.version) if before.version is not None else None
    author = at.author if at is not None else None
    if at is None or author is None:
        return False
    previous = replaced(life, at, author)
    return previous is not None and previous.state == before.state


def _seen(at: StoredVersion, write: Fact) -> bool:
    """Whether somebody saw the state of a write that its writer did not see stored."""
    return write.reason == c.OWN_COMMIT or any(read.state == write.state for read in at.first_reads())


def _facts(*facts: Fact | None) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if fact is not None)


# --- without versions


def judge_unversioned(life: Incarnation, write: Fact, cluster: Cluster) -> Iterable[Conclusion]:
    """Judges a write that got no version against what its own replica knew to be stored."""
    before = life.sequence.previous(write)
    state = write.base_state
    if state is None:
        alone = len(life.sequence.last) == 1 and not len(life.versions)
        state = before.state if before is not None and alone else None
    if state not in c.TERMINAL_STATES:
        return ()
    shown = before if before is not None and before.state == state else None
    rule = OVERWRITTEN if state != write.state else MUTATED
    if rule is MUTATED and shown is not None and _repeats(life, shown):
        return ()
    verb = "overwritten by" if rule is OVERWRITTEN else "saved again as"
    return (
        Conclusion(
            rule,
            write.id,
            _facts(shown, write),
            f"{state_at(cluster, state, shown)} was {verb} {state_at(cluster, write.state, write)}",
            suspected=len(life.sequence.last) > 1 or (shown is not None and overlap(shown, write)),
            if_complete=write.base_state is None,
        ),
    )


def _repeats(life: Incarnation, write: Fact) -> bool:
    before = life.sequence.previous(write)
    return before is not None and before.state == write.state and write.kind == c.WRITE


def judge_across_replicas(life: Incarnation, _: str, cluster: Cluster) -> Iterable[Conclusion]:
    """Judges the last write of each replica against the first terminal one of the others."""
    last = life.sequence.last
    if len(last) < 2:
        return ()
    return [
        Conclusion(
            OVERWRITTEN,
            f"{ended.replica} {write.replica}",
            (ended, write),
            f"{state_at(cluster, ended.state, ended)} was overwritten by"
            f" {state_at(cluster, write.state, write)}, {by_the_clocks(cluster, ended, write)}",
            suspected=True,
        )
        for ended in _first_per_replica(life)
        for write in sorted(last.values(), key=lambda fact: fact.id)
        if write.replica != ended.replica
        and write.state != ended.state
        and write.base_state in (None, ended.state)
        and not _told_by_own_order(write)
        and cluster.before(ended, write)
    ]


def _first_per_replica(life: Incarnation) -> Iterable[Fact]:
    first: dict[str, Fact] = {}
    for write in life.endings.written.values():
        known = first.get(write.replica)
        if write.version is None and (known is None or write.n < known.n):
            first[write.replica] = write
    return (first[replica] for replica in sorted(first))


def _told_by_own_order(write: Fact) -> bool:
    return write.base_state in c.TERMINAL_STATES


CHECKS = (
    Check(OVERWRITTEN, VERSION, judge_version),
    Check(OVERWRITTEN, WRITE, judge_unversioned),
    Check(OVERWRITTEN, WRITERS, judge_across_replicas),
)
