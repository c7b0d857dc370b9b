"""One life of a task, from its first write to its deletion: its facts, filed for judgement.

Every fact is filed where the rules look for it, and what it can change is noted as `dirty`, so that one
fact more costs the same whether the task has ten or a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from a2a_fencing import conventions as c
from a2a_fencing.checker.answers import Answers
from a2a_fencing.checker.dispatches import Dispatches
from a2a_fencing.checker.endings import Endings
from a2a_fencing.checker.executions import Executions
from a2a_fencing.checker.landing import Indeterminate
from a2a_fencing.checker.sequence import Sequence
from a2a_fencing.checker.sightings import Sightings
from a2a_fencing.checker.versions import (
    Known,
    StoredVersion,
    Versions,
    after,
    by_number,
    is_cancel,
)
from a2a_fencing.facts import Fact, TaskKey

VERSION, EXECUTION, DISPATCH, WRITE = "version", "execution", "dispatch", "write"
"""What a rule judges one at a time; WRITE is a write without a version."""

ANSWERS, LIVENESS, EFFECTS, LANDINGS, WRITERS = "answers", "liveness", "effects", "landings", "writers"
"""What a rule judges as a whole, whenever anything of the task is new: what clients were told, whether
somebody executes it, what took effect outside, writes of unknown outcome, writers without versions.
"""

Cell = tuple[str, Known]
"""One such thing: its scope and what names it."""


class Stored(NamedTuple):
    """A state that was stored, and the fact that shows it."""

    state: str
    fact: Fact
    version: Known | None

    @property
    def terminal(self) -> bool:
        """Whether nothing may follow it."""
        return self.state in c.TERMINAL_STATES


class Incarnation:
    """The facts of one incarnation.

    Args:
        key: The task, with the checker's own count of incarnations.
        saw: Called with a fact of one replica and one of another that came after the first had begun.
        earlier: The incarnation before, whose versions a replica may still believe in.

    Attributes:
        versions: What a versioned store holds.
        sequence: Writes that got no version.
        endings: The terminal states it has had.
        stale_base: The refused write with the highest base that a rival had moved on from.
        last_by_executor: The accepted write of an executor with the highest version.
        gave_up: The latest refused attempt of a consumer to record that its execution had failed.
        born: The write that created the task, when it is here.
        births: How many writes created the task.
        ended: Whether a deletion ended it.
        inferred: Whether it is inferred which facts are its own, because there are other incarnations.
        dirty: What has to be judged (again).
        whole: What is judged whenever anything is new.
    """

    __slots__ = (
        "_saw",
        "_seen",
        "answers",
        "births",
        "born",
        "dirty",
        "dispatches",
        "earlier",
        "ended",
        "endings",
        "executions",
        "gave_up",
        "indeterminate",
        "inferred",
        "key",
        "last_by_executor",
        "sequence",
        "stale_base",
        "versions",
        "whole",
    )

    def __init__(
        self,
        key: TaskKey,
        saw: Callable[[Fact, Fact], None],
        earlier: Incarnation | None = None,
    ) -> None:
        self.key = key
        self.earlier = earlier
        self.versions = Versions()
        self.sequence = _NO_SEQUENCE
        self.answers = _NO_ANSWERS
        self.executions = _NO_EXECUTIONS
        self.dispatches = _NO_DISPATCHES
        self.indeterminate = _ALL_DETERMINATE
        self.endings = Endings()
        self.stale_base: Fact | None = None
        self.last_by_executor: Fact | None = None
        self.gave_up: Fact | None = None
        self.born: Fact | None = None
        self.births = 0
        self.ended = False
        self.inferred = False
        self.dirty: set[Cell] = set()
        self.whole: set[Cell] = set()
        self._saw = saw
        self._seen: list[Fact] = []

    def add(self, fact: Fact, n: int) -> None:
        """Files a fact of this incarnation."""
        kind = fact.kind
        if kind == c.WRITE:
            self._write(fact, n)
        elif kind == c.READ:
            self._observe(fact, n)
        elif kind == c.EXECUTION:
            self._execution(fact, n)
        elif kind == c.DISPATCH:
            self._dispatch(fact)
        elif kind == c.ANSWER:
            self._answer(fact, n)

    @property
    def may_be_several(self) -> bool:
        """Whether the task was created more than once, with a deletion in between that nobody told."""
        if self.births > 1:
            return True
        return self.born is not None and self.indeterminate.creates_after(self.born)

    def final(self) -> Stored | None:
        """The state the task has now, as far as the facts tell for certain."""
        highest = self.versions.highest
        if highest is not None:
            fact, state = highest.source(), highest.state
            return Stored(state, fact, highest.version) if fact and state else None
        last = self.sequence.last
        if len(last) != 1:
            return None
        (write,) = last.values()
        return Stored(write.state, write, None) if write.state else None

    def settle(self) -> None:
        """Decides which writes of unknown outcome are stored, as far as the facts tell now."""
        if self.indeterminate.writes and not self.inferred:
            for at in self.indeterminate.resolve(self.versions):
                self._dirty_around(at)

    def judge_all(self) -> None:
        """Notes everything as dirty."""
        self.dirty |= {(VERSION, at.version) for at in self.versions}
        self.dirty |= {(WRITE, identity) for identity in self.sequence.writes}
        self.dirty |= {(EXECUTION, identity) for identity in self.executions.by_id}
        self.dirty |= {(DISPATCH, identity) for identity in self.dispatches.attempts}

    # --- writes ---

    def _write(self, write: Fact, n: int) -> None:
        outcome = write.outcome
        if outcome == c.ACCEPTED:
            if write.version is None:
                self._unversioned(write, n)
            else:
                self._accepted(write, n, write.version)
            return
        if write.origin == c.FROM_CONSUMER_FAILURE:
            self.gave_up = max(self.gave_up or write, write, key=_when)
        if outcome == c.UNKNOWN or write.reason == c.OWN_COMMIT:
            self._unknown(write)
        elif write.reason == c.STALE_BASE and write.base_version is not None:
            known = self.stale_base
            if known is None or after(write.base_version, known.base_version):
                self.stale_base = write

    def _accepted(self, write: Fact, n: int, version: Known) -> None:
        versions, base = self.versions, write.base_version
        at = self._mention(version)
        before = versions.mention(base) if base is not None else None
        if at is None:
            return
        quiet = self._follows(at, before, write)
        counting, lowest = versions.counting, versions.lowest_written
        versions.wrote(at, write)
        if before is not None:
            before.add_derived(write)
            if before.write is not None and before.write.replica != write.replica:
                self._saw(before.write, write)
        elif write.base_state is None and not is_cancel(write):
            self.born = write if self.born is None else min(self.born, write, key=by_number)
        self.births += base is None
        if write.origin == c.FROM_EXECUTOR:
            self.last_by_executor = _higher(self.last_by_executor, write)
        if write.state in c.TERMINAL_STATES:
            self._ended(write, n, version)
        self._sight(write, n, version)
        if quiet:
            return
        born_again = base is None and (self.births == 2 or self.indeterminate.writes)
        if counting is not versions.counting or born_again:
            self.judge_all()
        elif lowest is not versions.lowest_written:
            self.dirty |= {(VERSION, other) for other in versions.unwritten}
        self._dirty_around(at)
        if before is not None:
            self._dirty_around(before, 1)
        for effect in (*at.derived, *at.first_reads()):
            if effect.replica != write.replica:
                self._saw(write, effect)

    def _follows(self, at: StoredVersion, before: StoredVersion | None, write: Fact) -> bool:
        """Whether the write simply follows the latest one, so that there is nothing to judge.

        The common case by far: a new latest version, on top of the latest one before, of which writer
        and store agree that it is not terminal, in a task where every outcome is known. No rule about
        versions can have anything to say of it, which a test makes sure of.
        """
        versions = self.versions
        if (
            versions.highest is not at
            or at.write is not None
            or at.derived
            or at.reads
            or self.sequence.writes
            or self.indeterminate.writes
        ):
            return False
        if before is None:
            return len(versions) == 1 and write.base_version is write.base_state is None
        latest = before.write
        if latest is None or before.others or not versions.next_to_last(before.version):
            return False
        state = latest.state
        if state != write.base_state or state in c.TERMINAL_STATES:
            return False
        if before.reads and any(seen != state for _, seen in before.reads):
            return False
        return write.state != c.CANCELED or versions.gapless_to(at.version)

    def _unversioned(self, write: Fact, n: int) -> None:
        if self.sequence is _NO_SEQUENCE:
            self.sequence = Sequence()
            self.whole.add((WRITERS, ""))
        writers = len(self.sequence.last)
        followers = self.sequence.add(write, n)
        self.dirty |= {(WRITE, changed.id) for changed in (write, *followers)}
        if write.state in c.TERMINAL_STATES:
            self._ended(write, n, None)
        if len(self.sequence.last) != writers or len(self.versions):
            self.judge_all()

    def _unknown(self, write: Fact) -> None:
        if self.indeterminate is _ALL_DETERMINATE:
            self.indeterminate = Indeterminate()
            self.whole.add((LANDINGS, ""))
        self.indeterminate.add(write)
        if not self.versions.counting or write.base_version is None:
            self.judge_all()
        if write.state in c.TERMINAL_STATES:
            self._dirty_dispatches()

    # --- reads and answers ---

    def _observe(self, read: Fact, n: int) -> None:
        version, state = read.version, read.state
        if state is None:
            return
        if version is None:
            if read.kind == c.READ:
                self._unversioned_read(read, n)
        else:
            at = self._mention(version)
            if at is None:
                return
            at.add_read(read, state, n)
            author = at.write
            agrees = author is not None and author.state == state and not at.others
            if not agrees or self.versions.highest is not at or self.sequence.writes:
                self._dirty_around(at)
            if author is not None and author.replica != read.replica:
                self._saw(author, read)
            self._sight(read, n, version)
        if state in c.TERMINAL_STATES:
            if self.endings.see(read, n):
                self._dirty_dispatches()
            if version is not None:
                self.endings.store(state, version)

    def _unversioned_read(self, read: Fact, n: int) -> None:
        if self.sequence is _NO_SEQUENCE:
            self.sequence = Sequence()
            self.whole.add((WRITERS, ""))
        self.dirty |= {(WRITE, follower.id) for follower in self.sequence.add(read, n)}
        if len(self.versions):
            self.judge_all()

    def _answer(self, answer: Fact, n: int) -> None:
        if self.answers is _NO_ANSWERS:
            self.answers = Answers()
            self.whole.add((ANSWERS, ""))
        self.answers.add(answer, n)
        if answer.version is not None and answer.method != c.PUSH:
            self._observe(answer, n)

    # --- what a fact changes ---

    def _mention(self, version: Known) -> StoredVersion | None:
        if self.sequence.writes and not len(self.versions):
            self.judge_all()
        return self.versions.mention(version)

    def _dirty_around(self, at: StoredVersion, depth: int = 2) -> None:
        """A version, those that replaced it, and those that replaced these: rules look back that far."""
        self.dirty.add((VERSION, at.version))
        if not depth:
            return
        above = self.versions.above(at.version)
        if above is not None:
            self._dirty_around(above, depth - 1)
        for derived in at.derived:
            after_it = self.versions.get(derived.version) if derived.version is not None else None
            if after_it is not None and after_it is not above:
                self._dirty_around(after_it, depth - 1)

    def _ended(self, write: Fact, n: int, version: Known | None) -> None:
        if self.endings.write(write, n, version):
            self._dirty_dispatches()

    # --- executions and dispatches ---

    def _execution(self, fact: Fact, n: int) -> None:
        if self.executions is _NO_EXECUTIONS:
            self.executions = Executions()
            self.whole.add((LIVENESS, ""))
        executions = self.executions
        was_spread = executions.spread
        run = executions.add(fact, n)
        if executions.spread and not was_spread:
            executions.sightings = Sightings()
            for seen in self._seen:
                if seen.version is not None:
                    executions.sightings.add(seen, seen.n, seen.version)
            self.dirty |= {(EXECUTION, identity) for identity in executions.by_id}
        elif len(executions) > 1:
            self.dirty.add((EXECUTION, run.id))

    def _sight(self, fact: Fact, n: int, version: Known) -> None:
        self._seen.append(fact)
        if self.executions.spread:
            self.executions.sightings.add(fact, n, version)
            run = self.executions.at(fact.replica, n)
            if run is not None:
                self.dirty.add((EXECUTION, run.id))

    def _dispatch(self, fact: Fact) -> None:
        if self.dispatches is _NO_DISPATCHES:
            self.dispatches = Dispatches()
            self.whole.add((EFFECTS, ""))
        self.dirty.add((DISPATCH, self.dispatches.add(fact).id))

    def _dirty_dispatches(self) -> None:
        self.dirty |= {(DISPATCH, identity) for identity in self.dispatches.attempts}


# What an incarnation has until it has some: most tasks never do, and making them costs more than a fact.
_NO_SEQUENCE = Sequence()
_NO_ANSWERS = Answers()
_NO_EXECUTIONS = Executions()
_NO_DISPATCHES = Dispatches()
_ALL_DETERMINATE = Indeterminate()


def _higher(known: Fact | None, write: Fact) -> Fact:
    """The write with the higher version; of two with one version, the same whichever came first."""
    if known is None or after(write.version, known.version):
        return write
    return min(known, write, key=by_number) if write.version == known.version else known


def _when(fact: Fact) -> tuple[int, str]:
    return fact.time_unix_nano, fact.id
