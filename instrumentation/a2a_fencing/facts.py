"""Facts: what was observed, immutable, numbered per replica; and their OTel attributes, both ways.

A fact is one class with optional fields rather than one class per kind, so that whoever reads a history
can ask any fact for ``state`` or ``reason`` without asking first what it is: a field that the kind does
not have is ``None``.

The same attributes go on a log event and on a span event. A receiver rebuilds the fact from either;
`Fact.id` tells that both are the same fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Final

from a2a_fencing import conventions as c

Version = int | str | None
"""What a store says of a write. ``None`` is the SDK's ``TaskVersion.MISSING``."""

AttributeValue = str | int | float | bool | Sequence[str]


class MalformedFactError(ValueError):
    """Attributes that claim to be a fact but cannot be one; the text says which part."""


@dataclass(frozen=True, slots=True)
class TaskKey:
    """Which task. Never the task id alone: each owner, table and in-memory store has its own id space.

    Attributes:
        store: Identity of the store, the same on every replica that shares it, without credentials.
        owner: Whose task it is, as the store's owner resolver says.
        task_id: A2A task id.
        incarnation: Counts the deletions of this id that the replica itself has seen; the checker
            splits a history further where another replica deleted.
    """

    store: str
    owner: str
    task_id: str
    incarnation: int = 0

    def __hash__(self) -> int:
        # Keys are looked up several times a fact; the task id alone tells nearly all of them apart.
        return hash(self.task_id)


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing observed on one replica.

    Attributes:
        id: ``"<service.instance.id>:<n>"``, n counting up by one from 1 on each replica.
        kind: One of `conventions.KINDS`.
        time_unix_nano: The replica's wall clock, ns since 1970. Never used for proof across replicas.
        replica: ``service.instance.id`` of the process, new at every start.
        writer: ``"<replica>/<k>"``, k telling apart the store objects of one process.
        task: The task concerned, or None (heartbeats).
        context_id: A2A context id.
        trace_id, span_id: The recording span, lower-case hex, or None.
        state: State written, read, told or believed, such as ``"CANCELED"``.
        base_version, base_state: What the writer derived its write from, and the state the store held
            at that version as far as this process knows.
        version: Version the store gave to the write, or the version that was read.
        outcome: How a write or a dispatch attempt ended.
        reason: Why a write was refused or an event dropped.
        origin: Who caused a write, or why a read was recorded.
        event_kind: Kind of the event behind a write or a drop; None for a write without event.
        attempt: 1 for the first try of a logical write or dispatch.
        duration_ns: How long the write took, ns.
        versioned: False when the store keeps no versions, so that CAS protects nothing.
        error_type: Qualified name of the exception behind an outcome; never its text.
        queue: Which queue lost a dropped event.
        phase: Started / finished / cancelled / raised (execution), started / ended (dispatch).
        execution_id: Pairs the phases of one execution and names it in its dispatches.
        token: Fencing token of the execution.
        name, key, dispatch_id: What was dispatched, under which logical key, and which block it was.
        unparented: True for a dispatch whose execution could not be told.
        method: A2A method that gave an answer.
        ending: How a stream ended.
        rule, witness: Of a violation the process could prove alone.
        last: Highest n when a heartbeat was made (its own).
        lost: Facts this replica knows it lost in exporters, so far.
        executing: Executions running on the replica.
        interval_s: Seconds until the next heartbeat; 0 in a replica's last one.
        replica_name, run, sdk_version, pid, guard, started_unix_nano: Who the replica is (heartbeats).
        guard_rules: Rules of the guard that hold there, ``"store,consumer"`` (heartbeats).
    """

    id: str
    kind: str
    time_unix_nano: int
    replica: str
    writer: str | None = None
    task: TaskKey | None = None
    context_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    state: str | None = None
    base_version: Version = None
    base_state: str | None = None
    version: Version = None
    outcome: str | None = None
    reason: str | None = None
    origin: str | None = None
    event_kind: str | None = None
    attempt: int | None = None
    duration_ns: int | None = None
    versioned: bool | None = None
    error_type: str | None = None
    queue: str | None = None
    phase: str | None = None
    execution_id: str | None = None
    token: int | None = None
    name: str | None = None
    key: str | None = None
    dispatch_id: str | None = None
    unparented: bool | None = None
    method: str | None = None
    ending: str | None = None
    rule: str | None = None
    witness: tuple[str, ...] | None = None
    last: int | None = None
    lost: int | None = None
    executing: int | None = None
    interval_s: float | None = None
    replica_name: str | None = None
    run: str | None = None
    sdk_version: str | None = None
    pid: int | None = None
    guard: bool | None = None
    started_unix_nano: int | None = None
    guard_rules: str | None = None

    @classmethod
    def build(cls, values: dict[str, Any]) -> Fact:
        """A fact from its fields, owning `values`: `__init__` at a tenth of its price.

        Fields left out are read from the class, where their default is; this is why the class has no
        slots. Meant for the recorder and for decoders, which make facts by the ten thousand.
        """
        fact = object.__new__(cls)
        object.__setattr__(fact, "__dict__", values)
        return fact

    @cached_property
    def n(self) -> int:
        """The fact's number on its replica, from 1."""
        return int(self.id.rpartition(":")[2])


FACT_ID: Final = "a2a.fencing.fact.id"
TASK_ID: Final = "a2a.task.id"
_DIGITS: Final = 18
_WRITER: Final = "a2a.fencing.writer"
_STORE: Final = "a2a.fencing.task.store"
_OWNER: Final = "a2a.fencing.task.owner"
_INCARNATION: Final = "a2a.fencing.task.incarnation"

_STR: Final = (str,)
_INT: Final = (int,)
_VERSION: Final = (int, str)

# Attribute name and accepted types of every field that travels as one attribute.
ATTRIBUTES: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "context_id": ("gen_ai.conversation.id", _STR),
    "state": ("a2a.task.state", _STR),
    "base_version": ("a2a.fencing.base.version", _VERSION),
    "base_state": ("a2a.fencing.base.state", _STR),
    "version": ("a2a.fencing.version", _VERSION),
    "outcome": ("a2a.fencing.outcome", _STR),
    "reason": ("a2a.fencing.reason", _STR),
    "origin": ("a2a.fencing.origin", _STR),
    "event_kind": ("a2a.fencing.event.kind", _STR),
    "attempt": ("a2a.fencing.attempt", _INT),
    "duration_ns": ("a2a.fencing.duration_ns", _INT),
    "versioned": ("a2a.fencing.store.versioned", (bool,)),
    "error_type": (c.ERROR_TYPE, _STR),
    "queue": ("a2a.fencing.queue", _STR),
    "phase": ("a2a.fencing.phase", _STR),
    "execution_id": ("a2a.fencing.execution.id", _STR),
    "token": ("a2a.fencing.token", _INT),
    "name": ("a2a.fencing.dispatch.name", _STR),
    "key": ("a2a.fencing.dispatch.key", _STR),
    "dispatch_id": ("a2a.fencing.dispatch.id", _STR),
    "unparented": ("a2a.fencing.dispatch.unparented", (bool,)),
    "method": ("a2a.method.name", _STR),
    "ending": ("a2a.fencing.stream.ending", _STR),
    "rule": ("a2a.fencing.rule", _STR),
    "witness": ("a2a.fencing.witness", (tuple, list)),
    "last": ("a2a.fencing.facts.last", _INT),
    "lost": ("a2a.fencing.facts.lost", _INT),
    "executing": ("a2a.fencing.executing", _INT),
    "interval_s": ("a2a.fencing.heartbeat.interval", (float, int)),
    "replica_name": ("a2a.fencing.replica.name", _STR),
    "run": ("a2a.fencing.run", _STR),
    "sdk_version": ("a2a.fencing.sdk.version", _STR),
    "pid": ("process.pid", _INT),
    "guard": ("a2a.fencing.guard", (bool,)),
    "started_unix_nano": ("a2a.fencing.replica.started_unix_nano", _INT),
    "guard_rules": ("a2a.fencing.guard.rules", _STR),
}

# What each attribute tells: a field, or a part of the id, the writer or the task key.
_PART_OF: Final = {attribute: (name, types) for name, (attribute, types) in ATTRIBUTES.items()} | {
    FACT_ID: ("fact_id", _STR),
    _WRITER: ("writer", _STR),
    TASK_ID: ("task_id", _STR),
    _STORE: ("task_store", _STR),
    _OWNER: ("task_owner", _STR),
    _INCARNATION: ("task_incarnation", _INT),
}
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "task_incarnation": (0, 1 << 31),
    "interval_s": (0, 1e9),
}
_LAST_INT: Final = (1 << 63) - 1
_OF_NO_TASK: Final = (c.HEARTBEAT, c.OMITTED)
_PAIRS: Final = tuple((name, attribute) for name, (attribute, _) in ATTRIBUTES.items())

# Every other field is carried by the record itself (time, trace and span id, event name) or by the id.
assert {f.name for f in fields(Fact)} - ATTRIBUTES.keys() == {
    "id",
    "kind",
    "time_unix_nano",
    "replica",
    "writer",
    "task",
    "trace_id",
    "span_id",
}


def to_attributes(fact: Fact) -> dict[str, AttributeValue]:
    """The OTel attributes of a fact: only what is set, in a stable order."""
    out: dict[str, AttributeValue] = {FACT_ID: fact.id}
    if fact.writer is not None:
        out[_WRITER] = fact.writer.rpartition("/")[2]
    task = fact.task
    if task is not None:
        out[TASK_ID] = task.task_id
        out[_STORE] = task.store
        out[_OWNER] = task.owner
        if task.incarnation:
            out[_INCARNATION] = task.incarnation
    for name, attribute in _PAIRS:
        value = getattr(fact, name)
        if value is not None:
            out[attribute] = value
    return out


def split_id(fact_id: object) -> tuple[str, int]:
    """Replica and number of a fact id.

    Raises:
        MalformedFactError: It is not one.
    """
    if isinstance(fact_id, str):
        replica, _, number = fact_id.rpartition(":")
        if replica and len(number) <= _DIGITS and number.isascii() and number.isdigit():
            n = int(number)
            if n:
                return replica, n
    raise MalformedFactError(f"{FACT_ID} is not '<instance>:<n>'")


def is_fact(event_name: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a log event or span event claims to carry a fact."""
    return event_name.startswith(c.NAMESPACE) and FACT_ID in attributes


def from_attributes(
    event_name: str,
    attributes: Mapping[str, Any],
    *,
    time_unix_nano: int,
    trace_id: str | None = None,
    span_id: str | None = None,
) -> Fact:
    """Rebuilds a fact from the event that carried it.

    Attributes and event kinds that this version does not know are left out, so that a newer
    replica can report to an older receiver.

    Raises:
        MalformedFactError: The id, the task key or the type of a known attribute is wrong.
    """
    parts = dict(read_attribute(attribute, value) for attribute, value in attributes.items())
    return from_parts(
        event_name, parts, time_unix_nano=time_unix_nano, trace_id=trace_id, span_id=span_id
    )


def read_attribute(attribute: str, value: object) -> tuple[str, Any]:
    """The part of a fact that an attribute tells, for `from_parts`: its name, and its value.

    The name is empty when the attribute is none of ours or has no value.

    Raises:
        MalformedFactError: The value has a type, or is of a size, that the part cannot have.
    """
    known = _PART_OF.get(attribute)
    if known is None or value is None:
        return "", None
    name, types = known
    if type(value) not in types:
        raise MalformedFactError(f"{attribute} has type {type(value).__name__}")
    if type(value) in (int, float):
        low, high = _RANGES.get(name, (-_LAST_INT - 1, _LAST_INT))
        if not low <= value <= high:  # type: ignore[operator]
            raise MalformedFactError(f"{attribute} is out of range")
    if name == "witness":
        return name, tuple(map(str, value))  # type: ignore[call-overload]
    return name, value


def from_parts(
    event_name: str,
    parts: dict[str, Any],
    *,
    time_unix_nano: int,
    trace_id: str | None = None,
    span_id: str | None = None,
) -> Fact:
    """Rebuilds a fact from what `read_attribute` made of its attributes, owning `parts`.

    Raises:
        MalformedFactError: The id is wrong, or it names a task where there can be none.
    """
    parts.pop("", None)
    replica, n = split_id(parts.pop("fact_id", None))
    kind = event_name[len(c.NAMESPACE) :]
    writer = parts.pop("writer", None)
    store, owner = parts.pop("task_store", ""), parts.pop("task_owner", "")
    task_id, incarnation = parts.pop("task_id", None), parts.pop("task_incarnation", 0)
    if task_id is not None and kind in _OF_NO_TASK:
        raise MalformedFactError(f"{event_name} is of no task")
    parts.update(
        id=f"{replica}:{n}",
        n=n,
        kind=kind,
        time_unix_nano=time_unix_nano,
        replica=replica,
        writer=None if writer is None else f"{replica}/{writer}",
        task=None if task_id is None else _task_key(store, owner, task_id, incarnation),
        trace_id=trace_id or None,
        span_id=span_id or None,
    )
    return Fact.build(parts)


# The facts of a task arrive close together: one key object for all of them is cheaper to make and to
# compare.
_task_key = lru_cache(maxsize=1 << 12)(TaskKey)
