"""What the pages look at: the live store, or a history file that somebody opened in this dashboard.

Which one is in the URL, on every page. Opened histories belong to the process, so that a link to one
works in any session; they are gone when it ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final

import streamlit as st

from a2a_fencing_dashboard.histories.opening import Opened, open_history
from a2a_fencing_dashboard.ui.settings import Settings
from a2a_fencing_dashboard.ui.words import shown

LIVE: Final = "live"
SOURCE: Final = "source"
"""The URL's parameter."""
MOST_MB: Final = 100
"""Of an uploaded file."""
_KEPT: Final = 5
"""Histories that are open at once; the one opened first makes room."""


class Sources:
    """The histories that are open, by what the URL calls each."""

    def __init__(self) -> None:
        """Starts without any."""
        self._opened: dict[str, Opened] = {}
        self._numbers: Iterator[int] = count(1)
        self._lock = Lock()

    def add(self, name: str, content: bytes) -> str:
        """Opens an uploaded file; says what the URL calls it.

        Raises:
            HistoryError: It cannot be read; the text is one line that says why.
        """
        name = shown(name, 60)
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            opened = open_history(Path(file.name), name)
        with self._lock:
            identity = f"{name} ({next(self._numbers)})"
            self._opened[identity] = opened
            for first in list(self._opened)[:-_KEPT]:
                self._opened.pop(first).close()
        return identity

    def remove(self, identity: str) -> None:
        """Closes a history; one that is gone is closed already."""
        with self._lock:
            opened = self._opened.pop(identity, None)
        if opened is not None:
            opened.close()

    def close(self) -> None:
        """Closes all of them."""
        for identity in self.all():
            self.remove(identity)

    def all(self) -> dict[str, Opened]:
        """The histories that are open, by what the URL calls each."""
        with self._lock:
            return dict(self._opened)


@st.cache_resource(show_spinner=False, on_release=Sources.close)
def sources() -> Sources:
    """Those of this process."""
    return Sources()


def select(settings: Settings) -> Settings | None:
    """Draws the selector where there is a choice; where to look, or None when that is gone."""
    opened = sources().all()
    asked = st.query_params.get(SOURCE, LIVE)
    if asked != LIVE and asked not in opened:
        return None
    if not opened:
        return settings
    chosen = st.selectbox(
        "Source",
        [LIVE, *opened],
        key=SOURCE,
        bind="query-params",
        label_visibility="collapsed",
        width=180,
    )
    history = opened.get(chosen or LIVE)
    if history is None:
        return settings
    return replace(settings, store_url=history.url, history=history.title, receiver_url=None)


def selected() -> str | None:
    """What the URL calls the history that is looked at; None for what arrives live."""
    chosen = st.session_state.get(SOURCE, LIVE)
    return None if chosen == LIVE else chosen


def forget() -> None:
    """Looks at what arrives live again; for buttons."""
    st.query_params.pop(SOURCE, None)
