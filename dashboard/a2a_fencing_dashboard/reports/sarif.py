"""A dossier as SARIF 2.1.0, as code scanning takes it.

A finding is a result at the place where the last fact of its witness was read; the witness is a thread
flow through the files of the history. What is allowed is a suppressed result. What is missing is a
notification of the tool.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from a2a_fencing import conventions as c
from a2a_fencing.checker import RULES, Finding, Rule
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.reports.dossier import LONGEST_LINE, Dossier, Place, TaskCase, task_title
from a2a_fencing_dashboard.ui.story import sentence
from a2a_fencing_dashboard.ui.words import RULE_MEANINGS, shown

_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_FINGERPRINT: Final = "a2aFencing/v1"
_LEVELS: Final = {c.CRITICAL: "error", c.WARNING: "warning", c.INFO: "note"}
_MISSING: Final = "missing-facts"
_IN_DOUBT: Final = "task-in-doubt"

_Json = dict[str, Any]


def as_sarif(dossier: Dossier) -> str:
    """A log with one run."""
    results = [_result(dossier, finding) for finding in dossier.report.findings]
    results += [_result(dossier, allowed.finding, allowed.reason) for allowed in dossier.allowed]
    run = {
        "tool": {"driver": _driver()},
        "automationDetails": {"id": "a2a-fencing/"},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": list(_notifications(dossier)),
            }
        ],
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": dossier.verdict, "facts": len(dossier.facts)},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver() -> _Json:
    return {
        "name": "a2a-fencing",
        "semanticVersion": metadata.version("a2a-fencing"),
        "rules": [_rule(RULES[name]) for name in c.RULES],
    }


def _rule(rule: Rule) -> _Json:
    return {
        "id": rule.name,
        "shortDescription": _text(_as_sentence(RULE_MEANINGS[rule.name])),
        "fullDescription": _text(_as_sentence(rule.statement)),
        "help": _text(_help(rule)),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["a2a", "concurrency"]},
    }


def _help(rule: Rule) -> str:
    if rule.severity == c.INFO:
        return f"Found when {rule.statement}: {rule.guarantee}."
    return f"Violated when {rule.statement}. Broken: {rule.guarantee}."


def _result(dossier: Dossier, finding: Finding, allowed: str | None = None) -> _Json:
    result = {
        "ruleId": finding.rule,
        "ruleIndex": c.RULES.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": _text("\n".join([_as_sentence(finding.explanation), "", *dossier.story(finding)])),
        "locations": [_location(dossier, finding.task, _last_place(dossier, finding))],
        "partialFingerprints": {_FINGERPRINT: _fingerprint(finding)},
        "suppressions": [],
        "properties": {
            "severity": finding.severity,
            "certainty": finding.certainty,
            "witness": list(finding.witness),
        },
    }
    steps = list(_steps(dossier, finding))
    if steps:
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if allowed is not None:
        suppression = {
            "kind": "external",
            "status": "accepted",
            "justification": shown(allowed, LONGEST_LINE),
        }
        result["suppressions"] = [suppression]
    return result


def _steps(dossier: Dossier, finding: Finding) -> Iterator[_Json]:
    for order, fact_id in enumerate(finding.witness, 1):
        fact, place = dossier.facts.get(fact_id), dossier.places.get(fact_id)
        if fact is not None and place is not None:
            location = _location(dossier, finding.task, place)
            told = f"{sentence(fact, dossier.names)} [{shown(fact_id)}]"
            yield {"executionOrder": order, "location": location | {"message": _text(told)}}


def _last_place(dossier: Dossier, finding: Finding) -> Place | None:
    places = (dossier.places.get(fact_id) for fact_id in reversed(finding.witness))
    return next((place for place in places if place is not None), None)


def _location(dossier: Dossier, task: TaskKey, place: Place | None) -> _Json:
    names = [shown(name) for name in (task.store, task.owner, task.task_id)]
    location: _Json = {
        "logicalLocations": [
            {"name": names[-1], "fullyQualifiedName": "/".join(names), "kind": "resource"}
        ]
    }
    if place is not None:
        # A result without a line is shown at the first one, and some readers insist on being told so.
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(place.path)},
            "region": {"startLine": place.line or 1},
        }
    return location


def _uri(path: Path) -> str:
    """Relative to the working directory where the file is below it, as code scanning wants it."""
    path = path.resolve()
    here = Path.cwd()
    return quote(path.relative_to(here).as_posix()) if path.is_relative_to(here) else path.as_uri()


def _fingerprint(finding: Finding) -> str:
    """What stays the same when the history is judged again, with more facts or in other files."""
    task = finding.task
    parts = [finding.rule, task.store, task.owner, task.task_id, task.incarnation, finding.key]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _notifications(dossier: Dossier) -> Iterator[_Json]:
    for gap in dossier.report.gaps:
        yield _notification(_MISSING, f"missing: {dossier.gap(gap)}")
    for case in dossier.cases:
        if case.verdict == c.UNKNOWN:
            yield _notification(_IN_DOUBT, _doubt(case))


def _doubt(case: TaskCase) -> str:
    return shown(f"task {task_title(case.key)}: {'; '.join(case.doubts)}", LONGEST_LINE)


def _notification(identity: str, text: str) -> _Json:
    return {"descriptor": {"id": identity}, "level": "warning", "message": _text(text)}


def _as_sentence(text: str) -> str:
    text = shown(text, LONGEST_LINE)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _text(text: str) -> _Json:
    return {"text": text}
