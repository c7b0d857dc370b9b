"""Files: a history from elsewhere, shown by the same pages; and all that is here, to take along."""

from __future__ import annotations

from functools import partial

import streamlit as st

from a2a_fencing_dashboard.histories import HistoryError
from a2a_fencing_dashboard.store.protocol import Window
from a2a_fencing_dashboard.ui import exporting, links, parts, sources, words
from a2a_fencing_dashboard.ui.view import current


def render() -> None:
    """Draws the page."""
    parts.heading("Open a history file")
    st.caption(
        "OTLP JSON lines as this dashboard exports them and the Collector's file exporter writes them,"
        " Jaeger's JSON download, or a store of a dashboard. It is judged and shown apart from what"
        " arrives live, in this process only, and kept until it is closed."
    )
    uploaded = st.file_uploader(
        "History file",
        key="history-file",
        max_upload_size=sources.MOST_MB,
        label_visibility="collapsed",
    )
    if uploaded is not None and uploaded.file_id != st.session_state.get("opened-file"):
        st.session_state["opened-file"] = uploaded.file_id
        _open(uploaded.name, uploaded.getvalue())
    if st.session_state.get("refused-file") and uploaded is not None:
        with st.container(key="verdict-unreadable", gap="xsmall"):
            st.markdown(":material/error: **This file cannot be opened.**")
            st.text(st.session_state["refused-file"])
    _list()
    _take_along()


def _take_along() -> None:
    view = current()
    total = view.queries.overview(view.at, Window()).facts
    if not total:
        return
    parts.heading("Take everything along")
    with st.container(horizontal=True, vertical_alignment="center"):
        exporting.menu(
            partial(view.queries.whole_excerpt, exporting.MOST_FACTS), "all", total, key="all"
        )
        st.caption("A task and a run have a menu like this on their own pages.", width="content")


def _open(name: str, content: bytes) -> None:
    st.session_state["refused-file"] = ""
    try:
        with st.spinner("Reading and judging it"):
            sources.sources().add(name, content)
    except HistoryError as error:
        st.session_state["refused-file"] = words.shown(str(error), 400)


def _list() -> None:
    opened = sources.sources().all()
    if not opened:
        return
    parts.heading("Open now")
    for index, (identity, history) in enumerate(reversed(opened.items())):
        with st.container(
            horizontal=True, vertical_alignment="center", border=True, key=f"open-{index}"
        ):
            st.text(identity, width="content")
            st.caption(words.count(history.facts, "fact"), width="content")
            st.page_link(
                current().pages[links.OVERVIEW],
                label="Look at it",
                icon=":material/arrow_forward:",
                icon_position="right",
                query_params={sources.SOURCE: identity},
            )
            st.button(
                "Close",
                key=f"close-{index}",
                type="tertiary",
                on_click=sources.sources().remove,
                args=(identity,),
            )
