"""Processes of the cluster, which are killed and come back under their name and address."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import random
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.context import SpawnProcess
from typing import Final

from a2a_fencing_dashboard.ports import listener
from a2a_fencing_dashboard.processes import ChildError, Supervisor
from support.oracle.labels import replica_label
from support.oracle.replica import ReplicaSettings, serve

_HOST: Final = "127.0.0.1"

Settings = Callable[[str, int], ReplicaSettings]
"""What the n-th process under a name is told."""


class Fleet:
    """Replicas behind addresses that outlive them: who connects meanwhile waits for the next process.

    Attributes:
        urls: Base URLs of the replicas.
        killed: Labels of the processes that were killed.
        ended: How many were killed and how many asked to stop, while the others worked.
    """

    def __init__(self, supervisor: Supervisor, settings: Settings, count: int) -> None:
        self._supervisor = supervisor
        self._settings = settings
        self._names = [f"api-{number}" for number in range(count)]
        self._sockets: dict[str, socket.socket] = {}
        self._children: dict[str, SpawnProcess] = {}
        self._starts: Counter[str] = Counter()
        self.urls: list[str] = []
        self.killed: set[str] = set()
        self.ended: Counter[str] = Counter()

    @contextlib.contextmanager
    def running(self) -> Iterator[Fleet]:
        """Inside, the replicas are up; what they recorded has been sent on leaving.

        Raises:
            ChildError: One did not start.
        """
        try:
            for name in self._names:
                self._sockets[name] = sock = listener(_HOST, 0, exact=True)
                self.urls.append(f"http://{_HOST}:{sock.getsockname()[1]}")
            for wait in [self._start(name) for name in self._names]:
                wait()
            yield self
        finally:
            self._stop(*self._children.values())
            for sock in self._sockets.values():
                sock.close()

    async def disturb(self, choice: random.Random) -> None:
        """Ends one replica, mostly without asking it; its successor is up already, or comes then."""
        name = choice.choice(self._names)
        child = self._children[name]
        if choice.random() < 0.9:
            await asyncio.to_thread(self._start(name))
        else:
            self._children.pop(name)
        if choice.random() < 0.7:
            child.kill()
            self.ended["killed"] += 1
        else:
            self.ended["stopped"] += 1
        await asyncio.to_thread(self._stop, child)
        if name not in self._children:
            await asyncio.to_thread(self._start(name))

    def _stop(self, *children: SpawnProcess) -> None:
        self._supervisor.stop(*children)
        # Who does not stop in time is killed, too.
        self.killed |= {
            replica_label(child.name, child.pid or 0)
            for child in children
            if child.exitcode == -signal.SIGKILL
        }

    def _start(self, name: str) -> Callable[[], None]:
        """Starts the next process of this name; returns what waits until it is about to serve."""
        self._starts[name] += 1
        settings = self._settings(name, self._starts[name])
        told, tells = multiprocessing.Pipe(duplex=False)
        self._children[name] = self._supervisor.start(
            name, serve, settings=settings, listener=self._sockets[name], ready=tells
        )
        tells.close()

        def wait() -> None:
            try:
                told.recv()
            except EOFError:
                raise ChildError(f"{name} did not start") from None

        return wait
