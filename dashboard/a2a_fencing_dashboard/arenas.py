"""How much memory the C library keeps for threads.

glibc gives threads heaps of their own, up to eight a core, and each keeps what it once needed. The
dashboard draws every refresh in a new thread; Python lets one of them run at a time, so that many heaps
hold memory and save no time.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_ARENA_MAX: Final = -8
"""`M_ARENA_MAX` in glibc's malloc.h."""


def share_arenas(most: int) -> None:
    """Lets all threads share so many heaps. Where the C library is not glibc, nothing happens.

    Call it before threads are started: what has a heap keeps it.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none
        mallopt(_ARENA_MAX, most)
