"""A replica of the demo's server with an agent that misbehaves, on a database that loses answers."""

from __future__ import annotations

import logging
import os
import random
import socket
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from a2a.server.cluster import TaskVersion, VersionedDatabaseTaskStore
from a2a.server.context import ServerCallContext
from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus
from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import a2a_fencing
from a2a_fencing_dashboard.demo.database import open_engine
from a2a_fencing_dashboard.demo.replica import application, rpc_url, run
from support.oracle.agent import Unruly
from support.oracle.labels import label_this_process

HEARTBEAT_S: Final = 1.0
DELETE, CREATE = "delete", "create"
"""What the server's housekeeping does to a task."""

_CALL: Final = ServerCallContext()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """What a replica needs to know.

    Attributes:
        name: What people call it.
        dsn: The shared database.
        driver_defaults: Whether transactions begin when the driver likes (SQLite).
        endpoint: OTLP/HTTP base URL its facts go to; None: nowhere.
        guard: Whether it enforces what is otherwise only observed.
        audit: Whether it re-reads before each write.
        lost_answers: Share of commits whose answer is lost.
        seed: Of what is lost.
        log: File for what the server has to say.
    """

    name: str
    dsn: str
    driver_defaults: bool
    endpoint: str | None
    guard: bool
    audit: bool
    lost_answers: float
    seed: str
    log: Path


def serve(settings: ReplicaSettings, listener: socket.socket, ready: Connection) -> None:
    """Serves until it is asked to stop, or killed; says on `ready` when it is about to."""
    logging.basicConfig(filename=settings.log, level=logging.WARNING)
    os.environ["A2A_FENCING_REPLICA_NAME"] = settings.name
    if settings.endpoint is None:
        os.environ |= {f"OTEL_{signal}_EXPORTER": "none" for signal in ("LOGS", "TRACES", "METRICS")}
    label_this_process(settings.name)
    a2a_fencing.instrument(
        endpoint=settings.endpoint,
        guard=settings.guard,
        audit=settings.audit,
        heartbeat_interval=HEARTBEAT_S,
    )
    engine = _engine(settings)
    lose_answers(engine.sync_engine, settings.lost_answers, random.Random(settings.seed))
    app = application(Unruly(), engine, rpc_url(listener))
    app.router.routes.append(_housekeeping(engine))
    ready.send(None)
    ready.close()
    try:
        run(app, listener)
    finally:
        a2a_fencing.uninstrument()


def _engine(settings: ReplicaSettings) -> AsyncEngine:
    if settings.driver_defaults:
        return create_async_engine(settings.dsn, connect_args={"timeout": 30})
    return open_engine(settings.dsn)


def _housekeeping(engine: AsyncEngine) -> Route:
    """What a server does to tasks beside the protocol: it deletes old ones, and imports some."""
    store = VersionedDatabaseTaskStore(engine, create_table=False)

    async def act(request: Request) -> Response:
        task_id, action = request.path_params["task_id"], request.path_params["action"]
        if action == DELETE:
            await store.delete(task_id, _CALL)
        else:
            task = Task(
                id=task_id,
                context_id=request.query_params["context"],
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
            )
            await store.save(
                task, event=None, prev=None, prev_version=TaskVersion.MISSING, context=_CALL
            )
        return JSONResponse({})

    return Route("/housekeeping/{action}/{task_id}", act, methods=["POST"])


def lose_answers(engine: Engine, share: float, choice: random.Random) -> None:
    """Lets some commits fail: before or after they took place, in ways that are tried again and not."""
    dialect = engine.dialect
    commit, errors = dialect.do_commit, dialect.loaded_dbapi

    def do_commit(connection: Any) -> None:
        if choice.random() >= share:
            commit(connection)
            return
        took_place = choice.random() < 0.7
        if took_place:
            commit(connection)
        is_tried_again = choice.random() < 0.6
        raise (errors.OperationalError if is_tried_again else errors.DatabaseError)("the answer is lost")

    dialect.do_commit = do_commit  # type: ignore[method-assign]
