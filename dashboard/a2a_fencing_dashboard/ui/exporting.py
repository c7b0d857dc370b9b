"""What is on the pages as files to take along; a file is made when somebody asks for it, not before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import streamlit as st

from a2a_fencing_dashboard.exports.excerpt import Excerpt, file_name
from a2a_fencing_dashboard.exports.formats import FORMATS, Format
from a2a_fencing_dashboard.ui.words import count

MOST_FACTS: Final = 50_000
"""In one file: more take longer to make than anybody waits for a download."""

_REPORT: Final = "html"
_PICTURE: Final = "picture"
_PICTURES: Final = ("PNG", "SVG")


def menu(
    excerpt: Callable[[], Excerpt], name: str, total: int, *, key: str, pictured: bool = False
) -> None:
    """A button that offers files.

    Args:
        excerpt: Gives what goes into them.
        name: What it is of; part of the files' names.
        total: How many facts there are of it.
        key: Tells apart several menus on one page.
        pictured: Whether the page draws it.
    """
    with st.popover("Export", icon=":material/download:", key=f"export-{key}"):
        st.text(_amount(total))
        for title, form in FORMATS.items():
            st.download_button(
                form.title,
                data=partial(_made, form, excerpt),
                file_name=file_name(name, form.suffix),
                mime=form.mime,
                key=f"export-{key}-{title}",
                help=_HELP[title],
                on_click="ignore",
                # Judged by a part of its facts, a run would look violated where it is only cut.
                disabled=title == _REPORT and total > MOST_FACTS,
                width="stretch",
            )
        if pictured:
            _choose_picture()
        if total > MOST_FACTS:
            st.caption("Everything, and the report: a2a-fencing export STORE")


def picture(name: str) -> dict[str, Any]:
    """How a chart's camera saves it, to be merged into the chart's configuration."""
    kind = st.session_state.get(_PICTURE) or _PICTURES[0]
    stem = file_name(name, "").rstrip(".")
    return {"toImageButtonOptions": {"format": kind.lower(), "filename": stem, "scale": 2}}


def _choose_picture() -> None:
    """Lets people choose what the camera above a chart saves."""
    st.segmented_control(
        "The camera above the timeline saves",
        _PICTURES,
        default=_PICTURES[0],
        key=_PICTURE,
        required=True,
    )


def _amount(total: int) -> str:
    return count(total, "fact") if total <= MOST_FACTS else f"{MOST_FACTS:,} of {count(total, 'fact')}"


def _made(form: Format, excerpt: Callable[[], Excerpt]) -> bytes:
    return form.write(excerpt())


_HELP: Final = {
    "html": "One page that opens from disk without network: verdict, story, timeline, facts",
    "otlp": "Opens here again (a2a-fencing dashboard --open) and in a2a-fencing check",
    "csv": "For spreadsheets",
    "parquet": "For data tools",
}
