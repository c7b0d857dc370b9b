"""How every page looks at the history: which run and time range, in which time zone, and how often
anew. All of it is in the URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import streamlit as st

from a2a_fencing_dashboard.store.protocol import ReplicaRow, Window
from a2a_fencing_dashboard.ui.links import Query

ALL_RUNS: Final = "all runs"
ALL_TIME: Final = "all time"

# The words are what the URL says, so that a link can be read.
RANGES: Final[Mapping[str, int | None]] = {
    "last 5 min": 300,
    "last 15 min": 900,
    "last hour": 3_600,
    "last 6 hours": 21_600,
    "last 24 hours": 86_400,
    ALL_TIME: None,
}

LOCAL: Final = "local"
UTC: Final = "UTC"

REFRESH: Final[Mapping[str, float]] = {"1 s": 1, "2 s": 2, "5 s": 5, "15 s": 15}
"""Seconds between two looks for new data."""

_OFTEN: Final = next(iter(REFRESH))

_BUCKETS_S: Final = (1, 2, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400, 604_800)
_MOST_BUCKETS: Final = 75
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Scope:
    """A run (None: all of them), a key of `RANGES`, a time zone and a key of `REFRESH`.

    `source` is what the URL calls the history file that is looked at; None for what arrives live.
    """

    run: str | None = None
    range: str = ALL_TIME
    zone: str = LOCAL
    refresh: str = _OFTEN
    source: str | None = None

    @property
    def query(self) -> Query:
        """The URL parameters that select it; links within the dashboard carry them by themselves."""
        query: Query = {}
        if self.run is not None:
            query["run"] = self.run
        if self.range != ALL_TIME:
            query["range"] = self.range
        if self.zone != LOCAL:
            query["zone"] = self.zone
        if self.refresh != _OFTEN:
            query["refresh"] = self.refresh
        if self.source is not None:
            query["source"] = self.source
        return query

    @property
    def every_s(self) -> float:
        """Seconds between two looks for new data."""
        return REFRESH[self.refresh]

    def window(self, now_unix_nano: int) -> Window:
        """What to ask the store for. It moves on in steps, so that equal questions are asked once."""
        seconds = RANGES[self.range]
        if seconds is None:
            return Window(self.run)
        step = bucket_s(seconds) * _NS
        return Window(self.run, since=(now_unix_nano // step + 1) * step - seconds * _NS)


def bucket_s(seconds: float) -> int:
    """The smallest usual bucket, in seconds, that cuts this time into a readable number of parts."""
    return next((size for size in _BUCKETS_S if seconds <= size * _MOST_BUCKETS), _BUCKETS_S[-1])


def buckets(
    window: Window, replicas: Sequence[ReplicaRow], now_unix_nano: int, *, ended: bool = False
) -> range:
    """Starts of the buckets that a chart of this window shows, seconds since 1970.

    A window without limits begins with the first replica and ends with the last sign of life. The
    bucket that is still filling is left out: it would look like a drop; of a history that has
    ended, none is.
    """
    begins = [row.started_unix_nano or row.last_seen_unix_nano for row in replicas]
    start = (window.since if window.since is not None else min(begins, default=now_unix_nano)) // _NS
    ends = [row.last_seen_unix_nano // _NS + 1 for row in replicas]
    end = now_unix_nano // _NS if window.since is not None else max(ends, default=start)
    size = bucket_s(max(end - start, 1))
    first = start // size * size
    still_filling = now_unix_nano // _NS // size * size
    last = -(-end // size) * size
    if not ended:
        last = min(last, still_filling)
    return range(first, max(last, first + size), size)


def select(runs: Sequence[str], source: str | None = None) -> Scope:
    """Draws the selectors; each remembers its choice in the URL, on every page."""
    run = st.selectbox(
        "Run",
        [ALL_RUNS, *(label for label in runs if label != ALL_RUNS)],
        key="run",
        bind="query-params",
        label_visibility="collapsed",
        width=180,
    )
    time_range = st.selectbox(
        "Time range",
        list(RANGES),
        index=len(RANGES) - 1,
        key="range",
        bind="query-params",
        label_visibility="collapsed",
        width=150,
    )
    with st.popover("", icon=":material/tune:", type="tertiary", help="Time zone and refresh rate"):
        here = st.context.timezone
        zone = st.radio(
            "Time zone",
            (LOCAL, UTC),
            format_func=lambda name: f"local ({here})" if name == LOCAL and here else name,
            key="zone",
            bind="query-params",
            horizontal=True,
        )
        refresh = st.radio(
            "Look for new data every", list(REFRESH), key="refresh", bind="query-params", horizontal=True
        )
    return Scope(
        run=None if run == ALL_RUNS else run,
        range=time_range or ALL_TIME,
        zone=zone or LOCAL,
        refresh=refresh or _OFTEN,
        source=source,
    )


def clear() -> None:
    """Selects everything again; for buttons."""
    st.session_state["run"] = ALL_RUNS
    st.session_state["range"] = ALL_TIME
