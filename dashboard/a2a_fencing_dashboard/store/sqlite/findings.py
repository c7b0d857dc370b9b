"""The table of standing findings: what the checker said and has not taken back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from a2a_fencing.checker import Finding
from a2a_fencing.checker.report import Identity
from a2a_fencing.facts import TaskKey, split_id
from a2a_fencing_dashboard.store import codec
from a2a_fencing_dashboard.store import summary as m
from a2a_fencing_dashboard.store.protocol import FindingChange
from a2a_fencing_dashboard.store.sqlite.outbox_table import OutboxTable
from a2a_fencing_dashboard.store.sqlite.replicas import ReplicaTable
from a2a_fencing_dashboard.store.sqlite.tallies import TallyTable
from a2a_fencing_dashboard.store.sqlite.tasks import TaskTable
from a2a_fencing_dashboard.store.summary import TaskSummary

_NS: Final = 1_000_000_000


class _Kept(NamedTuple):
    """Number of a finding, and when it was first concluded."""

    id: int
    seen_unix_nano: int


class FindingTable:
    """Adds and removes findings, and counts them where and when they happened."""

    def __init__(
        self,
        db: sqlite3.Connection,
        replicas: ReplicaTable,
        tasks: TaskTable,
        tallies: TallyTable,
        outbox: OutboxTable,
    ) -> None:
        """Works on the writing connection."""
        self._db = db
        self._replicas = replicas
        self._tasks = tasks
        self._tallies = tallies
        self._outbox = outbox
        (self._last_id,) = db.execute("SELECT coalesce(max(id), 0) FROM finding").fetchone()

    def apply(self, changes: Sequence[FindingChange], *, now_unix_nano: int) -> None:
        """Adds and removes findings.

        One that comes back as it goes, in other words or more certain, is the finding that it was: it
        keeps its number, by which people have acknowledged it, and when it was concluded.
        """
        gone: dict[Identity, _Kept] = {}
        for change in changes:
            finding = change.finding
            if change.retracted:
                gone |= self._remove(finding, now_unix_nano)
            else:
                kept = gone.pop(finding.identity, None) or self._new(now_unix_nano)
                self._add(finding, self._tasks.of(finding.task), kept)

    def of(self, task: int, key: TaskKey) -> list[Finding]:
        """The findings that stand for a task; `key` tells which, but for the incarnation."""
        rows = self._db.execute(
            "SELECT rule, severity, certainty, incarnation, witness, explanation, key FROM finding"
            " WHERE task = ?",
            (task,),
        )
        return [
            Finding(
                rule,
                severity,
                certainty,
                replace(key, incarnation=incarnation),
                tuple(msgspec.json.decode(witness)),
                explanation,
                identity,
            )
            for rule, severity, certainty, incarnation, witness, explanation, identity in rows
        ]

    def _new(self, now_unix_nano: int) -> _Kept:
        # Not the database's choice, which gives the number of a finding that was removed again.
        self._last_id += 1
        return _Kept(self._last_id, now_unix_nano)

    def _add(self, finding: Finding, task: TaskSummary, kept: _Kept) -> None:
        replica, at = self._newest_witness(finding, task.id) or (task.origin, task.last)
        self._db.execute(
            "INSERT INTO finding (id, task, run, incarnation, rule, severity, certainty, witness,"
            " explanation, key, replica, at, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                kept.id,
                task.id,
                task.run,
                finding.task.incarnation,
                finding.rule,
                finding.severity,
                finding.certainty,
                msgspec.json.encode(finding.witness).decode(),
                finding.explanation,
                finding.key,
                replica,
                at,
                kept.seen_unix_nano,
            ),
        )
        self._outbox.added(finding, kept.id)
        self._count(finding, task, replica, at, 1)

    def _remove(self, finding: Finding, now_unix_nano: int) -> dict[Identity, _Kept]:
        """Removes a finding by its identity, from whichever incarnation it was added to."""
        kept = {}
        for task in self._tasks.incarnations(finding.task).values():
            removed = self._db.execute(
                "DELETE FROM finding WHERE task = ? AND incarnation = ? AND rule = ? AND key = ?"
                " RETURNING id, replica, at, seen",
                (task.id, finding.task.incarnation, finding.rule, finding.key),
            ).fetchall()
            for row_id, replica, at, seen in removed:
                self._outbox.removed(finding, row_id, task.id, now_unix_nano)
                self._count(finding, task, replica, at, -1)
                kept[finding.identity] = _Kept(row_id, seen)
        return kept

    def _count(self, finding: Finding, task: TaskSummary, replica: int, at: int, step: int) -> None:
        measure = m.VIOLATIONS if finding.violates else m.INFOS
        self._tallies.add(replica, [(at // _NS, measure, finding.rule, step)])
        if finding.violates:
            task.violations += step
            self._tasks.touch(task)

    def _newest_witness(self, finding: Finding, task: int) -> tuple[int, int] | None:
        """Replica and time of the newest fact that shows the finding."""
        found = []
        for fact_id in finding.witness:
            instance, n = split_id(fact_id)
            replica = self._replicas.find(instance)
            if replica is not None:
                rows = self._db.execute(
                    "SELECT body FROM fact WHERE task = ? AND replica = ? AND n = ?",
                    (task, replica.id, n),
                )
                found += [(codec.time_of(body), replica.id) for (body,) in rows]
        if not found:
            return None
        at, row_id = max(found)
        return row_id, at
