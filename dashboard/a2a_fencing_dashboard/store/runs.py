"""Load-test runs: what a store tells of each as a whole."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from a2a_fencing_dashboard.store.durations import Durations


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run, as the list of runs shows it.

    Attributes:
        label: What `A2A_FENCING_RUN` said.
        replicas: How many reported.
        guarded: How many of them enforce.
        started_unix_nano: When the first of them started, by its own clock.
        first_unix_nano, last_unix_nano: First and last fact about a task, by the replicas' clocks.
        facts: How many arrived.
        missing: How many were numbered and never arrived.
        tasks: How many there were.
        violated_tasks: How many of them broke a rule.
        verdict: Of the run.
    """

    label: str
    replicas: int
    guarded: int
    started_unix_nano: int | None
    first_unix_nano: int | None
    last_unix_nano: int | None
    facts: int
    missing: int
    tasks: int
    violated_tasks: int
    verdict: str

    @property
    def worked_ns(self) -> int:
        """How long tasks were worked on, ns; 0 when none was."""
        if self.first_unix_nano is None or self.last_unix_nano is None:
            return 0
        return self.last_unix_nano - self.first_unix_nano


@dataclass(frozen=True, slots=True)
class RunDurations:
    """How long things took in one run.

    Attributes:
        saves: Accepted writes, as the writing replica measured them.
        tasks: From a task's first fact to its first terminal state, by the replicas' clocks.
    """

    saves: Durations
    tasks: Durations


class RunBook(Protocol):
    """The part of a store that tells of runs."""

    def run_rows(
        self, labels: Collection[str] = (), *, offset: int = 0, limit: int = 50
    ) -> tuple[list[RunRow], int]:
        """Runs, newest first, and how many there are; `labels` asks for certain ones."""

    def run_durations(self, label: str) -> RunDurations:
        """How long things took in this run."""
