"""The embedded engine: one SQLite file in WAL mode, one writer, readers in any process."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.protocol import Batch, Past, Reported
from a2a_fencing_dashboard.store.sqlite.reader import Reader
from a2a_fencing_dashboard.store.sqlite.schema import prepare
from a2a_fencing_dashboard.store.sqlite.writer import Writer


class SqliteStore(Reader):
    """A `Store` in a SQLite file."""

    def __init__(self, path: str, *, clock: Callable[[], int] = time.time_ns) -> None:
        """Opens the file, creating it where none is; `clock` gives ns since 1970.

        Raises:
            StoreError: The file is not a store, is one of a newer version, or cannot be used.
        """
        prepare(path)
        super().__init__(path, clock=clock)
        self._path = path
        self._writer: Writer | None = None

    def known(self, ids: Collection[str]) -> set[str]:
        """Which of these fact ids are stored already."""
        return self._open_writer().known(ids)

    def past(self, keys: Collection[TaskKey]) -> Past:
        """What a checker needs to go on with these tasks, in any incarnation."""
        return self._open_writer().past(keys)

    def reports(self) -> list[Reported]:
        """What a checker needs to know of every replica, to go on after a restart."""
        return self._open_writer().reports()

    def commit(self, batch: Batch, *, now_unix_nano: int) -> None:
        """Stores a batch in one transaction; when this returns, it survives a kill."""
        self._open_writer().commit(batch, now_unix_nano=now_unix_nano)

    def close(self) -> None:
        """Lets go of files and connections."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        super().close()

    def _open_writer(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(self._path)
        return self._writer
