"""Who this process is: the replica's identity, new at every process start and after a fork."""

from __future__ import annotations

import os
import socket
import time
import uuid
from dataclasses import dataclass, field
from importlib import metadata


def _sdk_version() -> str:
    try:
        return metadata.version("a2a-sdk")
    except metadata.PackageNotFoundError:
        return "unknown"


def _default_name() -> str:
    """What people call this replica: a pod or host name, told apart by pid where a host has several."""
    return os.environ.get("A2A_FENCING_REPLICA_NAME") or f"{socket.gethostname()}-{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Replica:
    """One process that runs an A2A server.

    Attributes:
        id: ``service.instance.id``. Made here even where the application configures one, because a
            name that survives a restart would let two numberings of facts collide.
        name: For people; ``A2A_FENCING_REPLICA_NAME`` or host name and pid.
        run: Label of the load-test run, if any.
        sdk_version: Version of a2a-sdk.
        pid: Process id.
        started_unix_nano: When this identity was made.
    """

    run: str | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    name: str = field(default_factory=_default_name)
    sdk_version: str = field(default_factory=_sdk_version)
    pid: int = field(default_factory=os.getpid)
    started_unix_nano: int = field(default_factory=time.time_ns)
