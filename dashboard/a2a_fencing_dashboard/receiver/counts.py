"""What the receiver has done so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Histogram

_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def _ingest_seconds() -> Histogram:
    return Histogram(
        "a2a_fencing_ingest_seconds",
        "Time from a request's arrival until its facts are stored and judged.",
        buckets=_BUCKETS_S,
        registry=None,
    )


@dataclass
class Counts:
    """Counts since the start of the process.

    Attributes:
        requests: Requests by HTTP status.
        facts: Facts stored.
        duplicates: Facts that were stored before.
        spans: Spans stored.
        malformed: Records that could not be stored in requests that otherwise were.
        commits: Transactions.
        forwarded: Requests sent on.
        forward_dropped: Requests that were to be sent on and could not.
        ingest_seconds: How long requests waited until they were stored.
    """

    requests: Counter[int] = field(default_factory=Counter)
    facts: int = 0
    duplicates: int = 0
    spans: int = 0
    malformed: int = 0
    commits: int = 0
    forwarded: int = 0
    forward_dropped: int = 0
    ingest_seconds: Histogram = field(default_factory=_ingest_seconds)
