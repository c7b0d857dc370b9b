"""What a run found, as a table that a person can paste into an issue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import FindingRow, Overview, Store, Window
from a2a_fencing_dashboard.ui.words import Names, count, named, replica_names, short_id, shown

_PAGE = 500


def violations(store: Store, window: Window, *, rule: str) -> Iterator[FindingRow]:
    """The standing findings of one rule, newest first."""
    offset = 0
    while True:
        rows, total = store.findings(window, rules=(rule,), offset=offset, limit=_PAGE)
        yield from rows
        offset += len(rows)
        if not rows or offset >= total:
            return


def violated_tasks(store: Store, window: Window) -> set[str]:
    """Ids of the tasks with a standing violation."""
    rules = [rule for rule, number in store.overview(window).violations.items() if number]
    return {row.finding.task.task_id for rule in rules for row in violations(store, window, rule=rule)}


def table(store: Store, window: Window) -> Iterator[str]:
    """The figures of a run, line by line, from what the receiver stored."""
    overview = store.overview(window)
    replicas = store.replicas(window)
    names = replica_names(replicas)
    yield (
        f"{count(len(replicas), 'replica')}, {count(overview.tasks, 'task')},"
        f" {count(overview.writes, 'write')}"
    )
    yield from _figures(overview, store, window, names)
    yield _completeness(overview)


def _figures(overview: Overview, store: Store, window: Window, names: Names) -> Iterator[str]:
    rows = [
        ("conflicts", sum(overview.conflicts.values()), _split(overview.conflicts)),
        ("terminal rejections", overview.terminal_rejections, ""),
        ("dropped events", sum(overview.drops.values()), _split(overview.drops)),
    ]
    for rule in c.RULES:  # the gravest first
        number = overview.violations.get(rule, 0)
        if number:
            rows.append((rule, number, _example(next(violations(store, window, rule=rule)), names)))
    if not any(overview.violations.values()):
        rows.append(("violations", 0, ""))
    width = max(len(label) for label, _, _ in rows)
    digits = max(len(f"{number:,}") for _, number, _ in rows)
    for label, number, note in rows:
        yield f"  {label:<{width}}  {number:>{digits},}   {note}".rstrip()


def _split(parts: Mapping[str, int]) -> str:
    named = [f"{reason} {number:,}" for reason, number in sorted(parts.items()) if number]
    return f"({', '.join(named)})" if named else ""


def _example(row: FindingRow, names: Names) -> str:
    text = named(row.finding.explanation, names)
    return f"e.g. {short_id(row.finding.task.task_id)}: {shown(text, 300)}"


def _completeness(overview: Overview) -> str:
    if not overview.facts:
        return "history incomplete: no facts have arrived"
    expected = overview.facts + overview.missing
    word = "incomplete" if overview.missing else "complete"
    return f"history {word}: {overview.facts:,} of {expected:,} facts"
