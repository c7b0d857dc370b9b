"""What the store held along a task's timeline: a segment for each state, version by version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import plotly.graph_objects as go

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.drawing import Drawing
from a2a_fencing_dashboard.ui.charts.lanes import STORE
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.words import state, version

_HATCH: Final = {
    "fillmode": "overlay",
    "size": 8,
    "solidity": 0.15,
    "fgcolor": "#ffffff",
    "fgopacity": 0.35,
}


def bars(drawing: Drawing) -> list[go.Bar]:
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
