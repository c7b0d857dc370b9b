"""The embedded engine: one SQLite file in WAL mode, one writer, readers in any process."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.notes import Note
from a2a_fencing_dashboard.store.protocol import Batch, Past, Reported
from a2a_fencing_dashboard.store.sqlite import notes
from a2a_fencing_dashboard.store.sqlite.outbox import SqliteOutbox
from a2a_fencing_dashboard.store.sqlite.reader import Reader
from a2a_fencing_dashboard.store.sqlite.schema import connect, prepare
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
        self._outbox = SqliteOutbox(path)

    @property
    def outbox(self) -> SqliteOutbox:
        """What is to be told to others; for the process that writes."""
        return self._outbox

    def known(self, ids: Collection[str]) -> set[str]:
        """Which of these fact ids are stored already."""
        return self._open_writer().known(ids)

    def past(self, keys: Collection[TaskKey]) -> Past:
        """What a checker needs to go on with these tasks, in any incarnation."""
        return self._open_writer().past(keys)

    def reports(self) -> list[Reported]:
        """What a checker needs to know of every replica, to go on after a restart."""
        return self._open_writer().reports()

    def clocks(self) -> Mapping[tuple[str, str], int]:
        """What was measured of the clocks of replicas, as `Batch.clocks` told it."""
        return self._open_writer().clocks()

    def commit(self, batch: Batch, *, now_unix_nano: int) -> None:
        """Stores a batch in one transaction; when this returns, it survives a kill."""
        self._open_writer().commit(batch, now_unix_nano=now_unix_nano)

    def add_note(self, note: Note, *, now_unix_nano: int) -> None:
        """Keeps a note. A task that is not stored has no findings, and the note no effect."""
        with self._note_taking() as db:
            notes.add(db, note, now_unix_nano)

    def remove_note(self, note_id: int) -> None:
        """Takes a note back; one that is not there is gone already."""
        with self._note_taking() as db:
            notes.remove(db, note_id)

    def close(self) -> None:
        """Lets go of files and connections."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._outbox.close()
        super().close()

    def _open_writer(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(self._path)
        return self._writer

    @contextmanager
    def _note_taking(self) -> Iterator[sqlite3.Connection]:
        """A transaction beside the writer's, in whichever process this is."""
        try:
            with closing(connect(self._path)) as db:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"cannot write to the store: {error}") from error
