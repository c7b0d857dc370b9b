"""Child processes that live and end together.

Whatever ends the parent ends the children: a return, an exception, Ctrl-C, SIGTERM, and also SIGKILL,
since each child watches the pipe that `multiprocessing` keeps open to its parent.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.resource_tracker
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import SpawnProcess
from types import FrameType, TracebackType
from typing import Any, Final

GRACE_S: Final = 8.0
"""How long a child may take to end by itself before it is killed."""

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_POLL_S: Final = 0.05


class ChildError(Exception):
    """A child ended, or did not become ready; the text names it."""


class Supervisor:
    """Starts processes, notices when one ends, and stops them all.

    Use it as a context manager in the main thread: inside, SIGTERM and SIGHUP raise
    `KeyboardInterrupt` as Ctrl-C does; on leaving, everything that was started is stopped.
    """

    def __init__(self, *, grace_s: float = GRACE_S) -> None:
        self._grace_s = grace_s
        self._context = multiprocessing.get_context("spawn")
        self._children: list[SpawnProcess] = []
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Supervisor:
        for signum in _STOP_SIGNALS:
            self._handlers[signum] = signal.signal(signum, signal.default_int_handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            for signum, handler in self._handlers.items():
                signal.signal(signum, handler)

    def start(self, name: str, target: Callable[..., None], **arguments: Any) -> SpawnProcess:
        """Starts ``target(**arguments)`` in a process of its own.

        The target runs in the main thread of a fresh interpreter; it and its arguments are pickled.
        When it is asked to stop it sees ``SystemExit``, so that its exit handlers run.
        """
        child = self._context.Process(
            target=_run, args=(name, target, arguments), name=name, daemon=True
        )
        # Started now, because starting it would lift the block below.
        multiprocessing.resource_tracker.ensure_running()
        with _interrupts_blocked():
            child.start()
        self._children.append(child)
        return child

    @property
    def sentinels(self) -> list[int]:
        """File descriptors, one a child, that become readable when it ends."""
        return [child.sentinel for child in self._children]

    def check(self, *, within_s: float = 0) -> None:
        """Raises `ChildError` when a child has ended, or does so in the next `within_s` seconds."""
        self._raise_if_ended(timeout_s=within_s)

    def wait(self) -> None:
        """Blocks until a child ends, and raises `ChildError` then."""
        self._raise_if_ended(timeout_s=None)

    def _raise_if_ended(self, *, timeout_s: float | None) -> None:
        ended = multiprocessing.connection.wait(self.sentinels, timeout_s)
        for child in self._children:
            if child.sentinel in ended:
                # The pipe closes a moment before the exit code can be had.
                child.join()
                raise ChildError(_epitaph(child))

    def wait_listening(
        self, child: SpawnProcess, host: str, port: int, *, timeout_s: float = 60
    ) -> None:
        """Blocks until something accepts connections on the address.

        Raises:
            ChildError: The child ended, or nothing listened within `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
                return
            if multiprocessing.connection.wait([child.sentinel], timeout=_POLL_S):
                child.join()
                raise ChildError(_epitaph(child))
        raise ChildError(f"{child.name} does not answer on {host}:{port}")

    def stop(self, *children: SpawnProcess) -> None:
        """Asks these children (all, when none is named) to end; kills those that do not in time."""
        stopping = children or tuple(reversed(self._children))
        try:
            for child in stopping:
                child.terminate()
            deadline = time.monotonic() + self._grace_s
            for child in stopping:
                child.join(max(0.0, deadline - time.monotonic()))
        finally:
            for child in stopping:
                if child.is_alive():
                    child.kill()
                    child.join()
            self._children = [child for child in self._children if child not in stopping]


def _epitaph(child: SpawnProcess) -> str:
    code = child.exitcode
    if code is not None and code < 0:
        return f"{child.name} was ended by {signal.Signals(-code).name}"
    return f"{child.name} ended with exit code {code}"


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A child started here never sees the terminal's Ctrl-C: its parent decides when it ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(name: str, target: Callable[..., None], arguments: dict[str, Any]) -> None:
    for signum in _STOP_SIGNALS:
        signal.signal(signum, _leave)
    # Whoever started us may have had them blocked, which is handed down.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()
    try:
        target(**arguments)
    except OSError as error:
        sys.exit(f"{name}: {error}")


def _leave(signum: int, frame: FrameType | None) -> None:
    # The default action would end the process without its exit handlers, and with them what
    # exporters still hold.
    sys.exit(0)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)
