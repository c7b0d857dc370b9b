"""Ports for servers of a test, which may be ended and started again while other tests run."""

from __future__ import annotations

import random

from a2a_fencing_dashboard.ports import free_port

HOST = "127.0.0.1"

_OURS = range(12_000, 32_000)
"""Below those that systems give to whoever asks for any port, and so to the tests next to this one."""

_choice = random.SystemRandom()


def own_port() -> int:
    """A free port on loopback that nobody else is likely to be given meanwhile."""
    return free_port(HOST, _choice.choice(_OURS), exact=False)
