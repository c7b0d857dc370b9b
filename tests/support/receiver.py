"""The real receiver in a process of its own, to be sent to, stopped and killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from a2a_fencing_dashboard.processes import Supervisor
from a2a_fencing_dashboard.receiver import server
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Store
from support.ports import own_port

HOST = "127.0.0.1"


@dataclass
class ReceiverProcess:
    """A receiver that listens on one port over any number of lives."""

    path: Path
    supervisor: Supervisor
    settings: dict[str, Any]
    port: int = field(default_factory=own_port)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        self.child = self.supervisor.start(
            "receiver",
            server.serve,
            store_url=f"sqlite:///{self.path}",
            host=HOST,
            port=self.port,
            **self.settings,
        )
        self.supervisor.wait_listening(self.child, HOST, self.port)

    def stop(self) -> None:
        """Asks it to end and waits."""
        self.supervisor.stop(self.child)

    def kill(self) -> None:
        """Ends it at once, whatever it is doing."""
        self.child.kill()
        self.child.join()

    @contextmanager
    def stored(self) -> Iterator[Store]:
        """What it has stored, seen from this process."""
        store = open_store(f"sqlite:///{self.path}")
        try:
            yield store
        finally:
            store.close()


@contextmanager
def receiver(path: Path, **settings: Any) -> Iterator[ReceiverProcess]:
    """A running receiver that stores at `path`; takes the settings of `server.serve`."""
    with Supervisor() as supervisor:
        process = ReceiverProcess(path, supervisor, settings)
        process.start()
        yield process
