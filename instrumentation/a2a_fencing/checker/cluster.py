"""What is known of the replicas as a whole: who they are, what they numbered, how their clocks stand.

The judgement of a task may ask for it. What it asked is remembered as a `Topic`, so that the task can be
judged again when the answer changes, and only then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping

from a2a_fencing.checker.clocks import Clocks, Pair
from a2a_fencing.checker.numbering import Numbering
from a2a_fencing.checker.report import Gap
from a2a_fencing.facts import Fact

Topic = tuple[str, ...]
"""Something about the cluster that a judgement depends on."""

REPLICAS: Topic = ("replicas",)
"""Which replicas there are."""

_SILENT_HEARTBEATS = 3
_SHORT, _LONG = 8, 12


class Replica:
    """What is known of one process.

    Attributes:
        name: What people call it; None until a heartbeat has told.
        numbering: Which of its facts have arrived.
        last_time: The latest time on its clock in any fact, ns.
        started: When it started, on its clock, ns.
        idle_n: Number of its latest heartbeat that found no execution running, or 0.
        interval_ns: Time between its heartbeats.
        stopped: Whether it said that it stops.
        stores: The stores of the tasks that it told of.
    """

    __slots__ = (
        "_name_n",
        "idle_n",
        "interval_ns",
        "last_time",
        "name",
        "numbering",
        "started",
        "stopped",
        "stores",
    )

    def __init__(self) -> None:
        self.name: str | None = None
        self.numbering = Numbering()
        self.last_time = 0
        self.started: int | None = None
        self.idle_n = 0
        self.interval_ns: int | None = None
        self.stopped = False
        self.stores: set[str] = set()
        self._name_n = 0

    def overdue(self, now: int) -> bool:
        """Whether several heartbeats are missing by this time, ns."""
        return (
            self.interval_ns is not None and now - self.last_time > _SILENT_HEARTBEATS * self.interval_ns
        )

    def hear(self, heartbeat: Fact, n: int) -> None:
        """Takes what a heartbeat tells."""
        if heartbeat.executing == 0:
            self.idle_n = max(self.idle_n, n)
        self.stopped = self.stopped or heartbeat.interval_s == 0
        if heartbeat.interval_s:
            self.interval_ns = max(self.interval_ns or 0, int(heartbeat.interval_s * 1e9))
        if heartbeat.started_unix_nano is not None:
            self.started = min(self.started or heartbeat.started_unix_nano, heartbeat.started_unix_nano)
        if heartbeat.replica_name and (not self._name_n or n < self._name_n):
            self.name, self._name_n = heartbeat.replica_name, n


class Cluster:
    """All replicas that ever reported."""

    def __init__(self) -> None:
        self.replicas: dict[str, Replica] = {}
        self.changed: set[Topic] = set()
        self.consulted: set[Topic] = set()
        self.clocks = Clocks()
        self._cut_off: Mapping[str, int] | None = None
        self._incomplete: set[str] = set()
        self._named: defaultdict[str, set[str]] = defaultdict(set)

    # --- what facts tell ---

    def number(self, fact: Fact, n: int) -> bool:
        """Takes a fact's number; False when the fact had arrived before."""
        replica = self.replicas.get(fact.replica) or self._meet(fact.replica)
        if fact.task is not None:
            replica.stores.add(fact.task.store)
        numbering, time = replica.numbering, fact.time_unix_nano
        in_order = n == numbering.next
        new = numbering.add(n, time)
        if time > replica.last_time:
            replica.last_time = time
        if not in_order or self._incomplete:
            self._recount(fact.replica)
        return new

    def hear(self, heartbeat: Fact, n: int) -> None:
        """Takes a heartbeat."""
        identity = heartbeat.replica
        replica = self.replicas[identity]
        name, idle = replica.name, replica.idle_n
        replica.hear(heartbeat, n)
        if heartbeat.last is not None and heartbeat.last > n:
            replica.numbering.announce(heartbeat.last)
            self._recount(identity)
        if replica.name is not None and replica.name != name:
            self._named[name or ""].discard(identity)
            self._named[replica.name].add(identity)
            self.changed.add(("name", identity))
        if replica.idle_n != idle:
            self.changed.add(("idle", identity))

    def resume(self, replica: str, spans: Iterable[tuple[int, int]]) -> None:
        """Takes the numbers (first, last; both inclusive) that arrived in an earlier life."""
        (self.replicas.get(replica) or self._meet(replica)).numbering.assume(spans)
        self._recount(replica)

    def assume(self, bounds: Mapping[Pair, int]) -> None:
        """Takes how far clocks could be apart, as measured in an earlier life."""
        self._moved(self.clocks.assume(bounds))

    def saw(self, source: Hashable, cause: Fact, effect: Fact) -> None:
        """Takes that a task shows that `effect` on one replica came after `cause` began on another."""
        self._moved(self.clocks.saw(source, cause, effect))

    def unsaw(self, source: Hashable) -> None:
        """Takes back what a task had shown of the order of facts on two replicas."""
        self._moved(self.clocks.withdraw(source))

    def _moved(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.changed |= {("clocks", *sorted(pair)) for pair in pairs}

    # --- what judgements ask ---

    @property
    def complete(self) -> bool:
        """Whether every fact that any replica has numbered is here. Judgements do not ask this: they say
        `if_complete`, and it is applied when they are announced.
        """
        return not self._incomplete

    def gaps(self) -> Iterator[Gap]:
        """What is missing, by replica."""
        for replica in sorted(self._incomplete):
            yield from self.replicas[replica].numbering.gaps(replica)

    def name(self, replica: str) -> str:
        """What a person calls the replica: its name, or the beginning of its id."""
        self.consulted.add(("name", replica))
        known = self.replicas.get(replica)
        if known is not None and known.name is not None:
            return known.name
        return replica if len(replica) <= _LONG else replica[:_SHORT]

    def before(self, earlier: Fact, later: Fact) -> bool:
        """Whether the clocks of two replicas, as far as they can be apart, order these two facts."""
        self.consulted.add(("clocks", *sorted((earlier.replica, later.replica))))
        return self.clocks.before(earlier, later)

    def latest_start(self, end: Fact, replica: str) -> int | None:
        """Before which time on another replica's clock something certainly began before `end`, ns."""
        self.consulted.add(("clocks", *sorted((end.replica, replica))))
        return self.clocks.latest_start(end, replica)

    def skew(self, one: str, other: str) -> int | None:
        """How far two clocks can be apart, ns."""
        self.consulted.add(("clocks", *sorted((one, other))))
        return self.clocks.skew(one, other)

    def idle_since(self, replica: str, n: int) -> bool:
        """Whether the replica has said after its fact `n` that it executes nothing."""
        self.consulted.add(("idle", replica))
        return self.replicas[replica].idle_n > n

    def successor(self, replica: str) -> str | None:
        """The replica that took this one's name after it had fallen silent: its process was replaced."""
        me = self.replicas[replica]
        self.consulted.add(("name", replica))
        if me.name is None:
            return None
        self.consulted.add(("successor", replica))
        later = [
            (started, other)
            for other in self._named[me.name]
            if (started := self.replicas[other].started) is not None and started > me.last_time
        ]
        return min(later)[1] if later else None

    def reported_until(self, replica: str) -> int:
        """The latest time the replica has reported, ns on its clock."""
        self.consulted.add(("reported", replica))
        return self.replicas[replica].last_time

    def all_replicas(self) -> Iterable[str]:
        """Ids of the replicas that ever reported."""
        self.consulted.add(REPLICAS)
        return self.replicas

    @property
    def cut_off(self) -> Mapping[str, int]:
        """Replicas that fell silent without having said that they stop, and when on their clock, ns."""
        if self._cut_off is None:
            newest = self.newest
            self._cut_off = {
                identity: replica.last_time
                for identity, replica in self.replicas.items()
                if not replica.stopped and replica.overdue(newest)
            }
        return self._cut_off

    def may_use(self, replica: str, store: str) -> bool:
        """Whether the replica may work on tasks of this store: it did, or told of no task at all."""
        stores = self.replicas[replica].stores
        return store in stores or not stores

    def heartbeat(self, replica: str) -> int:
        """Time after which a replica that lives tells so, ns."""
        return self.replicas[replica].interval_ns or 0

    def silent(self, replica: str) -> bool:
        """Whether heartbeats of the replica are overdue by the newest fact of all. This proves nothing,
        and no finding rests on it.
        """
        return self.replicas[replica].overdue(self.newest)

    # --- what follows from facts of a replica, whatever they said ---

    def touched(self, replicas: Iterable[str]) -> None:
        """Notes as changed what depends on these replicas having reported anything."""
        self._cut_off = None
        for identity in replicas:
            self.changed.add(("reported", identity))
            name = self.replicas[identity].name
            if name is not None and len(self._named[name]) > 1:
                self.changed |= {("successor", other) for other in self._named[name]}

    def take_changed(self) -> set[Topic]:
        """What changed since this was last asked."""
        changed, self.changed = self.changed, set()
        return changed

    @property
    def newest(self) -> int:
        """The latest time in any fact, ns."""
        return max((replica.last_time for replica in self.replicas.values()), default=0)

    def _meet(self, identity: str) -> Replica:
        replica = self.replicas[identity] = Replica()
        self.changed.add(REPLICAS)
        return replica

    def _recount(self, identity: str) -> None:
        if self.replicas[identity].numbering.complete:
            self._incomplete.discard(identity)
        else:
            self._incomplete.add(identity)
