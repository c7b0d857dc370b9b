"""What is exported: some facts with what it takes to judge them, and how many there would be."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.checker import Report, check
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store.protocol import Span, Store, Window
from a2a_fencing_dashboard.ui.words import count

_TRACES: Final = 200
"""Traces whose spans are exported with a task."""
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Excerpt:
    """Facts on their way out.

    Attributes:
        name: What it is of, such as a task id; from outside.
        facts: The facts; where they are of one task, with the heartbeats that name its replicas.
        spans: The spans of their traces.
        omitted: What tells that the other facts of the same replicas are not missing.
        total: How many facts there are, of which these may be a part.
        report: What is concluded from them where that is known; otherwise they are judged anew.
        told: The task that a report tells in full, whatever its verdict.
    """

    name: str
    facts: tuple[Fact, ...]
    spans: tuple[Span, ...] = ()
    omitted: tuple[Fact, ...] = ()
    total: int = 0
    report: Report | None = None
    told: TaskKey | None = None

    @property
    def complete(self) -> bool:
        """Whether these are all the facts."""
        return len(self.facts) >= self.total

    @property
    def size(self) -> str:
        """How many facts, in words: ``17 facts``, ``50,000 of 812,004 facts``."""
        here = len(self.facts)
        return count(here, "fact") if self.complete else f"{here:,} of {count(self.total, 'fact')}"

    def judged(self) -> Report:
        """What is concluded from the facts."""
        return check(self.facts) if self.report is None else self.report


def file_name(name: str, suffix: str) -> str:
    """A file name that is one on every system, whatever `name` holds."""
    stem = _UNFIT.sub("-", name)[:60].strip("-.")
    return f"a2a-fencing-{stem or 'facts'}.{suffix}"


def of_task(store: Store, key: TaskKey, most: int) -> Excerpt:
    """The facts of a stored task, what was concluded from them, and the spans around them."""
    facts = store.facts_of(key)
    replicas = {fact.replica for fact in facts}
    traces = tuple({fact.trace_id: None for fact in facts if fact.trace_id})[:_TRACES]
    row = store.task(key)
    report = Report(
        tuple(found.finding for found in store.findings_of(key)),
        tuple(gap for gap in store.gaps() if gap.replica in replicas),
        {key: c.UNKNOWN if row is None else row.verdict},
    )
    heartbeats = store.heartbeats(replicas)
    shown = (*heartbeats, *facts[:most])
    return Excerpt(
        key.task_id,
        shown,
        tuple(store.spans_of(traces)),
        # Of a task that is cut, facts are missing indeed.
        tuple(_omitted(shown, store.received(replicas))) if len(facts) <= most else (),
        len(heartbeats) + len(facts),
        report,
        key,
    )


def _omitted(facts: Iterable[Fact], received: Mapping[str, Iterable[tuple[int, int]]]) -> Iterator[Fact]:
    """One for each range of numbers that arrived and are not those of `facts`."""
    by_replica: defaultdict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        by_replica[fact.replica].append(fact)
    for replica, those in by_replica.items():
        those.sort(key=lambda fact: fact.n)
        for first, last in received.get(replica, ()):
            here = [fact for fact in those if first <= fact.n <= last]
            ends = [first - 1, *(fact.n for fact in here), last + 1]
            for before, after in pairwise(ends):
                if after - before > 1:
                    # As late as what is known around it, so that it says nothing of clocks.
                    time = max(
                        (f.time_unix_nano for f in those if f.n < after), default=those[0].time_unix_nano
                    )
                    yield Fact(
                        id=f"{replica}:{before + 1}",
                        kind=c.OMITTED,
                        time_unix_nano=time,
                        replica=replica,
                        last=after - 1,
                    )


def of_run(store: Store, label: str, most: int | None) -> Excerpt:
    """The facts of a run, at most so many."""
    rows, _ = store.run_rows((label,))
    return Excerpt(label, tuple(islice(store.facts(label), most)), total=sum(row.facts for row in rows))


def of_store(store: Store, most: int | None) -> Excerpt:
    """Every fact, at most so many."""
    return Excerpt("all", tuple(islice(store.facts(), most)), total=store.overview(Window()).facts)
