"""Runs and their comparison as tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import pandas as pd
from pandas.io.formats.style import Styler

from a2a_fencing_dashboard.store.runs import RunRow
from a2a_fencing_dashboard.ui import frames, links, palette
from a2a_fencing_dashboard.ui.comparison import BETTER, WORSE, Line, guard
from a2a_fencing_dashboard.ui.links import Query
from a2a_fencing_dashboard.ui.words import duration, moment, shown

SIDES: Final = ("A", "B")
"""What two runs are called where their labels are too long."""

_SIGNS: Final = {BETTER: "✓ better", WORSE: "✖ worse", "": ""}
_COLORS: Final = {
    _SIGNS[BETTER]: palette.VERDICTS["fine"].color,
    _SIGNS[WORSE]: palette.VIOLATION.color,
}


def runs(rows: Sequence[RunRow], zone: str | None) -> Styler:
    """One row a run."""
    table = pd.DataFrame(
        [
            {
                "verdict": frames.verdict(row.verdict),
                "run": shown(row.label, 80),
                "guard": guard(row).removeprefix("guard "),
                "started": _started(row, zone),
                "worked for": duration(row.worked_ns),
                "replicas": row.replicas,
                "tasks": row.tasks,
                "violated": row.violated_tasks,
                "facts": row.facts,
                "missing": row.missing,
            }
            for row in rows
        ]
    )
    return frames.colored(table, ("verdict",))


def _started(row: RunRow, zone: str | None) -> datetime | None:
    started = row.started_unix_nano
    return None if started is None else moment(started, zone).replace(tzinfo=None)


def comparison(lines: Sequence[Line], rows: Sequence[RunRow], scope: Query) -> Styler:
    """One row a figure, a column a run; what it is about stands where that changes.

    Each figure of a run is a link: to the tasks behind it, or to the run's overview.

    Args:
        lines: The figures.
        rows: The runs; where it is one, there is nothing to compare.
        scope: What links carry along.
    """
    before = ("", *(line.about for line in lines))
    table: pd.DataFrame = pd.DataFrame(
        [
            {
                "about": "" if line.about == above else line.about,
                "figure": line.name,
                **{
                    f"{side} · {guard(row)}": _link(line, row, value, scope)
                    for side, row, value in zip(SIDES, rows, (line.first, line.second), strict=False)
                },
                **(
                    {"difference": line.change, "that is": _SIGNS[line.judgement]}
                    if len(rows) > 1
                    else {}
                ),
            }
            for line, above in zip(lines, before, strict=False)
        ]
    )
    styled: Styler = table.style.map(_sign_style, subset=["that is"] if len(rows) > 1 else [])
    return styled


def _link(line: Line, row: RunRow, value: str, scope: Query) -> str:
    whole = {name: choice for name, choice in scope.items() if name != "range"}  # figures are of all
    query = {**whole, "run": row.label, **(line.behind or {})}
    return links.cell_url("" if line.behind is None else links.TASKS, query, value)


def _sign_style(cell: object) -> str:
    color = _COLORS.get(str(cell))
    return f"color: {color}" if color else ""
