"""The checker: takes facts in batches, keeps the tasks they concern, says what changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from a2a_fencing import conventions as c
from a2a_fencing.checker.history import History
from a2a_fencing.checker.numbering import Numbering
from a2a_fencing.checker.report import Changes, Finding, Gap, Report
from a2a_fencing.checker.rules import judge
from a2a_fencing.facts import Fact, TaskKey

_SEVERITY_ORDER = {c.CRITICAL: 0, c.WARNING: 1, c.INFO: 2}


def check(facts: Iterable[Fact]) -> Report:
    """Judges a whole history; late, repeated or unordered facts make no difference."""
    checker = Checker()
    checker.add(facts)
    return checker.report()


class Checker:
    """Judges a history that is still growing.

    Facts may come in any order and batching and more than once; after any of them `report` equals
    `check` of the same facts, as long as no task was forgotten.
    """

    def __init__(self) -> None:
        self._numbering: dict[str, Numbering] = {}
        self._tasks: dict[TaskKey, History] = {}
        self._announced: dict[TaskKey, dict[tuple[str, TaskKey, str], Finding]] = {}

    def add(self, facts: Iterable[Fact]) -> Changes:
        """Takes new facts and says which findings appeared or no longer hold."""
        touched = set()
        for fact in facts:
            if self._number(fact) and fact.task is not None:
                touched.add(self._file(fact, fact.task))
        appeared: list[Finding] = []
        retracted: list[Finding] = []
        for place in touched:
            before = self._announced.get(place, {})
            after = self._judge(place)
            retracted += [f for identity, f in before.items() if after.get(identity) != f]
            appeared += [f for identity, f in after.items() if before.get(identity) != f]
        return Changes(tuple(sorted(appeared, key=_order)), tuple(sorted(retracted, key=_order)))

    def load(self, facts: Iterable[Fact]) -> None:
        """Takes facts that were judged before, as after a restart or `forget`, and announces nothing.

        Load everything that was stored of a task before adding what is new.
        """
        touched = set()
        for fact in facts:
            self._number(fact)
            if fact.task is not None:
                touched.add(self._file(fact, fact.task))
        for place in touched:
            self._judge(place)

    def knows(self, key: TaskKey) -> bool:
        """Whether the facts of this task, in any incarnation, are held here."""
        return _place(key) in self._tasks

    def forget(self, keys: Iterable[TaskKey]) -> None:
        """Drops the facts and findings of these tasks; `load` them before adding to them again."""
        for key in keys:
            place = _place(key)
            self._tasks.pop(place, None)
            self._announced.pop(place, None)

    def gaps(self) -> tuple[Gap, ...]:
        """Facts that were numbered and have not arrived."""
        return tuple(
            gap for replica in sorted(self._numbering) for gap in self._numbering[replica].gaps(replica)
        )

    def verdict(self, key: TaskKey) -> str:
        """Verdict of one task as its own facts have it; UNKNOWN when it is not held here."""
        place = _place(key)
        if place not in self._tasks:
            return c.UNKNOWN
        if any(f.violates and f.task == key for f in self._announced.get(place, {}).values()):
            return c.VIOLATED
        return self._tasks[place].verdict

    def report(self) -> Report:
        """Everything that holds now about the tasks that are held here."""
        findings = [f for found in self._announced.values() for f in found.values()]
        verdicts = {place: history.verdict for place, history in self._tasks.items()}
        for finding in findings:
            if finding.violates:
                verdicts[finding.task] = c.VIOLATED
        return Report(tuple(sorted(findings, key=_order)), self.gaps(), verdicts)

    def _number(self, fact: Fact) -> bool:
        numbering = self._numbering.get(fact.replica)
        if numbering is None:
            numbering = self._numbering[fact.replica] = Numbering()
        if fact.last is not None:
            numbering.announce(fact.last)
        return numbering.add(fact.n)

    def _file(self, fact: Fact, key: TaskKey) -> TaskKey:
        place = _place(key)
        history = self._tasks.get(place)
        if history is None:
            history = self._tasks[place] = History(place)
        history.add(fact)
        return place

    def _judge(self, place: TaskKey) -> dict[tuple[str, TaskKey, str], Finding]:
        found = {finding.identity: finding for finding in judge(self._tasks[place])}
        self._announced[place] = found
        return found


def _place(key: TaskKey) -> TaskKey:
    return key if key.incarnation == 0 else replace(key, incarnation=0)


def _order(finding: Finding) -> tuple[int, str, str, str, str, str]:
    task = finding.task
    return (
        _SEVERITY_ORDER.get(finding.severity, 3),
        finding.rule,
        task.store,
        task.owner,
        task.task_id,
        finding.key,
    )
