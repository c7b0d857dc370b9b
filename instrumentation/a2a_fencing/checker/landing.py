"""Writes of unknown outcome: which of them the store turned out to hold.

Such a write stays open until something decides: a version that somebody saw and no known write made,
which it fits (it landed), or another write that took the place it would have had, or a gapless chain of
known writes up to a version that its own replica saw later (it did not land).
"""

from __future__ import annotations

from collections.abc import Iterator

from a2a_fencing import conventions as c
from a2a_fencing.checker.versions import Known, StoredVersion, Versions, by_number, is_cancel
from a2a_fencing.facts import Fact


class Indeterminate:
    """The writes of one incarnation whose outcome the writer did not learn.

    A refusal because of the writer's own earlier commit is one of them: that commit did land.
    """

    __slots__ = ("_landed", "writes")

    def __init__(self) -> None:
        self.writes: list[Fact] = []
        self._landed: dict[Known, Fact] = {}

    def add(self, write: Fact) -> None:
        """Files a write of unknown outcome, or one refused as the writer's own commit."""
        self.writes.append(write)
        self.writes.sort(key=by_number)

    @property
    def landed(self) -> dict[Known, Fact]:
        """Versions that such a write turned out to have made."""
        return self._landed

    def resolve(self, versions: Versions) -> Iterator[StoredVersion]:
        """Decides afresh which write made which version; gives the versions for which that changed."""
        landed: dict[Known, Fact] = {}
        for write in self.writes:
            fitting = (
                at for at in _open(versions) if at.version not in landed and _fits(versions, at, write)
            )
            at = next(fitting, None)
            if at is not None and not any(_same_attempt(write, other) for other in landed.values()):
                landed[at.version] = write
        for version in self._landed.keys() | landed.keys():
            known = versions.get(version)
            if known is not None and known.landed is not landed.get(version):
                known.landed = landed.get(version)
                yield known
        self._landed = landed

    def undecided(self, versions: Versions) -> Iterator[Fact]:
        """Writes that may or may not be stored."""
        landed = list(self._landed.values())
        for write in self.writes:
            settled = any(write is other or _same_attempt(write, other) for other in landed)
            if not settled and not _lost(versions, write):
                yield write


def _open(versions: Versions) -> Iterator[StoredVersion]:
    for version in sorted(versions.unwritten):
        known = versions.get(version)
        if known is not None:
            yield known


def _fits(versions: Versions, at: StoredVersion, write: Fact) -> bool:
    if _state_seen(at) not in (None, write.state):
        return False
    if write.version is not None:
        return at.version == write.version
    base = write.base_version
    if is_cancel(write):
        return base is None or (type(base) is type(at.version) and at.version > base)  # type: ignore[operator]
    if versions.counting:
        return at.version == (base if type(base) is int else 0) + 1
    before = versions.below(at.version)
    return (before.version if before is not None else None) == base


def _state_seen(at: StoredVersion) -> str | None:
    """The state others saw at the version, not counting a write that is taken to have made it."""
    if at.reads:
        return min(at.reads.values(), key=by_number).state
    return next((write.base_state for write in at.derived if write.base_state is not None), None)


def _same_attempt(write: Fact, other: Fact) -> bool:
    """Whether two facts tell of one logical write: tried, and tried again by the same writer."""
    return (write.writer, write.base_version, write.state, write.event_kind) == (
        other.writer,
        other.base_version,
        other.state,
        other.event_kind,
    )


def _lost(versions: Versions, write: Fact) -> bool:
    """Whether the write certainly is not stored."""
    base = write.base_version
    if not is_cancel(write):
        if base is None:
            return versions.lowest_written is not None
        before = versions.get(base)
        if before is not None and any(not is_cancel(other) for other in before.derived):
            return True
    return _passed_by(versions, write)


def _passed_by(versions: Versions, write: Fact) -> bool:
    """Whether the writer saw, later, a version up to which every write is known and none is this one."""
    base = write.base_version
    at = versions.get(base) if base is not None else None
    number = write.n
    expected = base
    if at is not None and _seen_later(at, write.replica, number):
        return True
    at = versions.above(base) if base is not None else None
    while at is not None and at.writes:
        if versions.counting and type(expected) is int and at.version != expected + 1:
            return False
        if _seen_later(at, write.replica, number):
            return True
        expected, at = at.version, versions.above(at.version)
    return False


def _seen_later(at: StoredVersion, replica: str, number: int) -> bool:
    seen = (*at.writes, *(at.reads or {}).values(), *at.derived)
    return any(
        fact.replica == replica and fact.n > number and fact.outcome != c.UNKNOWN for fact in seen
    )
