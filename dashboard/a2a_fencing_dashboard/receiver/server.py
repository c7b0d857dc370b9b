"""The receiver as a process: bound to one address, drained when it is asked to stop."""

from __future__ import annotations

import uvicorn

from a2a_fencing_dashboard.alerts.service import Alerts
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.garbage import spare_the_collector
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.ports import listener
from a2a_fencing_dashboard.receiver.app import Receiver
from a2a_fencing_dashboard.receiver.limits import Limits
from a2a_fencing_dashboard.store import open_store

HOST = "127.0.0.1"
PORT = 4318
"""Where OTLP/HTTP senders look when they are told nothing."""
COLLECTED_AFTER = 50_000, 20, 50
"""As `spare_the_collector` takes it: nearly all objects are facts."""


def serve(
    store_url: str,
    *,
    host: str = HOST,
    port: int = PORT,
    token: str | None = None,
    forward: str | None = None,
    limits: Limits | None = None,
    alerts: AlertSettings | None = None,
) -> None:
    """Receives until SIGINT or SIGTERM, then stores what it has accepted and returns.

    Args:
        store_url: Where to store, as for `open_store`.
        host: Address to listen on.
        port: Port to listen on.
        token: What senders must show as ``Authorization: Bearer``; None lets everybody send.
        forward: OTLP/HTTP base URL that each accepted request is also sent to.
        limits: Bounds on memory and time.
        alerts: Where alerts go; None for nowhere.

    Raises:
        StoreError: The store cannot be used.
        PortTakenError: Somebody else listens on this port.
    """
    spare_the_collector(*COLLECTED_AFTER)
    store = open_store(store_url)
    try:
        receiver = Receiver(
            Ingest(store),
            token=token,
            forward=forward,
            limits=limits,
            alerts=Alerts(store.outbox, alerts or AlertSettings()),
        )
        with listener(host, port, exact=True) as sock:
            uvicorn.Server(configuration(receiver)).run(sockets=[sock])
    finally:
        store.close()


def configuration(receiver: Receiver) -> uvicorn.Config:
    """How uvicorn runs a receiver."""
    return uvicorn.Config(
        receiver.app(),
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(receiver.limits.drain_s)),
    )
