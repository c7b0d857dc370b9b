"""From facts that arrived to facts that are judged and stored: the one writer."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.checker import Changes, Checker
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store.protocol import Batch, FindingChange, Span, Store, TaskFilter, Window

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
            changes, verdicts = self._judge.add(new, now)
            if new or spans or changes:
                self.store.commit(Batch(new, spans, changes, verdicts), now_unix_nano=now)
        except BaseException:
            # The checker has seen facts that are not stored.
            self._judge.reset()
            raise
        self.concluded.update(_concluded(changes))
        return len(new)

    def pass_time(self) -> None:
        """Stores what follows from facts that have not arrived in time.

        Raises:
            StoreError: It could not be stored.
        """
        self.add(())


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
        self._held: OrderedDict[TaskKey, int] = OrderedDict()
        self._count = 0

    def add(self, facts: Sequence[Fact], now: int) -> tuple[list[FindingChange], dict[TaskKey, str]]:
        """Judges new facts: what changed, and the verdict of each task they concern."""
        changes = [] if self._resumed else self._resume(now)
        keys = {fact.task for fact in facts if fact.task is not None}
        changes += self._reload(_places(keys) - self._held.keys(), now)
        changes += _as_changes(self._checker.add(facts, now))
        verdicts = {key: self._checker.verdict(key) for key in keys}
        self._hold(facts)
        self._shrink()
        return changes, verdicts

    def _resume(self, now: int) -> list[FindingChange]:
        """Tells the checker what the last one knew and may still have had to say."""
        for report in self._store.reports():
            self._checker.resume(report.replica, report.received)
            self._checker.load(report.heartbeats, (), now)
        self._resumed = True
        return self._reload(self._recalled(), now)

    def _recalled(self) -> set[TaskKey]:
        """Tasks of which something may have been withheld, or that told that a store fences nothing."""
        store, always = self._store, Window()
        recent, _ = store.tasks(always, TaskFilter(), limit=RECALLED)
        unfinished, _ = store.tasks(always, TaskFilter(states=_OPEN), limit=RECALLED)
        unfenced, _ = store.findings(always, rules=(c.UNFENCED_STORE,), limit=RECALLED)
        return _places(row.key for row in (*recent, *unfinished)) | _places(
            row.finding.task for row in unfenced
        )

    def _reload(self, places: Collection[TaskKey], now: int) -> list[FindingChange]:
        past = self._store.past(places)
        if not past.facts:
            return []
        self._hold(past.facts)
        # That a store fences nothing is not said of a task, and stands whatever the task shows.
        announced = [finding for finding in past.findings if finding.rule != c.UNFENCED_STORE]
        return _as_changes(self._checker.load(past.facts, announced, now))

    def _hold(self, facts: Sequence[Fact]) -> None:
        for place, count in Counter(_place(f.task) for f in facts if f.task is not None).items():
            self._held[place] = self._held.pop(place, 0) + count
            self._count += count

    def _shrink(self) -> None:
        forgotten = []
        while self._count > self._limit and len(self._held) > 1:
            place, count = self._held.popitem(last=False)
            self._count -= count
            forgotten.append(place)
        self._checker.forget(forgotten)


def _place(key: TaskKey) -> TaskKey:
    """All incarnations of a task as one: the checker looks at them together."""
    return key if key.incarnation == 0 else replace(key, incarnation=0)


def _places(keys: Iterable[TaskKey]) -> set[TaskKey]:
    return {_place(key) for key in keys}


def _concluded(changes: Sequence[FindingChange]) -> Iterator[tuple[str, str, str]]:
    reworded = {change.finding.identity for change in changes if change.retracted}
    for change in changes:
        finding = change.finding
        if finding.violates and finding.identity not in reworded:
            yield finding.rule, finding.severity, finding.certainty


def _as_changes(changes: Changes) -> list[FindingChange]:
    return [FindingChange(finding, retracted=True) for finding in changes.retracted] + [
        FindingChange(finding) for finding in changes.appeared
    ]
