"""A dossier as JUnit XML: a test a rule, so that a build server can tell since when one fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Final

from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from a2a_fencing import conventions as c
from a2a_fencing.checker import RULES, Finding
from a2a_fencing_dashboard.reports.dossier import Dossier, task_title
from a2a_fencing_dashboard.ui.words import count, shown

_SUITE: Final = "a2a-fencing"
_CLASS: Final = "a2a_fencing.check"
_COMPLETE: Final = "history-complete"
_MOST_TOLD: Final = 20
_NO_CHARACTERS: Final = dict.fromkeys((0xFFFE, 0xFFFF), "�")


def as_junit(dossier: Dossier) -> str:
    """A suite with a test for each rule, and one for whether the history tells everything."""
    suite = TestSuite(_SUITE)
    suite.add_property("verdict", dossier.verdict)
    suite.add_property("facts", str(len(dossier.facts)))
    suite.add_property("tasks", str(len(dossier.report.verdicts)))
    suite.add_testcases([*(_rule(dossier, rule) for rule in c.RULES), _completeness(dossier)])
    document = JUnitXml(_SUITE)
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    content = BytesIO()
    document.write(content, pretty=True)
    return content.getvalue().decode()


def _rule(dossier: Dossier, rule: str) -> TestCase:
    case = TestCase(rule, _CLASS, 0.0)
    violations = [finding for finding in dossier.violations if finding.rule == rule]
    allowed = [one for one in dossier.allowed if one.finding.rule == rule]
    if violations:
        message = f"{RULES[rule].statement}: {count(len(violations), 'finding')}"
        failure = Failure(_visible(message), violations[0].severity)
        failure.text = _visible("\n".join(_told(dossier, violations)))
        case.result = [failure]
    elif allowed:
        reasons = "; ".join(dict.fromkeys(one.reason for one in allowed))
        case.result = [Skipped(_visible(f"{count(len(allowed), 'finding')} allowed: {reasons}"))]
    return case


def _told(dossier: Dossier, findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings[:_MOST_TOLD]:
        yield f"task {task_title(finding.task)}"
        yield from (f"  {line}" for line in dossier.story(finding))
        yield ""
    if len(findings) > _MOST_TOLD:
        yield f"showing {_MOST_TOLD} of {len(findings):,}"


def _completeness(dossier: Dossier) -> TestCase:
    case = TestCase(_COMPLETE, _CLASS, 0.0)
    in_doubt = [entry for entry in dossier.cases if entry.verdict == c.UNKNOWN]
    if dossier.missing or in_doubt or not dossier.facts:
        failure = Failure(_visible(dossier.summary()), c.UNKNOWN)
        missing = [f"missing: {dossier.gap(gap)}" for gap in dossier.report.gaps]
        doubts = [f"task {task_title(entry.key)}: {'; '.join(entry.doubts)}" for entry in in_doubt]
        failure.text = _visible("\n".join([*missing, *doubts]))
        case.result = [failure]
    return case


def _visible(text: str) -> str:
    """Without the characters that XML has no way to carry."""
    lines = (shown(line, len(line)) for line in text.split("\n"))
    return "\n".join(lines).translate(_NO_CHARACTERS)
