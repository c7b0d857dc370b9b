"""The attributes of a fact as serialized KeyValues, encoded once for both signals.

What repeats from fact to fact is encoded once per distinct value and kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from a2a_fencing import facts
from a2a_fencing.encoding.wire import any_bytes, length_first, tag
from a2a_fencing.facts import AttributeValue, Fact, TaskKey

_CACHED = 8192

# Fields whose values come from small sets, encoded together.
_CLOSED: Final = (
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
_KEYED: Final = frozenset({"task", "writer"})
_ENCODED: Final = "_otlp"
"""Where the encoded attributes wait with a fact: it leaves twice, as log event and as span event."""


def attributes_of(fact: Fact) -> list[bytes]:
    """The attributes of a fact, each a KeyValue behind its length."""
    values = fact.__dict__
    encoded: list[bytes] | None = values.get(_ENCODED)
    if encoded is None:
        encoded = values[_ENCODED] = [
            *_seldom(fact),
            *_whose(fact.task, fact.writer),
            *_closed(tuple([values.get(name) for name in _CLOSED])),
        ]
    return encoded


def _seldom(fact: Fact) -> list[bytes]:
    """The attributes whose values seldom repeat."""
    pairs = [pair(_FACT_ID, fact.id)]
    if fact.task is not None:
        pairs.append(pair(_TASK_ID, fact.task.task_id))
    for name, value in fact.__dict__.items():
        key = _OPEN.get(name)
        if key is not None and value is not None:
            pairs.append(pair(key, value))
    return pairs


def _whose(task: TaskKey | None, writer: str | None) -> tuple[bytes, ...]:
    if task is None:
        return _home(None, None, 0, writer)
    return _home(task.store, task.owner, task.incarnation, writer)


@lru_cache(_CACHED)
def _home(
    store: str | None, owner: str | None, incarnation: int, writer: str | None
) -> tuple[bytes, ...]:
    """The attributes that say in which store, for whom and by which writer."""
    task = None if store is None or owner is None else TaskKey(store, owner, "", incarnation)
    return _pairs({"task": task, "writer": writer})


@lru_cache(_CACHED)
def _closed(values: tuple[Any, ...]) -> tuple[bytes, ...]:
    return _pairs(dict(zip(_CLOSED, values, strict=True)))


def _pairs(values: dict[str, Any]) -> tuple[bytes, ...]:
    """The attributes of a fact that has these fields, but for those that `_seldom` gives."""
    attributes = facts.to_attributes(Fact.build({"id": "", **values}))
    return tuple(
        pair(key_of(key), value)
        for key, value in attributes.items()
        if key not in (facts.FACT_ID, facts.TASK_ID)
    )


def pair(key: bytes, value: AttributeValue) -> bytes:
    """A KeyValue, behind its length."""
    return length_first(key + length_first(any_bytes(value)))


@lru_cache(_CACHED)
def key_of(name: str) -> bytes:
    """What a KeyValue begins with, up to the length of its value."""
    return bytes(KeyValue(key=name).SerializeToString()) + _VALUE


_VALUE: Final = tag(KeyValue, "value")

# Serialized keys of the attributes whose values seldom repeat, by field of a fact.
_FACT_ID: Final = key_of(facts.FACT_ID)
_TASK_ID: Final = key_of(facts.TASK_ID)
_OPEN: Final = {
    name: key_of(attribute)
    for name, (attribute, _) in facts.ATTRIBUTES.items()
    if name not in _CLOSED and name not in _KEYED
}
