"""From facts that arrived to facts that are judged and stored: the one writer."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from a2a_fencing.checker import Changes, Checker
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store.protocol import Batch, FindingChange, Span, Store

HELD_FACTS: Final = 200_000
"""How many facts of the tasks that were active last the checker holds in memory."""


class Ingest:
    """Drops what is known, judges what is new, and stores both in one commit.

    Nothing here outlives the process: the checker's state is rebuilt from the store, task by task, when
    facts of a task arrive that it does not hold.
    """

    def __init__(
        self, store: Store, *, clock: Callable[[], int] = time.time_ns, held_facts: int = HELD_FACTS
    ) -> None:
        """Writes to `store`; `clock` gives ns since 1970."""
        self._store = store
        self._clock = clock
        self._judge = _Judge(store, held_facts)

    def known(self, ids: Collection[str]) -> set[str]:
        """Which of these fact ids are stored already."""
        return self._store.known(ids)

    def add(self, facts: Iterable[Fact], spans: Sequence[Span] = ()) -> int:
        """Stores facts and spans; when this returns, they survive a kill.

        Returns:
            How many of the facts were new.

        Raises:
            StoreError: They could not be stored; nothing was.
        """
        by_id = {fact.id: fact for fact in facts}
        for known in self._store.known(by_id.keys()):
            del by_id[known]
        new = list(by_id.values())
        try:
            changes, verdicts = self._judge.add(new)
            self._store.commit(
                Batch(new, spans, changes, verdicts),
                now_unix_nano=self._clock(),
            )
        except BaseException:
            # The checker has seen facts that are not stored.
            self._judge.reset()
            raise
        return len(new)


class _Judge:
    """A checker that holds the tasks that were active last and reloads the others from the store."""

    def __init__(self, store: Store, held_facts: int) -> None:
        self._store = store
        self._limit = held_facts
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self._checker = Checker()
        self._held: OrderedDict[TaskKey, int] = OrderedDict()
        self._count = 0

    def add(self, facts: Sequence[Fact]) -> tuple[list[FindingChange], dict[TaskKey, str]]:
        """Judges new facts: what changed, and the verdict of each task they concern."""
        keys = {fact.task for fact in facts if fact.task is not None}
        self._reload(keys)
        changes = self._checker.add(facts)
        verdicts = {key: self._checker.verdict(key) for key in keys}
        self._hold(Counter(_place(fact.task) for fact in facts if fact.task is not None))
        self._shrink()
        return _as_changes(changes), verdicts

    def _reload(self, keys: set[TaskKey]) -> None:
        absent = {_place(key) for key in keys} - self._held.keys()
        stored = self._store.histories(absent)
        self._checker.load(stored)
        self._hold(Counter(_place(fact.task) for fact in stored if fact.task is not None))

    def _hold(self, counts: Counter[TaskKey]) -> None:
        for place, count in counts.items():
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


def _as_changes(changes: Changes) -> list[FindingChange]:
    return [FindingChange(finding, retracted=True) for finding in changes.retracted] + [
        FindingChange(finding) for finding in changes.appeared
    ]
