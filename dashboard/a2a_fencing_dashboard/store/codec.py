"""A fact as bytes and back, exactly.

A MessagePack array in a fixed order of fields: small, fast, safe to read from a file somebody sent.
Fields are only ever appended, so that a store written before a field existed stays readable.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

import msgspec

from a2a_fencing.facts import Fact, TaskKey

FIELDS: Final = (
    "kind",
    "time_unix_nano",
    "writer",
    "context_id",
    "trace_id",
    "span_id",
    "state",
    "base_version",
    "base_state",
    "version",
    "outcome",
    "reason",
    "origin",
    "event_kind",
    "attempt",
    "duration_ns",
    "versioned",
    "error_type",
    "queue",
    "phase",
    "execution_id",
    "token",
    "name",
    "key",
    "dispatch_id",
    "unparented",
    "method",
    "ending",
    "rule",
    "witness",
    "last",
    "lost",
    "executing",
    "interval_s",
    "replica_name",
    "run",
    "sdk_version",
    "pid",
    "guard",
    "started_unix_nano",
    "guard_rules",
)
"""All of a fact but its id, replica and task, which the store keeps as keys."""

_TIME: Final = FIELDS.index("time_unix_nano")
_values = attrgetter(*FIELDS)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode


def encode(fact: Fact) -> bytes:
    """The fact without its keys."""
    return _encode(_values(fact))


def time_of(body: bytes) -> int:
    """The replica's clock of an encoded fact, ns since 1970."""
    return int(_decode(body)[_TIME])


def decode(body: bytes, *, replica: str, n: int, task: TaskKey | None) -> Fact:
    """The fact that `encode` was given."""
    values = dict(zip(FIELDS, _decode(body), strict=False))
    if values.get("witness") is not None:
        values["witness"] = tuple(values["witness"])
    return Fact.build(values | {"id": f"{replica}:{n}", "n": n, "replica": replica, "task": task})
