"""Executions of a task's timeline: how long each ran, and how it ended."""

from __future__ import annotations

import plotly.graph_objects as go

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.drawing import Drawing
from a2a_fencing_dashboard.ui.charts.spells import Spell, bar
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.words import replica_name


def bars(drawing: Drawing) -> list[go.Bar]:
    """A bar from start to end of each execution; one that has not ended is dotted up to the edge."""
    runs = _runs(drawing)
    if not runs:
        return []
    hover = [
        f"execution on {figure_text(replica_name(drawing.names, run.fact.replica))}: {figure_text(how)}"
        for run, how in runs
    ]
    drawn = bar(
        drawing, [run for run, _ in runs], hover, color=palette.EXECUTION, opacity=0.2, width=0.5
    )
    return [drawn.update(name="execution", showlegend=True, legendrank=1)]


def _runs(drawing: Drawing) -> list[tuple[Spell, str]]:
    """Executions, and how they ended."""
    runs: dict[str, tuple[Spell, str]] = {}
    for fact, x in drawing.placed():
        if fact.kind != c.EXECUTION:
            continue
        key = fact.execution_id or fact.replica
        if fact.phase == c.STARTED:
            runs[key] = Spell(fact, x, None), "still executing"
        else:
            # Its start was not delivered, or lies before the part that is drawn.
            began, _ = runs.get(key) or (Spell(fact, drawing.axis.start, None), "")
            runs[key] = Spell(began.fact, began.start, x), fact.phase or "ended"
    return list(runs.values())
