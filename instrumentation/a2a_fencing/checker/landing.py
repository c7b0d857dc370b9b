"""Writes of unknown outcome: which of them the store turned out to hold.

Such a write stays open until something decides: a version that somebody saw and no known write made,
which it fits (it landed), or another write that took the place it would have had, or a gapless chain of
known writes up to a version that its own replica saw later (it did not land).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
        self._landed: dict[Known, tuple[Fact, ...]] = {}

    def add(self, write: Fact) -> None:
        """Files a write of unknown outcome, or one refused as the writer's own commit."""
        self.writes.append(write)
        self.writes.sort(key=by_number)

    def creates_after(self, born: Fact) -> bool:
        """Whether one of them is of a task that was not stored, though `born` had created it.

        A first write that was lost and then tried again comes before the one that was accepted.
        """
        return any(
            write.base_version is None
            and not is_cancel(write)
            and (write.replica != born.replica or write.n > born.n)
            for write in self.writes
        )

    @property
    def landed(self) -> dict[Known, Fact]:
        """Versions that such a write turned out to have made."""
        return {version: writes[0] for version, writes in self._landed.items()}

    def resolve(self, versions: Versions) -> Iterator[StoredVersion]:
        """Decides afresh which writes may have made which version; gives the versions that changed."""
        landed: dict[Known, tuple[Fact, ...]] = {}
        for at in _open(versions):
            fitting = [write for write in self.writes if _fits(versions, at, write)]
            fresh = [write for write in fitting if not _tells_of(write, landed)]
            if fresh:
                landed[at.version] = tuple(_one_each(fresh))
        for version in self._landed.keys() | landed.keys():
            known = versions.get(version)
            candidates = landed.get(version, ())
            if known is not None and candidates != self._landed.get(version, ()):
                known.landed, known.rivals = (
                    (candidates[0], candidates[1:]) if candidates else (None, ())
                )
                yield known
        self._landed = landed

    def undecided(self, versions: Versions) -> Iterator[Fact]:
        """Writes that may or may not be stored."""
        for write in self.writes:
            if not _tells_of(write, self._landed) and not _lost(versions, write):
                yield write


def _tells_of(write: Fact, landed: Mapping[Known, tuple[Fact, ...]]) -> bool:
    """Whether the write is one that certainly landed."""
    return any(
        len(candidates) == 1 and same_attempt(write, candidates[0]) for candidates in landed.values()
    )


def _one_each(writes: Iterable[Fact]) -> Iterator[Fact]:
    """One fact for each logical write."""
    told: list[Fact] = []
    for write in writes:
        if not any(same_attempt(write, other) for other in told):
            told.append(write)
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
        return min(at.first_reads(), key=by_number).state
    knowing = (write for write in at.derived if write.base_state is not None)
    first = min(knowing, key=by_number, default=None)
    return first.base_state if first is not None else None


def same_attempt(write: Fact, other: Fact) -> bool:
    """Whether two facts tell of one logical write: tried, and tried again by the same writer."""
    return write is other or (
        (write.writer, write.base_version, write.state, write.event_kind)
        == (other.writer, other.base_version, other.state, other.event_kind)
        and c.OWN_COMMIT in (write.reason, other.reason)
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
    while at is not None:
        if _seen_later(at, write.replica, write.n):
            return True
        following = versions.above(at.version)
        at = following if following is not None and _directly_after(versions, at, following) else None
    return False


def _directly_after(versions: Versions, at: StoredVersion, following: StoredVersion) -> bool:
    """Whether a known write made the following version, and nothing can have been stored in between."""
    write = following.write
    if write is None:
        return False
    if versions.counting:
        return versions.gapless_to(following.version)
    return not is_cancel(write) and write.base_version == at.version


def _seen_later(at: StoredVersion, replica: str, number: int) -> bool:
    seen = (*at.writes, *at.all_reads(), *at.derived)
    return any(
        fact.replica == replica and fact.n > number and fact.outcome != c.UNKNOWN for fact in seen
    )
