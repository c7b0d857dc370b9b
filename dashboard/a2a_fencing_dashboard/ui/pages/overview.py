"""Overview: is anything violated, does the fence hold, who reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import plotly.graph_objects as go
import streamlit as st

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import FindingRow, Overview
from a2a_fencing_dashboard.ui import frames, palette, parts, scope, words
from a2a_fencing_dashboard.ui.charts.rates import rates
from a2a_fencing_dashboard.ui.kept import kept
from a2a_fencing_dashboard.ui.parts import Figure
from a2a_fencing_dashboard.ui.queries import is_silent
from a2a_fencing_dashboard.ui.verdict import judge
from a2a_fencing_dashboard.ui.view import View, current


def render() -> None:
    """Draws the page."""
    view = current()
    overview = view.queries.overview(view.at, view.window)
    judgement = judge(overview, view.replicas, view.names_apart, view.now, view.zone)
    with parts.verdict_box(judgement.kind, judgement.headline):
        if overview.newest is not None:
            _newest(overview.newest, view)
        with st.container(key="small-print"):
            st.text(" ".join([judgement.completeness, *judgement.doubts]))
    _numbers(overview)
    _rates(view)
    parts.heading("Replicas")
    if view.replicas and all(is_silent(row, view.now) for row in view.replicas):
        last = max(row.last_seen_unix_nano for row in view.replicas)
        parts.nobody_reports(view.settings, words.when(last, view.now, view.zone))
    st.dataframe(
        frames.colored(
            frames.replicas(view.replicas, view.names_apart, view.now, view.zone), ("alive",)
        ),
        hide_index=True,
        key="replicas",
        column_config={
            "clock": st.column_config.TextColumn(
                help="Its clock against the receiver's; what delivery takes is part of it"
            ),
            "facts": st.column_config.NumberColumn(format="localized"),
            "missing": st.column_config.NumberColumn(
                format="localized", help="Facts that were numbered and never arrived"
            ),
        },
    )


def _newest(row: FindingRow, view: View) -> None:
    task = row.finding.task
    # One write breaks several rules at once: the gravest one tells most.
    gravest = next(iter(view.queries.findings_of(view.at, task)), row)
    when = words.when(row.at_unix_nano, view.now, view.zone)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        which = "Newest, muted" if row.muted else "Newest"
        st.text(f"{which}, {when}, task {words.short_id(task.task_id)}:", width="content")
        st.text(words.named(gravest.finding.explanation, view.names), width="content")
        parts.task_link(task)


def _numbers(overview: Overview) -> None:
    violations, fence, load = st.columns(3)
    with violations:
        parts.figures("Violations by rule", _violations(overview), empty="none", key="violations")
    with fence:
        parts.figures("Fence held", _fence(overview), key="fence")
    with load:
        parts.figures("Load", _load(overview), key="load")


def _violations(overview: Overview) -> list[Figure]:
    return [
        Figure(
            words.shown(rule, 40),
            words.count(number),
            {"rule": rule},
            note=words.RULE_MEANINGS.get(rule, ""),
        )
        for rule, number in _in_order(overview.violations, c.RULES)
    ]


def _fence(overview: Overview) -> list[Figure]:
    refused = [
        Figure(f"{words.shown(reason, 40)} conflicts", words.count(number), {"has": "conflict"})
        for reason, number in _in_order(overview.conflicts, c.CONFLICT_REASONS)
    ]
    dropped = [
        Figure(f"dropped, {words.shown(reason, 40)}", words.count(number), {"has": "drop"})
        for reason, number in _in_order(overview.drops, c.DROP_REASONS)
    ]
    rejected = Figure(
        "terminal rejections", words.count(overview.terminal_rejections), {"has": "rejection"}
    )
    return [
        *(refused or [Figure("conflicts", "0")]),
        rejected,
        *(dropped or [Figure("dropped events", "0")]),
    ]


def _load(overview: Overview) -> list[Figure]:
    late = overview.violations.get(c.DISPATCH_AFTER_TERMINAL, 0)
    abandoned = overview.violations.get(c.ABANDONED, 0)
    unfinished = overview.tasks - overview.terminal_tasks
    return [
        Figure("tasks", words.count(overview.tasks), {}),
        Figure(
            "finished tasks", words.count(overview.terminal_tasks), {"state": sorted(c.TERMINAL_STATES)}
        ),
        Figure("unfinished tasks", words.count(unfinished), {"state": _UNFINISHED}),
        Figure("abandoned tasks", words.count(abandoned), {"rule": c.ABANDONED}),
        Figure("executions running", words.count(overview.executing)),
        Figure("writes", words.count(overview.writes)),
        Figure("dispatches", words.count(overview.dispatches), {"has": "dispatch"}),
        Figure("dispatches after the end", words.count(late), {"has": "dispatch after terminal"}),
    ]


_UNFINISHED: Final = [state for state in palette.STATES if state not in c.TERMINAL_STATES]


def _in_order(numbers: Mapping[str, int], usual: Sequence[str]) -> list[tuple[str, int]]:
    """In an order that numbers do not change, so that no line moves while somebody reads it."""
    places = {name: place for place, name in enumerate(usual)}
    return sorted(numbers.items(), key=lambda item: (places.get(item[0], len(places)), item[0]))


def _rates(view: View) -> None:
    parts.heading("Rates")
    buckets = scope.buckets(view.window, view.replicas, view.now, ended=view.ended)
    counted = view.queries.series(view.at, view.window, buckets.step)
    # Without the bucket that is still being filled, which would make each refresh another chart.
    points = tuple(point for point in counted if point.bucket_unix_s in buckets)
    names = view.names_apart
    replicas = tuple((row.replica, names[row.replica]) for row in view.replicas)
    shows = points, replicas, buckets, view.zone
    kept("rates", shows, lambda: _chart(rates(*shows)))


def _chart(figure: go.Figure) -> None:
    st.plotly_chart(
        figure,
        key="rates",
        config=parts.CHART,
        alt="Rates of writes, conflicts, rejections, drops and violations over time, a line per replica",
    )
