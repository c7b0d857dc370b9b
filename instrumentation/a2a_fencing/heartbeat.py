"""Heartbeats: this replica is alive, this many executions run on it, and this was its last fact."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.guard import OFF, Guard
from a2a_fencing.recorder import Recorder

DEFAULT_INTERVAL_S = 5.0


class Heartbeat:
    """Records a heartbeat now and then, from a thread of its own.

    Args:
        recorder: Where they are recorded.
        executing: Executions running now.
        lost: Facts lost on the way out so far.
        guard: What the guard enforces now.
        interval_s: Seconds between two.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        executing: Callable[[], int],
        lost: Callable[[], int],
        guard: Callable[[], Guard] = lambda: OFF,
        interval_s: float = DEFAULT_INTERVAL_S,
    ) -> None:
        self._recorder = recorder
        self._executing = executing
        self._lost = lost
        self._guard = guard
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="a2a-fencing-heartbeat", daemon=True)

    def start(self) -> None:
        """Records the first heartbeat at once: the replica is known before it does anything."""
        self.beat()
        self._thread.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """Ends the thread after a last heartbeat, which tells the receiver where the tail ends."""
        self.forget()
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)
        self.beat(last=True)

    def forget(self) -> None:
        """Leaves the end of the process alone: in a forked child, this heart is the parent's."""
        atexit.unregister(self.stop)

    def beat(self, *, last: bool = False) -> None:
        """Records one heartbeat; the last one says that none follows."""
        replica = self._recorder.replica
        guard = self._guard()
        self._recorder.record(
            c.HEARTBEAT,
            None,
            last=self._recorder.last + 1,
            lost=self._lost(),
            executing=self._executing(),
            interval_s=0.0 if last else float(self._interval_s),
            replica_name=replica.name,
            run=replica.run,
            sdk_version=replica.sdk_version,
            pid=replica.pid,
            guard=bool(guard),
            guard_rules=",".join(guard.rules) or None,
            started_unix_nano=replica.started_unix_nano,
        )

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            try:
                self.beat()
            except Exception as error:
                internal_errors.report("heartbeat", error)
