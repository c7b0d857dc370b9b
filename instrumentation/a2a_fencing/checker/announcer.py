"""From conclusions to findings: what is due is announced once, and retracted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from heapq import heappop, heappush

from a2a_fencing import conventions as c
from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.conclusion import Conclusion
from a2a_fencing.checker.history import History, Place
from a2a_fencing.checker.report import Changes, Finding, Identity, in_order
from a2a_fencing.facts import TaskKey


class Announcer:
    """Turns conclusions into findings and keeps account of which have been announced."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._now: int | None = None
        self._complete = True
        self._conditional: set[History] = set()
        self._due: list[tuple[int, int, History, Place]] = []
        self._scheduled = 0
        self._forgotten: dict[TaskKey, History] = {}
        self._retracted: dict[Identity, Finding] = {}
        self._appeared: dict[Identity, Finding] = {}

    def begin(self, now: int | None) -> None:
        """Begins a batch that is judged at this time."""
        self._now = now
        self._retracted, self._appeared = {}, {}

    def changed(self, history: History, places: Iterable[Place]) -> None:
        """Notes that conclusions came, went or differ."""
        for place in places:
            conclusion = history.conclusions.get(place)
            if conclusion is not None:
                self._remember(history, place, conclusion)
            self._announce(history, place)

    def forget(self, history: History) -> None:
        """Lets go of a history, once what it withholds has been announced."""
        history.release()
        if self._waiting(history):
            self._forgotten[history.key] = history
        else:
            self._conditional.discard(history)

    def revive(self, key: TaskKey) -> None:
        """Notes that a forgotten task is judged again, from all of its facts."""
        old = self._forgotten.pop(key, None)
        if old is not None:
            old.conclusions.clear()
            self._conditional.discard(old)

    def end(self, fences: tuple[dict[Identity, Finding], dict[Identity, Finding]] | None) -> Changes:
        """What the batch changed."""
        complete = self._cluster.complete
        if complete is not self._complete:
            self._complete = complete
            for history in self._conditional:
                for place in history.conclusions:
                    self._announce(history, place)
        while self._due and (self._now is None or self._due[0][0] <= self._now):
            _, _, history, place = heappop(self._due)
            self._announce(history, place)
        for history in [history for history in self._forgotten.values() if not self._waiting(history)]:
            del self._forgotten[history.key]
            self._conditional.discard(history)
        if fences is not None:
            self._retracted |= fences[0]
            self._appeared |= fences[1]
        return difference(self._retracted, self._appeared)

    def _remember(self, history: History, place: Place, conclusion: Conclusion) -> None:
        if conclusion.if_complete or conclusion.not_before is not None:
            self._conditional.add(history)
        if conclusion.not_before and self._now is not None and conclusion.not_before > self._now:
            self._scheduled += 1
            heappush(self._due, (conclusion.not_before, self._scheduled, history, place))

    def _announce(self, history: History, place: Place) -> None:
        conclusion = history.conclusions.get(place)
        after = None if conclusion is None else self._finding(history, place, conclusion)
        before = history.announced.get(place)
        if after == before:
            return
        if before is not None:
            self._retracted.setdefault(before.identity, before)
            self._appeared.pop(before.identity, None)
            del history.announced[place]
        if after is not None:
            history.announced[place] = after
            self._appeared[after.identity] = after

    def _waiting(self, history: History) -> bool:
        """Whether the history withholds a conclusion that is not announced yet."""
        return any(
            conclusion.not_before is not None and place not in history.announced
            for place, conclusion in history.conclusions.items()
        )

    def _finding(self, history: History, place: Place, conclusion: Conclusion) -> Finding | None:
        complete = self._cluster.complete
        due = conclusion.not_before
        if due is not None and (not complete or (self._now is not None and self._now < due)):
            return None
        proven = not conclusion.suspected and (complete or not conclusion.if_complete)
        rule = conclusion.rule
        return Finding(
            rule.name,
            conclusion.severity or rule.severity,
            c.PROVEN if proven else c.SUSPECTED,
            history.key if place[0] == 0 else replace(history.key, incarnation=place[0]),
            tuple(fact.id for fact in conclusion.witness),
            conclusion.explanation,
            conclusion.key,
        )


_NONE = Changes()


def difference(before: dict[Identity, Finding], after: dict[Identity, Finding]) -> Changes:
    """What has to be announced and retracted to get from some findings to others."""
    if not (before or after):
        return _NONE
    return Changes(
        in_order([f for identity, f in after.items() if before.get(identity) != f]),
        in_order([f for identity, f in before.items() if after.get(identity) != f]),
    )
