"""A checker's report as text: the verdict first, then each finding with its witness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding, Report
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.ui.story import sentence
from a2a_fencing_dashboard.ui.words import count, named, replica_name, shown


class Recollection:
    """What has to be remembered of the judged facts to tell findings by them.

    Attributes:
        facts: The facts by their id.
        names: What people call each replica.
    """

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}
        self.names: dict[str, str] = {}

    def noting(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        """The same facts, each noted as it passes."""
        for fact in facts:
            self.facts[fact.id] = fact
            if fact.replica_name is not None:
                self.names[fact.replica] = shown(fact.replica_name, 40)
            yield fact


def tell(report: Report, verdict: str, memory: Recollection) -> Iterator[str]:
    """The report, line by line."""
    yield f"{verdict.upper()}: {_summary(report, memory)}"
    for gap in report.gaps:
        yield f"missing: {_numbers(gap.first, gap.last)} of {replica_name(memory.names, gap.replica)}"
    for finding in report.findings:
        if finding.violates:
            yield ""
            yield from _finding(finding, memory)
    infos = Counter(finding.rule for finding in report.findings if not finding.violates)
    if infos:
        yield ""
        yield "for information: " + ", ".join(f"{rule} {n:,}" for rule, n in sorted(infos.items()))


def _summary(report: Report, memory: Recollection) -> str:
    if not memory.facts:
        return "no facts of a2a-fencing here; was the server instrumented?"
    violating = [finding for finding in report.findings if finding.violates]
    tasks = count(len(report.verdicts), "task")
    found = (
        f"{count(len(violating), 'finding')} on {len({f.task for f in violating}):,} of {tasks}"
        if violating
        else f"no violation found in {tasks}"
    )
    return f"{found}; {_completeness(report, memory)}"


def _completeness(report: Report, memory: Recollection) -> str:
    here = len(memory.facts)
    missing = sum(gap.count for gap in report.gaps)
    if missing:
        return f"history incomplete: {here:,} of {here + missing:,} facts"
    unknown = sum(verdict == c.UNKNOWN for verdict in report.verdicts.values())
    doubt = f", but they do not decide {count(unknown, 'task')}" if unknown else ""
    return f"history complete: {here:,} of {here:,} facts{doubt}"


def _numbers(first: int, last: int) -> str:
    return f"fact {first:,}" if first == last else f"facts {first:,} to {last:,}"


def _finding(finding: Finding, memory: Recollection) -> Iterator[str]:
    yield f"{finding.rule}  {finding.severity}, {finding.certainty}  task {_task(finding.task)}"
    yield f"  {named(finding.explanation, memory.names)}"
    for fact_id in finding.witness:
        fact = memory.facts.get(fact_id)
        told = sentence(fact, memory.names) if fact else "not in this history"
        yield f"  - {told}  [{shown(fact_id)}]"


def _task(key: TaskKey) -> str:
    owner = f"owner {shown(key.owner)}, " if key.owner else ""
    incarnation = f", incarnation {key.incarnation}" if key.incarnation else ""
    return f"{shown(key.task_id)} ({owner}store {shown(key.store)}{incarnation})"
