"""From accepted request to commit: one writing thread, many requests a transaction.

Decompressing and decoding happen in that thread too: the event loop stays free to answer, and no more
than one group of bodies is ever held decompressed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.receiver.body import decompress
from a2a_fencing_dashboard.receiver.counts import Counts
from a2a_fencing_dashboard.receiver.errors import OverloadedError
from a2a_fencing_dashboard.receiver.limits import Limits
from a2a_fencing_dashboard.receiver.otlp.decode import Export, decode
from a2a_fencing_dashboard.store import StoreError

_log = logging.getLogger(__name__)

_IDLE_S: Final = 1.0
"""Seconds without a request after which time is passed on to the checker."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came."""

    signal: str
    content_type: str
    content_encoding: str
    body: bytes


class _Waiting:
    """A request in the queue, and the answer somebody waits for."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.export = Export()
        self.since = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Export] = self._loop.create_future()

    async def settled(self) -> Export:
        """What was stored, once it is."""
        return await self._answer

    def stored(self) -> None:
        """Tells the one who waits, from the writing thread, that the facts are safe."""
        self._loop.call_soon_threadsafe(self._settle, None)

    def failed(self, error: Exception) -> None:
        """Tells the one who waits, from the writing thread, that nothing is stored."""
        self._loop.call_soon_threadsafe(self._settle, error)

    def _settle(self, error: Exception | None) -> None:
        if self._answer.done():  # nobody waits any more
            return
        if error is None:
            self._answer.set_result(self.export)
        else:
            self._answer.set_exception(error)


class Intake:
    """Takes requests and answers when they are stored."""

    def __init__(self, ingest: Ingest, limits: Limits, counts: Counts) -> None:
        """Writes through `ingest`, which from `start` to `close` belongs to the writing thread."""
        self._ingest = ingest
        self._limits = limits
        self._counts = counts
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._closing = False
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether requests can be stored."""
        return self._thread.is_alive() and not self._closing

    def start(self) -> None:
        """Starts the writing thread."""
        self._thread.start()

    async def store(self, request: Request) -> Export:
        """Stores a request; when this returns, its facts survive a kill.

        Raises:
            UndecodableError, TooLargeError: The body is not what it should be.
            OverloadedError: The receiver is about to stop.
            StoreError: The store cannot be written to.
        """
        if not self.alive:
            raise OverloadedError("the receiver is about to stop")
        waiting = _Waiting(request)
        self._queue.put(waiting)
        return await waiting.settled()

    async def close(self) -> None:
        """Stores what was accepted and ends the thread."""
        self._closing = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while True:
            try:
                first = self._queue.get(timeout=_IDLE_S)
            except Empty:
                self._pass_time()
                continue
            if first is None:
                return
            self._store_together(first)

    def _store_together(self, first: _Waiting) -> None:
        """Stores a request and those that wait behind it in one transaction."""
        group = []
        size = 0
        for waiting in self._and_those_behind(first):
            try:
                size += self._decode(waiting)
            except Exception as error:
                waiting.failed(error)
            else:
                group.append(waiting)
            if size >= self._limits.group_bytes:
                break
        self._commit(group)

    def _pass_time(self) -> None:
        """What rests on the absence of facts becomes due though nothing arrives."""
        try:
            self._ingest.pass_time()
        except StoreError as error:
            self._refuse((), error)
        except Exception as error:
            _log.error("cannot judge what is stored", exc_info=error)

    def _and_those_behind(self, first: _Waiting) -> Iterator[_Waiting]:
        waiting: _Waiting | None = first
        while waiting is not None:
            yield waiting
            try:
                waiting = self._queue.get_nowait()
            except Empty:
                return
        self._queue.put(None)  # the end is for `_run` to see

    def _decode(self, waiting: _Waiting) -> int:
        """Decodes a request; returns the size of its body, decompressed."""
        request = waiting.request
        body = decompress(request.body, request.content_encoding, self._limits.body_bytes)
        waiting.export = _told_by_replicas(
            decode(request.signal, request.content_type, body, self._ingest.known)
        )
        return len(body)

    def _commit(self, group: Sequence[_Waiting]) -> None:
        exports = [waiting.export for waiting in group]
        facts = list(chain.from_iterable(export.facts for export in exports))
        spans = list(chain.from_iterable(export.spans for export in exports))
        try:
            new = self._ingest.add(facts, spans) if facts or spans else 0
        except StoreError as error:
            self._refuse(group, error)
        except Exception as error:
            self._isolate(group, error)
        else:
            self._failing = False
            self._counts.commits += 1
            self._counts.facts += new
            self._counts.duplicates += len(facts) - new + sum(export.known for export in exports)
            self._counts.spans += len(spans)
            self._counts.malformed += sum(len(export.malformed) for export in exports)
            now = time.monotonic()
            for waiting in group:
                self._counts.ingest_seconds.observe(now - waiting.since)
                waiting.stored()

    def _refuse(self, group: Sequence[_Waiting], error: StoreError) -> None:
        if not self._failing:
            _log.error("nothing can be stored: %s", error)
        self._failing = True
        for waiting in group:
            waiting.failed(error)

    def _isolate(self, group: Sequence[_Waiting], error: Exception) -> None:
        """One request must not spoil the others."""
        if len(group) > 1:
            for waiting in group:
                self._commit([waiting])
        else:
            _log.error("a request cannot be stored", exc_info=error)
            group[0].failed(error)


def _told_by_replicas(export: Export) -> Export:
    """The export without marks that facts are left out.

    Only files have them. Whoever sent one could let what never arrived look complete, and what is yet
    to arrive like a repetition.
    """
    if any(fact.kind == c.OMITTED for fact in export.facts):
        marks = [fact for fact in export.facts if fact.kind == c.OMITTED]
        export.facts = [fact for fact in export.facts if fact.kind != c.OMITTED]
        export.malformed += [f"{c.event_name(c.OMITTED)}: only in files" for _ in marks]
    return export
