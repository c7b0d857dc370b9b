"""Histories from files: what a Collector, Jaeger or the dashboard wrote, as facts."""

from a2a_fencing_dashboard.histories.errors import HistoryError
from a2a_fencing_dashboard.histories.files import read_history, read_places

__all__ = ["HistoryError", "read_history", "read_places"]
