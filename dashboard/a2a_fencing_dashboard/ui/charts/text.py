"""Text from outside, for figures."""

from __future__ import annotations

from html import escape

from a2a_fencing_dashboard.ui.words import shown


def figure_text(text: str, limit: int = 80) -> str:
    """Text that Plotly shows as it is: no markup, no links, no formulas."""
    return escape(shown(text, limit), quote=False).replace("$", "&#36;")
