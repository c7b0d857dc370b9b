"""URLs of views. What a page shows follows from its URL alone, so that a link reproduces it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.ui.words import shown

OVERVIEW: Final = "overview"
TASKS: Final = "tasks"
TASK: Final = "task"
ALERTS: Final = "alerts"
RUNS: Final = "runs"
FILES: Final = "files"

Query = dict[str, str | Sequence[str]]

_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")


def task_query(key: TaskKey) -> Query:
    """Query parameters that name a task."""
    query: Query = {"task": key.task_id, "owner": key.owner, "store": key.store}
    if key.incarnation:
        query["incarnation"] = str(key.incarnation)
    return query


def task_key(query: Mapping[str, str]) -> TaskKey | None:
    """The task that query parameters name, or None when they do not name exactly one."""
    if not {"task", "owner", "store"} <= query.keys():
        return None
    incarnation = query.get("incarnation", "0")
    if not (incarnation.isascii() and incarnation.isdigit()):
        return None
    return TaskKey(query["store"], query["owner"], query["task"], int(incarnation))


TASK_CELL: Final = r"(?:.*#|.*[?&]task=)([^&#]*)"
"""Finds in a `task_url` what a table cell shows: the fragment, else the task id."""


def task_url(key: TaskKey, scope: Query) -> str:
    """Link to a task's page for table cells, which take nothing but a URL.

    An id that is not fit to be shown as it is comes once more as the fragment, made fit.
    """
    url = "/task?" + urlencode({**task_query(key), **scope}, doseq=True)
    cell = shown(key.task_id, 60)
    return url if cell == key.task_id else f"{url}#{quote(cell, safe='')}"


CELL: Final = r"#(.*)"
"""Finds in a `cell_url` what a table cell shows."""


def cell_url(page: str, query: Query, cell: str) -> str:
    """Link to a page (the overview is "") for a table cell, which shows `cell`."""
    return f"/{page}?{urlencode(query, doseq=True)}#{quote(cell, safe='')}"


def trace_url(jaeger_url: str | None, trace_id: str | None) -> str | None:
    """Link to a trace in Jaeger; None without a Jaeger, or for what is no trace id."""
    if not jaeger_url or not trace_id or not _TRACE_ID.fullmatch(trace_id):
        return None
    return f"{jaeger_url.rstrip('/')}/trace/{trace_id}"
