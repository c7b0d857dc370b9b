"""Dashboards as `dashboard.py` measures them: the real server, and sessions that a browser would have.

A session speaks Streamlit's protocol over its websocket, as the page in a browser does: it asks for a
page once and then answers the server's timers. What it is sent is read and thrown away, so that five of
them cost this machine the server's work and not five browsers' drawing.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

HOST = "127.0.0.1"
_PROTOCOL = Subprotocol("streamlit")
_NAME = "probe"
"""The query parameter that names a session to the one who measures."""


class Run(NamedTuple):
    """One run of a page's script in the server, seconds."""

    name: str
    session: str
    wall: float
    cpu: float


def serve(store_url: str, port: int, tells: Connection) -> None:
    """The dashboard, which tells how long each run of a page took. For a process of its own."""
    from a2a_fencing_dashboard.ui import app, server

    app.main = _timed(app.main, tells)
    server.serve(store_url, port=port)


def _timed(main: Callable[[], None], tells: Connection) -> Callable[[], None]:
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    lock = threading.Lock()
    begun: dict[str, tuple[float, float]] = {}

    def timed() -> None:
        context = get_script_run_ctx()
        assert context is not None
        # A run that starts over, because of newer data, is part of the next one.
        since = begun.setdefault(context.session_id, (time.perf_counter(), time.thread_time()))
        main()
        now = time.perf_counter(), time.thread_time()
        begun.pop(context.session_id, None)
        name = parse_qs(context.query_string).get(_NAME, [""])[0]
        run = Run(name, context.session_id, now[0] - since[0], now[1] - since[1])
        with lock:
            tells.send(run)

    return timed


class Session:
    """Somebody who looks at a page."""

    def __init__(self, port: int, name: str, page: str, query: dict[str, str]) -> None:
        self._url = f"ws://{HOST}:{port}/_stcore/stream"
        self._page, self._hash = page, ""
        self._query = urlencode({**query, _NAME: name})
        self._timers: dict[str, asyncio.Task[None]] = {}

    async def look(self) -> None:
        """Looks until it is cancelled."""
        async with connect(self._url, subprotocols=[_PROTOCOL], max_size=None) as socket:
            await self._ask(socket)
            try:
                async for message in socket:
                    assert isinstance(message, bytes)
                    await self._heed(socket, message)
            finally:
                for timer in self._timers.values():
                    timer.cancel()

    async def _heed(self, socket: ClientConnection, message: bytes) -> None:
        told = ForwardMsg.FromString(message)
        if told.WhichOneof("type") == "navigation":
            self._hash = told.navigation.page_script_hash
        elif told.WhichOneof("type") == "auto_rerun":
            fragment = told.auto_rerun.fragment_id
            if (old := self._timers.pop(fragment, None)) is not None:
                old.cancel()
            self._timers[fragment] = asyncio.create_task(
                self._tick(socket, fragment, told.auto_rerun.interval)
            )
        elif told.WhichOneof("type") == "stop_auto_rerun":
            for fragment in told.stop_auto_rerun.fragment_ids:
                if (old := self._timers.pop(fragment, None)) is not None:
                    old.cancel()

    async def _tick(self, socket: ClientConnection, fragment: str, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            await self._ask(socket, fragment)

    async def _ask(self, socket: ClientConnection, fragment: str = "") -> None:
        asked = BackMsg()
        state = asked.rerun_script
        state.query_string = self._query
        # The name is for the first time, as in the address bar.
        state.page_script_hash = self._hash
        state.page_name = "" if self._hash else self._page
        state.context_info.timezone = "UTC"
        if fragment:
            state.fragment_id = fragment
            state.is_auto_rerun = True
        await socket.send(asked.SerializeToString())
