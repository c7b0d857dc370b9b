"""Tells the incarnations of one task id apart, where deletions are known.

Only the replica that deleted knows when. The facts of each replica are cut where its own order shows a
new life: after its deletion, at a first write, where versions start again. Of these stretches, those
that begin an incarnation by a first write are its seeds; the others join the one incarnation whose
versions theirs fit, or begin one of their own. A stretch of which it cannot be told is adrift and not
judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from a2a_fencing import conventions as c
from a2a_fencing.checker.dispatches import is_told_by_resource
from a2a_fencing.checker.versions import Known, after, at_or_after, by_number
from a2a_fencing.facts import Fact


@dataclass(slots=True, eq=False)
class _Stretch:
    """Facts of one replica, in its order, that are of one incarnation."""

    replica: str
    facts: list[Fact] = field(default_factory=list)
    born: bool = False
    writes: dict[Known, Fact] = field(default_factory=dict)
    seen: dict[Known, set[str]] = field(default_factory=dict)
    highest: Known | None = None
    stored: bool = False
    """Whether a fact shows that the task was stored."""

    @property
    def versioned(self) -> bool:
        return bool(self.writes or self.seen)

    @property
    def deletes(self) -> bool:
        return self.facts[-1].kind == c.DELETED

    def contradicts(self, version: Known, state: str) -> bool:
        """Whether the replica knew another state at this version."""
        write = self.writes.get(version)
        known = self.seen.get(version, set()) | ({write.state} if write is not None else set())
        return bool(known) and state not in known

    def cut(self, at: int) -> _Stretch:
        """Makes the facts from this index on a stretch of their own."""
        tail, rest = _Stretch(self.replica), self.facts[:at]
        for fact in self.facts[at:]:
            tail.take(fact)
        self.__init__(self.replica, born=self.born)  # type: ignore[misc]
        for fact in rest:
            self.take(fact)
        return tail

    def take(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.stored |= fact.kind in (c.READ, c.ANSWER) or _accepted(fact)
        for version, state in _observed(fact):
            self.seen.setdefault(version, set()).add(state)
            if self.highest is None or after(version, self.highest):
                self.highest = version
        if _accepted(fact) and fact.version is not None:
            self.writes[fact.version] = fact
            if self.highest is None or after(fact.version, self.highest):
                self.highest = fact.version


@dataclass(slots=True, eq=False)
class _Life:
    """An incarnation under construction."""

    stretches: list[_Stretch]

    def wrote(self, version: Known, state: str) -> bool:
        """Whether a write of this life gave the version this state."""
        writes = (stretch.writes.get(version) for stretch in self.stretches)
        return any(write is not None and write.state == state for write in writes)

    def holds(self, version: Known, state: str) -> bool:
        """Whether a write or a read of this life shows this state at the version."""
        seen = any(state in stretch.seen.get(version, ()) for stretch in self.stretches)
        return seen or self.wrote(version, state)

    def saw_a_write_of(self, stretch: _Stretch) -> bool:
        """Whether this life holds a state that the stretch wrote, at its version."""
        return any(
            write.state in own.seen.get(version, ())
            for own in self.stretches
            for version, write in stretch.writes.items()
        )

    def fits(self, stretch: _Stretch) -> int | None:
        """How many versions the stretch shares with this life; None when one contradicts it."""
        links = 0
        for own in self.stretches:
            if own.writes.keys() & stretch.writes.keys():
                return None
            for one, other in ((own, stretch), (stretch, own)):
                for version, write in one.writes.items():
                    states = other.seen.get(version)
                    if states is not None and write.state not in states:
                        return None
                    links += states is not None
        return links


def split(facts: Sequence[Fact]) -> tuple[list[list[Fact]], list[Fact]]:
    """Facts by incarnation, oldest first, and those of which it cannot be told.

    Args:
        facts: All facts of one task id, by replica and number.
    """
    answers = [fact for fact in facts if is_told_by_resource(fact)]
    by_replica: dict[str, list[_Stretch]] = {}
    for replica, own in _grouped(fact for fact in facts if not is_told_by_resource(fact)).items():
        by_replica[replica] = _cut(own)
    if not by_replica:
        return [answers], []
    lives = _seeds(by_replica)
    adrift = _join(lives, by_replica)
    while _cut_strangers(lives, by_replica):
        adrift = _join(lives, by_replica)
    groups = [[fact for stretch in life.stretches for fact in stretch.facts] for life in lives]
    groups = [group for group in groups if group]
    lost = [fact for stretch in adrift for fact in stretch.facts]
    lost += _follow_dispatches(answers, groups)
    return [sorted(group, key=by_number) for group in groups], lost


def _follow_dispatches(answers: Iterable[Fact], groups: list[list[Fact]]) -> list[Fact]:
    """Puts what resources tell to the dispatches they tell of; gives what is of no known one."""
    home = {fact.dispatch_id: group for group in groups for fact in group if fact.kind == c.DISPATCH}
    lost = []
    for fact in answers:
        group = groups[0] if len(groups) == 1 else home.get(fact.dispatch_id)
        if group is None:
            lost.append(fact)
        else:
            group.append(fact)
    return lost


def _grouped(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    grouped: dict[str, list[Fact]] = {}
    for fact in facts:
        grouped.setdefault(fact.replica, []).append(fact)
    return grouped


def _cut(facts: list[Fact]) -> list[_Stretch]:
    """Cuts one replica's facts where its own order shows that a new incarnation has begun."""
    replica = facts[0].replica
    stretches = [_Stretch(replica)]
    reported = 0
    for fact in facts:
        current = stretches[-1]
        incarnation = fact.task.incarnation if fact.task is not None else 0
        if incarnation > reported or _begins_anew(fact, current):
            if current.facts:
                current = _Stretch(replica)
                stretches.append(current)
            reported = max(reported, incarnation)
        current.take(fact)
        if _first(fact):
            current.born = True
        if fact.kind == c.DELETED:
            stretches.append(_Stretch(replica))
            reported = max(reported, incarnation + 1)
    return [stretch for stretch in stretches if stretch.facts]


def _begins_anew(fact: Fact, stretch: _Stretch) -> bool:
    """Whether the stretch already holds what cannot be before the fact in one incarnation."""
    if _first(fact):
        return stretch.stored
    if stretch.highest is None:
        return False
    if any(stretch.contradicts(version, state) for version, state in _observed(fact)):
        return True
    if _accepted(fact) and fact.version is not None:
        base_is_old = fact.state != c.CANCELED and after(stretch.highest, fact.base_version)
        return base_is_old or at_or_after(stretch.highest, fact.version)
    return fact.kind == c.READ and fact.version is not None and after(stretch.highest, fact.version)


def _seeds(by_replica: dict[str, list[_Stretch]]) -> list[_Life]:
    """The incarnations that are certain to be different ones, oldest first."""
    seeds = [stretch for own in by_replica.values() for stretch in own if stretch.born]
    if seeds:
        return [_Life([seed]) for seed in sorted(seeds, key=_when)]
    longest = max(by_replica.values(), key=lambda own: (len(own), own[0].deletes, own[0].replica))
    lives = [_Life([stretch]) for stretch in longest]
    if longest[-1].deletes:
        lives.append(_Life([]))
    return lives


def _join(lives: list[_Life], by_replica: dict[str, list[_Stretch]]) -> list[_Stretch]:
    """Puts every other stretch into the life it fits; gives those that stay adrift."""
    seeds = {id(stretch) for life in lives for stretch in life.stretches}
    waiting = [s for own in by_replica.values() for s in own if id(s) not in seeds]
    waiting.sort(key=_when)
    while waiting:
        homes = ((s, _only_home(s, lives, by_replica[s.replica])) for s in waiting)
        stretch, life = next(((s, life) for s, life in homes if life is not None), (None, None))
        if stretch is None:
            stretch = next((s for s in waiting if s.versioned), None)
            if stretch is None:
                return waiting
            life = _Life([])
            lives.append(life)
            lives.sort(
                key=lambda known: _when(known.stretches[0]) if known.stretches else _when(stretch)
            )
        if life is not None:
            life.stretches.append(stretch)
        waiting.remove(stretch)
    return []


def _cut_strangers(lives: list[_Life], by_replica: dict[str, list[_Stretch]]) -> bool:
    """Cuts a stretch where it begins to see versions that only a later life holds."""
    for index, life in enumerate(lives):
        for stretch in life.stretches:
            at = next((at for at, fact in enumerate(stretch.facts) if _strange(fact, index, lives)), 0)
            if at:
                own = by_replica[stretch.replica]
                own.insert(own.index(stretch) + 1, stretch.cut(at))
                return True
    return False


def _strange(fact: Fact, index: int, lives: list[_Life]) -> bool:
    return any(
        not lives[index].wrote(version, state)
        and any(later.holds(version, state) for later in lives[index + 1 :])
        for version, state in _observed(fact)
    )


def _only_home(stretch: _Stretch, lives: list[_Life], own: list[_Stretch]) -> _Life | None:
    reachable = _reachable(stretch, lives, own)
    if not stretch.versioned:
        return reachable[0] if len(reachable) == 1 else None
    linked = [life for life in reachable if life.fits(stretch)]
    if len(linked) > 1:
        # Both lives may have had what the stretch saw; what it wrote was seen in its own.
        linked = [life for life in linked if life.saw_a_write_of(stretch)]
    return linked[0] if len(linked) == 1 else None


def _reachable(stretch: _Stretch, lives: list[_Life], own: list[_Stretch]) -> list[_Life]:
    """The lives between those of the replica's stretches before and after this one."""
    at = next(index for index, other in enumerate(own) if other is stretch)
    home = {id(s): index for index, life in enumerate(lives) for s in life.stretches}
    before = [home[id(s)] for s in own[:at] if id(s) in home]
    behind = [home[id(s)] for s in own[at + 1 :] if id(s) in home]
    low = max(before) + 1 if before else 0
    high = min(behind) if behind else len(lives)
    return lives[low:high]


def _when(stretch: _Stretch) -> tuple[int, str]:
    return stretch.facts[0].time_unix_nano, stretch.facts[0].id


def _first(fact: Fact) -> bool:
    return _accepted(fact) and fact.version is not None and fact.base_version is None


def _accepted(fact: Fact) -> bool:
    return fact.kind == c.WRITE and fact.outcome == c.ACCEPTED


def _observed(fact: Fact) -> Iterable[tuple[Known, str]]:
    if fact.kind == c.READ and fact.version is not None and fact.state is not None:
        yield fact.version, fact.state
    if _accepted(fact) and fact.base_version is not None and fact.base_state is not None:
        yield fact.base_version, fact.base_state
