"""What a person does on the pages to the store: take notes of findings. Everything else only reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.notes import ACKNOWLEDGED, MUTED, Note, Notebook
from a2a_fencing_dashboard.store.protocol import FindingRow


class Actions:
    """Notes, written to the store that the pages show."""

    def __init__(self, notebook: Notebook, now: Callable[[], int]) -> None:
        """Writes to `notebook`; `now` gives ns since 1970."""
        self._notebook = notebook
        self._now = now

    def acknowledge(self, task: TaskKey, seen: Sequence[FindingRow], by: str, because: str) -> None:
        """Says that somebody has seen these findings of a task; later ones stay new.

        Raises:
            StoreError: The note could not be kept.
        """
        upto = max(row.id for row in seen)
        self._add(Note(ACKNOWLEDGED, by, because, task=task, upto=upto))

    def acknowledge_all(
        self, upto: int, by: str, because: str, *, rules: Collection[str] = (), run: str | None = None
    ) -> None:
        """Says that somebody has seen all findings up to an id: by any of these rules, of this run.

        Raises:
            StoreError: The note could not be kept.
        """
        for rule in rules or (None,):
            self._add(Note(ACKNOWLEDGED, by, because, rule=rule, run=run, upto=upto))

    def mute(
        self, rule: str, by: str, because: str, *, task: TaskKey | None = None, run: str | None = None
    ) -> None:
        """Says that nobody wants to hear of a rule: of one task, of one run, or ever.

        Raises:
            StoreError: The note could not be kept.
        """
        self._add(Note(MUTED, by, because, task=task, rule=rule, run=run))

    def undo(self, note: Note) -> None:
        """Takes a note back.

        Raises:
            StoreError: It could not be taken back.
        """
        self._notebook.remove_note(note.id)

    def _add(self, note: Note) -> None:
        self._notebook.add_note(note, now_unix_nano=self._now())
