"""Which stores fence nothing: told once a store, whatever number of tasks it holds."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.checker.report import Finding, Identity
from a2a_fencing.checker.rules.store import unfenced
from a2a_fencing.facts import Fact, TaskKey


class Fences:
    """The stores that were written to, with and without versions.

    Attributes:
        findings: One for each store that gives no versions.
    """

    __slots__ = ("_changed", "_first", "_versioned", "findings")

    def __init__(self) -> None:
        self.findings: dict[Identity, Finding] = {}
        self._first: dict[str, tuple[int, str, Fact]] = {}
        self._versioned: set[str] = set()
        self._changed = False

    def take(self, write: Fact, task: TaskKey) -> None:
        """Notes what a write tells of its store."""
        if write.outcome != c.ACCEPTED:
            return
        store = task.store
        if write.version is not None:
            if store not in self._versioned:
                self._versioned.add(store)
                self._changed |= store in self._first
            return
        known = self._first.get(store)
        when = (write.time_unix_nano, write.id)
        if known is None or when < known[:2]:
            self._first[store] = (*when, write)
            self._changed = True

    def judge(self) -> tuple[dict[Identity, Finding], dict[Identity, Finding]] | None:
        """The findings before and after what was noted last; None when they are the same."""
        if not self._changed:
            return None
        self._changed = False
        before, self.findings = self.findings, {}
        for store, (_, _, write) in self._first.items():
            if store not in self._versioned and write.task is not None:
                finding = unfenced(write, write.task)
                self.findings[finding.identity] = finding
        return before, self.findings
