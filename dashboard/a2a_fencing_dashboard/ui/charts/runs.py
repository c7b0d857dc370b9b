"""Two runs over each other: their rates since each began, and how long things took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from a2a_fencing_dashboard.store.durations import Durations
from a2a_fencing_dashboard.store.protocol import SeriesPoint
from a2a_fencing_dashboard.store.runs import RunDurations
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.rates import MEASURES
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.words import duration

_ROW_PX: Final = 78
_AROUND_PX: Final = 66
_FILLED: Final = 0.7
"""Part of a row that its chart takes; the title has the rest."""
_DECADES: Final = range(3, 15)
"""Powers of ten, in ns, that may be labelled: 1 µs to 28 h."""


@dataclass(frozen=True, slots=True)
class Lines:
    """One run to draw.

    Attributes:
        name: What it is called in the legend.
        points: Its counts per bucket.
        buckets: Starts of its buckets, seconds since 1970; the step is their size.
    """

    name: str
    points: Sequence[SeriesPoint]
    buckets: range


def rates_since_start(runs: Sequence[Lines]) -> go.Figure:
    """Rates of all replicas together, each run from its own beginning."""
    figure = go.Figure(layout=_layout(len(MEASURES), "rates since start"))
    for row, (measure, title) in enumerate(MEASURES.items()):
        rates = [_rates(run, measure) for run in runs]
        top = max((rate for values in rates for rate in values), default=0)
        _add_row(figure, row, len(MEASURES), f"{title} per second", top)
        for index, (run, values) in enumerate(zip(runs, rates, strict=True)):
            step = run.buckets.step
            figure.add_scatter(
                x=[step * place for place in range(len(values) + 1)],
                y=[*values, values[-1]] if values else [],
                line_shape="hv",
                hovertemplate="%{y:.3~g}/s",
                **_line(run.name, index, row),
            )
    figure.update_layout(
        {f"xaxis{_suffix(len(MEASURES) - 1)}": {"title": {"text": "seconds since the run began"}}}
    )
    return figure


def _rates(run: Lines, measure: str) -> list[float]:
    counts: Counter[int] = Counter()
    for point in run.points:
        if point.measure == measure:
            counts[point.bucket_unix_s] += point.count
    return [counts[start] / run.buckets.step for start in run.buckets]


def shares(runs: Sequence[tuple[str, RunDurations]]) -> go.Figure:
    """What part of saves and of tasks took no longer than so long."""
    titles: Mapping[str, list[Durations]] = {
        "saves that took no longer": [durations.saves for _, durations in runs],
        "tasks that took no longer": [durations.tasks for _, durations in runs],
    }
    figure = go.Figure(layout=_layout(0, "durations"))
    figure.update_layout(height=320, margin_t=56)
    for panel, (title, several) in enumerate(titles.items()):
        _add_panel(figure, panel, title)
        for index, ((name, _), durations) in enumerate(zip(runs, several, strict=True)):
            steps = durations.shares()
            figure.add_scatter(
                x=[ns for ns, _ in steps],
                y=[share for _, share in steps],
                customdata=[duration(ns) for ns, _ in steps],
                line_shape="hv",
                hovertemplate="%{y:.1%} within %{customdata}",
                **_line(name, index, panel),
            )
    return figure


def _line(name: str, index: int, row: int) -> dict[str, Any]:
    color, dash = palette.replica_line(index)
    return {
        "mode": "lines",
        "line_color": color,
        "line_dash": dash,
        "line_width": 1.9,
        "name": figure_text(name, 60),
        "legendgroup": str(index),
        "showlegend": row == 0,
        "xaxis": f"x{_suffix(row)}",
        "yaxis": f"y{_suffix(row)}",
    }


def _layout(rows: int, revision: str) -> dict[str, Any]:
    return {
        "height": _AROUND_PX + _ROW_PX * rows,
        "margin": {"l": 8, "r": 8, "t": 30, "b": 8},
        "hovermode": "x unified",
        "dragmode": "zoom",
        "uirevision": revision,
        "legend": {"orientation": "h", "y": 1, "yanchor": "top", "yref": "container", "x": 0},
    }


def _add_row(figure: go.Figure, row: int, rows: int, title: str, highest: float) -> None:
    """An axis that says no more than its zero and its peak, over one time axis for all."""
    top, below = highest or 1, (rows - 1 - row) / rows
    figure.update_layout(
        {
            f"yaxis{_suffix(row)}": {
                "anchor": f"x{_suffix(row)}",
                "domain": [below, below + _FILLED / rows],
                "range": [-0.06 * top, 1.12 * top],
                "tickvals": [0, highest] if highest else [0],
                "ticktext": ["0", f"{highest:.3g}"] if highest else ["0"],
                "fixedrange": True,
                "zeroline": False,
            },
            f"xaxis{_suffix(row)}": {
                "anchor": f"y{_suffix(row)}",
                "matches": "x" if row else None,
                "showticklabels": row == rows - 1,
                "showgrid": False,
                "zeroline": False,
            },
        }
    )
    _add_title(figure, row, title)


def _add_panel(figure: go.Figure, panel: int, title: str) -> None:
    """One of two beside each other, its durations on a logarithmic axis."""
    figure.update_layout(
        {
            f"xaxis{_suffix(panel)}": {
                "anchor": f"y{_suffix(panel)}",
                "domain": [0.54 * panel, 0.54 * panel + 0.46],
                "type": "log",
                "tickvals": [10**power for power in _DECADES],
                "ticktext": [duration(10**power) for power in _DECADES],
            },
            f"yaxis{_suffix(panel)}": {
                "anchor": f"x{_suffix(panel)}",
                "range": [0, 1.04],
                "tickvals": [0, 0.5, 0.99],
                "ticktext": ["0", "50 %", "99 %"],
                "fixedrange": True,
                "zeroline": False,
            },
        }
    )
    _add_title(figure, panel, title)


def _add_title(figure: go.Figure, row: int, title: str) -> None:
    figure.add_annotation(
        text=title,
        xref=f"x{_suffix(row)} domain",
        yref=f"y{_suffix(row)} domain",
        x=0,
        y=1.04,
        xanchor="left",
        yanchor="bottom",
        showarrow=False,
        font={"size": 12},
    )


def _suffix(row: int) -> str:
    """Plotly calls the axes of the first row x and y, those of the second x2 and y2."""
    return str(row + 1) if row else ""
