"""The guard's store rule: whether a write stands on a finished task and must not reach the store."""

from __future__ import annotations

import logging
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.guard import STORE, in_force
from a2a_fencing.hooks.sdk import VersionedDatabaseTaskStore
from a2a_fencing.hooks.stores import is_versioned
from a2a_fencing.hooks.tasks import state_of, version_of
from a2a_fencing.hooks.write import Write, inside_store

_log = logging.getLogger("a2a_fencing")


class StoreRule:
    """Looks at the base of a write before the store sees it.

    What the base version held is known from the read or write it came from, and the store's own
    compare-and-swap refuses a base that is not what is stored: no extra read, no window.
    """

    def __init__(self) -> None:
        self._complained = False

    async def holds_back(self, write: Write, store: Any) -> bool:
        """Whether the write stands on a finished task.

        Args:
            write: The write.
            store: The layer that is about to save it.
        """
        if not is_versioned(store):
            self._complain(store)
            return False
        if STORE in in_force().by_sdk and isinstance(store, VersionedDatabaseTaskStore):
            return False
        if write.base_state is None and write.base is not None:
            write.base_state = await self._read(write)
        return write.base_state in c.TERMINAL_STATES

    async def _read(self, write: Write) -> str | None:
        """Asks the store for what was forgotten; the base only, since others are refused anyway."""
        try:
            with inside_store():
                stored = await write.store.get(write.task.id, write.context)
        except Exception as error:
            internal_errors.report("read for the guard", error)
            return None
        if stored is not None and version_of(stored.version) == write.base:
            write.record.saw(write.base, state_of(stored.task))
        return write.record.states.get(write.base)

    def _complain(self, store: object) -> None:
        """Says once that there is no hold on a store without versions."""
        if not self._complained:
            self._complained = True
            _log.warning(
                "the guard's store rule does not cover %s: it keeps no versions",
                type(store).__qualname__,
            )
