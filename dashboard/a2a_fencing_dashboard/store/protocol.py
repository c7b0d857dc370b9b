"""What ingest and the pages need of a store; engines implement it, nobody else opens a database."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from a2a_fencing.checker import Finding, Gap
from a2a_fencing.facts import Fact, TaskKey, Version
from a2a_fencing_dashboard.store.notes import ACKNOWLEDGED, MUTED, Note, Notebook
from a2a_fencing_dashboard.store.outbox import Outbox
from a2a_fencing_dashboard.store.runs import RunBook


@dataclass(frozen=True, slots=True)
class Span:
    """A span as Jaeger would show it, kept so that a write can list its SQL and HTTP calls."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    start_unix_nano: int
    end_unix_nano: int
    service: str
    error: bool
    attributes: str
    """JSON object."""


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding that appeared, or one that later facts retracted."""

    finding: Finding
    retracted: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """All that one commit writes; the facts are new (no duplicates).

    `verdicts` has the tasks whose verdict by their own facts the checker has just given; a task with a
    finding that violates is *violated* whatever it says.

    `moved` has what resources called a task that has become known, and its key: what is stored under the
    name becomes the task's.

    `clocks` has how far the clock of the second of two replicas can be ahead of the first one's, ns,
    where that was measured anew; None where it is no longer known.
    """

    facts: Sequence[Fact] = ()
    spans: Sequence[Span] = ()
    changes: Sequence[FindingChange] = ()
    verdicts: Mapping[TaskKey, str] = field(default_factory=dict)
    moved: Mapping[TaskKey, TaskKey] = field(default_factory=dict)
    clocks: Mapping[tuple[str, str], int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Past:
    """All facts of some tasks, and the findings that stand for them."""

    facts: Sequence[Fact] = ()
    findings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class Reported:
    """What a replica has reported so far.

    Attributes:
        replica: Which one.
        received: Numbers of its facts that are stored, as ranges (first, last), both inclusive.
        heartbeats: The ones that tell most: its first, its last, and its last without an execution.
    """

    replica: str
    received: Sequence[tuple[int, int]]
    heartbeats: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of the stored history a page looks at; None means no limit (ns since 1970)."""

    run: str | None = None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """What is known of a replica. `missing` is 0 when its numbering has no gap."""

    replica: str
    name: str
    run: str | None
    started_unix_nano: int | None
    last_seen_unix_nano: int
    """Receiver's clock when its last fact arrived."""
    interval_s: float | None
    """Seconds between its heartbeats; None when none has arrived."""
    sdk_version: str | None
    guard: bool
    facts: int
    missing: int
    lost: int
    executing: int
    skew_ns: int | None
    """Its clock minus the receiver's, ns, by the fact that was delivered fastest (delivery only makes a
    clock look slower)."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The numbers of the first page."""

    verdict: str
    facts: int
    missing: int
    tasks: int
    terminal_tasks: int
    writes: int
    conflicts: dict[str, int]
    """By reason; without terminal rejections."""
    terminal_rejections: int
    drops: dict[str, int]
    """By reason."""
    dispatches: int
    violations: dict[str, int]
    """Findings that violate, by rule."""
    infos: dict[str, int]
    """Info findings, by rule."""
    violated_tasks: int
    executing: int
    newest: FindingRow | None
    """The newest finding that violates; one that is muted only where all are."""
    muted_tasks: int = 0
    """Violated tasks of which every violation is muted."""
    by_verdict: dict[str, int] = field(default_factory=dict)
    """Tasks, by verdict."""


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A count in one bucket of time on one replica.

    `measure` is one of ``writes``, ``conflicts``, ``rejections``, ``drops``, ``dispatches``,
    ``violations``.
    """

    bucket_unix_s: int
    replica: str
    measure: str
    count: int


INDEXED_TEXT: Final = 3
"""Characters that a text needs to be found by an index; for a shorter one every task is looked at."""


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks to list. `text` matches a part of the task id, context id or owner."""

    text: str = ""
    states: Collection[str] = ()
    rules: Collection[str] = ()
    replicas: Collection[str] = ()
    verdicts: Collection[str] = ()
    only_conflicts: bool = False
    only_rejections: bool = False
    only_drops: bool = False
    only_dispatches: bool = False
    only_late_dispatches: bool = False
    """Dispatched after the end, as the rule has it."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task as the list shows it."""

    key: TaskKey
    context_id: str | None
    run: str | None
    verdict: str
    state: str | None
    version: Version
    replicas: tuple[str, ...]
    facts: int
    writes: int
    conflicts: int
    rejections: int
    drops: int
    dispatches: int
    rules: tuple[str, ...]
    """Rules of its findings that violate."""
    first_unix_nano: int
    last_unix_nano: int


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A stored finding.

    Attributes:
        seen_unix_nano: When the receiver concluded it.
        at_unix_nano: When the last fact that shows it was told.
    """

    id: int
    finding: Finding
    run: str | None
    seen_unix_nano: int
    at_unix_nano: int
    notes: tuple[Note, ...] = ()
    """What people said of it, newest first."""

    @property
    def muted(self) -> Note | None:
        """The newest note that mutes it."""
        return next((note for note in self.notes if note.kind == MUTED), None)

    @property
    def acknowledged(self) -> Note | None:
        """The newest note that acknowledges it."""
        return next((note for note in self.notes if note.kind == ACKNOWLEDGED), None)


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings to list; empty: any."""

    rules: Collection[str] = ()
    severities: Collection[str] = ()
    with_muted: bool = False


@dataclass(frozen=True, slots=True)
class TaskAlerts:
    """The listed findings of one task, newest first. `task` is as the store has it."""

    task: TaskKey
    findings: tuple[FindingRow, ...]


@dataclass(frozen=True, slots=True)
class AlertPage:
    """A page of a list of findings by task."""

    groups: tuple[TaskAlerts, ...]
    tasks: int
    """How many tasks the whole list has."""
    findings: int
    """How many findings the whole list has."""
    muted: int
    """How many findings match and are muted, listed or not."""


class Store(Notebook, RunBook, Protocol):
    """A place for facts and what was concluded from them. One writer of facts, many readers, also in
    other processes; notes may come from any of them.
    """

    @property
    def outbox(self) -> Outbox:
        """What is to be told to others; for the process that writes."""

    # --- the one writer (ingest) ---

    def known(self, ids: Collection[str]) -> set[str]:
        """Which of these fact ids are stored already."""

    def past(self, keys: Collection[TaskKey]) -> Past:
        """What a checker needs to go on with these tasks, in any incarnation.

        Of a task, also what resources told under their name for it; of such a name, also the task.
        """

    def reports(self) -> list[Reported]:
        """What a checker needs to know of every replica, to go on after a restart."""

    def clocks(self) -> Mapping[tuple[str, str], int]:
        """What was measured of the clocks of replicas, as `Batch.clocks` told it."""

    def commit(self, batch: Batch, *, now_unix_nano: int) -> None:
        """Stores a batch in one transaction; when this returns, it survives a kill."""

    # --- readers ---

    def data_version(self) -> int:
        """Grows with each commit that changed anything; pages redraw only then."""

    def runs(self) -> list[str]:
        """Labels of load-test runs, newest first."""

    def overview(self, window: Window) -> Overview:
        """The figures of the first page."""

    def series(self, window: Window, bucket_s: int) -> list[SeriesPoint]:
        """Counts over time; the buckets at the window's ends are whole."""

    def replicas(self, window: Window) -> list[ReplicaRow]:
        """Every replica that ever reported in this window's run."""

    def gaps(self) -> list[Gap]:
        """Facts that were numbered and never arrived."""

    def received(self, replicas: Collection[str]) -> dict[str, list[tuple[int, int]]]:
        """Which numbers of these replicas have arrived, as in `Reported`."""

    def tasks(
        self,
        window: Window,
        where: TaskFilter,
        *,
        sort: str = "last",
        descending: bool = True,
        offset: int = 0,
        limit: int = 50,
        count_to: int | None = None,
    ) -> tuple[list[TaskRow], int]:
        """One page of tasks and how many match.

        Args:
            window: Tasks that had facts in it.
            where: What they must have.
            sort: ``last``, ``verdict``, ``state``, ``task_id``, ``facts``, ``conflicts``, ``drops`` or
                ``dispatches``.
            descending: The greatest first.
            offset: How many to pass over.
            limit: How many to return; with 0 they are only counted.
            count_to: Where counting may stop: a number above it means "more than so many".
        """

    def task(self, key: TaskKey) -> TaskRow | None:
        """One task, or None when it is not stored."""

    def facts(self, run: str | None = None) -> Iterator[Fact]:
        """Every stored fact, or those of a run; also those of no task, in no particular order."""

    def heartbeats(self, replicas: Collection[str]) -> list[Fact]:
        """The heartbeats of these replicas that tell most, as in `Reported`."""

    def facts_of(self, key: TaskKey) -> list[Fact]:
        """All facts of a task, by replica and number."""

    def findings_of(self, key: TaskKey) -> list[FindingRow]:
        """The standing findings of a task, most severe first."""

    def findings(
        self,
        window: Window,
        *,
        rules: Collection[str] = (),
        severities: Collection[str] = (),
        offset: int = 0,
        limit: int = 50,
    ) -> tuple[list[FindingRow], int]:
        """One page of standing findings, newest first, and how many match."""

    def alerts(
        self, window: Window, where: FindingFilter, *, offset: int = 0, limit: int = 20
    ) -> AlertPage:
        """One page of tasks with their standing findings, the task with the newest finding first."""

    def new_violations(self, window: Window) -> int:
        """How many standing violations nobody has acknowledged or muted."""

    def spans_of(self, trace_ids: Collection[str]) -> list[Span]:
        """Spans of these traces, by start."""

    def close(self) -> None:
        """Lets go of files and connections."""
