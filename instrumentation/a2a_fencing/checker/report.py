"""What the checker says: findings, gaps, and the verdict over both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey

Identity = tuple[str, TaskKey, str]
"""Rule, task and `Finding.key`: what makes two findings the same one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A conclusion from a history.

    Attributes:
        rule: One of `conventions.RULES`.
        severity: ``"critical"``, ``"warning"`` or ``"info"``. Info findings do not violate.
        certainty: ``"proven"`` from version order or one replica's own order, else ``"suspected"``.
        task: The task concerned; its incarnation is the checker's, which may split further than the
            one the replicas reported.
        witness: Ids of the facts that together show it, in the order in which they are told.
        explanation: One sentence a person understands.
        key: Tells this finding from others of its rule on its task and stays the same when more facts
            arrive: a version, a state or the id of a fact, an execution or a dispatch.
    """

    rule: str
    severity: str
    certainty: str
    task: TaskKey
    witness: tuple[str, ...]
    explanation: str
    key: str = ""

    @property
    def violates(self) -> bool:
        """Whether this finding makes the verdict *violated*."""
        return self.severity != c.INFO

    @property
    def identity(self) -> Identity:
        """Two findings with one identity are one finding whose wording or certainty changed."""
        return self.rule, self.task, self.key


@dataclass(frozen=True, slots=True)
class Gap:
    """Facts that a replica numbered and nobody delivered.

    Attributes:
        replica: Whose facts.
        first, last: The missing numbers, both inclusive.
        after_unix_nano: The replica's clock at the last fact before the gap, ns; None at its beginning.
        before_unix_nano: The replica's clock at the first fact after the gap, ns; None at its end.
    """

    replica: str
    first: int
    last: int
    after_unix_nano: int | None = None
    before_unix_nano: int | None = None

    @property
    def count(self) -> int:
        """How many facts are missing."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Changes:
    """What a batch of facts changed; a finding that changed is retracted and appears anew.

    Attributes:
        appeared: Findings that hold now and did not before.
        retracted: Findings that were announced and no longer hold.
    """

    appeared: tuple[Finding, ...] = ()
    retracted: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The checker's answer for a whole history.

    Attributes:
        findings: Most severe first, in a stable order.
        gaps: What is missing, by replica.
        verdicts: Verdict per task key.
        doubts: Why a task's verdict is not *fine*, beyond its findings: one sentence each.
    """

    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    verdicts: Mapping[TaskKey, str] = field(default_factory=lambda: MappingProxyType({}))
    doubts: Mapping[TaskKey, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def complete(self) -> bool:
        """Whether every fact that was numbered has arrived."""
        return not self.gaps

    @property
    def verdict(self) -> str:
        """``"violated"`` > ``"unknown"`` > ``"fine"``; missing facts never look fine."""
        if any(finding.violates for finding in self.findings):
            return c.VIOLATED
        if self.gaps or c.UNKNOWN in self.verdicts.values():
            return c.UNKNOWN
        return c.FINE

    @property
    def ok(self) -> bool:
        """Whether the verdict is *fine*."""
        return self.verdict == c.FINE


_SEVERITY_ORDER = {c.CRITICAL: 0, c.WARNING: 1, c.INFO: 2}


def in_order(findings: set[Finding] | list[Finding]) -> tuple[Finding, ...]:
    """Findings most severe first, in an order that does not depend on how the facts arrived."""
    return tuple(sorted(findings, key=_rank))


def _rank(finding: Finding) -> tuple[int, str, str, str, str, int, str]:
    task = finding.task
    return (
        _SEVERITY_ORDER[finding.severity],
        finding.rule,
        task.store,
        task.owner,
        task.task_id,
        task.incarnation,
        finding.key,
    )
