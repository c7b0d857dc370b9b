"""The marks of a task's timeline: one a fact, and a cross over what broke a rule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts import attempts
from a2a_fencing_dashboard.ui.charts.drawing import Drawing
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.palette import Look
from a2a_fencing_dashboard.ui.words import state, version

WRITTEN: Final = "write accepted"
CONFLICT: Final = "refused: another writer was first"
REJECTED: Final = "refused: task is finished"
UNSURE: Final = "outcome unknown"
DROPPED: Final = "event dropped"
READ: Final = "read"
TOLD: Final = "told to a client"
DISPATCHED: Final = "dispatch"
OTHER: Final = "other"

GROUPS: Final = (WRITTEN, CONFLICT, REJECTED, UNSURE, DROPPED, READ, TOLD, DISPATCHED, OTHER)
"""Legend entries, in this order."""

BROKE: Final = "broke a rule"

UNCHANGED: Final = {"marker": {"opacity": 1}, "textfont": {"color": palette.EXECUTION}}
"""What is not selected looks as it did."""

_LABELS_UP_TO: Final = 36
"""Facts up to which there is room for words beside the marks."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A fact's sign.

    Attributes:
        group: Its legend entry.
        look: Colour and shape.
        size: px.
        label: A word or two beside it, or nothing.
        angle: Clockwise turn of the shape, degrees.
    """

    group: str
    look: Look
    size: int
    label: str
    angle: int = 0


def mark(fact: Fact) -> Mark | None:
    """The fact's mark; None for what is drawn otherwise: executions are bars, violations crosses."""
    if fact.kind == c.WRITE:
        return _write(fact)
    if fact.kind == c.READ:
        return Mark(READ, palette.READ, 7, "")
    if fact.kind == c.DROPPED:
        return Mark(DROPPED, palette.DROPPED, 11, "dropped")
    if fact.kind == c.ANSWER:
        return Mark(TOLD, palette.state_look(fact.state), 12, _told(fact))
    if fact.kind == c.DISPATCH:
        return _dispatch(fact)
    if fact.kind in (c.EXECUTION, c.VIOLATION):
        return None
    return Mark(OTHER, palette.UNKNOWN_STATE, 10, fact.kind)


def _write(fact: Fact) -> Mark:
    if fact.outcome == c.ACCEPTED:
        label = version(fact.version) if fact.version is not None else state(fact.state)
        return Mark(WRITTEN, palette.state_look(fact.state), 12, label)
    if fact.outcome == c.TERMINAL_REJECTED:
        return Mark(REJECTED, palette.HELD, 13, "held", angle=180)
    if fact.outcome == c.CONFLICT:
        return Mark(CONFLICT, palette.CONFLICT, 11, "refused")
    return Mark(UNSURE, palette.UNKNOWN_OUTCOME, 12, "unknown")


def _dispatch(fact: Fact) -> Mark:
    if fact.phase == c.STARTED:
        return Mark(DISPATCHED, palette.DISPATCH, 9, attempts.label(fact))
    look = attempts.look(fact)
    return Mark(DISPATCHED, look, 11, attempts.label(fact), angle=180 if look is palette.HELD else 0)


def _told(fact: Fact) -> str:
    if fact.ending is None:
        return f"told {state(fact.state)}"
    return f"stream: {state(fact.state) if fact.state else fact.ending}"


def marks(drawing: Drawing, broke: Collection[str]) -> list[go.Scatter]:
    """A mark for each fact that has one, grouped for the legend."""
    groups: dict[str, list[tuple[Fact, float, Mark]]] = {}
    unanswered = attempts.unanswered(drawing)
    for fact, x in drawing.placed():
        sign = mark(fact)
        if fact.kind == c.DISPATCH and fact.phase == c.STARTED and fact.id not in unanswered:
            continue  # its bar begins there
        if sign is not None:
            groups.setdefault(sign.group, []).append((fact, x, sign))
    labelled = len(drawing.schedule.facts) <= _LABELS_UP_TO
    crossed = _crossed(drawing)
    return [
        _group(drawing, name, groups[name], broke, crossed, labelled=labelled)
        for name in GROUPS
        if name in groups
    ]


def _group(
    drawing: Drawing,
    name: str,
    entries: Sequence[tuple[Fact, float, Mark]],
    broke: Collection[str],
    crossed: Collection[float],
    *,
    labelled: bool,
) -> go.Scatter:
    colors = [sign.look.color for _, _, sign in entries]
    return go.Scatter(
        x=[x for _, x, _ in entries],
        y=[drawing.lanes.y(fact) for fact, _, _ in entries],
        mode="markers+text" if labelled else "markers",
        marker={
            "symbol": [sign.look.shape for _, _, sign in entries],
            "color": colors,
            "opacity": 1,
            "size": [sign.size for _, _, sign in entries],
            "angle": [sign.angle for _, _, sign in entries],
            "line": {"width": 2, "color": colors},
        },
        unselected=UNCHANGED,
        text=[_text(sign.label) for _, _, sign in entries],
        textposition=[_beside(drawing, fact, broke, crossed) for fact, _, _ in entries],
        textfont={"size": 11},
        hovertext=[drawing.hover(fact) for fact, _, _ in entries],
        hoverinfo="text",
        customdata=[fact.id for fact, _, _ in entries],
        name=name,
        legendrank=10 + GROUPS.index(name),
        cliponaxis=False,
    )


def _text(label: str) -> str:
    return "<br>".join(figure_text(line, 34) for line in label.splitlines())


def _crossed(drawing: Drawing) -> set[float]:
    """Heights of the lanes that arrows leave downwards: they run through what is written below marks."""
    ends = [
        (drawing.lanes.y(fact), drawing.lanes.y(rival))
        for fact in drawing.schedule.facts
        if (rival := drawing.schedule.rivals.get(fact.id)) is not None
    ]
    return {tail for tail, head in ends if head < tail}


def _beside(drawing: Drawing, fact: Fact, broke: Collection[str], crossed: Collection[float]) -> str:
    """On which side of its mark a label is out of the way of crosses, lines and arrows."""
    if fact.kind == c.DISPATCH:
        return "bottom center" if fact.id in broke else "top center"
    if fact.id in broke:
        return "bottom right"
    return "top center" if drawing.lanes.y(fact) in crossed else "bottom center"


def crosses(drawing: Drawing, broke: Collection[str]) -> list[go.Scatter]:
    """A cross over each fact that broke a rule."""
    broken = [(fact, x) for fact, x in drawing.placed() if fact.id in broke]
    if not broken:
        return []
    return [
        go.Scatter(
            x=[x for _, x in broken],
            y=[drawing.lanes.y(fact) + 0.34 for fact, _ in broken],
            mode="markers",
            marker={
                "symbol": palette.VIOLATION.shape,
                "color": palette.VIOLATION.color,
                "opacity": 1,
                "size": 13,
                "line": {"width": 1, "color": "#ffffff"},
            },
            hovertext=[f"<b>{BROKE}</b><br>{drawing.hover(fact)}" for fact, _ in broken],
            hoverinfo="text",
            unselected=UNCHANGED,
            customdata=[fact.id for fact, _ in broken],
            name=BROKE,
            legendrank=0,
            cliponaxis=False,
        )
    ]
