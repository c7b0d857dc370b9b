"""The demo's replicas under load, while it lasts."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from types import FrameType

from a2a.utils.errors import A2AError

from a2a_fencing_dashboard.demo.load import Tally, run_load
from a2a_fencing_dashboard.demo.replica import ReplicaSettings, serve
from a2a_fencing_dashboard.demo.settings import DemoSettings
from a2a_fencing_dashboard.ports import listener
from a2a_fencing_dashboard.processes import ChildError, Supervisor

_HOST = "127.0.0.1"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REASON_S = 1.0
"""How long after a failed request its cause, a dead replica, may show."""


class Cluster:
    """Replicas in processes of their own.

    Attributes:
        urls: Their base URLs.
        stopped_by_hand: Whether somebody ended the load.
    """

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
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        for number in range(settings.replicas):
            with listener(_HOST, 0, exact=True) as sock:
                replica = ReplicaSettings(
                    name=f"api-{number}",
                    dsn=settings.dsn,
                    endpoint=endpoint,
                    run=settings.run,
                    log=settings.folder / f"api-{number}.log",
                    guard=settings.guard,
                )
                self._children.append(
                    supervisor.start(replica.name, serve, settings=replica, listener=sock)
                )
                self.urls.append(f"http://{_HOST}:{sock.getsockname()[1]}")

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Inside, the first Ctrl-C (or SIGTERM, SIGHUP) ends the load; the second one interrupts."""
        before = {signum: signal.signal(signum, self._on_signal) for signum in _SIGNALS}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    def work(self) -> Tally:
        """Runs the load until its time is over or somebody stops it.

        Raises:
            ChildError: A process ended meanwhile, or the replicas do not answer; says where logs are.
            KeyboardInterrupt: Stopped twice: without finishing the tasks under way.
        """
        try:
            return self._until_something_ends()
        except ChildError as error:
            raise ChildError(f"{error} (logs in {self._settings.folder})") from error

    def stop(self) -> None:
        """Ends the replicas; what they recorded has been sent when this returns."""
        self._supervisor.stop(*self._children)

    def _until_something_ends(self) -> Tally:
        try:
            tally = asyncio.run(self._work())
        except A2AError as error:
            self._supervisor.check(within_s=_REASON_S)
            raise ChildError(f"the replicas do not answer: {error}") from error
        self._supervisor.check()
        return tally

    async def _work(self) -> Tally:
        self._loop = loop = asyncio.get_running_loop()
        for sentinel in self._supervisor.sentinels:
            loop.add_reader(sentinel, self._stop.set)
        try:
            return await run_load(
                self.urls,
                concurrency=self._settings.concurrency,
                seconds=self._settings.seconds,
                seed=self._settings.seed,
                stop=self._stop,
            )
        finally:
            self._loop = None
            for sentinel in self._supervisor.sentinels:
                loop.remove_reader(sentinel)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self.stopped_by_hand:
            raise KeyboardInterrupt
        self.stopped_by_hand = True
        if self._loop is None:
            self._stop.set()
        else:
            self._loop.call_soon_threadsafe(self._stop.set)
