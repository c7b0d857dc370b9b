"""Each version is one write's: version-fork, double-apply, unseen-writer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from a2a_fencing import conventions as c
from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.conclusion import SETTLE_NS, Check, Conclusion, Rule, state_at
from a2a_fencing.checker.incarnation import LANDINGS, VERSION, Incarnation
from a2a_fencing.checker.versions import Known, StoredVersion, at_or_after, by_number, is_cancel
from a2a_fencing.facts import Fact

FORK = Rule(
    c.VERSION_FORK,
    c.CRITICAL,
    "two accepted writes with one version, or a write accepted from an older base",
    "compare-and-swap lets one write follow each version",
)
DOUBLE_APPLY = Rule(
    c.DOUBLE_APPLY,
    c.WARNING,
    "one event was stored at two versions: by a commit whose answer was lost, and by its retry",
    "an event is applied once",
)
UNSEEN = Rule(
    c.UNSEEN_WRITER,
    c.WARNING,
    "the stored version or state moved without a fact: something writes past the instrumentation",
    "every write is seen",
)

_TAIL_NS = 60_000_000_000
"""What a replica that stopped may have done unreported after its last fact, ns."""


def judge_fork(life: Incarnation, at: StoredVersion, cluster: Cluster) -> Iterable[Conclusion]:
    """Two writes of one version, or a write whose base was not the version before it."""
    write = at.write
    if write is None:
        return ()
    if at.others:
        one, other = write, at.others[0]
        sides = " and ".join(f"{w.state} by {cluster.name(w.replica)}" for w in (one, other))
        text = f"v{at.version} was given to two writes: {sides}"
        return (
            Conclusion(
                FORK,
                f"v{at.version}",
                (one, other),
                text,
                suspected=life.may_be_several,
                if_complete=True,
            ),
        )
    if is_cancel(write):
        return ()
    rival = _between(life, write.base_version, at)
    if rival is None:
        return ()
    base = "no version" if write.base_version is None else f"v{write.base_version}"
    text = (
        f"{state_at(cluster, write.state, write)} was accepted from {base},"
        f" though {state_at(cluster, rival.state, rival)} was stored since"
    )
    return (
        Conclusion(
            FORK,
            f"v{at.version}",
            (rival, write),
            text,
            suspected=write.base_version is None,
            if_complete=True,
        ),
    )


def _between(life: Incarnation, base: Known | None, at: StoredVersion) -> Fact | None:
    """The last accepted write after the base and before this version."""
    before = life.versions.below(at.version)
    while before is not None and before.version != base:
        if base is not None and not at_or_after(before.version, base):
            return None
        if before.write is not None:
            return before.write
        before = life.versions.below(before.version)
    return None


def judge_double_apply(life: Incarnation, _: str, cluster: Cluster) -> Iterable[Conclusion]:
    """A write that landed unknown to its writer, and the same event stored once more."""
    return [
        Conclusion(
            DOUBLE_APPLY,
            f"v{version}",
            (*_refusals(life, first), again) if first.reason != c.OWN_COMMIT else (first, again),
            f"{cluster.name(first.replica)} stored one {first.event_kind or 'write'} twice: at"
            f" v{version}, whose answer was lost, and again at v{again.version}",
            suspected=again.attempt is None or again.attempt < 2,
            if_complete=True,
        )
        for version, first in life.indeterminate.landed.items()
        for again in _retries(life, version, first)
    ]


def _refusals(life: Incarnation, first: Fact) -> Iterator[Fact]:
    yield first
    for write in life.indeterminate.writes:
        if write.reason == c.OWN_COMMIT and write.replica == first.replica and write.n > first.n:
            yield write
            return


def _retries(life: Incarnation, version: Known, first: Fact) -> Iterator[Fact]:
    """The writer's next accepted write, when it is of the same event."""
    at = life.versions.above(version)
    while at is not None:
        own = [write for write in at.writes if write.writer == first.writer]
        if own:
            same = own[0].event_kind == first.event_kind and own[0].state == first.state
            if same and first.event_kind is not None and own[0].n > first.n:
                yield own[0]
            return
        at = life.versions.above(at.version)


def judge_unseen(life: Incarnation, at: StoredVersion, cluster: Cluster) -> Iterable[Conclusion]:
    """A version nobody wrote, or one that holds another state than the one written."""
    if life.inferred:
        return ()
    if at.author is not None:
        moved = _moved(life, at)
        if moved is None:
            return ()
        seen, state = moved
        text = (
            f"v{at.version} holds {state}, as {cluster.name(seen.replica)} saw, though"
            f" {state_at(cluster, at.state, at.author)} was written: something changed it unversioned"
        )
        return (
            Conclusion(
                UNSEEN,
                f"v{at.version}",
                (at.author, seen),
                text,
                suspected=life.may_be_several,
                if_complete=True,
            ),
        )
    lowest, witness = life.versions.lowest_written, _mentions(at)
    if lowest is None or at.version < lowest or witness is None:  # type: ignore[operator]
        return ()
    if _unreported(life, at, witness, cluster):
        return ()
    finder = cluster.name(witness.replica)
    text = f"v{at.version} was written by nobody who reports; {finder} found it stored"
    due = witness.time_unix_nano + SETTLE_NS
    return (Conclusion(UNSEEN, f"v{at.version}", (witness,), text, suspected=True, not_before=due),)


def _moved(life: Incarnation, at: StoredVersion) -> tuple[Fact, str] | None:
    """Who saw which other state at a version that was written once."""
    if at.others:
        return None
    written = at.state
    for read in sorted(at.first_reads(), key=by_number):
        if read.state is not None and read.state != written:
            return read, read.state
    for write in sorted(at.derived, key=by_number):
        believed = write.base_state
        if believed is not None and believed != written and not _remembered(life, at, believed):
            return write, believed
    return None


def _remembered(life: Incarnation, at: StoredVersion, believed: str) -> bool:
    earlier = life.earlier
    while earlier is not None:
        known = earlier.versions.get(at.version)
        if known is not None and known.state == believed:
            return True
        earlier = earlier.earlier
    return False


def _mentions(at: StoredVersion) -> Fact | None:
    seen = (*at.derived, *at.first_reads())
    return min(seen, key=lambda fact: (fact.time_unix_nano, fact.id), default=None)


def _unreported(life: Incarnation, at: StoredVersion, witness: Fact, cluster: Cluster) -> bool:
    """Whether a replica may have written this version and not have told yet, or never will."""
    before = life.versions.below(at.version)
    author = before.author if before is not None else None
    since = author.time_unix_nano if author is not None else 0
    return any(
        since - _TAIL_NS <= cluster.reported_until(replica) < witness.time_unix_nano
        for replica in sorted(cluster.all_replicas())
        if replica != witness.replica
    )


CHECKS = (
    Check(FORK, VERSION, judge_fork),
    Check(UNSEEN, VERSION, judge_unseen),
    Check(DOUBLE_APPLY, LANDINGS, judge_double_apply),
)
