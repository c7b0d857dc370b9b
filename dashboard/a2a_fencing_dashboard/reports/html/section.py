"""What the page shows of one task, as plain values for the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plotly.io.json import to_json_plotly

from a2a_fencing import conventions as c
from a2a_fencing.checker import RULES, Finding
from a2a_fencing.checker.story import Step
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.reports.dossier import LONGEST_LINE, Dossier, TaskCase
from a2a_fencing_dashboard.ui import frames, palette
from a2a_fencing_dashboard.ui.charts.schedule import Schedule, focus, part, schedule
from a2a_fencing_dashboard.ui.charts.timeline import timeline
from a2a_fencing_dashboard.ui.offences import offences
from a2a_fencing_dashboard.ui.palette import Look
from a2a_fencing_dashboard.ui.words import (
    RULE_MEANINGS,
    Names,
    count,
    duration,
    replica_name,
    shown,
    version,
)

# At most so many facts of a task are drawn and listed.
_DRAWN: Final = 200
_LISTED: Final = 500

_COLUMNS: Final = ("#", "after", "replica", "what happened", "base → version", "broken rule", "fact id")


@dataclass(frozen=True, slots=True)
class Told:
    """One step of the story, and whether a finding rests on it."""

    text: str
    fact_id: str
    trace_id: str
    cited: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """One finding."""

    rule: str
    meaning: str
    severity: str
    certainty: str
    explanation: str
    guarantee: str
    steps: str


@dataclass(frozen=True, slots=True)
class Section:
    """One task.

    Attributes:
        title: Its id.
        about: Named values.
        look: How its last stored state is drawn.
        findings, steps: The story.
        figure: The timeline, as JSON that may stand inside a script element; empty without facts.
        figure_px: The least width at which it can be read.
        notes: How the timeline is to be read.
        columns, rows: The facts as a table.
        listed: What part of the facts the table shows.
    """

    title: str
    about: list[tuple[str, str]]
    look: Look
    findings: list[Shown]
    steps: list[Told]
    figure: str
    figure_px: int
    notes: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    listed: str


def section(dossier: Dossier, case: TaskCase) -> Section:
    """Everything there is to show of a violated task."""
    ordered = schedule(dossier.facts_of(case.key))
    broke = offences(case.violations, ordered)
    steps = dossier.steps(case.violations)
    numbers = {step.fact.id: number for number, step in enumerate(steps, 1)}
    cited = {fact_id for finding in case.violations for fact_id in finding.witness}
    last = _last_write(ordered)
    start, end = focus(ordered, broke, _DRAWN)
    rows, listed = _table(ordered, broke, dossier.names)
    return Section(
        title=shown(case.key.task_id),
        about=_about(dossier, case, ordered, last),
        look=palette.state_look(last.state if last else None),
        findings=[_finding(finding, numbers) for finding in case.violations],
        steps=[_told(step, step.fact.id in cited) for step in steps],
        figure=_figure(part(ordered, start, end), broke, dossier.names) if ordered.facts else "",
        figure_px=34 * (end - start),
        notes=_notes(ordered, dossier.names, start, end),
        columns=_COLUMNS,
        rows=rows,
        listed=listed,
    )


def _finding(finding: Finding, numbers: Mapping[str, int]) -> Shown:
    rule = RULES.get(finding.rule)
    steps = [str(numbers[fact_id]) for fact_id in finding.witness if fact_id in numbers]
    return Shown(
        rule=shown(finding.rule),
        meaning=RULE_MEANINGS.get(finding.rule, ""),
        severity=finding.severity,
        certainty=finding.certainty,
        explanation=shown(finding.explanation, LONGEST_LINE),
        guarantee=rule.guarantee if rule is not None else "",
        steps=", ".join(steps),
    )


def _told(step: Step, cited: bool) -> Told:
    fact = step.fact
    return Told(shown(step.text, LONGEST_LINE), shown(fact.id), shown(fact.trace_id or ""), cited)


def _last_write(ordered: Schedule) -> Fact | None:
    accepted = (f for f in reversed(ordered.facts) if f.kind == c.WRITE and f.outcome == c.ACCEPTED)
    return next(accepted, None)


def _about(
    dossier: Dossier, case: TaskCase, ordered: Schedule, last: Fact | None
) -> list[tuple[str, str]]:
    key = case.key
    context = next((fact.context_id for fact in ordered.facts if fact.context_id), None)
    writers = dict.fromkeys(fact.replica for fact in ordered.facts if fact.kind == c.WRITE)
    about = [
        ("state", frames.state(last.state) if last else "not known"),
        ("version", version(last.version) if last else "not known"),
        ("owner", shown(key.owner) or "none"),
        ("context", shown(context) if context else "none"),
        ("store", shown(key.store)),
        ("written by", ", ".join(replica_name(dossier.names, replica) for replica in writers)),
    ]
    return [*about, ("incarnation", str(key.incarnation))] if key.incarnation else about


def _figure(ordered: Schedule, broke: Mapping[str, Sequence[str]], names: Names) -> str:
    figure = timeline(ordered, broke, names)
    figure.update_layout(
        template="none", paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", autosize=True
    )
    # Plotly escapes what could end the script element.
    return str(to_json_plotly(figure.to_plotly_json(), engine="json"))


def _notes(ordered: Schedule, names: Names, start: int, end: int) -> str:
    notes = ["ordered by version"]
    if end - start < len(ordered.facts):
        notes.append(f"showing facts {start + 1:,} to {end:,} of {len(ordered.facts):,}")
    notes += [
        f"clock of {replica_name(names, replica)} moved by +{duration(moved)} so that causes come first"
        for replica, moved in ordered.corrections.items()
    ]
    return " · ".join(notes)


def _table(
    ordered: Schedule, broke: Mapping[str, Sequence[str]], names: Names
) -> tuple[list[dict[str, Any]], str]:
    start, end = focus(ordered, broke, _LISTED)
    cells = {fact_id: ", ".join(shown(rule, 40) for rule in rules) for fact_id, rules in broke.items()}
    first = ordered.times[0] if ordered.times else 0
    chosen = [(i + 1, ordered.facts[i], ordered.times[i] - first) for i in range(start, end)]
    table = frames.facts(chosen, names, cells, lambda trace: None)
    total = count(len(ordered.facts), "fact")
    listed = total if len(chosen) == len(ordered.facts) else f"{start + 1:,} to {end:,} of {total}"
    return [{str(name): cell for name, cell in row.items()} for row in table.to_dict("records")], listed
