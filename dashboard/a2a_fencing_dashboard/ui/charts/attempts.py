"""Dispatch attempts of a task's timeline: how long each took, and what came of it."""

from __future__ import annotations

from dataclasses import replace

import plotly.graph_objects as go

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.drawing import Drawing
from a2a_fencing_dashboard.ui.charts.spells import Spell, bar
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.palette import Look
from a2a_fencing_dashboard.ui.words import shown

_LOOKS = {
    c.ACCEPTED: palette.DISPATCH,
    c.DISPATCH_REJECTED: palette.HELD,
    c.DISPATCH_FAILED: palette.FAILED_DISPATCH,
}


def look(fact: Fact) -> Look:
    """How the outcome of an attempt is drawn."""
    return _LOOKS.get(fact.outcome or "", palette.UNKNOWN_OUTCOME)


def label(fact: Fact) -> str:
    """What was dispatched and which try it was, what came of it and under which token: two lines."""
    name = shown(fact.name or "dispatch", 22)
    number = f" #{fact.attempt}" if fact.attempt is not None else ""
    outcome = "pending" if fact.phase == c.STARTED else shown(fact.outcome or c.UNKNOWN, 20)
    token = f" · token {fact.token}" if fact.token is not None else ""
    return f"{name}{number}\n{outcome}{token}"


def unanswered(drawing: Drawing) -> set[str]:
    """Ids of the facts that begin an attempt whose end has not been told."""
    return {run.fact.id for run in _attempts(drawing) if run.end is None}


def bars(drawing: Drawing) -> list[go.Bar]:
    """A bar from beginning to end of each attempt; one that has not ended is dotted up to the edge."""
    runs = [run for run in _attempts(drawing) if run.end != run.start]
    if not runs:
        return []
    hover = [figure_text(label(run.fact).replace("\n", ": ")) for run in runs]
    drawn = bar(drawing, runs, hover, color=palette.DISPATCH.color, opacity=0.3, width=0.16)
    return [drawn.update(showlegend=False)]


def _attempts(drawing: Drawing) -> list[Spell]:
    """The attempts. A resource's answer ends one only where the executor does not say how it ended."""
    runs: dict[object, Spell] = {}
    placed = [(fact, x) for fact, x in drawing.placed() if fact.kind == c.DISPATCH]
    for fact, x in sorted(placed, key=lambda known: known[0].origin == c.FROM_RESOURCE):
        key = (fact.dispatch_id, fact.attempt) if fact.dispatch_id else fact.id
        run = runs.get(key)
        if fact.phase == c.STARTED:
            runs[key] = Spell(fact, x, None)
        elif run is None:
            runs[key] = Spell(fact, x, x)
        elif run.end is None or fact.origin != c.FROM_RESOURCE:
            runs[key] = replace(run, fact=fact, end=max(run.start, x))  # clocks differ
    return list(runs.values())
