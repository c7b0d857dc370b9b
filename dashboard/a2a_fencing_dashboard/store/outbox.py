"""What somebody outside is to be told of findings, kept until they were told.

A change to a finding that violates is written to the outbox in the commit that makes it, so that neither
a kill nor an endpoint that is away loses it. Each destination reads on from where it was left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from a2a_fencing.checker import Finding

NEW: Final = "new"
CHANGED: Final = "changed"
"""It still stands, with another severity or certainty."""
RETRACTED: Final = "retracted"
"""Later facts refuted it."""
MUTED: Final = "muted"
"""Somebody does not want to hear of it."""
UNMUTED: Final = "unmuted"


@dataclass(frozen=True, slots=True)
class Change:
    """Something to tell of a finding.

    Attributes:
        id: Counts up by one with each change in this store.
        reason: `NEW`, `CHANGED`, `RETRACTED`, `MUTED` or `UNMUTED`.
        finding: As it is now, or was at last.
        run: Label of its run, or None.
        seen_unix_nano: When the receiver concluded it.
    """

    id: int
    reason: str
    finding: Finding
    run: str | None
    seen_unix_nano: int

    @property
    def stands(self) -> bool:
        """Whether the finding is still to be seen to."""
        return self.reason not in (RETRACTED, MUTED)


@dataclass(frozen=True, slots=True)
class Parcel:
    """Changes that travel together; the same ones, under the same name, until they are delivered.

    Attributes:
        name: Unlike that of any other parcel, also of other stores.
        last: Id of its last change.
        changes: In the order in which they happened.
        dropped: How many before these were given up, because too many waited.
    """

    name: str
    last: int
    changes: Sequence[Change]
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Findings that stand, are not muted and have all this in common.

    Attributes:
        count: How many they are.
        since_unix_nano: When the first of them was concluded.
        newest: The last of them.
        newest_unix_nano: When it was concluded.
    """

    rule: str
    severity: str
    certainty: str
    run: str | None
    count: int
    since_unix_nano: int
    newest: Finding
    newest_unix_nano: int


class Outbox(Protocol):
    """The part of a store that whoever sends alerts works with."""

    def listen(self, destinations: Collection[str]) -> None:
        """From now on keeps what happens for these destinations, and for no others.

        A destination that is new hears of what happens from now on.
        """

    def parcel(self, destination: str, *, limit: int) -> Parcel | None:
        """What this destination is to be told next, at most `limit` changes; None for nothing."""

    def delivered(self, destination: str, parcel: Parcel) -> None:
        """Notes that this destination is done with a parcel."""

    def waiting(self, destination: str) -> int:
        """How many changes this destination has not been told of."""

    def heed_notes(self) -> None:
        """Puts what has been muted or unmuted since the last call into the outbox."""

    def pulse(self) -> tuple[int, ...]:
        """Differs from what it was whenever `standing` may."""

    def standing(self, *, since_unix_nano: int = 0) -> list[Standing]:
        """What violates and is not muted, of what was concluded since then, newest first."""
