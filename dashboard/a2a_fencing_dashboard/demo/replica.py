"""One replica of the demo's A2A server, a process of its own."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.utils.constants import DEFAULT_RPC_URL
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.applications import Starlette

import a2a_fencing
from a2a_fencing_dashboard.demo.agent import ReportWriter, agent_card
from a2a_fencing_dashboard.demo.database import open_engine

_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """What a replica needs to know.

    Attributes:
        name: What people call it, such as ``api-0``.
        dsn: The shared database.
        endpoint: OTLP/HTTP base URL its facts go to.
        run: Label of the load-test run.
        guard: Whether it enforces what is otherwise only observed.
        log: File for what the server has to say.
    """

    name: str
    dsn: str
    endpoint: str
    run: str
    log: Path
    guard: bool = False


def serve(settings: ReplicaSettings, listener: socket.socket) -> None:
    """Serves until it is asked to stop."""
    logging.basicConfig(filename=settings.log, level=logging.WARNING, format=_LOG_FORMAT)
    os.environ["A2A_FENCING_REPLICA_NAME"] = settings.name
    os.environ.setdefault("OTEL_SERVICE_NAME", "a2a-fencing-demo")
    a2a_fencing.instrument(endpoint=settings.endpoint, run=settings.run, guard=settings.guard)
    engine = open_engine(settings.dsn)
    try:
        run(application(ReportWriter(), engine, rpc_url(listener)), listener)
    finally:
        # A last heartbeat says where this replica's facts end.
        a2a_fencing.uninstrument()


def rpc_url(listener: socket.socket) -> str:
    """Where clients reach the JSON-RPC endpoint behind this socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}{DEFAULT_RPC_URL}"


def run(app: Starlette, listener: socket.socket) -> None:
    """Serves until the process is asked to stop."""
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=3)
    uvicorn.Server(config).run(sockets=[listener])


def application(agent: AgentExecutor, engine: AsyncEngine, url: str) -> Starlette:
    """An A2A server for this agent, in cluster mode on a prepared database.

    Args:
        agent: What it runs.
        engine: The shared database; disposed of at the end.
        url: Where clients reach its JSON-RPC endpoint.
    """
    card = agent_card(url)
    handler = DefaultRequestHandler(
        agent_executor=agent,
        task_store=VersionedDatabaseTaskStore(engine, create_table=False),
        agent_card=card,
        event_stream=DatabaseTaskEventStream(engine, create_table=False),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await handler.aclose()
        await engine.dispose()

    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, DEFAULT_RPC_URL)]
    return Starlette(routes=routes, lifespan=lifespan)
