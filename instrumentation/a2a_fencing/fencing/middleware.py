"""The fence in front of an ASGI application."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from a2a_fencing.fencing.errors import FenceError, MalformedTokenError, MissingTokenError
from a2a_fencing.fencing.fence import Fence
from a2a_fencing.fencing.token import TOKEN_HEADER

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_REPLAYED = b"idempotent-replayed"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class FencingMiddleware:
    """Refuses requests whose sender lost the right to act, before the application sees them.

    Requests that change nothing (GET, HEAD, OPTIONS) pass. A refusal is a problem document (RFC 9457).
    What is on record of a request that was let through is what the application answered. One that
    repeats an earlier answer, because it knows the idempotency key, should say so with the header
    ``Idempotent-Replayed: true``: then it does not count as another effect.

    Args:
        app: The application.
        fence: Decides.
        advance_path: A POST to this path, with the token of whoever takes the right to act, advances
            the fence and is answered 204; None: there is no such path.
        task_of: The task a request is about, where its ASGI scope tells; its token must be that task's.
    """

    def __init__(
        self,
        app: ASGIApp,
        fence: Fence,
        *,
        advance_path: str | None = None,
        task_of: Callable[[Scope], str | None] = lambda scope: None,
    ) -> None:
        self._app = app
        self._fence = fence
        self._advance_path = advance_path
        self._task_of = task_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection."""
        if scope["type"] != "http" or scope["method"] in _SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        try:
            token = await self._fence.examine(_headers(scope), task_id=self._task_of(scope))
            advances = scope["path"] == self._advance_path
            if advances and token is None:
                raise MissingTokenError(f"nobody is fenced off without {TOKEN_HEADER}")
        except FenceError as error:
            await _answer(send, error.status, _problem(error))
            return
        if advances:
            await _answer(send, 204)
            return
        if token is None:
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        try:
            await self._app(scope, receive, answer)
        finally:
            self._fence.answered(token, answer.status, replayed=answer.replayed)


class _Answer:
    """Looks at what the application answers while it passes."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None
        self.replayed = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.replayed = any(
                name.lower() == _REPLAYED and value.lower() == b"true"
                for name, value in message.get("headers", ())
            )
        await self._send(message)


def _headers(scope: Scope) -> dict[str, str]:
    """The request's headers.

    Raises:
        MalformedTokenError: There is more than one token.
    """
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in headers and key == TOKEN_HEADER.lower():
            raise MalformedTokenError(f"more than one {TOKEN_HEADER}")
        headers[key] = value.decode("latin-1")
    return headers


def _problem(error: FenceError) -> bytes:
    return json.dumps(
        {"title": error.title, "status": error.status, "detail": str(error), **error.details}
    ).encode()


async def _answer(send: Send, status: int, body: bytes = b"") -> None:
    headers = [(b"content-length", str(len(body)).encode())] if status != 204 else []
    if body:
        headers.append((b"content-type", b"application/problem+json"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
