"""The demo's replicas under load, while it lasts."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from types import FrameType

from a2a_fencing_dashboard.demo.load import Tally, run_load
from a2a_fencing_dashboard.demo.replica import ReplicaSettings, serve
from a2a_fencing_dashboard.demo.settings import DemoSettings
from a2a_fencing_dashboard.ports import listener
from a2a_fencing_dashboard.processes import Supervisor

_HOST = "127.0.0.1"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Cluster:
    """Replicas in processes of their own."""

    def __init__(self, supervisor: Supervisor, settings: DemoSettings, *, endpoint: str) -> None:
        """Starts the replicas.

        Args:
            supervisor: Whose children they become.
            settings: How many, on which database.
            endpoint: OTLP/HTTP base URL that their facts go to.
        """
        self._supervisor = supervisor
        self._settings = settings
        self._children: list[SpawnProcess] = []
        self.urls: list[str] = []
        self.stopped_by_hand = False
        for number in range(settings.replicas):
            with listener(_HOST, 0, exact=True) as sock:
                replica = ReplicaSettings(
                    name=f"api-{number}",
                    dsn=settings.dsn,
                    endpoint=endpoint,
                    run=settings.run,
                    log=settings.folder / f"api-{number}.log",
                )
                self._children.append(
                    supervisor.start(replica.name, serve, settings=replica, listener=sock)
                )
                self.urls.append(f"http://{_HOST}:{sock.getsockname()[1]}")

    def work(self) -> Tally:
        """Runs the load until its time is over or somebody stops it.

        Raises:
            ChildError: A process ended meanwhile.
            KeyboardInterrupt: Stopped twice: without finishing the tasks under way.
        """
        tally = asyncio.run(self._work())
        self._supervisor.check()
        return tally

    async def _work(self) -> Tally:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for sentinel in self._supervisor.sentinels:
            loop.add_reader(sentinel, stop.set)
        try:
            with self._stopping(stop):
                return await run_load(
                    self.urls,
                    concurrency=self._settings.concurrency,
                    seconds=self._settings.seconds,
                    seed=self._settings.seed,
                    stop=stop,
                )
        finally:
            for sentinel in self._supervisor.sentinels:
                loop.remove_reader(sentinel)

    def stop(self) -> None:
        """Ends the replicas; what they recorded has been sent when this returns."""
        self._supervisor.stop(*self._children)

    @contextmanager
    def _stopping(self, stop: asyncio.Event) -> Iterator[None]:
        """Inside, the first Ctrl-C (or SIGTERM, SIGHUP) sets `stop`; the second one interrupts."""
        loop = asyncio.get_running_loop()

        def on_signal(signum: int, frame: FrameType | None) -> None:
            if self.stopped_by_hand:
                raise KeyboardInterrupt
            self.stopped_by_hand = True
            loop.call_soon_threadsafe(stop.set)

        before = {signum: signal.signal(signum, on_signal) for signum in _SIGNALS}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)
