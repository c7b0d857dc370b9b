"""Keeps the end of a connection from looking like a fault.

When the server stops while a browser is open, Streamlit goes on to use the connection that it has just
closed, and uvicorn prints what comes of it: a page of traceback for each browser.
"""

from __future__ import annotations

import logging
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG: Final = logging.getLogger(__name__)


class QuietHangup:
    """ASGI middleware: an error on a websocket that is closed already is logged at debug level only."""

    def __init__(self, app: ASGIApp) -> None:
        """Wraps `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes everything on."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        closed = False

        async def watched_receive() -> Message:
            nonlocal closed
            message = await receive()
            closed = closed or message["type"] == "websocket.disconnect"
            return message

        async def watched_send(message: Message) -> None:
            nonlocal closed
            closed = closed or message["type"] == "websocket.close"
            await send(message)

        try:
            await self._app(scope, watched_receive, watched_send)
        except RuntimeError:
            if not closed:
                raise
            _LOG.debug("a closed connection was used", exc_info=True)
