"""What a fact says as serialized fields: of the log event, and of the span event that repeats it.

Both hold the same attributes and differ in the tag before each. They are made together, and in parts:
those whose values come from small sets, those that a task's facts have in common, and the few that are a
fact's own. The first two are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from a2a_fencing import conventions as c
from a2a_fencing import facts
from a2a_fencing.encoding.wire import pair, tag
from a2a_fencing.facts import AttributeValue, Fact, TaskKey

_COMBINATIONS: Final = 8192
_SHAPES: Final = 256
_TASKS: Final = 1024
"""As many as have facts in a few batches; what is kept of more is only in the way of the host's garbage
collector.
"""

# Fields whose values come from small sets, encoded together.
_CLOSED: Final = (
    "kind",
    "state",
    "base_state",
    "outcome",
    "reason",
    "origin",
    "event_kind",
    "attempt",
    "versioned",
    "queue",
    "phase",
    "method",
    "ending",
    "rule",
    "error_type",
)
# Fields that all facts have in common which one writer records of a task.
_COMMON: Final = frozenset({"task", "writer"})
# Fields that no two facts have alike: keeping their encoding would be in vain.
_UNIQUE: Final = frozenset({"duration_ns", "dispatch_id"})

_WARNED: Final = int(SeverityNumber.SEVERITY_NUMBER_WARN)
_ERROR: Final = int(SeverityNumber.SEVERITY_NUMBER_ERROR)
_INFORMED: Final = int(SeverityNumber.SEVERITY_NUMBER_INFO)


Fields = tuple[bytes, bytes]
"""Serialized fields of the log event and of the span event."""


def severity(fact: Fact) -> int:
    """OTel severity number: ERROR for violations, WARN where the fence held, INFO otherwise."""
    return _severity(fact.kind, fact.outcome)


def fields_of(fact: Fact) -> Fields:
    """All but the times and the ids of the span."""
    values = fact.__dict__
    shape = _shape(tuple(values))
    closed_log, closed_span = _closed(shape, shape.closed(values))
    task = fact.task
    if task is None:
        common_log, common_span = _common(None, None, None, 0, fact.writer)
    else:
        common_log, common_span = _common(
            task.store, task.owner, task.task_id, task.incarnation, fact.writer
        )
    own = [pair(_FACT_ID, fact.id)]
    for name, key, encode in shape.own:
        value = values[name]
        if value is not None:
            own.append(encode(key, value))
    return (
        closed_log + common_log + _LOG + _LOG.join(own),
        closed_span + common_span + _SPAN + _SPAN.join(own),
    )


class _Shape:
    """Which fields a fact has, and so what is to be done to encode it: the same for all facts that are
    made in one place.

    Attributes:
        names: Its fields that come from small sets.
        closed: Takes the values of these from a fact's fields.
        own: Its fields that are its own, with key and encoder.
    """

    __slots__ = ("closed", "names", "own")

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.names = tuple(name for name in _CLOSED if name in fields)
        # One name alone would be taken as a value, not as a tuple of one.
        self.closed = itemgetter(*self.names, "kind")
        self.own = tuple((name, *_OPEN[name]) for name in fields if name in _OPEN)


_shape: Final = lru_cache(_SHAPES)(_Shape)

_kept: Final = lru_cache(_TASKS, typed=True)(pair)
"""`pair` for what repeats: contexts, versions, tokens, the execution that a dispatch belongs to."""


@lru_cache(_TASKS)
def _common(
    store: str | None,
    owner: str | None,
    task_id: str | None,
    incarnation: int,
    writer: str | None,
) -> Fields:
    """The attributes that say which task it is, in which store, for whom and by which writer."""
    task = None
    if store is not None and owner is not None and task_id is not None:
        task = TaskKey(store, owner, task_id, incarnation)
    return _tagged(_pairs({"task": task, "writer": writer}))


@lru_cache(_COMBINATIONS)
def _closed(shape: _Shape, values: tuple[Any, ...]) -> Fields:
    """What kind of event it is, and the attributes from closed sets."""
    fields = dict(zip(shape.names, values, strict=False))
    kind = fields["kind"]
    name = c.event_name(kind)
    number: Any = _severity(kind, fields.get("outcome"))
    log, span = _tagged(_pairs(fields))
    return (
        LogRecord(severity_number=number, event_name=name).SerializeToString() + log,
        SpanMessage.Event(name=name).SerializeToString() + span,
    )


def _severity(kind: str, outcome: str | None) -> int:
    if kind == c.VIOLATION:
        return _ERROR
    if kind == c.DROPPED or (kind == c.WRITE and outcome != c.ACCEPTED):
        return _WARNED
    return _INFORMED


def _pairs(values: dict[str, Any]) -> Iterable[bytes]:
    """The attributes of a fact that has these fields, but for its id."""
    attributes = facts.to_attributes(Fact.build({"id": "", **values}))
    return [pair(key_of(key), value) for key, value in attributes.items() if key != facts.FACT_ID]


def _tagged(pairs: Iterable[bytes]) -> Fields:
    return b"".join(_LOG + each for each in pairs), b"".join(_SPAN + each for each in pairs)


@lru_cache(_COMBINATIONS)
def key_of(name: str) -> bytes:
    """What a KeyValue begins with, up to the length of its value."""
    return bytes(KeyValue(key=name).SerializeToString()) + _VALUE


@lru_cache(_TASKS, typed=True)
def attribute(name: str, value: AttributeValue) -> bytes:
    """An attribute of a span behind its length."""
    return pair(key_of(name), value)


_LOG: Final = tag(LogRecord, "attributes")
_SPAN: Final = tag(SpanMessage.Event, "attributes")
_VALUE: Final = tag(KeyValue, "value")

_FACT_ID: Final = key_of(facts.FACT_ID)
_OPEN: Final = {
    name: (key_of(attribute_name), pair if name in _UNIQUE else _kept)
    for name, (attribute_name, _) in facts.ATTRIBUTES.items()
    if name not in _CLOSED and name not in _COMMON
}
"""Serialized key and encoder, by field of a fact."""
