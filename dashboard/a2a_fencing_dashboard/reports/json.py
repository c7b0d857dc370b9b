"""A dossier as one JSON document, for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from importlib import metadata
from typing import Any

from a2a_fencing.checker import Finding
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.reports.dossier import Dossier, TaskCase


def as_json(dossier: Dossier) -> str:
    """An object with the verdict, what is missing, and each task of which there is something to say."""
    report = dossier.report
    document = {
        "tool": {"name": "a2a-fencing", "version": metadata.version("a2a-fencing")},
        "verdict": dossier.verdict,
        "complete": report.complete,
        "facts": len(dossier.facts),
        "missing": dossier.missing,
        "tasks": len(report.verdicts),
        "gaps": [
            {
                "replica": gap.replica,
                "replica_name": dossier.names.get(gap.replica),
                "first": gap.first,
                "last": gap.last,
            }
            for gap in report.gaps
        ],
        "cases": [_case(dossier, case) for case in dossier.cases],
    }
    return json.dumps(document, indent=2) + "\n"


def _case(dossier: Dossier, case: TaskCase) -> dict[str, Any]:
    return {
        "task": _task(case.key),
        "verdict": case.verdict,
        "doubts": list(case.doubts),
        "findings": [_finding(dossier, finding) for finding in case.findings],
        "allowed": [
            _finding(dossier, allowed.finding) | {"reason": allowed.reason} for allowed in case.allowed
        ],
    }


def _finding(dossier: Dossier, finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "certainty": finding.certainty,
        "key": finding.key,
        "explanation": finding.explanation,
        "story": dossier.story(finding),
        "witness": [_witness(dossier, fact_id) for fact_id in finding.witness],
    }


def _witness(dossier: Dossier, fact_id: str) -> dict[str, Any]:
    fact = dossier.facts.get(fact_id)
    return {"id": fact_id} if fact is None else dict(_fields(fact))


def _fields(fact: Fact) -> Iterator[tuple[str, Any]]:
    """What is set, by the names of `Fact`."""
    for field in fields(Fact):
        value = getattr(fact, field.name)
        if value is not None:
            yield field.name, _task(value) if isinstance(value, TaskKey) else value


def _task(key: TaskKey) -> dict[str, Any]:
    return {
        "store": key.store,
        "owner": key.owner,
        "task_id": key.task_id,
        "incarnation": key.incarnation,
    }
