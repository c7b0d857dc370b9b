"""Reports of a judged history, for people and for the programs that read test results.

`html` is not among the formats that are imported here: it draws, which takes the dashboard's libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from a2a_fencing_dashboard.reports.dossier import Dossier, Place
from a2a_fencing_dashboard.reports.json import as_json
from a2a_fencing_dashboard.reports.junit import as_junit
from a2a_fencing_dashboard.reports.sarif import as_sarif
from a2a_fencing_dashboard.reports.text import as_text

FORMATS: Final[Mapping[str, Callable[[Dossier], str]]] = {
    "text": as_text,
    "json": as_json,
    "junit": as_junit,
    "sarif": as_sarif,
}
"""What renders a dossier, by the name of the format."""

__all__ = ["FORMATS", "Dossier", "Place"]
