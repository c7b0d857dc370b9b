"""Stored facts and what was concluded from them: one protocol, several engines."""

from __future__ import annotations

from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.protocol import Store
from a2a_fencing_dashboard.store.sqlite import SqliteStore

__all__ = ["Store", "StoreError", "open_store"]

_SQLITE = "sqlite:///"


def open_store(url: str) -> Store:
    """Opens a store, creating an empty one where none is.

    Args:
        url: ``sqlite:///relative/path.db`` or ``sqlite:////absolute/path.db``.

    Raises:
        StoreError: The URL names no engine we have, or the store cannot be used.
    """
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        return SqliteStore(url[len(_SQLITE) :])
    raise StoreError(f"unknown store {url!r}: expected sqlite:///path")
