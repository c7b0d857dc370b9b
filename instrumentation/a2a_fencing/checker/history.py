"""All facts of one task id in one store, as incarnations, and what the rules conclude from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.checker.cluster import Cluster, Topic
from a2a_fencing.checker.conclusion import Check, Conclusion
from a2a_fencing.checker.doubts import cut_off, doubts
from a2a_fencing.checker.incarnation import (
    DISPATCH,
    EXECUTION,
    VERSION,
    WRITE,
    Cell,
    Incarnation,
)
from a2a_fencing.checker.report import Finding
from a2a_fencing.checker.rules import CHECKS
from a2a_fencing.checker.splitting import split
from a2a_fencing.checker.versions import by_number
from a2a_fencing.facts import Fact, TaskKey

_NOTHING: Final[frozenset[Topic]] = frozenset()

Place = tuple[int, str, str]
"""Names a conclusion within a task id: incarnation, rule, key."""

_CellIn = tuple[int, Cell]

_SCOPES: Final[Mapping[str, tuple[Check, ...]]] = {
    scope: tuple(check for check in CHECKS if check.scope == scope)
    for scope in {check.scope for check in CHECKS}
}


class History:
    """The facts of one task id.

    Attributes:
        conclusions: What the rules conclude now.
        announced: Those that were announced, as findings.
        depends: What beyond the task's own facts each judgement depends on.
        watched: All of `depends` that somebody watches for this history.
        lives: The incarnations, oldest first.
    """

    __slots__ = (
        "_adrift",
        "_cluster",
        "_concluded",
        "_crashes",
        "_facts",
        "_failures",
        "_last_times",
        "_orders_clocks",
        "_plain",
        "_stale",
        "announced",
        "conclusions",
        "depends",
        "depends_changed",
        "key",
        "lives",
        "watched",
    )

    def __init__(self, key: TaskKey, cluster: Cluster) -> None:
        self.key = key
        self.conclusions: dict[Place, Conclusion] = {}
        self.announced: dict[Place, Finding] = {}
        self.depends: dict[_CellIn, frozenset[Topic]] = {}
        self.depends_changed = False
        self.watched: set[Topic] = set()
        self.lives: list[Incarnation] = [Incarnation(key, self._saw)]
        self._cluster = cluster
        self._facts: dict[str, Fact] = {}
        self._last_times: dict[str, int] = {}
        self._plain = True
        self._orders_clocks = True
        self._stale = False
        self._adrift = 0
        self._concluded: dict[_CellIn, tuple[Place, ...]] = {}
        self._crashes: dict[tuple[_CellIn, str], str] = {}
        self._failures: dict[str, str] = {}

    def add(self, fact: Fact, n: int) -> None:
        """Takes a fact, unless it has it."""
        if fact.id in self._facts:
            return
        self._facts[fact.id] = fact
        if fact.time_unix_nano > self._last_times.get(fact.replica, 0):
            self._last_times[fact.replica] = fact.time_unix_nano
        if self._plain:
            life = self.lives[0]
            self._file(life, fact, n)
            if life.versions.forked:
                self._leave_clocks()
            if not (fact.kind == c.DELETED or _reborn(fact) or life.versions.alien):
                return
            self._plain = False
            self._leave_clocks()
        self._stale = True

    def judge(self) -> set[Place]:
        """Judges what new facts can have changed; says which conclusions came, went or differ."""
        if self._stale:
            return self._judge_anew()
        changed: set[Place] = set()
        for index, life in enumerate(self.lives):
            self._judge_life(index, life, changed)
        return changed

    def judge_again(self, topics: Iterable[Topic]) -> set[Place]:
        """Judges what depends on these topics, which have changed."""
        changed_topics = set(topics)
        for (index, cell), depends in self.depends.items():
            if not depends.isdisjoint(changed_topics):
                self.lives[index].dirty.add(cell)
        return self.judge()

    @property
    def topics(self) -> set[Topic]:
        """What beyond its own facts the conclusions depend on."""
        return set().union(*self.depends.values())

    def release(self) -> None:
        """Lets go of the facts; the conclusions and what they told of the clocks stay."""
        self._cluster.clocks.keep(self)
        self._facts, self.lives = {}, []

    def doubts(self, life: Incarnation) -> Iterator[str]:
        """Why the verdict of an incarnation is unknown, unless it is violated."""
        yield from sorted({*self._failures.values(), *self._crashes.values()})
        if self._adrift:
            yield f"{self._adrift} facts could belong to more than one incarnation"
        yield from doubts(life, self._cluster)
        if life is self.lives[-1] and not life.ended:
            yield from cut_off(life, self._last_times, self._cluster)

    def _file(self, life: Incarnation, fact: Fact, n: int) -> None:
        try:
            life.add(fact, n)
        except Exception as error:
            self._failures[fact.id] = f"fact {fact.id} could not be filed: {_named(error)}"

    def _saw(self, cause: Fact, effect: Fact) -> None:
        if self._orders_clocks:
            self._cluster.saw(self, cause, effect)

    def _leave_clocks(self) -> None:
        """Takes back what this task told of the clocks: who saw what here is not certain after all."""
        if self._orders_clocks:
            self._orders_clocks = False
            self._cluster.unsaw(self)

    def _judge_anew(self) -> set[Place]:
        before = self.conclusions
        self._stale = False
        self.conclusions, self._concluded, self.depends = {}, {}, {}
        self._crashes, self._failures = {}, {}
        self.depends_changed = True
        facts = sorted(self._facts.values(), key=by_number)
        several = facts[0].replica != facts[-1].replica
        groups, adrift = split(facts)
        self._adrift = len(adrift)
        self.lives = []
        for index, group in enumerate(groups):
            key = replace(self.key, incarnation=index)
            earlier = self.lives[-1] if self.lives else None
            life = Incarnation(key, self._saw, earlier)
            for fact in group:
                self._file(life, fact, fact.n)
            life.inferred = several
            life.ended = index < len(groups) - 1 or any(fact.kind == c.DELETED for fact in group)
            self.lives.append(life)
        changed: set[Place] = set()
        for index, life in enumerate(self.lives):
            self._judge_life(index, life, changed)
        places = before.keys() | self.conclusions.keys()
        return {place for place in places if before.get(place) != self.conclusions.get(place)}

    def _judge_life(self, index: int, life: Incarnation, changed: set[Place]) -> None:
        life.settle()
        dirty = life.whole
        if life.dirty:
            dirty = life.dirty | dirty
            life.dirty = set()
        for cell in dirty:
            self._judge_cell(index, life, cell, changed)

    def _judge_cell(self, index: int, life: Incarnation, cell: Cell, changed: set[Place]) -> None:
        cluster = self._cluster
        if cluster.consulted:
            cluster.consulted = set()
        where = (index, cell)
        found = self._conclude(where, life)
        old = self._concluded.get(where)
        if found or old:
            self._replace(where, old or (), found, changed)
        depends = frozenset(cluster.consulted)
        if depends != self.depends.get(where, _NOTHING):
            self.depends[where] = depends
            self.depends_changed = True

    def _conclude(self, where: _CellIn, life: Incarnation) -> dict[Place, Conclusion]:
        index, (scope, name) = where
        subject = _subject(life, scope, name)
        found: dict[Place, Conclusion] = {}
        for check in _SCOPES[scope]:
            try:
                for conclusion in check.judge(life, subject, self._cluster):
                    if life.inferred and conclusion.if_complete and not conclusion.suspected:
                        conclusion = replace(conclusion, suspected=True)
                    found[index, conclusion.rule.name, conclusion.key] = conclusion
            except Exception as error:
                name = check.rule.name
                self._crashes[where, name] = f"rule {name} failed: {_named(error)}"
            else:
                if self._crashes:
                    self._crashes.pop((where, check.rule.name), None)
        return found

    def _replace(
        self,
        where: _CellIn,
        old: tuple[Place, ...],
        found: dict[Place, Conclusion],
        changed: set[Place],
    ) -> None:
        conclusions = self.conclusions
        for place in old:
            if place not in found and conclusions.pop(place, None) is not None:
                changed.add(place)
        for place, conclusion in found.items():
            if conclusions.get(place) != conclusion:
                conclusions[place] = conclusion
                changed.add(place)
        if found:
            self._concluded[where] = tuple(found)
        else:
            del self._concluded[where]


def _reborn(fact: Fact) -> bool:
    """Whether the replica knew of a deletion before this fact."""
    return fact.task is not None and fact.task.incarnation > 0


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _subject(life: Incarnation, scope: str, name: int | str) -> object:
    if scope == VERSION:
        return life.versions.get(name)
    if scope == WRITE:
        return life.sequence.writes[str(name)]
    if scope == EXECUTION:
        return life.executions.by_id[str(name)]
    if scope == DISPATCH:
        return life.dispatches.attempts[str(name)]
    return name
