"""What the receiver has done so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


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
    """

    requests: Counter[int] = field(default_factory=Counter)
    facts: int = 0
    duplicates: int = 0
    spans: int = 0
    malformed: int = 0
    commits: int = 0
    forwarded: int = 0
    forward_dropped: int = 0
