"""Tasks: the list, filtered, sorted and paged by the store; every choice is in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import streamlit as st

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import INDEXED_TEXT, TaskFilter
from a2a_fencing_dashboard.ui import frames, links, palette, parts, scope
from a2a_fencing_dashboard.ui.queries import TaskQuery
from a2a_fencing_dashboard.ui.view import View, current

_PAGE_SIZE: Final = 50

_COUNTED_TO: Final = 10_000
"""Tasks with a text too short for the index, which is in many of them; who looks for one writes more."""

_CHOICES: Final = ("verdict", "rule", "state", "replica", "has")

_HAS: Final = ("conflict", "rejection", "drop", "dispatch", "dispatch after terminal")

# What the URL says -> what the store sorts by, and whether downwards.
_SORTS: Final[Mapping[str, tuple[str, bool]]] = {
    "newest change first": ("last", True),
    "oldest change first": ("last", False),
    "worst verdict first": ("verdict", True),
    "by state": ("state", False),
    "by task id": ("task_id", False),
    "most facts first": ("facts", True),
    "most conflicts first": ("conflicts", True),
    "most drops first": ("drops", True),
    "most dispatches first": ("dispatches", True),
}


def render() -> None:
    """Draws the page."""
    view = current()
    where, sort, descending = _choices(view)
    counted_to = _COUNTED_TO if 0 < len(where.text) < INDEXED_TEXT else None
    ask = partial(TaskQuery, view.window, where, sort, descending)
    # The first page says how many there are; where another is shown, they are only counted.
    begins = st.query_params.get("page", "1") == "1"
    head = ask(limit=_PAGE_SIZE if begins else 0, count_to=counted_to)
    rows, total = view.queries.tasks(view.at, head)
    if not total:
        _nothing(filtered=where != TaskFilter())
        return
    with st.container(key="list-head", horizontal=True, vertical_alignment="center"):
        listed = total if counted_to is None else min(total, counted_to)
        pages = -(-listed // _PAGE_SIZE)
        page = st.pagination(pages, key="page", bind="query-params") if pages > 1 else 1
        first = (page - 1) * _PAGE_SIZE
        if first or not begins:
            rows, _ = view.queries.tasks(view.at, ask(offset=first, limit=_PAGE_SIZE, count_to=0))
        parts.showing(first, len(rows), total, "task", counted_to=counted_to)
        if pages > 1:
            st.caption("Sort by sorts all of them, a click on a header these alone.", width="content")
    table = frames.tasks(rows, view.names, view.zone, lambda key: links.task_url(key, view.scope.query))
    st.dataframe(
        frames.colored(table, ("verdict", "state")),
        hide_index=True,
        key="tasks",
        height="content",
        column_config=parts.TASK_COLUMNS,
        placeholder="",
        alt="Tasks, one row each",
    )


def _choices(view: View) -> tuple[TaskFilter, str, bool]:
    """Draws the filters; each remembers its choice in the URL."""
    with st.container(key="filters", horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Search",
            key="q",
            bind="query-params",
            placeholder="task, context or owner",
            icon=":material/search:",
            width=195,
            on_change=_first_page,
        )
        verdicts = _choice("Verdict", (c.VIOLATED, c.UNKNOWN, c.FINE), "verdict", 165)
        rules = _choice("Broken rule", c.RULES, "rule", 190)
        states = _choice("State", tuple(palette.STATES), "state", 150)
        names = _choice("Replica", tuple(sorted({row.name for row in view.replicas})), "replica", 120)
        has = _choice("Has", _HAS, "has", 130)
        sort = st.selectbox(
            "Sort by",
            list(_SORTS),
            key="sort",
            bind="query-params",
            width=190,
            on_change=_first_page,
        )
    where = TaskFilter(
        text=(text or "").strip(),
        states=states,
        rules=rules,
        replicas=tuple(row.replica for row in view.replicas if row.name in names),
        verdicts=verdicts,
        only_conflicts="conflict" in has,
        only_rejections="rejection" in has,
        only_drops="drop" in has,
        only_dispatches="dispatch" in has,
        only_late_dispatches="dispatch after terminal" in has,
    )
    return where, *_SORTS[sort or next(iter(_SORTS))]


def _choice(label: str, options: tuple[str, ...], key: str, width: int) -> tuple[str, ...]:
    chosen = st.multiselect(
        label,
        options,
        key=key,
        bind="query-params",
        placeholder="any",
        width=width,
        on_change=_first_page,
    )
    return tuple(chosen)


def _first_page() -> None:
    st.session_state["page"] = 1


def _nothing(*, filtered: bool) -> None:
    if filtered:
        with parts.nothing_here("No task matches these filters."):
            st.button("Clear the filters", type="tertiary", on_click=_clear)
    else:
        with parts.nothing_here("No task in this run and time range."):
            st.button("Show all runs and times", type="tertiary", on_click=scope.clear)


def _clear() -> None:
    st.session_state["q"] = ""
    for key in _CHOICES:
        st.session_state[key] = []
