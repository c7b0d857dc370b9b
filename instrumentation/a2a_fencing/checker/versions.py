"""The versions of one task in a store that keeps versions: who wrote which, and who saw it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact

Known = int | str
"""A version that is known, as opposed to `facts.Version`, which may be missing."""


class StoredVersion:
    """What is known of one version. Kept small: there is one for each write.

    Attributes:
        version: The version.
        write: The accepted write that the store gave this version; of a fork, the first by number.
        others: The other writes of a fork.
        landed: A write of unknown outcome that turned out to be this version's, which has no `write`.
        rivals: Other writes of unknown outcome that may be this version's instead of `landed`.
        reads: The first and the latest read of this version by replica and state.
    """

    __slots__ = ("_derived", "_more_derived", "landed", "others", "reads", "rivals", "version", "write")

    def __init__(self, version: Known) -> None:
        self.version = version
        self.write: Fact | None = None
        self.others: tuple[Fact, ...] = ()
        self.landed: Fact | None = None
        self.rivals: tuple[Fact, ...] = ()
        self.reads: dict[tuple[str, str], tuple[Fact, Fact]] | None = None
        self._derived: Fact | None = None
        self._more_derived: tuple[Fact, ...] = ()

    @property
    def writes(self) -> tuple[Fact, ...]:
        """All accepted writes of this version."""
        return (self.write, *self.others) if self.write is not None else ()

    @property
    def derived(self) -> tuple[Fact, ...]:
        """Accepted writes whose base this version is."""
        return (self._derived, *self._more_derived) if self._derived is not None else ()

    @property
    def author(self) -> Fact | None:
        """The write that made this version, when one is known."""
        return self.write if self.write is not None else self.landed

    def add_write(self, write: Fact) -> None:
        """Files an accepted write that the store gave this version."""
        if self.write is None:
            self.write = write
        else:
            self.write, *others = sorted((*self.writes, write), key=by_number)
            self.others = tuple(others)

    def add_derived(self, write: Fact) -> None:
        """Files an accepted write whose base this version is."""
        if self._derived is None:
            self._derived = write
        else:
            self._more_derived += (write,)

    def source(self) -> Fact | None:
        """The fact that tells this version's state best: its write, a read, a write derived from it."""
        author = self.author
        if author is not None:
            return author
        if self.reads:
            return min(self.first_reads(), key=by_number)
        return min((f for f in self.derived if f.base_state is not None), key=by_number, default=None)

    @property
    def state(self) -> str | None:
        """The state stored at this version; the one that was written, where a later read disagrees."""
        source = self.source()
        if source is None:
            return None
        told_by_successor = self.author is None and not self.reads
        return source.base_state if told_by_successor else source.state

    def read_by(self, replica: str, before: int) -> Fact | None:
        """The replica's latest read of this version before its fact number `before`."""
        own = (read for read in self.all_reads() if read.replica == replica and read.n < before)
        return max(own, key=by_number, default=None)

    def add_read(self, read: Fact, state: str, n: int) -> None:
        """Files a read."""
        if self.reads is None:
            self.reads = {}
        key = (read.replica, state)
        first, last = self.reads.get(key, (read, read))
        self.reads[key] = (read if n < first.n else first, read if n > last.n else last)

    def first_reads(self) -> list[Fact]:
        """The first read by each replica of each state."""
        return [first for first, _ in self.reads.values()] if self.reads else []

    def all_reads(self) -> list[Fact]:
        """The first and the latest read by each replica of each state."""
        return [read for both in self.reads.values() for read in both] if self.reads else []


class Versions:
    """All versions of one incarnation, in their order.

    Versions are opaque: they are compared, and a step of one means something only where every write so
    far has shown that the store counts (`counting`).

    Attributes:
        unwritten: Versions that exist, as some fact says, and that no known write has made.
        lowest_written: The lowest version whose write is known.
        forked: Whether some version has two writes.
        alien: Whether some version is of another type than the first one and cannot be compared.
    """

    __slots__ = (
        "_at",
        "_jumps",
        "_order",
        "_steps_by_one",
        "_type",
        "alien",
        "forked",
        "lowest_written",
        "unwritten",
    )

    def __init__(self) -> None:
        self._at: dict[Known, StoredVersion] = {}
        self._order: list[Known] = []
        self._type: type | None = None
        self._steps_by_one = self._jumps = False
        self.unwritten: set[Known] = set()
        self.lowest_written: Known | None = None
        self.forked = False
        self.alien = False

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[StoredVersion]:
        return (self._at[version] for version in self._order)

    @property
    def counting(self) -> bool:
        """Whether the store evidently gives each write the number after its predecessor's."""
        return self._steps_by_one and not self._jumps

    @property
    def holes(self) -> int:
        """How many versions between the lowest and the highest no fact mentions, if that can be told."""
        if not self.counting:
            return 0
        lowest, highest = self._order[0], self._order[-1]
        return highest - lowest + 1 - len(self) if type(lowest) is type(highest) is int else 0

    def gapless_to(self, version: Known) -> bool:
        """Whether no number is left out before this version, where the store counts."""
        if not self.counting or type(version) is not int:
            return True
        before = self.below(version)
        return before is not None and before.version == version - 1

    def next_to_last(self, version: Known | None) -> bool:
        """Whether this is the latest version but one."""
        order = self._order
        return len(order) > 1 and order[-2] == version

    @property
    def highest(self) -> StoredVersion | None:
        """The latest version known."""
        return self._at[self._order[-1]] if self._order else None

    def get(self, version: Known) -> StoredVersion | None:
        """A version, when any fact mentions it."""
        return self._at.get(version)

    def below(self, version: Known) -> StoredVersion | None:
        """The latest known version before this one."""
        at = bisect_left(self._order, version)
        return self._at[self._order[at - 1]] if at else None

    def above(self, version: Known) -> StoredVersion | None:
        """The first known version after this one, itself known or not."""
        at = bisect_right(self._order, version)
        return self._at[self._order[at]] if at < len(self._order) else None

    def mention(self, version: Known) -> StoredVersion | None:
        """The version, known from now on because a fact names it; None when it cannot be compared."""
        known = self._at.get(version)
        if known is not None:
            return known
        if self._type is None:
            self._type = type(version)
        elif type(version) is not self._type:
            self.alien = True
            return None
        known = self._at[version] = StoredVersion(version)
        if not self._order or self._order[-1] < version:  # type: ignore[operator]
            self._order.append(version)
        else:
            insort(self._order, version)
        self.unwritten.add(version)
        return known

    def wrote(self, at: StoredVersion, write: Fact) -> None:
        """Files an accepted write under the version that the store gave it."""
        at.add_write(write)
        self.forked = self.forked or bool(at.others)
        self.unwritten.discard(at.version)
        lowest = self.lowest_written
        if lowest is None or at.version < lowest:  # type: ignore[operator]
            self.lowest_written = at.version
        if write.state != c.CANCELED:
            self._measure(at.version, write.base_version)

    def _measure(self, version: Known, base: int | str | None) -> None:
        if type(version) is int and (base is None or type(base) is int) and version == (base or 0) + 1:
            self._steps_by_one = True
        else:
            self._jumps = True


def by_number(fact: Fact) -> tuple[str, int]:
    """Order of facts that no version decides: by replica, then as the replica numbered them."""
    return fact.replica, fact.n


def is_cancel(write: Fact) -> bool:
    """Whether the store took this write as a cancel, which by contract replaces whatever is stored."""
    return write.state == c.CANCELED


def executes(write: Fact) -> bool:
    """Whether the write is the executor's own doing, a failure recorded in its name included."""
    return write.origin in (c.FROM_EXECUTOR, c.FROM_CONSUMER_FAILURE, None)


def at_or_after(version: object, other: object) -> bool:
    """Whether one version is not before another; versions of two kinds have no order."""
    return type(version) is type(other) and version is not None and version >= other  # type: ignore[operator]


def after(version: object, other: object) -> bool:
    """Whether one version is after another; versions of two kinds have no order."""
    return type(version) is type(other) and version is not None and version > other  # type: ignore[operator]
