"""What all pages share, then the page."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import streamlit as st

from a2a_fencing_dashboard.store import StoreError, open_store
from a2a_fencing_dashboard.store.protocol import Window
from a2a_fencing_dashboard.ui import links, live, parts, scope, sources, view
from a2a_fencing_dashboard.ui.ending import ENDED
from a2a_fencing_dashboard.ui.pages import alerts, files, overview, runs, task, tasks
from a2a_fencing_dashboard.ui.queries import Queries, is_silent
from a2a_fencing_dashboard.ui.scope import Scope
from a2a_fencing_dashboard.ui.settings import Settings
from a2a_fencing_dashboard.ui.view import View

_logger = logging.getLogger(__name__)
_told: deque[str] = deque(maxlen=32)


@dataclass(frozen=True, slots=True)
class Entry:
    """A page as it is registered; the one without a path is the first.

    Attributes:
        listed: Whether the navigation has it.
        needs_facts: Whether there is nothing on it while no replica has reported.
    """

    render: Callable[[], None]
    title: str
    path: str
    listed: bool = True
    needs_facts: bool = True


PAGES: Final[Mapping[str, Entry]] = {
    links.OVERVIEW: Entry(overview.render, "Overview", ""),
    links.TASKS: Entry(tasks.render, "Tasks", "tasks"),
    links.ALERTS: Entry(alerts.render, "Alerts", "alerts"),
    links.RUNS: Entry(runs.render, "Runs", "runs"),
    links.FILES: Entry(files.render, "Files", "files", needs_facts=False),
    links.TASK: Entry(task.render, "Task", "task", listed=False),
}


def main() -> None:
    """Runs the page that the URL names."""
    parts.frame()
    pages = {name: _page(entry) for name, entry in PAGES.items()}
    page = st.navigation(list(pages.values()), position="top")
    live_settings = Settings.from_environment()
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        chosen = sources.select(live_settings)
        settings = chosen or live_settings
        try:
            seen: View | StoreError = _look(settings, pages)
        except StoreError as error:
            seen = error
        selected = seen.scope if isinstance(seen, View) else Scope()
        pulse = seen.pulse if isinstance(seen, View) else None
        alarm = partial(_alarm, settings)
        live.watch(partial(_pulse, settings, selected), pulse, selected.every_s, alarm)
    if chosen is None:
        parts.gone(pages[links.FILES], sources.forget)
        return
    if isinstance(seen, StoreError):
        parts.unreadable(seen)
        return
    if settings.history:
        parts.not_live(settings.history)
    view.enter(seen)
    try:
        parts.title(seen.queries.new_violations(seen.at, seen.window))
        anyway = {pages[name] for name, entry in PAGES.items() if not entry.needs_facts}
        if page in anyway or seen.queries.replicas(seen.at, Window()):
            page.run()
        else:
            parts.nothing_yet(settings)
    except StoreError as error:
        parts.unreadable(error)
    except Exception as error:
        if ENDED.is_set():
            return
        if repr(error) not in _told:  # once, though each refresh tries again
            _told.append(repr(error))
            _logger.exception("a page could not be drawn")
        parts.failed(error)


def _page(entry: Entry) -> st.Page:
    return st.Page(
        entry.render,
        title=entry.title,
        url_path=entry.path,
        default=not entry.path,
        visibility="visible" if entry.listed else "hidden",
    )


def _look(settings: Settings, pages: Mapping[str, st.Page]) -> View:
    queries = _queries(settings.store_url, settings.history is None)
    selected = scope.select(queries.runs(queries.version()), sources.selected())
    before = view.last()
    if live.writing() and before and (before.queries, before.scope) == (queries, selected):
        at, window, pulse = before.at, before.window, before.pulse
    else:
        at, window, _ = pulse = _pulse(settings, selected)
    zone = None if selected.zone == scope.UTC else st.context.timezone
    return View(queries, at, queries.now(), selected, window, zone, settings, pages, pulse)


def _pulse(settings: Settings, selected: Scope) -> tuple[int, Window, tuple[str, ...]]:
    """What a page depends on: the data, where the time range stands, and who has fallen silent."""
    queries = _queries(settings.store_url, settings.history is None)
    at, now = queries.version(), queries.now()
    window = selected.window(now)
    replicas = queries.replicas(at, Window(window.run))
    return at, window, tuple(row.replica for row in replicas if is_silent(row, now))


def _alarm(settings: Settings, pulse: live.Pulse) -> int | None:
    """How many violations nobody has acknowledged, of the data that a pulse is of."""
    if pulse is None:
        return None
    at, window, _ = pulse
    assert isinstance(at, int)
    assert isinstance(window, Window)
    try:
        return _queries(settings.store_url, settings.history is None).new_violations(at, window)
    except StoreError:
        return None


@st.cache_resource(show_spinner=False, max_entries=8, on_release=Queries.close)
def _queries(store_url: str, live: bool) -> Queries:
    return Queries(open_store(store_url), live=live)
