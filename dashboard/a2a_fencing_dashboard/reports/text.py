"""A dossier for a terminal: the verdict first, then what was found, task by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing.checker.story import conclusion
from a2a_fencing_dashboard.reports.dossier import LONGEST_LINE, Dossier, TaskCase, task_title
from a2a_fencing_dashboard.ui.words import shown

_MOST_DOUBTS: Final = 10


def as_text(dossier: Dossier) -> str:
    """Lines for people; text from outside cannot steer a terminal."""
    return "\n".join(_lines(dossier)) + "\n"


def headline(dossier: Dossier) -> str:
    """The verdict, in one line."""
    return f"{dossier.verdict.upper()}: {dossier.summary()}"


def _lines(dossier: Dossier) -> Iterator[str]:
    yield headline(dossier)
    for gap in dossier.report.gaps:
        yield f"missing: {dossier.gap(gap)}"
    for case in dossier.cases:
        if case.violations:
            yield ""
            yield from _violated(dossier, case)
    for block in (_allowed(dossier), _doubts(dossier), _information(dossier)):
        lines = list(block)
        if lines:
            yield ""
            yield from lines


def _violated(dossier: Dossier, case: TaskCase) -> Iterator[str]:
    """What happened, once, and then what each finding concludes from which of the steps."""
    yield f"task {task_title(case.key)}"
    numbers: dict[str, int] = {}
    for number, step in enumerate(dossier.steps(case.violations), 1):
        numbers[step.fact.id] = number
        yield f"  {number:>2}. {shown(str(step), LONGEST_LINE)}"
    for finding in case.violations:
        yield ""
        signs = f"{finding.severity}, {finding.certainty}"
        yield f"  {shown(finding.rule)}  {signs}{_shown_by(finding, numbers)}"
        yield from (f"    {shown(line, LONGEST_LINE)}" for line in conclusion(finding))


def _shown_by(finding: Finding, numbers: Mapping[str, int]) -> str:
    """By which of the steps a finding is shown."""
    told = [
        str(numbers[fact_id]) if fact_id in numbers else f"fact {shown(fact_id)}, which is not here"
        for fact_id in finding.witness
    ]
    return f"  (steps {', '.join(told)})" if told else ""


def _allowed(dossier: Dossier) -> Iterator[str]:
    for one in dossier.allowed:
        finding = one.finding
        yield f"allowed: {shown(finding.rule)} on task {task_title(finding.task)}"
        yield f"  {shown(finding.explanation, LONGEST_LINE)}"
        yield f"  reason: {shown(one.reason, LONGEST_LINE)}"


def _doubts(dossier: Dossier) -> Iterator[str]:
    doubtful = [case for case in dossier.cases if case.verdict == c.UNKNOWN]
    for case in doubtful[:_MOST_DOUBTS]:
        yield f"in doubt: task {task_title(case.key)}: {shown('; '.join(case.doubts), LONGEST_LINE)}"
    if len(doubtful) > _MOST_DOUBTS:
        yield f"in doubt: {len(doubtful) - _MOST_DOUBTS:,} more tasks"


def _information(dossier: Dossier) -> Iterator[str]:
    rules = Counter(finding.rule for finding in dossier.report.findings if not finding.violates)
    if rules:
        yield "for information: " + ", ".join(
            f"{shown(rule)} {n:,}" for rule, n in sorted(rules.items())
        )
