"""A history file as a store of its own, for the pages: judged as a whole, apart from what is live."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.checker import Checker
from a2a_fencing.facts import Fact
from a2a_fencing.scoped import joined
from a2a_fencing_dashboard.histories.errors import HistoryError
from a2a_fencing_dashboard.histories.files import read_history
from a2a_fencing_dashboard.store import StoreError, open_store
from a2a_fencing_dashboard.store.protocol import Batch, FindingChange, Span

MOST_FACTS: Final = 100_000
"""In one file: all of them are judged together, in memory."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A history that can be looked at until it is closed.

    Attributes:
        name: What the file is called.
        url: The store that its facts are in.
        facts: How many there are.
        omitted: How many facts of the same replicas the file leaves out and says so.
    """

    name: str
    url: str
    facts: int
    omitted: int
    _folder: tempfile.TemporaryDirectory[str]

    @property
    def title(self) -> str:
        """The name, and that it is a part where it is one."""
        if not self.omitted:
            return self.name
        return f"{self.name} · a part: {self.omitted:,} other facts of the same replicas are left out"

    def close(self) -> None:
        """Forgets the history; the file it came from stays."""
        self._folder.cleanup()


def open_history(path: Path, name: str, *, most: int = MOST_FACTS) -> Opened:
    """Reads a file, judges what is in it, and keeps both in a store for as long as it is looked at.

    Args:
        path: The file, in any format that `read_history` knows.
        name: What to call it.
        most: How many facts it may have.

    Raises:
        HistoryError: It cannot be read, holds no fact or too many; one line says why.
    """
    facts, spans = _read(path, name, most)
    folder = tempfile.TemporaryDirectory(prefix="a2a-fencing-history-")
    url = f"sqlite:///{folder.name}/facts.sqlite"
    try:
        _judge(url, facts, spans)
    except BaseException as error:
        folder.cleanup()
        if isinstance(error, StoreError):
            raise HistoryError(f"{name}: {error}") from error
        raise
    marks = [fact for fact in facts if fact.kind == c.OMITTED]
    omitted = sum((mark.last or mark.n) - mark.n + 1 for mark in marks)
    return Opened(name, url, len(facts) - len(marks), omitted, folder)


def _read(path: Path, name: str, most: int) -> tuple[list[Fact], list[Span]]:
    found: dict[str, Fact] = {}
    spans: list[Span] = []
    try:
        for fact in read_history(path, spans):
            found.setdefault(fact.id, fact)
            if len(found) > most:
                raise HistoryError(
                    f"{name}: more than {most:,} facts; export a run or a task of it"
                    " (a2a-fencing export) or judge it as a whole (a2a-fencing check)"
                )
    except HistoryError as error:
        # People know the file by its name, not by where it was put meanwhile.
        raise HistoryError(str(error).replace(str(path), name)) from error
    if not found:
        raise HistoryError(f"{name}: no facts of a2a-fencing here; was the server instrumented?")
    return joined(found.values()), spans


def _judge(url: str, facts: list[Fact], spans: list[Span]) -> None:
    checker = Checker()
    checker.add(facts)
    keys = {fact.task for fact in facts if fact.task is not None}
    times = {fact.id: fact.time_unix_nano for fact in facts}
    # In the order in which they came to be, as a receiver would have concluded them.
    findings = sorted(
        checker.report().findings,
        key=lambda finding: max((times.get(fact, 0) for fact in finding.witness), default=0),
    )
    batch = Batch(
        facts,
        spans,
        [FindingChange(finding) for finding in findings],
        {key: checker.verdict(key) for key in keys},
    )
    store = open_store(url)
    try:
        # The pages look at it as at the moment when its last fact arrived.
        store.commit(batch, now_unix_nano=max(fact.time_unix_nano for fact in facts))
    finally:
        store.close()
