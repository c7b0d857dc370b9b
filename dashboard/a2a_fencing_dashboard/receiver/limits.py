"""How much the receiver takes on at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on memory and time.

    Attributes:
        body_bytes: Size of one body, as sent and decompressed.
        pending_bytes: Size of all bodies that wait to be stored, as sent.
        pending_requests: How many they may be.
        group_bytes: Size of the bodies that share a transaction, decompressed; one may exceed it.
        body_timeout_s: Seconds until a body must have arrived.
        forward_requests: How many requests may wait to be sent on.
        forward_bytes: Size of their bodies, as sent.
        forward_timeout_s: Seconds for one attempt to send a request on.
        forward_attempts: Attempts until it is given up.
        drain_s: Seconds at the end for what has been accepted.
    """

    body_bytes: int = 20 << 20
    pending_bytes: int = 64 << 20
    pending_requests: int = 1000
    group_bytes: int = 8 << 20
    body_timeout_s: float = 30.0
    forward_requests: int = 1000
    forward_bytes: int = 64 << 20
    forward_timeout_s: float = 10.0
    forward_attempts: int = 6
    drain_s: float = 5.0
