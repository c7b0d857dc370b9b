"""Work that waits until there is a batch of it.

A hook runs once in some milliseconds, and in between the host has the processor's caches to itself. What
a fact costs there is mostly fetching code and data anew: measured, the same instructions take three
times as long. So a hook only keeps what it saw, and the rest is done for many facts in one go.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from a2a_fencing import internal_errors

_BATCH = 64
"""Facts and spans of some tasks: half a millisecond's work, which no event loop minds."""


class Backlog:
    """Calls put off, made in their order.

    Args:
        batch: So many are made at once, by whoever adds the last of them.

    Attributes:
        watched: Whether somebody calls `visit` now and then. While that is not so, nothing waits.
    """

    def __init__(self, batch: int = _BATCH) -> None:
        self._batch = batch
        self.forget()

    def forget(self) -> None:
        """Starts empty: at first, and again in a forked child, as what waits is its parent's."""
        self._waiting: deque[tuple[Any, ...]] = deque()
        self._settling = threading.RLock()
        self._settler: int | None = None
        self.watched = False

    def later(self, *call: Any) -> None:
        """Puts off the call of a function. Its exceptions are accounted for and go nowhere.

        Args:
            *call: The function and its arguments: one tuple, as Python's garbage collector looks at all
                that waits.
        """
        waiting = self._waiting
        waiting.append(call)
        if len(waiting) >= self._batch or not self.watched:
            self.visit()

    def visit(self) -> None:
        """Makes the calls that wait, unless somebody is at it: who adds a call waits for nobody."""
        if self._settler != threading.get_ident():
            self._settle(wait=False)

    def settle(self) -> None:
        """Makes the calls that wait; what another thread has begun is done when this returns.

        A signal handler may ask for it in the midst of a call: the others are made then.
        """
        self._settle(wait=True)

    def _settle(self, *, wait: bool) -> None:
        if not self._settling.acquire(wait):
            return
        before, self._settler = self._settler, threading.get_ident()
        try:
            while self._waiting:
                call = self._waiting.popleft()
                try:
                    call[0](*call[1:])
                except Exception as error:
                    name = getattr(call[0], "__qualname__", call[0])
                    internal_errors.report(f"backlog {name!s}", error)
        finally:
            self._settler = before
            self._settling.release()
