"""What can be wrong with a history file."""

from __future__ import annotations


class HistoryError(Exception):
    """A file cannot be read as a history; the text is one line that says where and why."""
