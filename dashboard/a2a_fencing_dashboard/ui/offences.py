"""Which facts of a task broke which rules."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_fencing.checker import Finding
from a2a_fencing_dashboard.ui.charts.schedule import Schedule


def offences(findings: Iterable[Finding], ordered: Schedule) -> dict[str, tuple[str, ...]]:
    """Fact id -> rules that it broke: of a violation's witness, what happened last."""
    places = {fact.id: index for index, fact in enumerate(ordered.facts)}
    rules: dict[str, dict[str, None]] = {}
    for finding in findings:
        known = [fact_id for fact_id in finding.witness if fact_id in places]
        if finding.violates and known:
            culprit = max(known, key=places.__getitem__)
            rules.setdefault(culprit, {})[finding.rule] = None
    return {fact_id: tuple(names) for fact_id, names in rules.items()}
