"""The bars of a task's timeline: what the store held, and how long executions ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import plotly.graph_objects as go

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.drawing import Drawing
from a2a_fencing_dashboard.ui.charts.lanes import STORE
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.words import Names, replica_name, state, version

_HATCH: Final = {
    "fillmode": "overlay",
    "size": 8,
    "solidity": 0.15,
    "fgcolor": "#ffffff",
    "fgopacity": 0.35,
}


@dataclass(frozen=True, slots=True)
class _Execution:
    """One run of an executor. `end` is None while it lasts."""

    fact: Fact
    start: float
    end: float | None
    phase: str


def executions(drawing: Drawing) -> list[go.Bar]:
    """A bar from start to end of each execution; one that has not ended is dotted up to the edge."""
    runs = _runs(drawing)
    if not runs:
        return []
    return [
        go.Bar(
            orientation="h",
            base=[run.start for run in runs],
            x=[(drawing.axis.end if run.end is None else run.end) - run.start for run in runs],
            y=[drawing.lanes.y(run.fact) for run in runs],
            width=0.5,
            marker={
                "color": palette.faded(palette.EXECUTION, 0.2),
                "line": {"width": 0},
                "pattern": {
                    "shape": ["." if run.end is None else "" for run in runs],
                    "fillmode": "overlay",
                    "size": 7,
                    "solidity": 0.2,
                    "fgcolor": palette.EXECUTION,
                    "fgopacity": 0.7,
                },
            },
            hovertext=[_hover(run, drawing.names) for run in runs],
            hoverinfo="text",
            customdata=[run.fact.id for run in runs],
            unselected={"marker": {"opacity": 1}},
            name="execution",
            showlegend=True,
            legendrank=1,
        )
    ]


def _runs(drawing: Drawing) -> list[_Execution]:
    runs: dict[str, _Execution] = {}
    for fact, x in drawing.placed():
        if fact.kind != c.EXECUTION:
            continue
        key = fact.execution_id or fact.replica
        if fact.phase == c.STARTED:
            runs[key] = _Execution(fact, x, None, "still executing")
        else:
            # Its start was not delivered, or lies before the part that is drawn.
            began = runs.get(key) or _Execution(fact, drawing.axis.start, None, "")
            runs[key] = replace(began, end=x, phase=fact.phase or "ended")
    return list(runs.values())


def _hover(run: _Execution, names: Names) -> str:
    name = figure_text(replica_name(names, run.fact.replica))
    return f"execution on {name}: {figure_text(run.phase)}"


def versions(drawing: Drawing) -> list[go.Bar]:
    """A segment for each state the store held, as long as it held it; hatched where it was final.

    One trace a state: Plotly takes no list of colours beside a pattern without complaining.
    """
    writes = drawing.accepted()
    starts = [x for _, x in writes]
    ends = [*starts[1:], drawing.axis.end] if starts else []
    by_state: dict[str | None, list[_Segment]] = {}
    for (fact, start), end in zip(writes, ends, strict=True):
        by_state.setdefault(fact.state, []).append((fact, start, end))
    return [_segments(drawing, held, segments) for held, segments in by_state.items()]


_Segment = tuple[Fact, float, float]
"""An accepted write, and from where to where its state held."""


def _segments(drawing: Drawing, held: str | None, segments: Sequence[_Segment]) -> go.Bar:
    look = palette.state_look(held)
    facts = [fact for fact, _, _ in segments]
    return go.Bar(
        orientation="h",
        base=[start for _, start, _ in segments],
        x=[end - start for _, start, end in segments],
        y=[drawing.lanes.heights[STORE]] * len(segments),
        width=0.56,
        marker={
            "color": look.color,
            "line": {"width": 1, "color": "rgba(255,255,255,0.6)"},
            "pattern": {**_HATCH, "shape": "/" if held in c.TERMINAL_STATES else ""},
        },
        text=[f"{look.glyph} {figure_text(_held(fact))}" for fact in facts],
        textposition="inside",
        insidetextanchor="start",
        textangle=0,
        textfont={"color": "#ffffff", "size": 12, "weight": 600},
        hovertext=[drawing.hover(fact) for fact in facts],
        hoverinfo="text",
        customdata=[fact.id for fact in facts],
        unselected={"marker": {"opacity": 1}, "textfont": {"color": "#ffffff"}},
        showlegend=False,
    )


def _held(fact: Fact) -> str:
    if fact.version is None:
        return state(fact.state)
    return f"{version(fact.version)} {state(fact.state)}"
