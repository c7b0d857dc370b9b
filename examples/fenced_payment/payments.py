"""A payment service that fences: it refuses whoever has lost the right to act on a task."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import a2a_fencing
from a2a_fencing.fencing import Fence, FencingMiddleware
from a2a_fencing.fencing.table import TableTokens


class Payments:
    """Charges cards, once per idempotency key."""

    def __init__(self) -> None:
        self.requests = 0
        self.charges: dict[str, dict] = {}

    async def charge(self, request: Request) -> JSONResponse:
        key = request.headers.get("Idempotency-Key", "")
        replayed = key in self.charges
        if not replayed:
            self.charges[key] = {"order": (await request.json())["order"], "charged": True}
        return JSONResponse(self.charges[key], headers={"Idempotent-Replayed": str(replayed).lower()})

    async def listed(self, request: Request) -> JSONResponse:
        return JSONResponse({"requests": self.requests, "charges": list(self.charges.values())})


def application(database: str, *, fenced: bool = True, secret: str | None = None):
    payments = Payments()
    engine = create_async_engine(database)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await engine.dispose()

    routes = [
        Route("/charges", payments.charge, methods=["POST"]),
        Route("/charges", payments.listed, methods=["GET"]),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    if fenced:
        fence = Fence(TableTokens(engine), secret=secret, name="payments")
        app = FencingMiddleware(app, fence, advance_path="/advance")

    async def counted(scope, receive, send) -> None:
        if scope["type"] == "http" and scope["path"] == "/charges" and scope["method"] == "POST":
            payments.requests += 1
        await app(scope, receive, send)

    return counted


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--database", default="sqlite+aiosqlite:///payments.sqlite")
    parser.add_argument("--unfenced", action="store_true", help="serve whoever asks")
    parser.add_argument("--secret", help="what the agents sign with (A2A_FENCING_TOKEN_SECRET)")
    options = parser.parse_args()
    a2a_fencing.instrument()  # what it answers stands in the history of the task
    uvicorn.run(
        application(options.database, fenced=not options.unfenced, secret=options.secret),
        host="127.0.0.1",
        port=options.port,
    )
