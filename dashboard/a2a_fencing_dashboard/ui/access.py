"""Lets in only browsers that know the token.

The token is given once, as ``?token=...`` in the URL. The answer is a cookie and a redirect to the same
URL without it, so that it stays out of the history and out of links that people share.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_COOKIE: Final = "a2a_fencing_access"
_PARAMETER: Final = "token"
_OPEN_PATHS: Final = frozenset({"/_stcore/health"})
_POLICY_VIOLATION: Final = 1008


class TokenGate:
    """ASGI middleware in front of everything the dashboard serves, websockets included."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        """Guards `app` with `token`."""
        self._app = app
        self._token = token
        # The cookie proves the token without containing it.
        self._proof = hmac.new(token.encode(), _COOKIE.encode(), hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        if scope["type"] not in ("http", "websocket") or scope["path"] in _OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        if _same(connection.cookies.get(_COOKIE, ""), self._proof):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        elif _same(connection.query_params.get(_PARAMETER, ""), self._token):
            await self._welcome(connection)(scope, receive, send)
        else:
            refusal = "This dashboard needs a token: open it with ?token=... once.\n"
            await PlainTextResponse(refusal, status_code=401)(scope, receive, send)

    def _welcome(self, connection: HTTPConnection) -> RedirectResponse:
        # Only path and query: a redirect must not lead to whatever a Host header says.
        url = connection.url.remove_query_params(_PARAMETER)
        target = "/" + url.path.lstrip("/") + (f"?{url.query}" if url.query else "")
        response = RedirectResponse(target, status_code=303)
        secure = connection.url.scheme == "https"
        response.set_cookie(_COOKIE, self._proof, httponly=True, samesite="lax", secure=secure)
        return response


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
