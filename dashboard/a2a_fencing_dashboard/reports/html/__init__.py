"""A dossier as one HTML file that opens from disk, without network, and can be attached to an issue."""

from a2a_fencing_dashboard.reports.html.page import as_html

__all__ = ["as_html"]
