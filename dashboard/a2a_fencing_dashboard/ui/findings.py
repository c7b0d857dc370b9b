"""Findings as lines: how grave, how certain, which rule, and what happened.

All lines of a task are one element. Streamlit replaces a list element by element while it draws it anew;
for a moment, the last lines of a card that moved down would stand under the card that took its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import streamlit as st

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing_dashboard.ui.words import shown

# Names of signs in the font of icons that Streamlit brings along.
_SEVERITIES: Final = {c.CRITICAL: "error", c.WARNING: "warning", c.INFO: "info"}
_CERTAINTIES: Final = {c.PROVEN: "task_alt", c.SUSPECTED: "contact_support"}
_UNKNOWN: Final = "help"
_MUTED: Final = "notifications_off"


@dataclass(frozen=True, slots=True)
class Line:
    """One finding.

    Attributes:
        finding: It.
        text: What happened, or what else is to stand there; may come from outside.
        muted: Whether somebody muted it.
        aside: Whether the text is small print.
    """

    finding: Finding
    text: str
    muted: bool = False
    aside: bool = False


def lines(rows: Sequence[Line]) -> None:
    """Draws one line a finding."""
    if rows:
        st.html(as_html(rows))


def as_html(rows: Sequence[Line]) -> str:
    """The lines; whatever they say is text in them."""
    return f'<div class="findings">{"".join(map(_line, rows))}</div>'


def _line(row: Line) -> str:
    finding = row.finding
    known = finding.severity in _SEVERITIES
    severity = finding.severity if known else "severity unknown"
    certainty = finding.certainty if finding.certainty in _CERTAINTIES else c.SUSPECTED
    grave = f"finding-{severity}" if known else ""
    muted = f'<span class="finding-muted">{_icon(_MUTED)} muted</span>' if row.muted else ""
    return (
        '<div class="finding">'
        f'<span class="{grave}">{_icon(_SEVERITIES.get(severity, _UNKNOWN))} {severity}</span>'
        f"<span>{_icon(_CERTAINTIES[certainty])} {certainty}</span>"
        f"<span>{escape(shown(finding.rule, 40))}</span>"
        f'<span class="{"finding-aside" if row.aside else ""}">{muted}{escape(row.text)}</span>'
        "</div>"
    )


def _icon(name: str) -> str:
    return f'<span class="finding-icon" aria-hidden="true">{name}</span>'
