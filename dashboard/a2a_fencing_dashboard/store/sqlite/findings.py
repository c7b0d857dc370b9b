"""The table of standing findings: what the checker said and has not taken back."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Final

import msgspec

from a2a_fencing.checker import Finding
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

    def apply(self, change: FindingChange, *, now_unix_nano: int) -> None:
        """Adds or removes a finding."""
        if change.retracted:
            self._remove(change.finding, now_unix_nano)
        else:
            self._add(change.finding, self._tasks.of(change.finding.task), now_unix_nano)

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

    def _add(self, finding: Finding, task: TaskSummary, now_unix_nano: int) -> None:
        replica, at = self._newest_witness(finding, task.id) or (task.origin, task.last)
        row = self._db.execute(
            "INSERT INTO finding (task, run, incarnation, rule, severity, certainty, witness,"
            " explanation, key, replica, at, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
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
                now_unix_nano,
            ),
        )
        assert row.lastrowid is not None
        self._outbox.added(finding, row.lastrowid)
        self._count(finding, task, replica, at, 1)

    def _remove(self, finding: Finding, now_unix_nano: int) -> None:
        """Removes a finding by its identity, from whichever incarnation it was added to."""
        for task in self._tasks.incarnations(finding.task).values():
            removed = self._db.execute(
                "DELETE FROM finding WHERE task = ? AND incarnation = ? AND rule = ? AND key = ?"
                " RETURNING id, replica, at",
                (task.id, finding.task.incarnation, finding.rule, finding.key),
            ).fetchall()
            for row_id, replica, at in removed:
                self._outbox.removed(finding, row_id, task.id, now_unix_nano)
                self._count(finding, task, replica, at, -1)

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
