"""The checker: takes facts in batches, keeps the tasks they concern, says what changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from a2a_fencing import conventions as c
from a2a_fencing.checker.announcer import Announcer, difference
from a2a_fencing.checker.clocks import Pair
from a2a_fencing.checker.cluster import Cluster, Topic
from a2a_fencing.checker.exposure import Exposure
from a2a_fencing.checker.fences import Fences
from a2a_fencing.checker.history import History
from a2a_fencing.checker.report import Changes, Finding, Gap, Report, in_order
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing.scoped import joined

_TaskId = tuple[str, str, str]


def check(facts: Iterable[Fact], now_unix_nano: int | None = None) -> Report:
    """Judges a whole history; late, repeated or unordered facts make no difference.

    Args:
        facts: The facts.
        now_unix_nano: The time of judging, ns since 1970, when the history still grows: what rests on
            the absence of a fact is withheld until the fact has had time to arrive. None: nothing more
            comes.
    """
    checker = Checker()
    checker.add(joined(facts), now_unix_nano)
    return checker.report()


class Checker:
    """Judges a history that is still growing.

    Facts may come in any order and batching and more than once; after any of them `report` equals
    `check` of the same facts at the same time, as long as no task was forgotten.
    """

    def __init__(self) -> None:
        self._cluster = Cluster()
        self._histories: dict[_TaskId, History] = {}
        self._fences = Fences()
        self._announcer = Announcer(self._cluster)
        self._watchers: defaultdict[Topic, set[History]] = defaultdict(set)

    # --- facts in, changes out ---

    def add(self, facts: Iterable[Fact], now_unix_nano: int | None = None) -> Changes:
        """Takes new facts and says which findings appeared or no longer hold.

        Args:
            facts: The facts; may be none, to let time pass.
            now_unix_nano: As in `check`.
        """
        touched: set[History] = set()
        reporting: set[str] = set()
        number = self._cluster.number
        for fact in facts:
            n = fact.n
            if number(fact, n):
                reporting.add(fact.replica)
                self._file(fact, n, touched)
        return self._judge(touched, reporting, now_unix_nano)

    def load(
        self,
        facts: Iterable[Fact],
        announced: Iterable[Finding] | None = None,
        now_unix_nano: int | None = None,
    ) -> Changes:
        """Takes facts of tasks that are not held here and were judged before a restart or `forget`.

        Load everything that is stored of a task, also its other incarnations, before adding what is
        new.

        Args:
            facts: The facts.
            announced: The findings that stand for these tasks. None: what they show now was announced.
            now_unix_nano: As in `check`.

        Returns:
            Where what holds now differs from what was announced.
        """
        loaded: set[History] = set()
        reporting: set[str] = set()
        for fact in facts:
            n = fact.n
            self._cluster.number(fact, n)
            reporting.add(fact.replica)
            self._file(fact, n, loaded)
        changes = self._judge(loaded, reporting, now_unix_nano)
        ours = {_id(history.key) for history in loaded}
        shown = {
            finding.identity: finding for history in loaded for finding in history.announced.values()
        }
        stood = shown if announced is None else {finding.identity: finding for finding in announced}
        return difference(
            {f.identity: f for f in changes.retracted if _id(f.task) not in ours} | stood,
            {f.identity: f for f in changes.appeared if _id(f.task) not in ours} | shown,
        )

    def resume(self, replica: str, spans: Iterable[tuple[int, int]]) -> None:
        """Takes the numbers (first, last; both inclusive) of a replica's facts that arrived before a
        restart, so that facts which are stored, but not loaded, do not count as missing.
        """
        self._cluster.resume(replica, spans)

    @property
    def clock_bounds(self) -> Mapping[Pair, int]:
        """How far the second clock of two replicas can be ahead of the first one's, ns, as measured."""
        return self._cluster.clocks.bounds

    def assume_clocks(self, bounds: Mapping[Pair, int]) -> None:
        """Takes what was measured of the clocks before a restart, from tasks that are not loaded."""
        self._cluster.assume(bounds)

    # --- memory ---

    def knows(self, key: TaskKey) -> bool:
        """Whether the facts of this task, in any incarnation, are held here."""
        return _id(key) in self._histories

    def forget(self, keys: Iterable[TaskKey]) -> None:
        """Drops the facts of these tasks; what was announced of them stands. `load` them before adding
        to them again.
        """
        for key in keys:
            history = self._histories.pop(_id(key), None)
            if history is not None:
                self._watch(history, set())
                self._announcer.forget(history)

    # --- what holds ---

    def gaps(self) -> tuple[Gap, ...]:
        """Facts that were numbered and have not arrived."""
        return tuple(self._cluster.gaps())

    def verdict(self, key: TaskKey) -> str:
        """Verdict of one task by its own facts: what is missing of other numbers is not counted against
        it, as `gaps` tells. UNKNOWN when it is not held here.
        """
        history = self._histories.get(_id(key))
        if history is None:
            return c.UNKNOWN
        index = min(key.incarnation, len(history.lives) - 1)
        return _verdict(history, index, history.doubts(history.lives[index]))

    def cut_off(self) -> frozenset[str]:
        """Replicas that fell silent without saying that they stop; what they did last may be lost."""
        return frozenset(self._cluster.cut_off)

    def keys(self) -> Iterator[TaskKey]:
        """The tasks that are held here, each incarnation."""
        for history in self._histories.values():
            for life in history.lives:
                yield life.key

    def report(self) -> Report:
        """Everything that holds now about the tasks that are held here."""
        exposure = Exposure(self._cluster)
        findings = list(self._fences.findings.values())
        verdicts: dict[TaskKey, str] = {}
        doubts: dict[TaskKey, tuple[str, ...]] = {}
        for history in self._histories.values():
            findings += history.announced.values()
            for index, life in enumerate(history.lives):
                reasons = (*history.doubts(life), *exposure.doubts(life))
                verdicts[life.key] = _verdict(history, index, iter(reasons))
                if reasons:
                    doubts[life.key] = reasons
        return Report(in_order(findings), self.gaps(), verdicts, doubts)

    # --- within ---

    def _file(self, fact: Fact, n: int, touched: set[History]) -> None:
        task = fact.task
        if task is None:
            if fact.kind == c.HEARTBEAT:
                self._cluster.hear(fact, n)
            elif fact.kind == c.OMITTED and fact.last is not None and fact.last >= n:
                self._cluster.resume(fact.replica, [(n, fact.last)])
            return
        task_id = (task.store, task.owner, task.task_id)
        history = self._histories.get(task_id)
        if history is None:
            key = task if task.incarnation == 0 else replace(task, incarnation=0)
            history = self._histories[task_id] = History(key, self._cluster)
            self._announcer.revive(key)
        history.add(fact, n)
        if fact.kind == c.WRITE:
            self._fences.take(fact, task)
        touched.add(history)

    def _judge(self, touched: set[History], reporting: set[str], now: int | None) -> Changes:
        announcer = self._announcer
        announcer.begin(now)
        self._cluster.touched(reporting)
        topics = self._cluster.take_changed()
        dependent = self._watching(topics)
        for history in dependent:
            announcer.changed(history, history.judge_again(topics))
        for history in touched:
            announcer.changed(history, history.judge())
        for history in touched | dependent:
            if history.depends_changed:
                self._watch(history, history.topics)
        return announcer.end(self._fences.judge())

    def _watching(self, topics: set[Topic]) -> set[History]:
        watchers = self._watchers
        return set().union(*(watchers[topic] for topic in topics if topic in watchers))

    def _watch(self, history: History, topics: set[Topic]) -> None:
        for topic in history.watched - topics:
            self._watchers[topic].discard(history)
            if not self._watchers[topic]:
                del self._watchers[topic]
        for topic in topics - history.watched:
            self._watchers[topic].add(history)
        history.watched = topics
        history.depends_changed = False


def _verdict(history: History, index: int, doubts: Iterator[str]) -> str:
    if any(place[0] == index and finding.violates for place, finding in history.announced.items()):
        return c.VIOLATED
    return c.FINE if next(doubts, None) is None else c.UNKNOWN


def _id(key: TaskKey) -> _TaskId:
    """The task id in its store, all incarnations taken together."""
    return key.store, key.owner, key.task_id
