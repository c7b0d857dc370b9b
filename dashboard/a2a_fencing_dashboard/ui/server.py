"""Starts the dashboard: Streamlit in this process, on loopback unless told otherwise."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import streamlit as st
from starlette.middleware import Middleware

from a2a_fencing_dashboard.arenas import share_arenas
from a2a_fencing_dashboard.garbage import spare_the_collector
from a2a_fencing_dashboard.ui.access import TokenGate
from a2a_fencing_dashboard.ui.ending import ENDED
from a2a_fencing_dashboard.ui.hangup import QuietHangup
from a2a_fencing_dashboard.ui.settings import Settings

_SCRIPT: Final = Path(__file__).parent.resolve() / "entry" / "dashboard.py"

_COLLECTED_AFTER: Final = 20_000, 20, 20
"""As `spare_the_collector` takes it; sessions leave cycles behind, so that not all may wait for long."""

_ARENAS: Final = 2
"""As `share_arenas` takes it."""

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")

_CONFIG: Final[Mapping[str, Any]] = {
    "server.headless": True,
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "browser.gatherUsageStats": False,
    "runner.magicEnabled": False,
    "runner.postScriptGC": False,
    "client.toolbarMode": "minimal",
    "client.showErrorLinks": False,
    "logger.hideWelcomeMessage": True,
    "theme.baseFontSize": 15,
    "theme.baseRadius": "6px",
    "theme.showWidgetBorder": True,
    "theme.light.redTextColor": "#c3253f",
    "theme.light.orangeTextColor": "#98690b",
    "theme.light.primaryColor": "#2f74b5",
    "theme.light.backgroundColor": "#fcfcfb",
    "theme.light.secondaryBackgroundColor": "#f1f3f5",
    "theme.light.textColor": "#1e252e",
    "theme.light.borderColor": "#e1e5ea",
    "theme.light.linkColor": "#2468a8",
    "theme.dark.redTextColor": "#f0677d",
    "theme.dark.orangeTextColor": "#d9a93f",
    "theme.dark.primaryColor": "#5b9fdd",
    "theme.dark.backgroundColor": "#12161c",
    "theme.dark.secondaryBackgroundColor": "#1b212a",
    "theme.dark.textColor": "#dde3ea",
    "theme.dark.borderColor": "#2b343f",
    "theme.dark.linkColor": "#7db5ea",
}


def serve(
    store_url: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8501,
    jaeger_url: str | None = None,
    receiver_url: str | None = None,
    history: str | None = None,
    token: str | None = None,
) -> None:
    """Serves the dashboard from this process until it is stopped by a signal.

    Args:
        store_url: The store to show, as `a2a_fencing_dashboard.store.open_store` takes it.
        host: Address to bind.
        port: Port to bind; the next free one is taken when it is in use.
        jaeger_url: Base URL of a Jaeger UI to link traces to.
        receiver_url: Where facts are taken in, shown while there are none.
        history: Name of the history file that the store was made from; None: what arrives live.
        token: What a browser must present, as `access` describes; None lets everybody in who reaches
            the address.
    """
    os.environ.update(Settings(store_url, jaeger_url, receiver_url, history).to_environment())
    # Streamlit reads the arguments of whatever started it; they are not for the pages.
    sys.argv[1:] = []
    middleware = [Middleware(QuietHangup)]
    if token:
        middleware.append(Middleware(TokenGate, token=token))
    app = st.App(_SCRIPT, middleware=middleware)
    config = {**_CONFIG, "server.address": host, "server.port": port}
    if host in _LOOPBACK:
        # Pages of other sites cannot reach a dashboard on this machine through a name of their own.
        config["server.allowedHosts"] = list(_LOOPBACK)
    share_arenas(_ARENAS)
    spare_the_collector(*_COLLECTED_AFTER)
    try:
        app.run(config=config)
    finally:
        ENDED.set()
