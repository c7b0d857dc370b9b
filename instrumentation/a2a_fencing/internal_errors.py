"""Our own faults: swallowed, counted and logged once per kind in production; raised under test.

The host of our hooks must never break because we did, and we must never hide that we did.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger("a2a_fencing")

_strict = 0
_counts: dict[str, int] = {}


def report(where: str, error: BaseException) -> None:
    """Accounts for `error`, caught in our own code at `where`.

    Raises:
        BaseException: `error` itself, inside `raising()`.
    """
    if _strict:
        raise error
    kind = f"{where}: {type(error).__qualname__}"
    _counts[kind] = _counts.get(kind, 0) + 1
    if _counts[kind] == 1:
        _log.warning(
            "a2a-fencing failed inside %s and went on without it (logged once)", where, exc_info=error
        )


def counts() -> dict[str, int]:
    """How often each kind of internal error happened, by ``"<where>: <exception type>"``."""
    return dict(_counts)


@contextmanager
def raising() -> Iterator[None]:
    """Lets internal errors through while the block runs, so that a test sees them."""
    global _strict
    _strict += 1
    try:
        yield
    finally:
        _strict -= 1
