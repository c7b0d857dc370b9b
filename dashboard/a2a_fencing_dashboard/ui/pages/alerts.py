"""Alerts: what the checker found, by task, newest first, and what people said of it."""

from __future__ import annotations

from typing import Final

import streamlit as st

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import AlertPage, FindingFilter, TaskAlerts
from a2a_fencing_dashboard.ui import findings, links, noting, parts, scope, words
from a2a_fencing_dashboard.ui.queries import gravity
from a2a_fencing_dashboard.ui.view import View, current

_PAGE_SIZE: Final = 10
"""Tasks."""

_HIDE: Final = "hide"
_SHOW: Final = "show"


def render() -> None:
    """Draws the page."""
    view = current()
    where = _choices()
    total = _ask(view, where, page=1)
    _whole_runs(view)
    if not total.tasks:
        _nothing(view, where, total.muted)
        return
    with st.container(key="list-head", horizontal=True, vertical_alignment="center"):
        pages = -(-total.tasks // _PAGE_SIZE)
        number = st.pagination(pages, key="page", bind="query-params") if pages > 1 else 1
        page = _ask(view, where, number)
        parts.showing((number - 1) * _PAGE_SIZE, len(page.groups), total.tasks, "task")
        st.caption(f"with {words.count(total.findings, 'finding')}", width="content")
        _muted(where, total.muted)
        if view.queries.new_violations(view.at, view.window):
            newest = max(row.id for row in total.groups[0].findings)
            noting.button_for_all(view, where.rules, newest)
    for group in page.groups:
        _group(view, group)


def _ask(view: View, where: FindingFilter, page: int) -> AlertPage:
    return view.queries.alerts(view.at, view.window, where, (page - 1) * _PAGE_SIZE, _PAGE_SIZE)


def _choices() -> FindingFilter:
    with st.container(key="filters", horizontal=True, vertical_alignment="bottom"):
        severities = st.multiselect(
            "Severity",
            (c.CRITICAL, c.WARNING, c.INFO),
            key="severity",
            bind="query-params",
            placeholder="critical and warning",
            width=260,
            on_change=_first_page,
        )
        rules = st.multiselect(
            "Rule",
            c.RULES,
            key="rule",
            bind="query-params",
            placeholder="any",
            width=360,
            on_change=_first_page,
        )
        muted = st.selectbox(
            "Muted",
            (_HIDE, _SHOW),
            key="muted",
            bind="query-params",
            width=110,
            on_change=_first_page,
        )
    chosen = tuple(severities) or (c.CRITICAL, c.WARNING)
    return FindingFilter(tuple(rules), chosen, with_muted=muted == _SHOW)


def _first_page() -> None:
    st.session_state["page"] = 1


def _muted(where: FindingFilter, number: int) -> None:
    """Says how much is hidden, with the way to see it."""
    if not number:
        return
    if where.with_muted:
        st.caption(f"{words.count(number)} of them muted", width="content")
        st.button("Hide", type="tertiary", key="hide-muted", on_click=_set_muted, args=(_HIDE,))
    else:
        st.caption(f"{words.count(number)} muted", width="content")
        st.button("Show", type="tertiary", key="show-muted", on_click=_set_muted, args=(_SHOW,))


def _set_muted(choice: str) -> None:
    st.session_state["muted"] = choice
    _first_page()


def _whole_runs(view: View) -> None:
    """What is muted beyond one task has no other place to be undone at."""
    for note in filter(noting.is_wide_mute, view.queries.notes(view.at)):
        if note.run is None or view.window.run in (None, note.run):
            noting.line(view, note)


def _group(view: View, group: TaskAlerts) -> None:
    rows, task = group.findings, group.task
    newest = max(row.at_unix_nano for row in rows)
    new = sum(row.finding.violates and not row.notes for row in rows)
    proven = any(row.finding.certainty == c.PROVEN for row in rows)
    tag = noting.tag(task)
    with st.container(
        border=True, key=f"alert-{'proven' if proven else 'suspected'}-{tag}", gap="xsmall"
    ):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
        ):
            with st.container(
                horizontal=True, vertical_alignment="center", width="content", gap="medium"
            ):
                with st.container(key=f"id-{tag}", width="content"):
                    st.text(words.shown(task.task_id, 80))
                with st.container(key=f"small-print-{tag}", width="content"):
                    owner = f"owner {words.shown(task.owner, 60)} · " if task.owner else ""
                    st.text(owner + words.when(newest, view.now, view.zone))
                if new:
                    st.badge(f"{new} new", color="red")
            with st.container(horizontal=True, vertical_alignment="center", width="content"):
                noting.buttons(view, task, rows)
                parts.task_link(task)
        findings.lines(
            [
                findings.Line(
                    row.finding,
                    words.named(row.finding.explanation, view.names),
                    muted=row.muted is not None,
                )
                for row in sorted(rows, key=gravity)
            ]
        )
        noting.said(view, rows)


def _nothing(view: View, where: FindingFilter, muted: int) -> None:
    chosen = where.rules or set(where.severities) != {c.CRITICAL, c.WARNING}
    if muted:
        with parts.nothing_here("Everything that matches is muted."):
            _muted(where, muted)
    elif chosen:
        with parts.nothing_here("No finding matches these filters."):
            st.button("Clear the filters", type="tertiary", on_click=_clear)
    else:
        with parts.nothing_here("No rule was broken in this run and time range."):
            st.page_link(view.pages[links.OVERVIEW], label="See what was watched")
            if view.scope.query:
                st.button("Show all runs and times", type="tertiary", on_click=scope.clear)


def _clear() -> None:
    st.session_state["severity"] = st.session_state["rule"] = []
