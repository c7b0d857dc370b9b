"""What one run of a page looks at; the entry makes it, pages take it from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import streamlit as st

from a2a_fencing_dashboard.store.protocol import ReplicaRow, Window
from a2a_fencing_dashboard.ui import words
from a2a_fencing_dashboard.ui.actions import Actions
from a2a_fencing_dashboard.ui.live import Pulse
from a2a_fencing_dashboard.ui.queries import Queries
from a2a_fencing_dashboard.ui.scope import Scope
from a2a_fencing_dashboard.ui.settings import Settings

_KEY: Final = "a2a_fencing_view"


@dataclass(frozen=True, slots=True)
class View:
    """The data at one version, seen at one moment.

    Attributes:
        queries: The way to the data.
        at: Version of the data.
        now: ns since 1970.
        scope: Run and time range as selected.
        window: The same for the store.
        zone: Time zone to tell times in, or None for UTC.
        settings: Where to link to.
        pages: Pages by their names in `links`.
        pulse: What `live.watch` compares to tell whether this view is stale.
    """

    queries: Queries
    at: int
    now: int
    scope: Scope
    window: Window
    zone: str | None
    settings: Settings
    pages: Mapping[str, st.Page]
    pulse: Pulse

    @property
    def actions(self) -> Actions:
        """The way to take notes."""
        return self.queries.actions

    @property
    def ended(self) -> bool:
        """Whether nothing more will arrive: a history file is looked at."""
        return self.settings.history is not None

    @property
    def replicas(self) -> tuple[ReplicaRow, ...]:
        """Replicas of the selected run, in the order in which they started."""
        return self.queries.replicas(self.at, Window(self.window.run))

    @property
    def names(self) -> words.Names:
        """What to call any replica of the store, where its run is known."""
        return self.queries.names(self.at, Window())

    @property
    def names_apart(self) -> words.Names:
        """What to call the replicas of the selected run, or of all runs side by side."""
        return self.queries.names(self.at, Window(self.window.run), across_runs=True)


def enter(view: View) -> None:
    """Makes this the view of the page that runs next."""
    st.session_state[_KEY] = view


def last() -> View | None:
    """The view of the page that ran before in this session."""
    view = st.session_state.get(_KEY)
    return view if isinstance(view, View) else None


def current() -> View:
    """The view of the page that runs."""
    view = st.session_state[_KEY]
    assert isinstance(view, View)
    return view
