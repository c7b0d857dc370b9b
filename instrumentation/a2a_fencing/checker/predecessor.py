"""What an accepted write replaced."""

from __future__ import annotations

from typing import NamedTuple

from a2a_fencing import conventions as c
from a2a_fencing.checker.incarnation import Incarnation
from a2a_fencing.checker.sequence import overlap
from a2a_fencing.checker.versions import Known, StoredVersion, after, is_cancel
from a2a_fencing.facts import Fact


class Replaced(NamedTuple):
    """The state that a write replaced.

    Attributes:
        state: The state.
        fact: Who stored it or saw it stored; None when only the writer itself knew.
        version: Its version; None when it had none.
        own: Whether the writer's own knowledge shows it, so that no missing fact could say otherwise.
        certain: Whether order alone shows it.
    """

    state: str
    fact: Fact | None
    version: Known | None
    own: bool
    certain: bool = True

    @property
    def terminal(self) -> bool:
        """Whether nothing may replace it."""
        return self.state in c.TERMINAL_STATES


def replaced(life: Incarnation, at: StoredVersion, write: Fact) -> Replaced | None:
    """The state that the write of version `at` replaced; None when there was none or it is not known."""
    if life.sequence.writes:
        bypass = _bypass(life, at, write)
        if bypass is not None:
            return bypass
    before, knows = _version_before(life, at, write)
    if before is None:
        if write.base_version is None and write.base_state is not None:
            return Replaced(write.base_state, None, None, own=True)
        return None
    return _state_at(life, before, write, knows)


def _version_before(
    life: Incarnation, at: StoredVersion, write: Fact
) -> tuple[StoredVersion | None, bool]:
    """The version replaced, and whether it is the one that the writer derived its write from.

    The base it is, unless the store let the write pass without comparing: a cancel, by contract, or a
    write from an older base, by a fault. Such a write replaced the version before it, if that is known.
    """
    base = write.base_version
    before = life.versions.below(at.version)
    if base is not None and not is_cancel(write) and (before is None or not after(before.version, base)):
        return life.versions.get(base), True
    if base is None and not is_cancel(write):
        return None, True
    if before is None or not life.versions.gapless_to(at.version):
        return None, False
    return before, base == before.version


def _state_at(life: Incarnation, before: StoredVersion, write: Fact, knows: bool) -> Replaced | None:
    own = _known_to_writer(life, before, write, knows)
    source = before.source()
    if own is not None:
        known, read = own
        shown = source if source is not None and source.state == known else read
        return Replaced(known, shown, before.version, own=True)
    state = before.state
    if state is None:
        return None
    agreed = all(write.state == state for write in before.writes)
    certain = agreed and (knows or not _may_hide_one(life))
    return Replaced(state, source, before.version, own=False, certain=certain)


def _known_to_writer(
    life: Incarnation, before: StoredVersion, write: Fact, knows: bool
) -> tuple[str, Fact | None] | None:
    """The state at a version as the writer itself had last seen it, and the read that shows it."""
    believed = write.base_state if knows else None
    read = before.read_by(write.replica, write.n) if before.reads else None
    if read is not None and (read.origin == c.AUDIT or (knows and believed is None)):
        return str(read.state), read
    if believed is not None and not _outlived(life, before, believed):
        return believed, None
    return None


def _may_hide_one(life: Incarnation) -> bool:
    """Whether a write of unknown outcome may be stored at a version that no fact mentions."""
    open_writes = life.indeterminate.undecided(life.versions)
    return not life.versions.counting and next(open_writes, None) is not None


def _outlived(life: Incarnation, before: StoredVersion, believed: str) -> bool:
    """Whether the writer took the state from an earlier incarnation's version of the same number."""
    author = before.author
    if author is None or author.state == believed:
        return False
    earlier = life.earlier
    while earlier is not None:
        known = earlier.versions.get(before.version)
        if known is not None and known.state == believed:
            return True
        earlier = earlier.earlier
    return False


def _bypass(life: Incarnation, at: StoredVersion, write: Fact) -> Replaced | None:
    """An unversioned write that the same replica put on top of the base, past the versioning."""
    last = life.sequence.previous(write)
    if last is None or last.kind != c.WRITE or last.state is None or is_cancel(write):
        return None
    base = life.versions.get(write.base_version) if write.base_version is not None else None
    if base is None:
        return None
    own = [f for f in (*base.writes, *base.all_reads()) if f.replica == write.replica]
    number = last.n
    if any(number < f.n < write.n for f in own) or (not own and base.writes):
        return None
    return Replaced(last.state, last, None, own=True, certain=not overlap(last, write))
