"""What people say of findings: that they have seen one, or do not want to hear of it.

Notes are kept beside the facts and change no verdict. Any process may write them, the dashboard's too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from a2a_fencing.checker import Finding
from a2a_fencing.facts import TaskKey

ACKNOWLEDGED: Final = "acknowledged"
"""Somebody has seen what there was: it stays listed, and is not counted as new."""

MUTED: Final = "muted"
"""Nobody wants to hear of it, nor of what may follow: it is listed only where it is asked for."""


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody said of some findings, and why.

    Attributes:
        kind: `ACKNOWLEDGED` or `MUTED`.
        by: Who says it.
        because: Why.
        task: Only findings of this task; None: of any.
        rule: Only findings by this rule; None: by any.
        run: Only findings of the run with this label; None: of any.
        upto: Only findings up to this id, as nobody has seen later ones; None: those to come, too.
        at_unix_nano: When; the store says it.
        id: Row id; the store gives it.
    """

    kind: str
    by: str
    because: str
    task: TaskKey | None = None
    rule: str | None = None
    run: str | None = None
    upto: int | None = None
    at_unix_nano: int = 0
    id: int = 0


class Notebook(Protocol):
    """Where notes are kept: the part of a store that is not only ingest's to write."""

    def add_note(self, note: Note, *, now_unix_nano: int) -> None:
        """Keeps a note. A task that is not stored has no findings, and the note no effect.

        Raises:
            StoreError: It could not be kept.
        """

    def remove_note(self, note_id: int) -> None:
        """Takes a note back; one that is not there is gone already."""

    def notes(self) -> list[Note]:
        """Every note, newest first."""

    def mutes_of(self, findings: Sequence[Finding]) -> list[Note | None]:
        """For each standing finding, the note that mutes it; for whoever sends findings out."""
