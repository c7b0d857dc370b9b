"""Rates over time: one small chart for each measure, all on one time axis, a line per replica."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from a2a_fencing_dashboard.store.protocol import SeriesPoint
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.words import moment

MEASURES: Final[Mapping[str, str]] = {
    "violations": "violations",
    "writes": "writes",
    "conflicts": "conflicts",
    "rejections": "terminal rejections",
    "drops": "dropped events",
}

_ROW_PX: Final = 84
_NS: Final = 1_000_000_000


def rates(
    points: Sequence[SeriesPoint],
    replicas: Sequence[tuple[str, str]],
    buckets: range,
    zone: str | None,
) -> go.Figure:
    """Draws rates per second; where nothing was counted, the rate is zero.

    Args:
        points: Counts per bucket.
        replicas: Instance id and name, in the order in which they started; the order gives the colour.
        buckets: Starts of all buckets to draw, seconds since 1970; the step is their size.
        zone: Time zone of the labels; UTC when None.
    """
    counts: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for point in points:
        counts[point.measure, point.replica][point.bucket_unix_s] = point.count
    figure = make_subplots(rows=len(MEASURES), cols=1, shared_xaxes=True, vertical_spacing=0.07)
    times = [moment(second * _NS, zone) for second in buckets]
    for row, (measure, title) in enumerate(MEASURES.items(), start=1):
        highest = 0.0
        for index, (replica, name) in enumerate(replicas):
            counted = counts.get((measure, replica), {})
            values = [counted.get(second, 0) / buckets.step for second in buckets]
            highest = max(highest, *values, 0.0)
            color, dash = palette.replica_line(index)
            figure.add_trace(
                go.Scatter(
                    x=times,
                    y=values,
                    mode="lines",
                    line={"color": color, "dash": dash, "width": 1.8, "shape": "hv"},
                    name=figure_text(name, 40),
                    legendgroup=replica,
                    showlegend=row == 1,
                    hovertemplate="%{y:.3~g}/s",
                ),
                row,
                1,
            )
        top = max(highest, 1 / buckets.step)
        figure.update_yaxes(
            range=[-0.06 * top, 1.12 * top],
            tickvals=[0, highest] if highest else [0],
            ticktext=["0", f"{highest:.3g}"] if highest else ["0"],
            fixedrange=True,
            zeroline=False,
            row=row,
            col=1,
        )
        figure.add_annotation(
            text=f"{title} per second",
            xref="x domain",
            yref="y domain",
            x=0,
            y=1.04,
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font={"size": 12},
            row=row,
            col=1,
        )
    figure.update_xaxes(showgrid=False)
    figure.update_layout(
        height=70 + _ROW_PX * len(MEASURES),
        margin={"l": 8, "r": 8, "t": 46, "b": 8},
        hovermode="x unified",
        dragmode="zoom",
        uirevision="rates",
        legend={"orientation": "h", "y": 1, "yanchor": "top", "yref": "container", "x": 0},
    )
    return figure
