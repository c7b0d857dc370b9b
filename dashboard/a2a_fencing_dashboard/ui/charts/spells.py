"""Bars of a task's timeline for what lasts: from its start to its end, or dotted up to the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go

from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.drawing import Drawing

_DOTTED: Final = "."


@dataclass(frozen=True, slots=True)
class Spell:
    """Something that lasts. `end` is None while it does."""

    fact: Fact
    start: float
    end: float | None


def bar(
    drawing: Drawing,
    spells: Sequence[Spell],
    hover: Sequence[str],
    *,
    color: str,
    opacity: float,
    width: float,
) -> go.Bar:
    """One bar a spell, in the lane of its fact; `hover` is what each says under the pointer."""
    return go.Bar(
        orientation="h",
        base=[spell.start for spell in spells],
        x=[(drawing.axis.end if spell.end is None else spell.end) - spell.start for spell in spells],
        y=[drawing.lanes.y(spell.fact) for spell in spells],
        width=width,
        marker={
            "color": palette.faded(color, opacity),
            "line": {"width": 0},
            "pattern": {
                "shape": [_DOTTED if spell.end is None else "" for spell in spells],
                "fillmode": "overlay",
                "size": 7,
                "solidity": 0.25,
                "fgcolor": color,
            },
        },
        hovertext=hover,
        hoverinfo="text",
        customdata=[spell.fact.id for spell in spells],
        unselected={"marker": {"opacity": 1}},
    )
