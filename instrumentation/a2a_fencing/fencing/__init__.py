"""For the side that executors act on: remember the highest fencing token per task, refuse a lower one.

    fence = Fence(TableTokens(engine), secret=...)
    app = FencingMiddleware(app, fence)          # an ASGI application
    fence.admit(request.headers)                 # anything else

`a2a_fencing.fencing.table` needs SQLAlchemy; the rest does not.
"""

from a2a_fencing.fencing.errors import (
    FenceError,
    FenceUnavailableError,
    ForeignTokenError,
    ForgedTokenError,
    MalformedTokenError,
    MissingTokenError,
    SupersededTokenError,
)
from a2a_fencing.fencing.fence import Fence
from a2a_fencing.fencing.highest import HighestTokens, MemoryTokens
from a2a_fencing.fencing.middleware import FencingMiddleware
from a2a_fencing.fencing.takeover import taken_over
from a2a_fencing.fencing.token import IDEMPOTENCY_HEADER, TOKEN_HEADER, FencingToken, idempotency_key

__all__ = [
    "IDEMPOTENCY_HEADER",
    "TOKEN_HEADER",
    "Fence",
    "FenceError",
    "FenceUnavailableError",
    "FencingMiddleware",
    "FencingToken",
    "ForeignTokenError",
    "ForgedTokenError",
    "HighestTokens",
    "MalformedTokenError",
    "MemoryTokens",
    "MissingTokenError",
    "SupersededTokenError",
    "idempotency_key",
    "taken_over",
]
