"""Rates over time: one small chart for each measure, all on one time axis, a line per replica.

Where many replicas have come and gone, the earlier ones share a line: nobody tells a hundred apart, and
each line costs time in every refresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

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

MOST_LINES: Final = 12
"""Replicas that have a line of their own."""

_EARLIER: Final = "earlier"
_ROW_PX: Final = 84
_AROUND_PX: Final = 48
_FILLED: Final = 0.7
"""Part of a row that its chart takes; the title has the rest."""
_NS: Final = 1_000_000_000

Counts = npt.NDArray[np.float64]


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
    counts = _counts(points, buckets)
    drawn = _lines(replicas, counts)
    times = np.array(
        [
            moment(second * _NS, zone).replace(tzinfo=None)
            for second in (*buckets, buckets[-1] + buckets.step)
        ],
        "datetime64[s]",
    )
    layout: dict[str, Any] = {
        "annotations": [_title(row, title) for row, title in enumerate(MEASURES.values())],
        "height": _AROUND_PX + _ROW_PX * len(MEASURES),
        "margin": {"l": 8, "r": 8, "t": 24, "b": 8},
        "hovermode": "x unified",
        "dragmode": "zoom",
        "uirevision": "rates",
        "legend": {"orientation": "h", "y": 1, "yanchor": "top", "yref": "container", "x": 0},
    }
    for row, measure in enumerate(MEASURES):
        highest = max((count.max() for (name, _), count in counts.items() if name == measure), default=0)
        layout[f"yaxis{_suffix(row)}"] = _scale(row, highest / buckets.step, buckets.step)
        layout[f"xaxis{_suffix(row)}"] = _time_axis(row)
    lines = [
        _line(line, times, counts.get((measure, line.replica)), buckets.step, row)
        for row, measure in enumerate(MEASURES)
        for line in drawn
    ]
    return go.Figure(lines, layout)


class _Looks(NamedTuple):
    """A line, in every chart the same."""

    replica: str
    name: str
    color: str
    dash: str


def _lines(replicas: Sequence[tuple[str, str]], counts: dict[tuple[str, str], Counts]) -> list[_Looks]:
    """The lines to draw. Where there are too many, `counts` gets the sum of the earlier replicas."""
    looks = [
        _Looks(replica, name, *palette.replica_line(index))
        for index, (replica, name) in enumerate(replicas)
    ]
    if len(looks) <= MOST_LINES:
        return looks
    counted = {replica for _, replica in counts}
    looks = [line for line in looks if line.replica in counted]
    earlier, own = looks[:-MOST_LINES], looks[-MOST_LINES:]
    if not earlier:
        return own
    for measure in MEASURES:
        some = [counts[measure, line.replica] for line in earlier if (measure, line.replica) in counts]
        if some:
            counts[measure, _EARLIER] = np.sum(some, axis=0)
            for line in earlier:
                counts.pop((measure, line.replica), None)
    name = f"{len(earlier)} earlier replicas" if len(earlier) > 1 else earlier[0].name
    return [_Looks(_EARLIER, name, palette.EXECUTION, "solid"), *own]


def _counts(points: Sequence[SeriesPoint], buckets: range) -> dict[tuple[str, str], Counts]:
    """Measure and replica -> count in each bucket; only those that counted something."""
    counts: dict[tuple[str, str], Counts] = {}
    for point in points:
        if point.bucket_unix_s in buckets:
            key = point.measure, point.replica
            counts.setdefault(key, np.zeros(len(buckets)))[buckets.index(point.bucket_unix_s)] = (
                point.count
            )
    return counts


def _line(look: _Looks, times: Any, counted: Counts | None, bucket_s: int, row: int) -> dict[str, Any]:
    # A dictionary, because Plotly copies what it is given: a line would be checked twice.
    return {
        "type": "scatter",
        "x": times,
        # The last bucket is as wide as the others: its line goes on to its end.
        "y": np.zeros(len(times)) if counted is None else np.append(counted, counted[-1]) / bucket_s,
        "xaxis": f"x{_suffix(row)}",
        "yaxis": f"y{_suffix(row)}",
        "mode": "lines",
        "line": {"color": look.color, "dash": look.dash, "width": 1.8, "shape": "hv"},
        "name": figure_text(look.name, 40),
        "legendgroup": look.replica,
        "showlegend": row == 0,
        "hovertemplate": "%{y:,.3~r}/s",
    }


def _time_axis(row: int) -> dict[str, Any]:
    """All rows move together; only the last one is labelled."""
    return {
        "anchor": f"y{_suffix(row)}",
        "matches": "x" if row else None,
        "showticklabels": row == len(MEASURES) - 1,
        "showgrid": False,
    }


def _rounded(rate: float) -> str:
    """Three digits, and no powers of ten, which few read at a glance."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _scale(row: int, highest: float, bucket_s: int) -> dict[str, Any]:
    """An axis that says no more than its zero and its peak."""
    top = highest or 1 / bucket_s
    below = (len(MEASURES) - 1 - row) / len(MEASURES)
    return {
        "anchor": f"x{_suffix(row)}",
        "domain": [below, below + _FILLED / len(MEASURES)],
        "range": [-0.06 * top, 1.12 * top],
        "tickvals": [0, highest] if highest else [0],
        "ticktext": ["0", _rounded(highest)] if highest else ["0"],
        "fixedrange": True,
        "zeroline": False,
    }


def _title(row: int, measure: str) -> dict[str, Any]:
    return {
        "text": f"{measure} per second",
        "xref": f"x{_suffix(row)} domain",
        "yref": f"y{_suffix(row)} domain",
        "x": 0,
        "y": 1.04,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12},
    }


def _suffix(row: int) -> str:
    """Plotly calls the axes of the first row x and y, those of the second x2 and y2."""
    return str(row + 1) if row else ""
