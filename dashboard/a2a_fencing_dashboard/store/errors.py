"""What can be wrong with a store."""

from __future__ import annotations


class StoreError(Exception):
    """A store cannot be opened or used; the text is one line that says which and why."""
