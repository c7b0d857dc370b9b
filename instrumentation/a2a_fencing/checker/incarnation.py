"""One life of a task, from its first write to its deletion: its facts, filed for judgement.

Every fact is filed where the rules look for it, and what it can change is noted as `dirty`, so that one
fact more costs the same whether the task has ten or a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from a2a_fencing import conventions as c
from a2a_fencing.checker.answers import Answers
from a2a_fencing.checker.dispatches import Dispatches
from a2a_fencing.checker.executions import Executions
from a2a_fencing.checker.landing import Indeterminate
from a2a_fencing.checker.sequence import Sequence
from a2a_fencing.checker.versions import (
    Known,
    StoredVersion,
    Versions,
    after,
    by_number,
    executes,
)
from a2a_fencing.facts import Fact, TaskKey

VERSION, EXECUTION, DISPATCH, WRITE, WHOLE = "version", "execution", "dispatch", "write", "whole"
"""What a rule judges one at a time; WRITE is a write without a version."""

Cell = tuple[str, Known]
"""One such thing: its scope and what names it."""

TASK_CELL: Cell = (WHOLE, "")


@dataclass(frozen=True, slots=True)
class Stored:
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
        terminal: The first terminal write of each replica, by its executor or not, versioned or not.
        terminal_seen: The first fact by which each replica can have known a terminal state.
        terminal_versions: The lowest version of each terminal state that was stored.
        stale_base: The refused write with the highest base that a rival had moved on from.
        last_by_executor: The accepted write of an executor with the highest version.
        gave_up: The latest refused attempt of a consumer to record that its execution had failed.
        born: The write that created the task, when it is here.
        first_time: The earliest time in any fact, ns.
        ended: Whether a deletion ended it.
        inferred: Whether it is inferred which facts are its own, because there are other incarnations.
        dirty: What has to be judged (again).
    """

    def __init__(
        self,
        key: TaskKey,
        saw: Callable[[Fact, Fact], None],
        earlier: Incarnation | None = None,
    ) -> None:
        self.key = key
        self.earlier = earlier
        self.versions = Versions()
        self.sequence = Sequence()
        self.answers = Answers()
        self.executions = Executions()
        self.dispatches = Dispatches()
        self.indeterminate = Indeterminate()
        self.terminal: dict[tuple[str, bool, bool], Fact] = {}
        self.terminal_seen: dict[str, Fact] = {}
        self.terminal_versions: dict[str, Known] = {}
        self.stale_base: Fact | None = None
        self.last_by_executor: Fact | None = None
        self.gave_up: Fact | None = None
        self.born: Fact | None = None
        self.first_time: int | None = None
        self.ended = False
        self.inferred = False
        self.dirty: set[Cell] = set()
        self._saw = saw
        self._seen: list[tuple[Fact, int, Known]] = []

    def add(self, fact: Fact, n: int) -> None:
        """Files a fact of this incarnation."""
        if self.first_time is None or fact.time_unix_nano < self.first_time:
            self.first_time = fact.time_unix_nano
        kind = fact.kind
        if kind == c.WRITE:
            self._write(fact, n)
        elif kind == c.READ:
            self._observe(fact, n)
        elif kind == c.EXECUTION:
            self._execution(fact, n)
        elif kind == c.DISPATCH:
            self.dirty.add((DISPATCH, self.dispatches.add(fact).id))
        elif kind == c.ANSWER:
            self.answers.add(fact, n)
            if fact.version is not None and fact.method != c.PUSH:
                self._observe(fact, n)

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
            self.indeterminate.add(write)
            if write.state in c.TERMINAL_STATES:
                self._dirty_dispatches()
        elif write.reason == c.STALE_BASE and write.base_version is not None:
            known = self.stale_base
            if known is None or after(write.base_version, known.base_version):
                self.stale_base = write

    def _accepted(self, write: Fact, n: int, version: Known) -> None:
        versions = self.versions
        counting, lowest = versions.counting, versions.lowest_written
        at = versions.mention(version, write)
        if at is None:
            return
        versions.wrote(at, write)
        if counting is not versions.counting:
            self.judge_all()
        elif lowest is not versions.lowest_written:
            self.dirty |= {(VERSION, other) for other in versions.unwritten}
        self._dirty_around(at)
        base = write.base_version
        if base is not None:
            before = versions.mention(base, write)
            if before is not None:
                before.derived.append(write)
                if before.writes and before.writes[0].replica != write.replica:
                    self._saw(before.writes[0], write)
                if write.base_state is not None:
                    self.dirty.add((VERSION, base))
        elif write.base_state is None and (self.born is None or by_number(write) < by_number(self.born)):
            self.born = write
        for effect in at.derived:
            if effect.replica != write.replica:
                self._saw(write, effect)
        for effect in at.first_reads():
            if effect.replica != write.replica:
                self._saw(write, effect)
        if write.origin == c.FROM_EXECUTOR:
            last = self.last_by_executor
            if last is None or after(version, last.version):
                self.last_by_executor = write
        if write.state in c.TERMINAL_STATES:
            self._ended(write, n, version)
        self._sight(write, n, version)

    def _unversioned(self, write: Fact, n: int) -> None:
        writers = len(self.sequence.last)
        follower = self.sequence.add(write, n)
        self.dirty.add((WRITE, write.id))
        if follower is not None:
            self.dirty.add((WRITE, follower.id))
        if write.state in c.TERMINAL_STATES:
            self._ended(write, n, None)
        if len(self.sequence.last) != writers or len(self.versions):
            self.dirty |= {(WRITE, identity) for identity in self.sequence.writes}

    # --- reads ---

    def _observe(self, read: Fact, n: int) -> None:
        version, state = read.version, read.state
        if state is None:
            return
        if version is None:
            follower = self.sequence.add(read, n) if read.kind == c.READ else None
            if follower is not None:
                self.dirty.add((WRITE, follower.id))
        else:
            at = self.versions.mention(version, read)
            if at is None:
                return
            at.add_read(read, state, n)
            self._dirty_around(at)
            if at.writes and at.writes[0].replica != read.replica:
                self._saw(at.writes[0], read)
            self._sight(read, n, version)
        if state in c.TERMINAL_STATES:
            self._see_terminal(read, n)
            if version is not None:
                self._lowest_terminal(state, version)

    # --- what a fact changes ---

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
        by = (write.replica, executes(write), version is not None)
        known = self.terminal.get(by)
        if known is None or (after(known.version, version) if version is not None else n < known.n):
            self.terminal[by] = write
            self._dirty_dispatches()
        if version is not None and write.state is not None:
            self._lowest_terminal(write.state, version)
        self._see_terminal(write, n)

    def _lowest_terminal(self, state: str, version: Known) -> None:
        known = self.terminal_versions.get(state)
        if known is None or after(known, version):
            self.terminal_versions[state] = version

    def _see_terminal(self, fact: Fact, n: int) -> None:
        known = self.terminal_seen.get(fact.replica)
        if known is None or n < known.n:
            self.terminal_seen[fact.replica] = fact
            self._dirty_dispatches()

    def _dirty_dispatches(self) -> None:
        self.dirty |= {(DISPATCH, identity) for identity in self.dispatches.attempts}

    # --- executions ---

    def _execution(self, fact: Fact, n: int) -> None:
        executions = self.executions
        was_spread = executions.spread
        run = executions.add(fact, n)
        if executions.spread and not was_spread:
            for seen, number, version in self._seen:
                executions.sightings.add(seen, number, version)
            self.dirty |= {(EXECUTION, identity) for identity in executions.by_id}
        self.dirty.add((EXECUTION, run.id))

    def _sight(self, fact: Fact, n: int, version: Known) -> None:
        self._seen.append((fact, n, version))
        if self.executions.spread:
            self.executions.sightings.add(fact, n, version)
            run = self.executions.at(fact.replica, n)
            if run is not None:
                self.dirty.add((EXECUTION, run.id))


def _when(fact: Fact) -> tuple[int, str]:
    return fact.time_unix_nano, fact.id
