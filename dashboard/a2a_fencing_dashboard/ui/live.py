"""Keeps a page up to date: it is drawn again when the data changed, and only then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

import streamlit as st

from a2a_fencing_dashboard.store import StoreError
from a2a_fencing_dashboard.ui.words import ago

Pulse = tuple[object, ...] | None
"""What a page depends on, besides its URL; None while the store cannot be read."""

FORM: Final = "form-"
"""How the key of each element begins that is open while somebody fills in a form."""

_LOOKS: Final = 2
"""Looks from one drawing to the next; what is urgent waits for no more than one."""

_PAUSED: Final = "paused"
_CHANGED: Final = "a2a_fencing_changed"


def beat(pulse: Callable[[], Pulse]) -> Pulse:
    """The pulse now; None when the store does not answer, which the page itself explains."""
    try:
        return pulse()
    except StoreError:
        return None


def writing() -> bool:
    """Whether a form is open: the page must not change under the pen."""
    state = st.session_state
    return any(str(key).startswith(FORM) and state[key] is True for key in state)


def watch(
    pulse: Callable[[], Pulse], drawn: Pulse, every_s: float, alarm: Callable[[Pulse], object]
) -> None:
    """Shows how fresh the page is, with a switch to hold it still, and redraws it when it is stale.

    Call it in every run of the entry, before the page: a timer in the browser looks again and again.

    Args:
        pulse: Tells cheaply what the page depends on.
        drawn: The pulse that the page was drawn with.
        every_s: Seconds from one drawing to the next.
        alarm: What of a pulse is not to wait for that, when it differs.
    """
    st.fragment(_watch, run_every=every_s / _LOOKS)(pulse, drawn, alarm, count())


def _watch(
    pulse: Callable[[], Pulse], drawn: Pulse, alarm: Callable[[Pulse], object], looks: Iterator[int]
) -> None:
    """Looks once; `looks` counts them from 0, the one in the run that draws the page."""
    look = next(looks)
    changed = _changed(drawn)
    with st.container(horizontal=True, vertical_alignment="center", width="content", key="live"):
        paused = st.toggle("Pause", key=_PAUSED)
        now = beat(pulse)
        stale, held = now != drawn, writing()
        # A page that is being drawn is drawn to its end: where facts arrive faster than it can be begun
        # anew, it would never be.
        if (
            stale
            and look
            and not (paused or held)
            and (look % _LOOKS == 0 or alarm(now) != alarm(drawn))
        ):
            st.rerun()
        if paused or held:
            why = "paused" if paused else "held while you write"
            st.caption(f"{why}, {'newer data waits' if stale else 'nothing new'}")
        elif drawn is None:
            st.caption("no answer, trying again")
        else:
            st.caption(f"updated {ago(changed, time.time_ns())}")


def _changed(drawn: Pulse) -> int:
    """When the data last changed while this session watched, ns since 1970."""
    seen, since = st.session_state.get(_CHANGED, (None, 0))
    if seen != (drawn,):
        since = time.time_ns()
        st.session_state[_CHANGED] = ((drawn,), since)
    return int(since)
