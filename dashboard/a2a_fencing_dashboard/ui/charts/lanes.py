"""Which lane of a task's timeline a fact belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui.words import Names, replica_name

CLIENTS: Final = "clients"
STORE: Final = "store"
DISPATCHES: Final = "dispatches"


@dataclass(frozen=True, slots=True)
class Lanes:
    """Lanes from top to bottom.

    Attributes:
        titles: One per lane.
        heights: Lane key -> y; 0 is the topmost, the next ones are -1, -2 ...
        writers: Replicas whose store objects have a lane each.
    """

    titles: tuple[str, ...]
    heights: Mapping[str, float]
    writers: frozenset[str]

    def y(self, fact: Fact) -> float:
        """Where this fact is drawn."""
        return self.heights[_key(fact, self.writers, self.heights)]


def lanes(facts: Sequence[Fact], names: Names) -> Lanes:
    """The lanes that these facts need, replicas in the order in which they appear.

    A replica has one lane, unless several of its store objects wrote: a process that runs two handlers
    can race with itself. What a resource tells stands with the dispatches; it has no lane of its own.
    """
    by_replica: dict[str, list[str]] = {}
    for fact in facts:
        if fact.kind == c.DISPATCH and fact.origin == c.FROM_RESOURCE:
            continue
        writers = by_replica.setdefault(fact.replica, [])
        if fact.writer and fact.writer not in writers:
            writers.append(fact.writer)
    split = frozenset(replica for replica, writers in by_replica.items() if len(writers) > 1)
    entries: list[tuple[str, str]] = []
    if any(fact.kind == c.ANSWER for fact in facts):
        entries.append((CLIENTS, "clients"))
    if any(fact.kind == c.WRITE for fact in facts):
        entries.append((STORE, "store"))
    for replica, writers in by_replica.items():
        name = replica_name(names, replica)
        if replica in split:
            entries.extend((writer, f"{name} /{writer.rpartition('/')[2]}") for writer in writers)
        else:
            entries.append((replica, name))
    if any(fact.kind == c.DISPATCH for fact in facts):
        entries.append((DISPATCHES, "dispatches"))
    heights = {key: -float(index) for index, (key, _) in enumerate(entries)}
    return Lanes(tuple(title for _, title in entries), heights, split)


def _key(fact: Fact, split: frozenset[str], heights: Mapping[str, float]) -> str:
    if fact.kind == c.ANSWER:
        return CLIENTS
    if fact.kind == c.DISPATCH:
        return DISPATCHES
    if fact.replica not in split:
        return fact.replica
    if fact.writer:
        return fact.writer
    # Not tied to a store object: drawn with the first one of its process.
    return next(key for key in heights if key.startswith(f"{fact.replica}/"))
