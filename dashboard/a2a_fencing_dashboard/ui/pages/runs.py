"""Runs: which there were, and two of them side by side, such as without and with the guard."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal

import streamlit as st

from a2a_fencing_dashboard.store.durations import ACCURACY
from a2a_fencing_dashboard.store.protocol import Window
from a2a_fencing_dashboard.store.runs import RunRow
from a2a_fencing_dashboard.ui import exporting, links, parts, run_frames, scope, words
from a2a_fencing_dashboard.ui.charts.runs import Lines, rates_since_start, shares
from a2a_fencing_dashboard.ui.comparison import RunFigures, compare, guard
from a2a_fencing_dashboard.ui.verdict import judge
from a2a_fencing_dashboard.ui.view import View, current

_LISTED: Final = 100
_VISIBLE: Final = 6
"""Rows of the list that stand above what is compared."""
_ROW_PX: Final = 35


def render() -> None:
    """Draws the page."""
    view = current()
    rows, total = view.queries.run_rows(view.at, limit=_LISTED)
    if not total:
        _no_run()
        return
    parts.heading("Runs")
    st.dataframe(
        run_frames.runs(rows, view.zone),
        hide_index=True,
        key="runs",
        height="content" if len(rows) <= _VISIBLE else _ROW_PX * (_VISIBLE + 1),
        column_config=_RUN_COLUMNS,
        alt="Runs, the newest first",
    )
    parts.showing(0, len(rows), total, "run")
    chosen = _chosen(view)
    if chosen:
        _compared(view, chosen)


def _no_run() -> None:
    with parts.nothing_here("No replica has said which run it belongs to."):
        st.text("Give each run a label where the servers start:")
        st.code("A2A_FENCING_RUN=baseline python server.py", language="shell")


def _chosen(view: View) -> list[RunRow]:
    """Draws the two selectors.

    The URL says what they are set to also where nobody chose: unlike with `bind`, a link to what is
    shown shows the same when there are newer runs.
    """
    labels = view.queries.runs(view.at)
    usual = {"a": labels[min(1, len(labels) - 1)], "b": labels[0]}
    with st.container(key="filters", horizontal=True, vertical_alignment="bottom"):
        sides = (("a", "First run"), ("b", "Second run"))[: len(labels)]
        for key, title in sides:
            # What was chosen may be of another source.
            if st.session_state.get(key) not in labels:
                asked = st.query_params.get(key)
                st.session_state[key] = asked if asked in labels else usual[key]
            st.selectbox(title, labels, key=key, width=380)
            st.query_params[key] = st.session_state[key]
        if len(sides) > 1:
            st.button("Swap", icon=":material/swap_horiz:", type="tertiary", on_click=_swap)
    wanted: list[str] = [st.session_state[key] for key, _ in sides]
    found, _ = view.queries.run_rows(view.at, tuple(dict.fromkeys(wanted)))
    by_label = {row.label: row for row in found}
    return [by_label[label] for label in wanted]


def _swap() -> None:
    state = st.session_state
    state["a"], state["b"] = state["b"], state["a"]


def _compared(view: View, rows: Sequence[RunRow]) -> None:
    runs = [_figures(view, row) for row in rows]
    for column, run, name in zip(st.columns(len(runs)), runs, run_frames.SIDES, strict=False):
        with column:
            _header(view, run, name)
    if len(runs) == 1:
        st.caption("A second run, under another label, will stand beside it.")
    st.dataframe(
        run_frames.comparison(compare(runs[0], runs[-1]), rows, view.scope.query),
        hide_index=True,
        key="comparison",
        width="content",
        height="content",
        column_config=_comparison_columns(rows),
        alt="Figures of the runs and the difference between them",
    )
    st.caption(
        f"Whole runs, whatever the time range. Medians and p99 are accurate to ±{ACCURACY:.0%} of their"
        " value. Saves: accepted writes, as the replicas measured them. Tasks: from the first fact to"
        " the first terminal state, by the replicas' clocks."
    )
    _charts(view, runs)


def _figures(view: View, row: RunRow) -> RunFigures:
    window = Window(row.label)
    overview = view.queries.overview(view.at, window)
    replicas = view.queries.replicas(view.at, window)
    names = words.replica_names(replicas, across_runs=True)
    return RunFigures(
        row,
        overview,
        view.queries.run_durations(view.at, row.label),
        judge(overview, replicas, names, view.now, view.zone),
    )


def _header(view: View, run: RunFigures, name: str) -> None:
    row = run.row
    with st.container(horizontal=True, vertical_alignment="center", key=f"id-run-{name}"):
        st.text(f"{name}: {words.shown(row.label, 80)}", width="content")
        color: Literal["green", "gray"] = "green" if row.guarded else "gray"
        st.badge(guard(row), icon=":material/shield:", color=color)
    with parts.verdict_box(run.judgement.kind, run.judgement.headline, name):
        with st.container(key=f"small-print-{name}"):
            st.text(" ".join([run.judgement.completeness, *run.judgement.doubts]))
        with st.container(horizontal=True, vertical_alignment="center", key=f"ways-{name}"):
            for page, label in ((links.OVERVIEW, "Overview"), (links.TASKS, "Tasks")):
                st.page_link(view.pages[page], label=label, query_params={"run": row.label})
            exporting.menu(
                partial(view.queries.run_excerpt, row.label, exporting.MOST_FACTS),
                row.label,
                row.facts,
                key=name,
            )


def _charts(view: View, runs: Sequence[RunFigures]) -> None:
    names = [f"{side}: {run.row.label}" for side, run in zip(run_frames.SIDES, runs, strict=False)]
    step = scope.bucket_s(max(run.row.worked_ns for run in runs) / 1_000_000_000)
    lines = []
    for name, run in zip(names, runs, strict=True):
        points = view.queries.series(view.at, Window(run.row.label), step)
        lines.append(Lines(name, points, _buckets(run.row, step)))
    parts.heading("How long it took")
    st.plotly_chart(
        shares([(name, run.durations) for name, run in zip(names, runs, strict=True)]),
        key="durations",
        config=parts.CHART,
        alt="What part of saves and tasks took no longer than so long, a line per run",
    )
    parts.heading("Rates")
    st.plotly_chart(
        rates_since_start(lines),
        key="rates-since-start",
        config=parts.CHART,
        alt="Rates since each run began, a line per run",
    )


def _buckets(row: RunRow, step: int) -> range:
    """Starts of the buckets in which the run worked, seconds since 1970."""
    first, last = ((time or 0) // 1_000_000_000 for time in (row.first_unix_nano, row.last_unix_nano))
    return range(first // step * step, last + 1, step)


_RUN_COLUMNS: Final = {
    "verdict": st.column_config.TextColumn(width=100),
    "run": st.column_config.TextColumn(width=330),
    "guard": st.column_config.TextColumn(width=130),
    "started": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss", width=150),
    "worked for": st.column_config.TextColumn(alignment="right", width=90),
    "tasks": st.column_config.NumberColumn(format="localized"),
    "violated": st.column_config.NumberColumn(format="localized"),
    "facts": st.column_config.NumberColumn(format="localized"),
}


def _comparison_columns(rows: Sequence[RunRow]) -> dict[str, Any]:
    number = st.column_config.LinkColumn(
        display_text=links.CELL,
        alignment="right",
        width=120,
        help="The tasks behind the figure, or the run's overview.",
    )
    return {
        "about": st.column_config.TextColumn(width=100),
        "figure": st.column_config.TextColumn(width=200),
        **{f"{side} · {guard(row)}": number for side, row in zip(run_frames.SIDES, rows, strict=False)},
        "difference": st.column_config.TextColumn(alignment="right", width=150),
        "that is": st.column_config.TextColumn(width=90),
    }
