"""From facts that arrived to facts that are judged and stored: the one writer."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from a2a_fencing import conventions as c
from a2a_fencing.checker import Changes, Checker, Finding
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing.scoped import joined, names_of, scoped_from, scoped_in
from a2a_fencing_dashboard.store.protocol import (
    Batch,
    FindingChange,
    Past,
    Span,
    Store,
    TaskFilter,
    Window,
)

HELD_FACTS: Final = 50_000
"""How many facts of the tasks that were active last the checker holds in memory, at about 3 KB each."""

RECALLED: Final = 1000
"""How many tasks of each kind are held again after a restart."""

_OPEN: Final = (c.SUBMITTED, c.WORKING)
"""States in which a task is abandoned when nobody executes it."""


class Ingest:
    """Drops what is known, judges what is new, and stores both in one commit.

    Nothing here outlives the process: what the checker has to know is read from the store at the start
    and, task by task, when facts of a task arrive that it does not hold.

    Attributes:
        store: Where it stores.
        concluded: Findings that violate, concluded since the start, by rule, severity and certainty.
    """

    def __init__(
        self, store: Store, *, clock: Callable[[], int] = time.time_ns, held_facts: int = HELD_FACTS
    ) -> None:
        """Writes to `store`; `clock` gives ns since 1970."""
        self.store = store
        self._clock = clock
        self._judge = _Judge(store, held_facts)
        self.concluded: Counter[tuple[str, str, str]] = Counter()

    def known(self, ids: Collection[str]) -> set[str]:
        """Which of these fact ids are stored already."""
        return self.store.known(ids)

    def add(self, facts: Iterable[Fact], spans: Sequence[Span] = ()) -> int:
        """Stores facts and spans; when this returns, they survive a kill.

        Returns:
            How many of the facts were new.

        Raises:
            StoreError: They could not be stored; nothing was.
        """
        by_id = {fact.id: fact for fact in facts}
        for known in self.store.known(by_id.keys()):
            del by_id[known]
        new = list(by_id.values())
        now = self._clock()
        try:
            judged = self._judge.add(new, now)
            if judged.facts or spans or judged.changes or judged.verdicts:
                self.store.commit(_batch(judged, spans), now_unix_nano=now)
        except BaseException:
            # The checker has seen facts that are not stored.
            self._judge.reset()
            raise
        self.concluded.update(_concluded(judged.changes))
        return len(new)

    def pass_time(self) -> None:
        """Stores what follows from facts that have not arrived in time.

        Raises:
            StoreError: It could not be stored.
        """
        self.add(())


class _Judged(NamedTuple):
    """What came of new facts.

    Attributes:
        facts: The same, those of resources under the keys of the tasks they are about, where known.
        changes: Findings that appeared or no longer hold.
        verdicts: Of each task the facts concern; of all held ones when a replica fell silent.
        moved: What resources called tasks that have just become known, and the keys of these.
        clocks: What was measured anew of the clocks of replicas.
    """

    facts: Sequence[Fact]
    changes: list[FindingChange]
    verdicts: dict[TaskKey, str]
    moved: dict[TaskKey, TaskKey]
    clocks: dict[tuple[str, str], int | None]


class _Judge:
    """A checker that holds the tasks that were active last and reloads the others from the store."""

    def __init__(self, store: Store, held_facts: int) -> None:
        self._store = store
        self._limit = held_facts
        self.reset()

    def reset(self) -> None:
        """Forgets everything but what is stored."""
        self._checker = Checker()
        self._resumed = False
        self._clocks: dict[tuple[str, str], int] = {}
        self._cut_off: frozenset[str] = frozenset()
        self._held: OrderedDict[TaskKey, int] = OrderedDict()
        self._names: dict[TaskKey, TaskKey] = {}
        """The held tasks by what resources call them, in their last incarnation."""
        self._count = 0

    def add(self, facts: Sequence[Fact], now: int) -> _Judged:
        """Judges new facts."""
        changes = [] if self._resumed else self._resume(now)
        facts = self._join(facts)
        keys = {fact.task for fact in facts if fact.task is not None}
        past, moved = self._past(_places(keys) - self._held.keys(), keys)
        changes += self._load(past, now)
        changes += _as_changes(self._checker.add(facts, now))
        verdicts = {key: self._checker.verdict(key) for key in self._in_question(keys)}
        self._hold(facts)
        self._shrink()
        return _Judged(facts, changes, verdicts, moved, self._measured())

    def _measured(self) -> dict[tuple[str, str], int | None]:
        """What is known of the clocks now, where that differs from what is stored."""
        before, now = self._clocks, self._checker.clock_bounds
        if before == now:
            return {}
        self._clocks = dict(now)
        news: dict[tuple[str, str], int | None] = dict.fromkeys(before.keys() - now.keys())
        return news | {pair: bound for pair, bound in now.items() if before.get(pair) != bound}

    def _in_question(self, keys: set[TaskKey]) -> Iterable[TaskKey]:
        """Whose verdict may be another now: a replica that falls silent casts doubt on what it, or
        somebody beside it, was at work on.
        """
        before, self._cut_off = self._cut_off, self._checker.cut_off()
        return keys if self._cut_off == before else keys.union(self._checker.keys())

    def _join(self, facts: Sequence[Fact]) -> Sequence[Fact]:
        """Gives what resources tell to the tasks that it is about, where these have been heard of."""
        names = scoped_in(facts)
        if not names:
            return facts
        known = {self._names[name] for name in names if name in self._names}
        unknown = names - self._names.keys()
        if unknown:
            known |= {fact.task for fact in self._store.past(unknown).facts if fact.task is not None}
        return joined(facts, known)

    def _resume(self, now: int) -> list[FindingChange]:
        """Tells the checker what the last one knew and may still have had to say."""
        self._clocks = dict(self._store.clocks())
        self._checker.assume_clocks(self._clocks)
        for report in self._store.reports():
            self._checker.resume(report.replica, report.received)
            self._checker.load(report.heartbeats, (), now)
        self._resumed = True
        past, _ = self._past(self._recalled(), ())
        return self._load(past, now)

    def _recalled(self) -> set[TaskKey]:
        """Tasks of which something may have been withheld, or that told that a store fences nothing."""
        store, always = self._store, Window()
        recent, _ = store.tasks(always, TaskFilter(), limit=RECALLED)
        unfinished, _ = store.tasks(always, TaskFilter(states=_OPEN), limit=RECALLED)
        unfenced, _ = store.findings(always, rules=(c.UNFENCED_STORE,), limit=RECALLED)
        return _places(row.key for row in (*recent, *unfinished)) | _places(
            row.finding.task for row in unfenced
        )

    def _past(
        self, places: Collection[TaskKey], keys: Collection[TaskKey]
    ) -> tuple[Past, dict[TaskKey, TaskKey]]:
        """What is stored of tasks; and which of it was a resource's, told before the task was known."""
        stored = self._store.past(places)
        facts = joined(stored.facts, keys)
        moved = {
            before.task: after.task
            for before, after in zip(stored.facts, facts, strict=True)
            if before.task != after.task and before.task is not None and after.task is not None
        }
        for name in moved:
            self._count -= self._held.pop(name, 0)
        self._checker.forget(moved)
        return replace(stored, facts=facts), moved

    def _load(self, past: Past, now: int) -> list[FindingChange]:
        if not past.facts:
            return []
        self._hold(past.facts)
        # That a store fences nothing is not said of a task, and stands whatever the task shows.
        announced = [finding for finding in past.findings if finding.rule != c.UNFENCED_STORE]
        return _as_changes(self._checker.load(past.facts, announced, now))

    def _hold(self, facts: Sequence[Fact]) -> None:
        unnamed: set[TaskKey] = set()
        for key, count in Counter(fact.task for fact in facts if fact.task is not None).items():
            place = _place(key)
            if key.incarnation or place not in self._held:
                unnamed.add(key)
            self._held[place] = self._held.pop(place, 0) + count
            self._count += count
        for name, key in names_of(unnamed).items():
            known = self._names.get(name)
            if known is None or known.incarnation < key.incarnation:
                self._names[name] = key

    def _shrink(self) -> None:
        forgotten = []
        while self._count > self._limit and len(self._held) > 1:
            place, count = self._held.popitem(last=False)
            self._count -= count
            self._names.pop(scoped_from(place), None)
            forgotten.append(place)
        self._checker.forget(forgotten)


def _batch(judged: _Judged, spans: Sequence[Span]) -> Batch:
    return Batch(
        judged.facts, spans, judged.changes, judged.verdicts, moved=judged.moved, clocks=judged.clocks
    )


def _place(key: TaskKey) -> TaskKey:
    """All incarnations of a task as one: the checker looks at them together."""
    return key if key.incarnation == 0 else replace(key, incarnation=0)


def _places(keys: Iterable[TaskKey]) -> set[TaskKey]:
    return {_place(key) for key in keys}


def _concluded(changes: Sequence[FindingChange]) -> Iterator[tuple[str, str, str]]:
    """Kinds of the findings that violate and are new, or of another kind than before."""
    before = {_kind(change.finding) for change in changes if change.retracted}
    for change in changes:
        if change.finding.violates and _kind(change.finding) not in before:
            yield change.finding.rule, change.finding.severity, change.finding.certainty


def _kind(finding: Finding) -> tuple[object, ...]:
    return finding.identity, finding.severity, finding.certainty


def _as_changes(changes: Changes) -> list[FindingChange]:
    return [FindingChange(finding, retracted=True) for finding in changes.retracted] + [
        FindingChange(finding) for finding in changes.appeared
    ]
