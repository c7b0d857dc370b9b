"""One fact in full: all that was reported of it, and the way to its trace."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import streamlit as st

from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui import links, parts, words
from a2a_fencing_dashboard.ui.story import sentence
from a2a_fencing_dashboard.ui.view import View

_TOLD_ELSEWHERE: Final = frozenset({"task", "context_id", "time_unix_nano"})
_DURATIONS: Final = frozenset({"duration_ns"})


def picked(selection: Any) -> str | None:
    """Id of the fact that was clicked on in a timeline."""
    points = selection.get("selection", {}).get("points", []) if selection else []
    data = points[0].get("customdata") if points else None
    found = data[0] if isinstance(data, list) and data else data
    return found if isinstance(found, str) else None


def fact(view: View, shown: Fact, place: int) -> None:
    """Draws a fact that was clicked on."""
    with st.container(border=True, key="detail", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"#{place} {sentence(shown, view.names)}", width="content")
            url = links.trace_url(view.settings.jaeger_url, shown.trace_id)
            if url:
                st.link_button("Trace in Jaeger", url, type="tertiary", icon=":material/open_in_new:")
        parts.pairs(_pairs(view, shown), key="fact")


def _pairs(view: View, shown: Fact) -> list[tuple[str, str]]:
    rows = [("reported at", words.precise(shown.time_unix_nano, view.zone))]
    for field in fields(shown):
        value = getattr(shown, field.name)
        if value is None or field.name in _TOLD_ELSEWHERE:
            continue
        name = field.name.replace("_ns", "").replace("_", " ")
        rows.append((name, words.duration(value) if field.name in _DURATIONS else str(value)))
    return rows
