"""The receiver and the dashboard, each a process of its own beside the one that started it.

Streamlit's process is no place for a receiver: with browsers open it would answer late.
"""

from __future__ import annotations

import socket
import sys
from typing import Any, Final

from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.processes import Supervisor


def start_receiver(
    supervisor: Supervisor,
    *,
    store_url: str,
    host: str,
    port: int,
    token: str | None = None,
    forward: str | None = None,
    alerts: AlertSettings | None = None,
) -> str:
    """Starts the receiver and waits until it listens.

    Args:
        supervisor: Whose child it becomes.
        store_url: Where facts are kept.
        host: Address to listen on.
        port: A free port.
        token: What senders must present, or None.
        forward: OTLP/HTTP base URL that requests are passed on to, or None.
        alerts: Where alerts go, or None.

    Returns:
        The base URL that facts can be sent to.

    Raises:
        ChildError: It ended at once, or does not listen.
    """
    child = supervisor.start(
        "receiver",
        _receive,
        store_url=store_url,
        host=host,
        port=port,
        token=token,
        forward=forward,
        alerts=alerts,
    )
    supervisor.wait_listening(child, host, port)
    return base_url(host, port)


def start_dashboard(
    supervisor: Supervisor,
    *,
    store_url: str,
    host: str,
    port: int,
    receiver_url: str | None = None,
    history: str | None = None,
    token: str | None = None,
    jaeger_url: str | None = None,
) -> str:
    """Starts the dashboard and waits until it listens.

    Args:
        supervisor: Whose child it becomes.
        store_url: The store to show.
        host: Address to listen on.
        port: A free port.
        receiver_url: Where facts are taken in, shown while there are none; None: nowhere.
        history: Name of the history file that the store was made from; None: what arrives live.
        token: What a browser must present, or None.
        jaeger_url: Base URL of a Jaeger page to link traces to, or None.

    Returns:
        The URL for a browser.

    Raises:
        ChildError: It ended at once, or does not listen.
    """
    child = supervisor.start(
        "dashboard",
        _show,
        store_url=store_url,
        host=host,
        port=port,
        receiver_url=receiver_url,
        history=history,
        token=token,
        jaeger_url=jaeger_url,
    )
    supervisor.wait_listening(child, host, port)
    return base_url(host, port)


_EVERY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::"})


def base_url(host: str, port: int) -> str:
    """The URL of a server on this machine; one that listens on every address is called by its name."""
    if host in _EVERY_ADDRESS:
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


# What follows runs in the child: its libraries are not loaded here.


def _receive(**settings: Any) -> None:
    from a2a_fencing_dashboard.receiver.server import serve
    from a2a_fencing_dashboard.store import StoreError

    try:
        serve(**settings)
    except StoreError as error:
        sys.exit(f"receiver: {error}")


def _show(**settings: Any) -> None:
    from a2a_fencing_dashboard.ui.server import serve

    serve(**settings)
