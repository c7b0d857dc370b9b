"""The timeline of one task.

Lanes from top to bottom: what clients were told, the store's versions, each replica with its executions
as bars and its facts as marks, dispatches. What broke a rule is crossed out and stands on a line through
all lanes; a refused write points at the write that it lost to.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import plotly.graph_objects as go

from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts import attempts, executions, guides, versions
from a2a_fencing_dashboard.ui.charts.axis import Axis, by_order, to_scale
from a2a_fencing_dashboard.ui.charts.drawing import Drawing
from a2a_fencing_dashboard.ui.charts.lanes import DISPATCHES, Lanes, lanes
from a2a_fencing_dashboard.ui.charts.marks import crosses, marks
from a2a_fencing_dashboard.ui.charts.schedule import Schedule
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.words import Names

_LANE_PX: Final = 62
_AROUND_PX: Final = 74


def timeline(
    schedule: Schedule, broke: Collection[str], names: Names, *, scaled: bool = False
) -> go.Figure:
    """Draws the facts of one task.

    Args:
        schedule: The facts, in order.
        broke: Ids of the facts that broke a rule.
        names: What replicas are called.
        scaled: Whether the time axis is to scale; otherwise each fact takes one step.
    """
    axis = (to_scale if scaled else by_order)(schedule.times)
    drawing = Drawing(schedule, axis, lanes(schedule.facts, names), names)
    figure = go.Figure(
        [
            *executions.bars(drawing),
            *versions.bars(drawing),
            *attempts.bars(drawing),
            *marks(drawing, broke),
            *crosses(drawing, broke),
        ]
    )
    figure.update_layout(
        height=_AROUND_PX + _LANE_PX * max(len(drawing.lanes.titles), 1),
        margin={"l": 8, "r": 8, "t": 26, "b": 44},
        barmode="overlay",
        bargap=0,
        hovermode="closest",
        dragmode="pan",
        clickmode="event+select",
        uirevision="timeline",
        uniformtext={"minsize": 10, "mode": "hide"},
        legend={"orientation": "h", "y": 0, "yanchor": "bottom", "yref": "container", "x": 0},
        xaxis=_time_axis(axis),
        yaxis=_lane_axis(drawing.lanes),
        shapes=[*guides.finished(drawing), *guides.idle(axis), *guides.offences(drawing, broke)],
        annotations=[*guides.arrows(drawing), *guides.idle_labels(axis)],
    )
    return figure


def _time_axis(axis: Axis) -> dict[str, Any]:
    return {
        "range": [axis.start, axis.end],
        "tickvals": [x for x, _ in axis.ticks],
        "ticktext": [label for _, label in axis.ticks],
        "side": "top",
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }


def _lane_axis(drawn: Lanes) -> dict[str, Any]:
    return {
        # The last lane's labels have two lines where it is that of dispatches.
        "range": [-len(drawn.titles) + (0.2 if DISPATCHES in drawn.heights else 0.45), 0.6],
        "tickvals": [-float(index) for index in range(len(drawn.titles))],
        "ticktext": [figure_text(title, 22) for title in drawn.titles],
        "fixedrange": True,
        "showgrid": True,
        "gridcolor": palette.faded(palette.EXECUTION, 0.2),
        "zeroline": False,
        "ticks": "",
        "automargin": True,
    }
