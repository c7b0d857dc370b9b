"""In which order the facts of a task happened, whatever the clocks of its replicas say.

What one replica did is ordered by its own numbering; what several did, by the store's versions: whoever
used, read or lost to a version came after the write that made it. Wall clocks fill in the rest, each
moved forward just enough that no effect comes before its cause.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, Version

Edge = tuple[Fact, Fact]
"""A fact and one that can only have come after it."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Facts in the order in which they happened.

    Attributes:
        facts: In order.
        times: When, ns since 1970, of each of `facts`; corrected, and never decreasing.
        corrections: How far the clock of a replica was moved forward, ns; only those that were.
        rivals: Fact id of a refused write -> the accepted write that it lost to.
    """

    facts: tuple[Fact, ...]
    times: tuple[int, ...]
    corrections: Mapping[str, int]
    rivals: Mapping[str, Fact]


def schedule(facts: Sequence[Fact]) -> Schedule:
    """Orders the facts of one task. Facts that contradict each other fall back to their clocks."""
    rivals = _rivals(facts)
    refused = [fact for fact in facts if fact.id in rivals]
    edges = [*_version_edges(facts), *((rivals[fact.id], fact) for fact in refused)]
    corrections = _corrections(edges)
    ordered = _in_order(facts, edges, corrections)
    times: list[int] = []
    for fact in ordered:
        time = fact.time_unix_nano + corrections.get(fact.replica, 0)
        times.append(max(time, times[-1]) if times else time)
    return Schedule(tuple(ordered), tuple(times), corrections, rivals)


def _accepted(facts: Iterable[Fact]) -> list[Fact]:
    return [f for f in facts if f.kind == c.WRITE and f.outcome == c.ACCEPTED and f.version is not None]


def _makers(facts: Sequence[Fact]) -> dict[Version, Fact]:
    """The write that made each version; of several, the earliest by its own clock."""
    makers: dict[Version, Fact] = {}
    for fact in sorted(_accepted(facts), key=_clock):
        makers.setdefault(fact.version, fact)
    return makers


def _clock(fact: Fact) -> tuple[int, str, int]:
    return fact.time_unix_nano, fact.replica, fact.n


def _version_edges(facts: Sequence[Fact]) -> list[Edge]:
    makers = _makers(facts)
    edges = []
    for fact in facts:
        used = fact.version if fact.kind == c.READ else fact.base_version
        maker = makers.get(used) if used is not None else None
        if maker is not None and maker.id != fact.id:
            edges.append((maker, fact))
    numbered = sorted((v, w) for v, w in _numbered(makers))
    edges.extend((makers[a], makers[b]) for (a, _), (b, _) in pairwise(numbered))
    return edges


def _numbered(makers: Mapping[Version, Fact]) -> list[tuple[int, str]]:
    return [(version, fact.id) for version, fact in makers.items() if isinstance(version, int)]


def _rivals(facts: Sequence[Fact]) -> dict[str, Fact]:
    """Whom each refused write lost to, where the history tells."""
    accepted = sorted(_accepted(facts), key=_clock)
    rivals: dict[str, Fact] = {}
    for fact in facts:
        if fact.kind != c.WRITE:
            continue
        if fact.outcome == c.CONFLICT and fact.reason == c.STALE_BASE:
            rival = _successor(fact.base_version, accepted)
        elif fact.outcome == c.TERMINAL_REJECTED:
            rival = _finisher(fact.base_version, accepted)
        else:
            continue
        if rival is not None:
            rivals[fact.id] = rival
    return rivals


def _successor(base: Version, accepted: Sequence[Fact]) -> Fact | None:
    """The write that moved the store on from this version."""
    direct = [write for write in accepted if write.base_version == base]
    if direct:
        return direct[0]
    if not isinstance(base, int):
        return None
    later = [write for write in accepted if isinstance(write.version, int) and write.version > base]
    return min(later, key=lambda write: int(write.version or 0), default=None)


def _finisher(base: Version, accepted: Sequence[Fact]) -> Fact | None:
    """The write that finished the task that this version is of."""
    finishing = [write for write in accepted if write.state in c.TERMINAL_STATES]
    exact = [write for write in finishing if write.version == base]
    return next(reversed(exact or finishing), None)


def _corrections(edges: Sequence[Edge]) -> dict[str, int]:
    """The smallest forward corrections under which every edge runs forward in time (longest path)."""
    least: dict[tuple[str, str], int] = {}
    for cause, effect in edges:
        if cause.replica != effect.replica:
            pair = cause.replica, effect.replica
            need = cause.time_unix_nano - effect.time_unix_nano
            least[pair] = max(need, least.get(pair, need))
    moved: dict[str, int] = defaultdict(int)
    # As many rounds as there are replicas settle it, unless facts contradict each other: those would
    # push one another forward for ever.
    for _ in range(len({replica for pair in least for replica in pair})):
        changed = False
        for (cause_of, effect_of), need in least.items():
            target = moved[cause_of] + need
            if target > moved[effect_of]:
                moved[effect_of] = target
                changed = True
        if not changed:
            break
    return {replica: ns for replica, ns in moved.items() if ns > 0}


def _in_order(
    facts: Sequence[Fact], edges: Sequence[Edge], corrections: Mapping[str, int]
) -> list[Fact]:
    after: dict[str, list[Fact]] = defaultdict(list)
    waiting: dict[str, int] = dict.fromkeys((fact.id for fact in facts), 0)
    for cause, effect in [*_own_order(facts), *edges]:
        after[cause.id].append(effect)
        waiting[effect.id] += 1

    def priority(fact: Fact) -> tuple[int, str, int]:
        return fact.time_unix_nano + corrections.get(fact.replica, 0), fact.replica, fact.n

    pending = {fact.id: fact for fact in sorted(facts, key=priority)}
    ready = [(*priority(fact), fact.id) for fact in pending.values() if not waiting[fact.id]]
    heapq.heapify(ready)
    ordered: list[Fact] = []
    while pending:
        # Nothing ready means that facts contradict each other: the earliest by the clock goes first.
        chosen = heapq.heappop(ready)[-1] if ready else next(iter(pending))
        fact = pending.pop(chosen, None)
        if fact is None:
            continue
        ordered.append(fact)
        for effect in after[chosen]:
            waiting[effect.id] -= 1
            if waiting[effect.id] == 0 and effect.id in pending:
                heapq.heappush(ready, (*priority(effect), effect.id))
    return ordered


def _own_order(facts: Sequence[Fact]) -> list[Edge]:
    by_replica: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        by_replica[fact.replica].append(fact)
    edges: list[Edge] = []
    for own in by_replica.values():
        own.sort(key=lambda fact: fact.n)
        edges.extend(pairwise(own))
    return edges


def focus(whole: Schedule, around: Collection[str], limit: int) -> tuple[int, int]:
    """The stretch of at most `limit` facts to look at first: the last one that shows `around`.

    Args:
        whole: All facts.
        around: Ids of the facts that matter most; the end of the history matters when none does.
        limit: How many facts there is room for.

    Returns:
        Start and end in `whole.facts`.
    """
    total = len(whole.facts)
    places = [index for index, fact in enumerate(whole.facts) if fact.id in around]
    # A tenth of the room is left for what followed.
    end = min(total, max(max(places, default=total) + 1 + limit // 10, limit))
    return max(0, end - limit), end


def part(whole: Schedule, start: int, end: int) -> Schedule:
    """The facts from `start` up to `end`, as a schedule of their own."""
    facts = whole.facts[start:end]
    kept = {fact.id for fact in facts}
    rivals = {
        loser: rival for loser, rival in whole.rivals.items() if loser in kept and rival.id in kept
    }
    return Schedule(facts, whole.times[start:end], whole.corrections, rivals)
