"""The highest fencing token each task was seen with: what a resource has to remember.

It only ever grows. Whoever has a lower one lost the right to act to somebody else.
"""

from __future__ import annotations

import threading
from typing import Protocol

from a2a_fencing.fencing.token import FencingToken


class HighestTokens(Protocol):
    """Remembers the highest token per task, shared by everybody who guards the same resource."""

    def raise_to(self, token: FencingToken) -> int:
        """Remembers the token unless a higher one is known, in one atomic step.

        Returns:
            The highest token now: the token's own value when it is not superseded.

        Raises:
            FenceUnavailableError: What is remembered cannot be reached.
        """

    async def raise_to_async(self, token: FencingToken) -> int:
        """The same without blocking the event loop."""


class MemoryTokens:
    """Remembers in this process alone: for tests, and for a resource that is one process.

    Never forgets by itself, because a forgotten task would let an old owner in again.
    """

    def __init__(self) -> None:
        self._highest: dict[str, int] = {}
        self._lock = threading.Lock()

    def raise_to(self, token: FencingToken) -> int:
        """See `HighestTokens`."""
        with self._lock:
            highest = max(token.value, self._highest.get(token.subject, 0))
            self._highest[token.subject] = highest
            return highest

    async def raise_to_async(self, token: FencingToken) -> int:
        """See `HighestTokens`."""
        return self.raise_to(token)
