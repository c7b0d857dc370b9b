"""Lines, bands and arrows of a task's timeline."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.axis import Axis
from a2a_fencing_dashboard.ui.charts.drawing import Drawing

Shape = dict[str, Any]

_FINISHED: Final = palette.faded(palette.EXECUTION, 0.12)
_IDLE: Final = {"color": palette.faded(palette.EXECUTION, 0.5), "width": 1, "dash": "dash"}
_OFFENCE: Final = {"color": palette.VIOLATION.color, "width": 1.5, "dash": "dot"}


def finished(drawing: Drawing) -> list[Shape]:
    """A band through all lanes wherever the stored task was finished."""
    bands: list[Shape] = []
    began: float | None = None
    for fact, x in drawing.accepted():
        final = fact.state in c.TERMINAL_STATES
        if final and began is None:
            began = x
        elif not final and began is not None:
            bands.append(_band(began, x))
            began = None
    return bands if began is None else [*bands, _band(began, drawing.axis.end)]


def offences(drawing: Drawing, broke: Collection[str]) -> list[Shape]:
    """A line through all lanes where a fact broke a rule."""
    return [_line(x, _OFFENCE) for fact, x in drawing.placed() if fact.id in broke]


def idle(axis: Axis) -> list[Shape]:
    """Both edges of each stretch that is drawn shorter than it was."""
    return [_line(x, _IDLE) for stretch in axis.idle for x in (stretch.start, stretch.end)]


def idle_labels(axis: Axis) -> list[Shape]:
    """How long each of these stretches was."""
    return [
        {
            "x": (stretch.start + stretch.end) / 2,
            "y": 0,
            "yref": "paper",
            "yanchor": "bottom",
            "text": f"idle<br>{stretch.label}",
            "showarrow": False,
            "font": {"size": 10},
            "opacity": 0.75,
        }
        for stretch in axis.idle
    ]


def arrows(drawing: Drawing) -> list[Shape]:
    """From each refused write to the write that it lost to, when another lane made that one."""
    places = {fact.id: (x, drawing.lanes.y(fact)) for fact, x in drawing.placed()}
    ends = [(places[loser], places[rival.id]) for loser, rival in drawing.schedule.rivals.items()]
    return [_arrow(tail, head) for tail, head in ends if tail[1] != head[1]]


def _arrow(tail: tuple[float, float], head: tuple[float, float]) -> Shape:
    return {
        "ax": tail[0],
        "ay": tail[1],
        "x": head[0],
        "y": head[1],
        "axref": "x",
        "ayref": "y",
        "xref": "x",
        "yref": "y",
        "text": "",
        "showarrow": True,
        "arrowhead": 2,
        "arrowwidth": 1.2,
        "arrowcolor": palette.CONFLICT.color,
        "standoff": 9,
        "startstandoff": 9,
    }


def _band(start: float, end: float) -> Shape:
    return _upright(start, end) | {"type": "rect", "line": {"width": 0}, "fillcolor": _FINISHED}


def _line(x: float, style: dict[str, Any]) -> Shape:
    return _upright(x, x) | {"type": "line", "line": style}


def _upright(start: float, end: float) -> Shape:
    return {"x0": start, "x1": end, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
