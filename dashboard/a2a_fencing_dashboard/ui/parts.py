"""What pages are made of. Text from outside goes through elements that show text as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import streamlit as st

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store import StoreError
from a2a_fencing_dashboard.ui import links
from a2a_fencing_dashboard.ui.links import Query
from a2a_fencing_dashboard.ui.settings import Settings
from a2a_fencing_dashboard.ui.view import current
from a2a_fencing_dashboard.ui.words import VERDICT_WORDS, count, shown

_STYLES: Final = Path(__file__).with_name("style.css")
_LOGO: Final = Path(__file__).with_name("logo.svg")
_ICON: Final = Path(__file__).with_name("icon.svg")

CHART: Final = {"displaylogo": False, "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"]}
"""How all charts behave."""

TASK_COLUMNS: Final[dict[str, Any]] = {
    "verdict": st.column_config.TextColumn(width=100),
    "task": st.column_config.LinkColumn(display_text=links.TASK_CELL, width=285, alignment="left"),
    "state": st.column_config.TextColumn(width=140),
    "version": st.column_config.TextColumn(width=70),
    "broken rules": st.column_config.TextColumn(width=220),
    "last change": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss", width=150),
    "conflicts": st.column_config.TextColumn(alignment="right", width=80),
    "rejections": st.column_config.TextColumn(alignment="right", width=80),
    "drops": st.column_config.TextColumn(alignment="right", width=60),
    "dispatches": st.column_config.TextColumn(alignment="right", width=80),
    "facts": st.column_config.NumberColumn(format="localized", width=60),
    "replicas": st.column_config.TextColumn(width=130),
}
"""Of `frames.tasks`."""

Side = Literal["left", "right"]

_NOTHING: Final = "nothing"
_ICONS: Final = {
    c.VIOLATED: ":material/gpp_bad:",
    c.UNKNOWN: ":material/gpp_maybe:",
    c.FINE: ":material/verified_user:",
    _NOTHING: ":material/sensors_off:",
}


def frame() -> None:
    """The page around all pages."""
    st.set_page_config(
        page_title="a2a-fencing",
        page_icon=str(_ICON),
        layout="wide",
        menu_items={"About": "a2a-fencing watches A2A agents that run on more than one replica."},
    )
    st.html(_STYLES)
    st.logo(str(_LOGO), size="large")


def title(new: int) -> None:
    """Says in the browser's tab how many violations are new, for who looks at another one."""
    st.set_page_config(page_title=f"({count(new)}) a2a-fencing" if new else "a2a-fencing")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with a name, and the list behind it. `note` stands small beside the name."""

    name: str
    value: str
    query: Query | None = None
    page: str = links.TASKS
    note: str = ""


def figures(title: str, rows: Iterable[Figure], *, empty: str = "", key: str) -> None:
    """A titled block of numbers; one that has a list behind it links to it."""
    with st.container(border=True, key=f"figures-{key}", gap=None, height="stretch"):
        heading(title)
        none = True
        for index, row in enumerate(rows):
            none = False
            with st.container(
                horizontal=True,
                horizontal_alignment="distribute",
                vertical_alignment="center",
                wrap=False,
                key=f"figure-{key}-{index}",
            ):
                with st.container(gap=None, width="content"):
                    st.text(row.name)
                    if row.note:
                        st.caption(row.note)
                if row.query is None or row.value == "0":
                    st.text(row.value)
                else:
                    st.page_link(current().pages[row.page], label=row.value, query_params=row.query)
        if none:
            st.caption(empty)


def heading(title: str) -> None:
    """The title of a block; `title` is ours."""
    st.markdown(f"##### {title}")


def verdict_box(kind: str, headline: str, name: str = "") -> st.delta_generator.DeltaGenerator:
    """A box whose colour, icon and first word all say the verdict; more is written into it.

    `name` tells apart several on one page.
    """
    box = st.container(key=f"verdict-{kind}-{name}" if name else f"verdict-{kind}", gap="xsmall")
    with box, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{_ICONS[kind]} **{VERDICT_WORDS.get(kind, 'No data')}**", width="content")
        st.text(headline)
    return box


def pairs(rows: Sequence[tuple[str, str]], *, key: str) -> None:
    """Named values side by side; the values may come from outside."""
    with st.container(horizontal=True, gap="large", key=f"pairs-{key}"):
        for name, value in rows:
            with st.container(gap=None, width="content"):
                st.caption(name)
                st.text(shown(value, 120))


def task_link(key: TaskKey) -> None:
    """The way to a task's page."""
    st.page_link(
        current().pages[links.TASK],
        label="Open the task",
        icon=":material/arrow_forward:",
        icon_position="right",
        query_params=links.task_query(key),
    )


def showing(first: int, number: int, total: int, noun: str, *, counted_to: int | None = None) -> None:
    """Says what part of a list is on the page; of more than `counted_to`, only that it is more."""
    if number == total:
        st.caption(count(total, noun))
        return
    whole = count(total, noun)
    if counted_to is not None and total > counted_to:
        whole = f"more than {count(counted_to, noun)}"
    st.caption(f"showing {first + 1:,} to {first + number:,} of {whole}")


def nothing_yet(settings: Settings) -> None:
    """For a store without facts: what to do to get some."""
    with verdict_box(_NOTHING, "No replica has reported yet."):
        if settings.receiver_url:
            st.text(f"The receiver listens on {settings.receiver_url}. In your A2A server:")
        else:
            st.text("In your A2A server:")
        st.code("import a2a_fencing\n\na2a_fencing.instrument()", language="python")
        st.text("Or watch a cluster on this machine whose tasks are overwritten:")
        st.code("a2a-fencing demo", language="shell")


def nothing_here(what: str) -> st.delta_generator.DeltaGenerator:
    """For a selection that holds nothing: says so; how to widen it is written beside. `what` is ours."""
    box = st.container(border=True, key="nothing-here", horizontal=True, vertical_alignment="center")
    box.text(what, width="content")
    return box


def not_live(name: str) -> None:
    """Says on every page that it shows a file."""
    with st.container(key="not-live", horizontal=True, vertical_alignment="center"):
        st.markdown(":material/history: **History file, not live**", width="content")
        st.text(shown(name, 200))


def gone(opening: st.Page, forget: Callable[[], None]) -> None:
    """For a URL that names a history file which is not open any more."""
    with verdict_box(_NOTHING, "The history file of this link is not open here any more."):
        st.page_link(opening, label="Open it again")
        st.button("Show what arrives live", type="tertiary", on_click=forget)


def unreadable(error: StoreError) -> None:
    """For a store that does not answer."""
    with st.container(key="verdict-unreadable", gap="xsmall"):
        st.markdown(":material/cloud_off: **The store does not answer.**")
        st.text(str(error))
        st.caption(
            "The page comes back by itself as soon as it does. If it does not: see whether the file is"
            " there and may be read, or name another one with `a2a-fencing dashboard --store`."
        )


def failed(error: Exception) -> None:
    """For a page that could not be drawn: a defect of ours."""
    with st.container(key="verdict-unreadable-page", gap="xsmall"):
        st.markdown(":material/bug_report: **This page could not be drawn.**")
        st.text("The other pages and the data are not affected. Please report what is below.")
        with st.expander("What went wrong"):
            st.exception(error)


def nobody_reports(settings: Settings, since: str) -> None:
    """For a run of which every replica has fallen silent: over, or cut off."""
    with st.container(border=True, key="nobody-reports", gap="xsmall"):
        st.markdown(f":material/sensors_off: No replica has reported since {since}.")
        receiver = settings.receiver_url or "the receiver"
        st.text(
            f"If servers still run: does {shown(receiver, 100)} answer, and does it stand in their"
            " OTEL_EXPORTER_OTLP_ENDPOINT or A2A_FENCING_ENDPOINT? In their environment this tells:"
        )
        st.code("a2a-fencing doctor", language="shell")
