"""What a run of the demo is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """What a run of the demo is made of.

    Attributes:
        replicas: How many server processes.
        concurrency: How many clients at once.
        seconds: How long new tasks are begun; None until somebody stops it.
        seed: Of the clients' choices.
        dsn: The database that the replicas share.
        folder: Where logs and facts go.
        run: Label of this run.
        guard: Whether the replicas enforce what is otherwise only observed.
    """

    replicas: int
    concurrency: int
    seconds: float | None
    seed: int
    dsn: str
    folder: Path
    run: str
    guard: bool = False
