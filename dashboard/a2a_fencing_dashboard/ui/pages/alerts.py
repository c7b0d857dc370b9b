"""Alerts: what the checker found, newest first, by task."""

from __future__ import annotations

from typing import Final

import streamlit as st

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.protocol import FindingRow
from a2a_fencing_dashboard.ui import links, parts, scope, words
from a2a_fencing_dashboard.ui.queries import FindingQuery
from a2a_fencing_dashboard.ui.view import View, current

_PAGE_SIZE: Final = 30


def render() -> None:
    """Draws the page."""
    view = current()
    rules, severities = _choices()
    chosen = severities or (c.CRITICAL, c.WARNING)
    _, total = _ask(view, rules, chosen, page=1)
    if not total:
        _nothing(view, filtered=bool(rules or severities))
        return
    with st.container(key="list-head", horizontal=True, vertical_alignment="center"):
        pages = -(-total // _PAGE_SIZE)
        page = st.pagination(pages, key="page", bind="query-params") if pages > 1 else 1
        rows, _ = _ask(view, rules, chosen, page)
        parts.showing((page - 1) * _PAGE_SIZE, len(rows), total, "finding")
    for index, (task, found) in enumerate(_by_task(rows).items()):
        stored = view.queries.findings_of(view.at, task)
        whole = [row for row in stored if row.finding.severity in chosen and _wanted(row, rules)]
        # The checker may tell incarnations apart that are one task in the store.
        _group(view, task, whole or found, index)


def _ask(
    view: View, rules: tuple[str, ...], severities: tuple[str, ...], page: int
) -> tuple[tuple[FindingRow, ...], int]:
    offset = (page - 1) * _PAGE_SIZE
    return view.queries.findings(
        view.at, FindingQuery(view.window, rules, severities, offset=offset, limit=_PAGE_SIZE)
    )


def _by_task(rows: tuple[FindingRow, ...]) -> dict[TaskKey, list[FindingRow]]:
    """The task with the newest finding first."""
    groups: dict[TaskKey, list[FindingRow]] = {}
    for row in rows:
        groups.setdefault(row.finding.task, []).append(row)
    return groups


def _wanted(row: FindingRow, rules: tuple[str, ...]) -> bool:
    return not rules or row.finding.rule in rules


def _choices() -> tuple[tuple[str, ...], tuple[str, ...]]:
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
    return tuple(rules), tuple(severities)


def _first_page() -> None:
    st.session_state["page"] = 1


def _group(view: View, task: TaskKey, rows: list[FindingRow], index: int) -> None:
    newest = max(row.seen_unix_nano for row in rows)
    with st.container(border=True, key=f"alert-{index}", gap="xsmall"):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
        ):
            with st.container(
                horizontal=True, vertical_alignment="center", width="content", gap="medium"
            ):
                with st.container(key=f"id-{index}", width="content"):
                    st.text(words.shown(task.task_id, 80))
                with st.container(key=f"small-print-{index}", width="content"):
                    owner = f"owner {words.shown(task.owner, 60)} · " if task.owner else ""
                    st.text(owner + words.when(newest, view.now, view.zone))
            parts.task_link(task)
        for row in rows:
            parts.finding_line(row.finding, view.names)


def _nothing(view: View, *, filtered: bool) -> None:
    if filtered:
        with parts.nothing_here("No finding matches these filters."):
            st.button("Clear the filters", type="tertiary", on_click=_clear)
    else:
        with parts.nothing_here("No rule was broken in this run and time range."):
            st.page_link(view.pages[links.OVERVIEW], label="See what was watched")
            if view.scope.query:
                st.button("Show all runs and times", type="tertiary", on_click=scope.clear)


def _clear() -> None:
    st.session_state["severity"] = st.session_state["rule"] = []
