"""A judged history, with everything it takes to tell of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.allowlist import Allowed
from a2a_fencing.checker import Finding, Gap, Report, tell
from a2a_fencing.checker.story import Step, steps
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.ui.words import Names, count, replica_name, shown

LONGEST_LINE: Final = 600
"""Of a line that holds text from outside, in characters."""
_LONGEST_NAME: Final = 40
_SEVERITIES: Final = (c.CRITICAL, c.WARNING, c.INFO)

_GUARDS: Final[Mapping[frozenset[bool], str]] = {
    frozenset({True}): "guard on",
    frozenset({False}): "guard off",
    frozenset({True, False}): "guard on some replicas only",
}

_TaskId = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fact was read.

    Attributes:
        path: The file.
        line: Its line, from 1; None in a file that has none, such as a store.
    """

    path: Path
    line: int | None = None


@dataclass(frozen=True, slots=True)
class TaskCase:
    """What is said of one task.

    Attributes:
        key: The task.
        verdict: Of the task, without what is allowed.
        findings: Gravest first; info findings are among them.
        allowed: Findings that do not count.
        doubts: Why the verdict is not *fine*, beyond the findings.
    """

    key: TaskKey
    verdict: str
    findings: tuple[Finding, ...]
    allowed: tuple[Allowed, ...]
    doubts: tuple[str, ...]

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that make the verdict *violated*."""
        return tuple(finding for finding in self.findings if finding.violates)


@dataclass(frozen=True)
class Dossier:
    """A judged history.

    Attributes:
        facts: The facts by their id.
        report: What the checker says of them, without what is allowed.
        allowed: The findings that are allowed.
        places: Where facts were read, by their id, as far as that is known.
    """

    facts: Mapping[str, Fact]
    report: Report
    allowed: tuple[Allowed, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Iterable[Fact], report: Report, allowed: Sequence[Allowed] = ()) -> Dossier:
        """The dossier of these facts; of one that comes twice the first counts."""
        known: dict[str, Fact] = {}
        for fact in facts:
            known.setdefault(fact.id, fact)
        return cls(known, report, tuple(allowed))

    @property
    def verdict(self) -> str:
        """Of the whole; a history without any fact shows nothing."""
        return self.report.verdict if self.facts else c.UNKNOWN

    @property
    def missing(self) -> int:
        """How many facts were numbered and have not arrived."""
        return sum(gap.count for gap in self.report.gaps)

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that make the verdict *violated*, most severe first."""
        return tuple(finding for finding in self.report.findings if finding.violates)

    @cached_property
    def names(self) -> Names:
        """What people call each replica, as far as heartbeats tell."""
        return {
            fact.replica: shown(fact.replica_name, _LONGEST_NAME)
            for fact in self._heartbeats
            if fact.replica_name
        }

    @cached_property
    def runs(self) -> Mapping[str, str]:
        """Label of each run -> whether its replicas enforce, in words."""
        guards: dict[str, set[bool]] = {}
        for fact in self._heartbeats:
            if fact.run:
                guards.setdefault(shown(fact.run, _LONGEST_NAME), set()).add(bool(fact.guard))
        return {run: _GUARDS[frozenset(held)] for run, held in guards.items()}

    @cached_property
    def cases(self) -> tuple[TaskCase, ...]:
        """The tasks of which there is something to say: violated first, then in doubt, then others."""
        findings: dict[TaskKey, list[Finding]] = {}
        for finding in sorted(self.report.findings, key=_gravity):
            findings.setdefault(finding.task, []).append(finding)
        allowed: dict[TaskKey, list[Allowed]] = {}
        for one in self.allowed:
            allowed.setdefault(one.finding.task, []).append(one)
        keys = dict.fromkeys((*findings, *allowed, *self.report.doubts))
        cases = [
            TaskCase(
                key,
                self.report.verdicts.get(key, c.FINE),
                tuple(findings.get(key, ())),
                tuple(allowed.get(key, ())),
                self.report.doubts.get(key, ()),
            )
            for key in keys
        ]
        return tuple(sorted(cases, key=lambda case: (not case.violations, not case.doubts)))

    def case(self, key: TaskKey) -> TaskCase:
        """What is said of this task, also where that is only its verdict."""
        verdict = self.report.verdicts.get(key, c.UNKNOWN)
        return next((case for case in self.cases if case.key == key), TaskCase(key, verdict, (), (), ()))

    def facts_of(self, key: TaskKey) -> list[Fact]:
        """The facts of a task, in all its incarnations."""
        return self._by_task.get(_id(key), [])

    def story(self, finding: Finding) -> list[str]:
        """The finding step by step, as the checker tells it; text from outside made visible."""
        told = tell(finding, [*self.facts_of(finding.task), *self._heartbeats])
        return [shown(line, LONGEST_LINE) for line in told]

    def steps(self, findings: Sequence[Finding]) -> list[Step]:
        """What happened, of several findings of one task together."""
        if not findings:
            return []
        return steps(findings, [*self.facts_of(findings[0].task), *self._heartbeats])

    def summary(self) -> str:
        """What was found in how much, and whether that is everything."""
        if not self.facts:
            return "no facts of a2a-fencing here; was the server instrumented?"
        tasks = count(len(self.report.verdicts), "task")
        violated = {finding.task for finding in self.violations}
        found = (
            f"{count(len(self.violations), 'finding')} on {len(violated):,} of {tasks}"
            if violated
            else f"no violation found in {tasks}"
        )
        allowed = f", {len(self.allowed):,} allowed" if self.allowed else ""
        return f"{found}{allowed}; {self._completeness()}"

    def gap(self, gap: Gap) -> str:
        """Which facts are missing: ``facts 3 to 7 of api-0``."""
        numbers = f"{gap.first:,}" if gap.count == 1 else f"{gap.first:,} to {gap.last:,}"
        noun = "fact" if gap.count == 1 else "facts"
        return f"{noun} {numbers} of {replica_name(self.names, gap.replica)}"

    def _completeness(self) -> str:
        marks = [fact for fact in self.facts.values() if fact.kind == c.OMITTED]
        here = len(self.facts) - len(marks)
        omitted = sum((mark.last or mark.n) - mark.n + 1 for mark in marks)
        part = (
            f" (a part: {count(omitted, 'other fact')} of the same replicas left out)" if omitted else ""
        )
        if self.missing:
            return f"history incomplete: {here:,} of {here + self.missing:,} facts{part}"
        unknown = sum(verdict == c.UNKNOWN for verdict in self.report.verdicts.values())
        doubt = f", but they do not decide {count(unknown, 'task')}" if unknown else ""
        return f"history complete: {here:,} of {here:,} facts{part}{doubt}"

    @cached_property
    def _by_task(self) -> Mapping[_TaskId, list[Fact]]:
        facts: dict[_TaskId, list[Fact]] = {}
        for fact in self.facts.values():
            if fact.task is not None:
                facts.setdefault(_id(fact.task), []).append(fact)
        return facts

    @cached_property
    def _heartbeats(self) -> Sequence[Fact]:
        """One of each replica that names it."""
        named = (fact for fact in self.facts.values() if fact.replica_name)
        return list({fact.replica: fact for fact in named}.values())


def task_title(key: TaskKey) -> str:
    """``7f3c (owner alice, store tasks @ sqlite)``."""
    owner = f"owner {shown(key.owner)}, " if key.owner else ""
    incarnation = f", incarnation {key.incarnation}" if key.incarnation else ""
    return f"{shown(key.task_id)} ({owner}store {shown(key.store)}{incarnation})"


def _gravity(finding: Finding) -> tuple[int, int]:
    """Critical before warning before info, and within one severity in the order of the rules."""
    rule = c.RULES.index(finding.rule) if finding.rule in c.RULES else len(c.RULES)
    return _SEVERITIES.index(finding.severity), rule


def _id(key: TaskKey) -> _TaskId:
    return key.store, key.owner, key.task_id
